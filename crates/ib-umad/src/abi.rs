//! The binary interface of `/dev/infiniband/umadN`, version 5. Numbers are in the machine's byte order unless noted
//! otherwise.
//!
//! ```text
//!  0 agent  4 status  8 timeout in ms  12 retries  16 length
//! 20 queue pair, big-endian   24 Q_Key, big-endian   28 LID, big-endian   30 SL   31 path bits
//! 32 GRH present   33 index of the local GID   34 hop limit   35 traffic class   36 GID (16)
//! 52 flow label, big-endian   56 index of the P_Key (2)   58 reserved (6)
//! ```
//!
//! The header has 56 bytes if `ENABLE_PKEY` was not called.

/// ABI version in `/sys/class/infiniband_mad/abi_version`.
pub const ABI_VERSION: u32 = 5;

/// Size of the header in bytes if [`ENABLE_PKEY`] was not called.
pub const SHORT_HEADER: usize = 56;

/// Size of the header in bytes after [`ENABLE_PKEY`].
pub const HEADER: usize = 64;

/// Maximum number of agents of an open file.
pub const MAX_AGENTS: usize = 32;

/// ioctl: registers an agent. The argument is a structure of 28 bytes, see [`Registration::from_old`].
pub const REGISTER_AGENT: u32 = 0xc01c_1b01;

/// ioctl: removes an agent. The argument is the number of the agent, 4 bytes.
pub const UNREGISTER_AGENT: u32 = 0x4004_1b02;

/// ioctl: enables headers of 64 bytes. It must be called before the first agent is registered.
pub const ENABLE_PKEY: u32 = 0x1b03;

/// ioctl: registers an agent. The argument is a structure of 40 bytes, see [`Registration::from_new`].
pub const REGISTER_AGENT2: u32 = 0xc028_1b04;

/// Flag of [`REGISTER_AGENT2`]: the program handles RMPP itself.
pub const USER_RMPP: u32 = 1;

/// The header that precedes each MAD that is read from a device or written to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UmadHeader {
    /// The agent that sends or receives the MAD.
    pub agent: u32,
    /// 0, or an error number. [`libc::ETIMEDOUT`] means that a request has received no response.
    pub status: u32,
    /// How long the kernel waits for a response, in milliseconds; 0 if none is expected.
    pub timeout_ms: u32,
    /// How often the kernel retransmits a request that has received no response.
    pub retries: u32,
    /// In a received MAD, the size of header and message in bytes.
    pub length: u32,
    /// Remote QP number.
    pub queue_pair: u32,
    /// Remote Q_Key.
    pub q_key: u32,
    /// Remote LID.
    pub lid: u16,
    /// SL.
    pub sl: u8,
    /// Path bits of the local LID.
    pub path_bits: u8,
    /// True if the MAD has a GRH.
    pub grh_present: bool,
    /// Index of the source GID in the port's GID table.
    pub gid_index: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Traffic class.
    pub traffic_class: u8,
    /// Remote GID.
    pub gid: [u8; 16],
    /// Flow label.
    pub flow_label: u32,
    /// Index of the P_Key in the port's P_Key table.
    pub p_key_index: u16,
}

impl UmadHeader {
    /// Parses a header of 56 or 64 bytes. A header of 56 bytes has no P_Key index, which becomes 0.
    ///
    /// # Panics
    /// Panics if there are fewer than 56 bytes.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        let big = |at: usize| u32::from_be_bytes(chunk(bytes, at));
        let own = |at: usize| u32::from_ne_bytes(chunk(bytes, at));
        let long = bytes.len() >= HEADER;
        Self {
            agent: own(0),
            status: own(4),
            timeout_ms: own(8),
            retries: own(12),
            length: own(16),
            queue_pair: big(20),
            q_key: big(24),
            lid: u16::from_be_bytes(chunk(bytes, 28)),
            sl: bytes[30],
            path_bits: bytes[31],
            grh_present: bytes[32] != 0,
            gid_index: bytes[33],
            hop_limit: bytes[34],
            traffic_class: bytes[35],
            gid: chunk(bytes, 36),
            flow_label: big(52),
            p_key_index: if long { u16::from_ne_bytes(chunk(bytes, 56)) } else { 0 },
        }
    }

    /// Formats the header of 64 bytes. Its first 56 bytes are the short header.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let own = [self.agent, self.status, self.timeout_ms, self.retries, self.length];
        for (index, value) in own.into_iter().enumerate() {
            bytes[4 * index..][..4].copy_from_slice(&value.to_ne_bytes());
        }
        bytes[20..24].copy_from_slice(&self.queue_pair.to_be_bytes());
        bytes[24..28].copy_from_slice(&self.q_key.to_be_bytes());
        bytes[28..30].copy_from_slice(&self.lid.to_be_bytes());
        let grh = u8::from(self.grh_present);
        let single = [self.sl, self.path_bits, grh, self.gid_index, self.hop_limit];
        bytes[30..35].copy_from_slice(&single);
        bytes[35] = self.traffic_class;
        bytes[36..52].copy_from_slice(&self.gid);
        bytes[52..56].copy_from_slice(&self.flow_label.to_be_bytes());
        bytes[56..58].copy_from_slice(&self.p_key_index.to_ne_bytes());
        bytes
    }
}

/// Registration of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// Number of the agent, set by the device.
    pub agent: u32,
    /// Local QP: 0 or 1.
    pub queue_pair: u32,
    /// Management class; 0 for an agent that only sends.
    pub class: u8,
    /// Version of the class.
    pub class_version: u8,
    /// Flags: [`USER_RMPP`].
    pub flags: u32,
    /// Methods of unsolicited MADs to receive, one bit each.
    pub methods: u128,
    /// OUI of a vendor class, 24 bits.
    pub oui: u32,
    /// RMPP version that the kernel handles for the agent: 1, or 0 if the kernel does not handle RMPP.
    pub rmpp_version: u8,
}

impl Registration {
    /// Size of the structure of [`REGISTER_AGENT`] in bytes.
    pub const OLD: usize = 28;
    /// Size of the structure of [`REGISTER_AGENT2`] in bytes.
    pub const NEW: usize = 40;

    /// Parses the structure of [`REGISTER_AGENT`].
    ///
    /// ```text
    /// 0 agent   4 methods (16)   20 queue pair   21 class   22 version   23 OUI (3)   26 RMPP version
    /// ```
    #[must_use]
    pub fn from_old(bytes: &[u8; Self::OLD]) -> Self {
        Self {
            agent: u32::from_ne_bytes(chunk(bytes, 0)),
            queue_pair: bytes[20].into(),
            class: bytes[21],
            class_version: bytes[22],
            flags: 0,
            methods: words(
                (0..4).map(|word| u32::from_ne_bytes(chunk(bytes, 4 + 4 * word)).into()),
                32,
            ),
            oui: u32::from_be_bytes([0, bytes[23], bytes[24], bytes[25]]),
            rmpp_version: bytes[26],
        }
    }

    /// Formats the structure of [`REGISTER_AGENT`]; it has no flags.
    #[must_use]
    pub fn to_old(&self) -> [u8; Self::OLD] {
        let mut bytes = [0; Self::OLD];
        bytes[..4].copy_from_slice(&self.agent.to_ne_bytes());
        for word in 0..4 {
            let methods = (self.methods >> (32 * word)) as u32;
            bytes[4 + 4 * word..][..4].copy_from_slice(&methods.to_ne_bytes());
        }
        bytes[20..23].copy_from_slice(&[self.queue_pair as u8, self.class, self.class_version]);
        bytes[23..26].copy_from_slice(&self.oui.to_be_bytes()[1..]);
        bytes[26] = self.rmpp_version;
        bytes
    }

    /// Parses the structure of [`REGISTER_AGENT2`].
    ///
    /// ```text
    ///  0 agent   4 queue pair   8 class   9 version   12 flags   16 methods (16)   32 OUI (4)
    /// 36 RMPP version
    /// ```
    #[must_use]
    pub fn from_new(bytes: &[u8; Self::NEW]) -> Self {
        Self {
            agent: u32::from_ne_bytes(chunk(bytes, 0)),
            queue_pair: u32::from_ne_bytes(chunk(bytes, 4)),
            class: bytes[8],
            class_version: bytes[9],
            flags: u32::from_ne_bytes(chunk(bytes, 12)),
            methods: words(
                (0..2).map(|word| u64::from_ne_bytes(chunk(bytes, 16 + 8 * word)).into()),
                64,
            ),
            oui: u32::from_ne_bytes(chunk(bytes, 32)),
            rmpp_version: bytes[36],
        }
    }

    /// Formats the structure of [`REGISTER_AGENT2`].
    #[must_use]
    pub fn to_new(&self) -> [u8; Self::NEW] {
        let mut bytes = [0; Self::NEW];
        bytes[..4].copy_from_slice(&self.agent.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.queue_pair.to_ne_bytes());
        bytes[8..10].copy_from_slice(&[self.class, self.class_version]);
        bytes[12..16].copy_from_slice(&self.flags.to_ne_bytes());
        for word in 0..2 {
            let methods = (self.methods >> (64 * word)) as u64;
            bytes[16 + 8 * word..][..8].copy_from_slice(&methods.to_ne_bytes());
        }
        bytes[32..36].copy_from_slice(&self.oui.to_ne_bytes());
        bytes[36] = self.rmpp_version;
        bytes
    }
}

/// Concatenates words of the given width. The first word is the least significant one.
fn words(words: impl Iterator<Item = u128>, bits: u32) -> u128 {
    words.zip(0..).fold(0, |sum, (word, index)| sum | word << (index * bits))
}

fn chunk<const LENGTH: usize>(bytes: &[u8], at: usize) -> [u8; LENGTH] {
    *bytes[at..].first_chunk().expect("the field is within the structure")
}

#[cfg(test)]
mod tests;
