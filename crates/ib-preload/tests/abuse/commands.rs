//! Commands and work requests of the misbehaving program, in the layouts of `ib_user_verbs.h` and `rdma_user_rxe.h`.

use std::os::fd::RawFd;

use super::memory::Arena;

/// Virtual address of the memory region, for SGEs and RDMA requests.
const IOVA: u32 = 0x0010_0000;

/// Initial value of the words of a response; the device has not written a word that still has this value.
pub(crate) const UNWRITTEN: u32 = 0xdead_beef;

/// Size of the uverbs core's response to an extended command, in 32-bit words.
const CORE: usize = 64;

macro_rules! kinds {
    ($($name:ident),*) => {
        /// A command with valid fields.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Kind { $($name),* }

        impl Kind {
            pub(crate) const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

kinds!(
    GetContext,
    QueryDevice,
    QueryDeviceEx,
    QueryPort,
    AllocPd,
    DeallocPd,
    CreateAh,
    DestroyAh,
    RegMr,
    ReregMr,
    DeregMr,
    AllocMw,
    DeallocMw,
    CreateCompChannel,
    CreateCq,
    CreateCqEx,
    ResizeCq,
    ReqNotifyCq,
    DestroyCq,
    CreateRc,
    CreateRcWithSrq,
    CreateUc,
    CreateUd,
    CreateQpEx,
    QueryQp,
    ToInit,
    ToRtr,
    ToRts,
    ToSqd,
    ToErr,
    ToReset,
    ModifyQpEx,
    DestroyQp,
    PostSend,
    AttachMcast,
    DetachMcast,
    CreateSrq,
    CreateXsrq,
    ModifySrq,
    QuerySrq,
    DestroySrq
);

/// Class of objects that have handles.
#[derive(Clone, Copy)]
enum Class {
    Pd,
    Mr,
    Mw,
    Ah,
    Cq,
    Qp,
    Srq,
}

/// Numbers that the program knows: handles, keys and queue pair numbers.
pub(crate) struct Words {
    gid: [u8; 16],
    handles: [Vec<u32>; 7],
    keys: Vec<u32>,
    /// Handle, QPN and type of each queue pair.
    queues: Vec<(u32, u32, u8)>,
    channel: u32,
    pool: Vec<u32>,
    /// Selects the objects of the next commands; 0 selects the objects that were created last.
    pub(crate) turn: usize,
}

/// Concatenates four bytes to a word in native byte order.
const fn word(bytes: [u8; 4]) -> u32 {
    u32::from_ne_bytes(bytes)
}

impl Words {
    pub(crate) fn new(gid: [u8; 16]) -> Self {
        let pool = vec![IOVA, IOVA + 8, 0x1111_1111];
        let (handles, keys, queues) = (<[Vec<u32>; 7]>::default(), Vec::new(), Vec::new());
        Self { gid, handles, keys, queues, channel: u32::MAX, pool, turn: 0 }
    }

    /// Returns a number that has a meaning for the device, or is an edge case. Returns `None` if the caller has to
    /// choose an arbitrary number.
    pub(crate) fn pool(&self, place: usize) -> Option<u32> {
        const EDGES: [u32; 16] = [
            0,
            1,
            2,
            3,
            8,
            15,
            16,
            17,
            31,
            64,
            4096,
            32767,
            32768,
            1 << 31,
            u32::MAX,
            u32::MAX - 1,
        ];
        match place {
            0..96 => Some(EDGES[place % EDGES.len()]),
            96..224 => Some(self.pool[place % self.pool.len()]),
            _ => None,
        }
    }

    fn chosen<'a, T>(&self, from: &'a [T]) -> Option<&'a T> {
        match self.turn {
            0 => from.last(),
            turn => from.get(turn % from.len().max(1)),
        }
    }

    fn handle(&self, class: Class) -> u32 {
        self.chosen(&self.handles[class as usize]).copied().unwrap_or(0)
    }

    fn queue(&self) -> (u32, u32, u8) {
        self.chosen(&self.queues).copied().unwrap_or_default()
    }

    fn gid(&self) -> [u32; 4] {
        std::array::from_fn(|at| word(std::array::from_fn(|byte| self.gid[at * 4 + byte])))
    }

    /// Returns a command. The device writes the response into the 512-byte buffer at the address `response`.
    pub(crate) fn command(&self, kind: Kind, arena: &Arena, response: u64) -> Vec<u8> {
        use Class::{Ah, Cq, Mr, Mw, Pd, Qp, Srq};
        let of = |class| self.handle(class);
        let [low, high] = [arena.writable() as u32, (arena.writable() >> 32) as u32];
        let length = arena.length() as u32;
        let [a, b, c, d] = self.gid();
        let (number, fields) = match kind {
            Kind::GetContext => (0, vec![]),
            Kind::QueryDevice => (1, vec![]),
            Kind::QueryDeviceEx => return extended(1, &[0, 0], response),
            Kind::QueryPort => (2, vec![word([1, 0, 0, 0]), 0]),
            Kind::AllocPd => (3, vec![]),
            Kind::DeallocPd => return plain(4, &[of(Pd)]),
            Kind::CreateAh => {
                let end = [0, word([0, 64, 0, 0]), 0, word([0, 1, 1, 0])];
                (5, [&[0, 0, of(Pd), 0, a, b, c, d][..], &end].concat())
            }
            Kind::DestroyAh => return plain(8, &[of(Ah)]),
            Kind::RegMr => (9, vec![low, high, length, 0, IOVA, 0, of(Pd), 0x1f]),
            Kind::ReregMr => {
                let flags = 1 + self.turn as u32 % 7;
                (11, vec![of(Mr), flags, low, high, length / 2, 0, low, high, of(Pd), 0x1f])
            }
            Kind::DeregMr => return plain(13, &[of(Mr)]),
            Kind::AllocMw => (14, vec![of(Pd), word([1 + self.turn as u8 % 2, 0, 0, 0])]),
            Kind::DeallocMw => return plain(16, &[of(Mw)]),
            Kind::CreateCompChannel => (17, vec![]),
            Kind::CreateCq => (18, vec![0, 0, 100, 0, self.channel, 0]),
            Kind::CreateCqEx => {
                return extended(18, &[0, 0, 100, 0, self.channel, 0, 0, 0], response);
            }
            Kind::ResizeCq => (19, vec![of(Cq), self.turn as u32 * 3]),
            Kind::ReqNotifyCq => return plain(23, &[of(Cq), self.turn as u32 % 2]),
            Kind::DestroyCq => (20, vec![of(Cq), 0]),
            Kind::CreateRc => (24, self.create_qp(2, 0)),
            Kind::CreateRcWithSrq => (24, self.create_qp(2, 1)),
            Kind::CreateUc => (24, self.create_qp(3, 0)),
            Kind::CreateUd => (24, self.create_qp(4, 0)),
            Kind::CreateQpEx => {
                let fields = [self.create_qp(2 + self.turn as u8 % 3, 0), vec![0; 4]].concat();
                return extended(24, &fields, response);
            }
            Kind::QueryQp => (25, vec![self.queue().0, 0]),
            Kind::ToInit => return plain(26, &self.modify(1)),
            Kind::ToRtr => return plain(26, &self.modify(2)),
            Kind::ToRts => return plain(26, &self.modify(3)),
            Kind::ToSqd => return plain(26, &self.modify(4)),
            Kind::ToErr => return plain(26, &self.modify(6)),
            Kind::ToReset => return plain(26, &self.modify(0)),
            Kind::ModifyQpEx => {
                return extended(
                    26,
                    &[self.modify(self.turn as u8 % 7), vec![0; 2]].concat(),
                    response,
                );
            }
            Kind::DestroyQp => (27, vec![self.queue().0, 0]),
            Kind::PostSend => (28, vec![self.queue().0, 0, 0, 0]),
            Kind::AttachMcast | Kind::DetachMcast => {
                let number = if kind == Kind::AttachMcast { 30 } else { 31 };
                return plain(number, &[word([0xff, 0x0e, 0, 0]), 0, 0, d, of(Qp), 0]);
            }
            Kind::CreateSrq => (32, vec![0, 0, of(Pd), 20, 4, 0]),
            Kind::CreateXsrq => (39, vec![0, 0, 0, of(Pd), 20, 4, 0, 0, 0, 0]),
            Kind::ModifySrq => {
                let turn = self.turn as u32;
                let to = [response as u32, (response >> 32) as u32];
                return plain(33, &[of(Srq), 1 + turn % 3, turn, turn % 5, to[0], to[1]]);
            }
            Kind::QuerySrq => (34, vec![of(Srq), 0]),
            Kind::DestroySrq => (35, vec![of(Srq), 0]),
        };
        let address = [response as u32, (response >> 32) as u32];
        legacy(number, 100, &[&address[..], &fields].concat())
    }

    fn create_qp(&self, qp_type: u8, is_srq: u8) -> Vec<u32> {
        let [pd, cq, srq] = [Class::Pd, Class::Cq, Class::Srq].map(|class| self.handle(class));
        let flags = word([self.turn as u8 % 2, qp_type, is_srq, 0]);
        vec![0, 0, pd, cq, cq, srq, 16, 16, 4, 4, 64, flags]
    }

    /// Returns the fields of a MODIFY_QP to this state. The queue pair is connected to itself.
    fn modify(&self, state: u8) -> Vec<u32> {
        let (handle, number, qp_type) = self.queue();
        let mask = match (state, qp_type) {
            (1, 4) => 0x71,
            (1, _) => 0x39,
            (2, 2) => 0x12_9181,
            (2, 3) => 0x10_1181,
            (3, 2) => 0x1_2e01,
            (3, _) => 0x1_0001,
            _ => 1,
        };
        let mut words = vec![0; 28];
        words[..4].copy_from_slice(&self.gid());
        words[6] = word([0, 64, 0, 0]);
        words[7] = word([0, 0, 1, 1]);
        words[16..23].copy_from_slice(&[handle, mask, 0x1111_1111, 7, 7, number, 0xf]);
        words[24] = word([state, 0, 3, 0]);
        words[25] = word([0, 4, 4, 1]);
        words[26] = word([1, 1, 1, 1]);
        words
    }

    /// Stores the numbers in the response of a successful command.
    pub(crate) fn learn(&mut self, kind: Kind, response: &[u32]) {
        if response[0] == UNWRITTEN {
            return;
        }
        let known = response.iter().take_while(|&&word| word != UNWRITTEN);
        self.pool.extend(known.take(8));
        if self.pool.len() > 128 {
            self.pool.drain(..64);
        }
        let class = match kind {
            Kind::CreateCompChannel => {
                self.channel = response[0];
                return;
            }
            Kind::AllocPd => Class::Pd,
            Kind::RegMr => {
                self.keys.push(response[1]);
                Class::Mr
            }
            Kind::AllocMw => {
                self.keys.push(response[1]);
                Class::Mw
            }
            Kind::CreateAh => Class::Ah,
            Kind::CreateCq | Kind::CreateCqEx => Class::Cq,
            Kind::CreateSrq | Kind::CreateXsrq => Class::Srq,
            Kind::CreateRc
            | Kind::CreateRcWithSrq
            | Kind::CreateUc
            | Kind::CreateUd
            | Kind::CreateQpEx => {
                let qp_type = match kind {
                    Kind::CreateUc => 3,
                    Kind::CreateUd => 4,
                    Kind::CreateQpEx => 2 + self.turn as u8 % 3,
                    _ => 2,
                };
                self.queues.push((response[0], response[1], qp_type));
                Class::Qp
            }
            _ => return,
        };
        self.handles[class as usize].push(response[0]);
    }

    /// Returns the words of a ring element of `size` bytes: a send or receive request.
    pub(crate) fn request(
        &self,
        (code, choice): (u32, u8),
        size: usize,
        arena: &Arena,
    ) -> Vec<u32> {
        let key = self.keys.get(usize::from(choice) % self.keys.len().max(1)).copied().unwrap_or(0);
        let (handle, number, _) = self.queue();
        let mut words = vec![0; size / 4];
        let sge = [IOVA + u32::from(choice) * 8, 0, u32::from(choice) * 64 % 5000, key];
        if size < 256 {
            // A receive: the DMA structure is at byte 16, and the SGEs follow at byte 40.
            let count = usize::from(choice % 5).min((size.saturating_sub(40)) / 16);
            if let Some(place) = words.get_mut(7) {
                *place = count as u32;
            }
            for at in 0..count {
                words[10 + at * 4..14 + at * 4].copy_from_slice(&sge);
            }
            return words;
        }
        words[0] = u32::from(choice);
        (words[3], words[4], words[5]) = (code, 2 | u32::from(choice & 13), key);
        // The union `wr`: address and R_Key of RDMA requests; QPN, Q_Key and address handle of datagrams.
        words[6..14].copy_from_slice(&[IOVA, 0, key, self.handle(Class::Ah), 1, 0, key, 0]);
        if choice & 1 == 0 {
            words[6..8].copy_from_slice(&[number, 0x1111_1111]);
        }
        if code == 8 {
            let address =
                [IOVA, 0, arena.length() as u32 / 2, 0, key, handle, u32::from(choice), 0xf];
            words[6..14].copy_from_slice(&address);
        }
        // The DMA structure is at byte 184. The SGEs or the inline data follow at byte 208.
        words[46] = u32::from(choice % 80);
        words[49] = 1;
        words[52..56].copy_from_slice(&sge);
        words
    }
}

/// Returns the file descriptor in the response to a command, if the command returns one.
pub(crate) fn descriptors_of(kind: Kind, response: &[u32]) -> Option<RawFd> {
    let has_descriptor = matches!(kind, Kind::GetContext | Kind::CreateCompChannel);
    (has_descriptor && response[0] != UNWRITTEN).then_some(response[0] as RawFd)
}

/// Returns the offsets and sizes of rings in the response of a command.
pub(crate) fn rings_of(kind: Kind, response: &[u32]) -> Vec<(u64, u32)> {
    let places: &[usize] = match kind {
        Kind::CreateCq | Kind::ResizeCq => &[2],
        Kind::CreateCqEx => &[CORE],
        Kind::CreateRc | Kind::CreateRcWithSrq | Kind::CreateUc | Kind::CreateUd => &[8, 12],
        Kind::CreateQpEx => &[CORE, CORE + 4],
        Kind::CreateSrq | Kind::CreateXsrq => &[4],
        Kind::ModifySrq => &[0],
        _ => &[],
    };
    let found = places.iter().map(|&at| &response[at..at + 4]);
    let found = found.filter(|info| info[2] != UNWRITTEN && info[2] > 0);
    found.map(|info| (u64::from(info[0]) | u64::from(info[1]) << 32, info[2])).collect()
}

/// Returns true if the word at an offset of a command is part of its header or of an address of the program's memory.
pub(crate) fn has_pointer(command: &[u8], place: usize) -> bool {
    let number = command.first().copied().unwrap_or(0);
    let is_extended = command.get(3).is_some_and(|byte| byte & 0x80 != 0);
    match place {
        0..8 => true,
        8..16 => is_extended || !matches!(number, 4 | 8 | 13 | 16 | 23 | 26 | 30 | 31 | 33),
        16..24 => number == 9 && !is_extended,
        24..32 => matches!(number, 11 | 33) && !is_extended,
        _ => false,
    }
}

fn legacy(number: u32, out_words: u16, words: &[u32]) -> Vec<u8> {
    let mut bytes = number.to_ne_bytes().to_vec();
    bytes.extend_from_slice(&(words.len() as u16 + 2).to_ne_bytes());
    bytes.extend_from_slice(&out_words.to_ne_bytes());
    bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    bytes
}

/// Returns a command without a response.
fn plain(number: u32, words: &[u32]) -> Vec<u8> {
    legacy(number, 0, words)
}

/// Returns an extended command. Its response has [`CORE`] words of the uverbs core, followed by 32 words of the driver.
fn extended(number: u32, words: &[u32], response: u64) -> Vec<u8> {
    let mut bytes = (number | 1 << 31).to_ne_bytes().to_vec();
    bytes.extend_from_slice(&(words.len() as u16 / 2).to_ne_bytes());
    bytes.extend_from_slice(&(CORE as u16 / 2).to_ne_bytes());
    bytes.extend_from_slice(&response.to_ne_bytes());
    bytes.extend_from_slice(&0_u16.to_ne_bytes());
    bytes.extend_from_slice(&16_u16.to_ne_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    bytes
}
