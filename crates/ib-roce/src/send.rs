//! Sends packets: they are written consecutively into a buffer, and sent with few system calls.

mod routes;

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;

use ib_link::Route;

use ib_os::alarm::Alarm;
use ib_os::batch::header;
use ib_types::Instant;

use crate::icrc::{BTH, ICRC, MAX_PACKET, OWN_IDENTIFICATIONS, Tables};
use crate::options::PushError;
use crate::options::{RoceSendCounters, count};
use crate::udp::Control;
use crate::udp::UdpSocket;
use routes::Routes;

/// The sending half of a [`RoceSocket`](crate::RoceSocket).
///
/// Consecutive packets of one route and one size are sent as one datagram, which the system or the
/// hardware segments (`UDP_SEGMENT`). The last packet of a datagram can be shorter. One system call
/// sends up to 32 datagrams.
pub struct RoceSender {
    socket: Arc<UdpSocket>,
    tables: &'static Tables,
    peer_port: u16,
    routes: Routes,
    /// The packets of all batches, consecutively.
    buffer: Box<[u8]>,
    /// Offset in the buffer at which the last packet ends.
    used: usize,
    batches: VecDeque<Batch>,
    gso: Segmentation,
    counters: RoceSendCounters,
}

/// Packets that are sent as one datagram.
#[derive(Clone, Copy)]
struct Batch {
    route: usize,
    /// Offset of the first packet in the buffer.
    start: usize,
    /// Total size of the packets with their ICRCs in bytes.
    length: usize,
    /// Size of each packet with its ICRC; the last packet can be shorter.
    segment: usize,
    packets: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Segmentation {
    On,
    /// The system has rejected a datagram of several packets. Either the system does not support
    /// GSO, or the datagram is invalid.
    Doubted,
    Off,
}

/// Size of the buffer in bytes: four datagrams of maximum size. With a larger buffer, packets would leave the
/// processor's cache before the system copies them.
const BUFFER: usize = 256 * 1024;

/// Maximum number of datagrams per system call.
const CALL: usize = 32;

/// Maximum payload of a datagram over IPv4 in bytes.
const LONGEST: usize = 65_507;

impl RoceSender {
    pub(super) fn new(socket: Arc<UdpSocket>, peer_port: u16) -> Self {
        Self {
            tables: Tables::get(),
            peer_port,
            routes: Routes::default(),
            buffer: vec![0; BUFFER].into_boxed_slice(),
            used: 0,
            batches: VecDeque::with_capacity(CALL),
            gso: if socket.gso { Segmentation::On } else { Segmentation::Off },
            counters: RoceSendCounters::default(),
            socket,
        }
    }

    /// Appends a packet of `length` bytes, from the BTH to the end of the pad. `fill` gets a slice of
    /// `length` bytes with arbitrary content, and writes the packet into it. Then `push` appends the
    /// ICRC. The packet is sent by the next [`RoceSender::flush`], or earlier by a `push` that needs
    /// room.
    ///
    /// The packet is sent from the socket's port; [`Route::source_port`] is ignored. The system
    /// chooses the flow label of IPv6, which the ICRC does not cover. A hop limit of 0 means 64.
    ///
    /// # Errors
    /// Fails before `fill` is called if the buffer is full, or if the length or the route is invalid.
    #[inline]
    pub fn push(
        &mut self,
        route: &Route,
        length: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), PushError> {
        check(length)?;
        self.reserve(length)?;
        let (start, identification) = self.append(route, length)?;
        fill(&mut self.buffer[start..start + length]);
        self.seal(start, length, identification);
        Ok(())
    }

    /// Appends a packet like [`RoceSender::push`]. Serves callers that know the route and length
    /// only after they have written the packet. `write` gets a buffer of [`MAX_PACKET`] bytes and
    /// returns the route and length, or `None` if there is no packet. In the latter case, this
    /// function returns false.
    ///
    /// ```no_run
    /// # fn next(buffer: &mut [u8]) -> Option<(ib_link::Route, usize)> { None }
    /// # fn send(sender: &mut ib_roce::RoceSender) -> Result<(), ib_roce::PushError> {
    /// while sender.push_next(next)? {}
    /// sender.flush();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Fails before `write` is called if the buffer is full. Fails after the call if the length or
    /// the route is invalid; the packet is then lost.
    #[inline]
    pub fn push_next(
        &mut self,
        write: impl FnOnce(&mut [u8]) -> Option<(Route, usize)>,
    ) -> Result<bool, PushError> {
        self.reserve(MAX_PACKET)?;
        let room = &mut self.buffer[self.used..self.used + MAX_PACKET];
        let Some((route, length)) = write(room) else { return Ok(false) };
        check(length)?;
        let (start, identification) = self.append(&route, length)?;
        self.seal(start, length, identification);
        Ok(true)
    }

    /// Sends the packets in the buffer. Returns the number of packets that remain there because the
    /// system's buffers are full. Packets that the system rejects for another reason are counted
    /// and lost.
    pub fn flush(&mut self) -> usize {
        while !self.batches.is_empty() {
            match self.send() {
                Ok(sent) => self.drop_sent(sent),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::ENOBUFS) => {
                        self.counters.full += 1;
                        return self.unsent();
                    }
                    Some(libc::EIO | libc::EINVAL) if self.batches[0].packets > 1 => self.split(),
                    _ => self.drop_refused(&error),
                },
            }
        }
        self.used = 0;
        0
    }

    /// Returns the number of packets in the buffer.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.batches.iter().map(|batch| batch.packets).sum()
    }

    /// Returns the counters of sent packets.
    #[must_use]
    pub const fn counters(&self) -> &RoceSendCounters {
        &self.counters
    }

    /// Returns true if GSO is enabled.
    #[must_use]
    pub fn gso(&self) -> bool {
        self.gso != Segmentation::Off
    }

    /// Waits until the socket is writable, the time `until` has come, or `alarm` is rung.
    ///
    /// # Errors
    /// Fails with the error of `ppoll`.
    pub fn wait(&self, until: Instant, alarm: Option<&Alarm>) -> io::Result<()> {
        self.socket.wait(libc::POLLOUT, until, alarm)
    }

    /// Returns the UDP port to which packets are sent.
    #[must_use]
    pub const fn peer_port(&self) -> u16 {
        self.peer_port
    }

    /// Sets the UDP port to which packets are sent. Applies to packets that are pushed after this
    /// call.
    pub fn set_peer_port(&mut self, port: u16) {
        self.peer_port = port;
        self.routes.forget();
    }

    /// Makes room for a packet of `length` bytes after the packets in the buffer.
    fn reserve(&mut self, length: usize) -> Result<(), PushError> {
        if self.routes.is_full() && self.flush() == 0 {
            self.routes.clear();
        }
        let wire = length + ICRC;
        if self.used + wire > self.buffer.len() || self.batches.len() >= CALL {
            self.make_room(wire)?;
        }
        Ok(())
    }

    /// Adds a packet to the last batch, or starts a new batch. In the buffer, the packet follows all
    /// other packets. Returns the packet's offset in the buffer, and the identification that the
    /// system will give it.
    fn append(&mut self, route: &Route, length: usize) -> Result<(usize, u16), PushError> {
        let number = self.routes.number(route, &self.socket, self.peer_port)?;
        let (start, wire) = (self.used, length + ICRC);
        self.used += wire;
        if self.gso == Segmentation::On
            && let Some(last) = self.batches.back_mut()
            && last.can_add(number, wire)
        {
            last.length += wire;
            last.packets += 1;
            return Ok((start, last.packets as u16 - 1));
        }
        let batch = Batch { route: number, start, length: wire, segment: wire, packets: 1 };
        self.batches.push_back(batch);
        Ok((start, 0))
    }

    /// Appends the ICRC to the last packet in the buffer.
    fn seal(&mut self, start: usize, length: usize, identification: u16) {
        let (bytes, icrc) = self.buffer[start..start + length + ICRC].split_at_mut(length);
        let batch = self.batches.back().expect("the packet was added to a batch");
        let value = if self.socket.icrc {
            let headers = &self.routes.prepared(batch.route).headers;
            headers.icrc(self.tables, bytes, identification)
        } else {
            0
        };
        icrc.copy_from_slice(&value.to_le_bytes());
    }

    /// Makes room for a packet: sends the packets in the buffer, and moves unsent packets to the
    /// start of the buffer.
    #[cold]
    fn make_room(&mut self, wire: usize) -> Result<(), PushError> {
        self.flush();
        let Some(first) = self.batches.front() else { return Ok(()) };
        let gone = first.start;
        if self.batches.len() >= CALL || self.used - gone + wire > self.buffer.len() {
            return Err(PushError::Full);
        }
        self.buffer.copy_within(gone..self.used, 0);
        self.used -= gone;
        for batch in &mut self.batches {
            batch.start -= gone;
        }
        Ok(())
    }

    /// Sends up to 32 batches with one system call. Returns the number of sent batches, at least 1.
    fn send(&mut self) -> io::Result<usize> {
        let count = self.batches.len().min(CALL);
        let mut headers = [const { MaybeUninit::uninit() }; CALL];
        let mut vectors = [const { MaybeUninit::uninit() }; CALL];
        let mut controls = [const { MaybeUninit::uninit() }; CALL];
        for (index, batch) in self.batches.iter().take(count).enumerate() {
            let prepared = self.routes.prepared(batch.route);
            let bytes = &self.buffer[batch.start..batch.start + batch.length];
            let control: &mut Control = controls[index].write(prepared.control);
            if batch.packets > 1 {
                let segment = (batch.segment as u16).to_ne_bytes();
                control.push(libc::SOL_UDP, libc::UDP_SEGMENT, &segment);
            }
            let vector = vectors[index].write(libc::iovec {
                // The system only reads the bytes, so the mutable pointer is sound.
                iov_base: bytes.as_ptr().cast_mut().cast(),
                iov_len: bytes.len(),
            });
            let header = headers[index].write(header(vector));
            header.msg_hdr.msg_name = (&raw const prepared.destination).cast_mut().cast();
            header.msg_hdr.msg_namelen = prepared.destination.length();
            control.attach(&mut header.msg_hdr);
        }
        // SAFETY: the first `count` headers are initialized. They refer to live vectors, addresses and
        // control messages, and the vectors to live bytes. The call only reads all of these, and none
        // of these moves before the call returns.
        let sent = unsafe {
            libc::sendmmsg(
                self.socket.file.as_raw_fd(),
                headers.as_mut_ptr().cast(),
                count as libc::c_uint,
                (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
    }

    fn drop_sent(&mut self, sent: usize) {
        for batch in self.batches.drain(..sent) {
            self.counters.packets += batch.packets as u64;
            self.counters.bytes += (batch.length - batch.packets * ICRC) as u64;
            self.counters.batches += 1;
            if self.gso == Segmentation::Doubted && batch.packets == 1 {
                // The system has accepted a packet alone that it had rejected within a batch. So the
                // system does not support GSO.
                self.gso = Segmentation::Off;
            }
        }
    }

    fn drop_refused(&mut self, error: &io::Error) {
        let batch = self.batches.pop_front().expect("the system has rejected a batch");
        count(&mut self.counters.errors, error, batch.packets as u64);
        if self.gso == Segmentation::Doubted {
            self.gso = Segmentation::On;
        }
    }

    /// Splits the first batch into batches of one packet. The system sends each of these packets
    /// with IPv4 identification 0, so the ICRCs are changed to match it.
    #[cold]
    fn split(&mut self) {
        let batch = self.batches.pop_front().expect("the system has rejected a batch");
        let starts = (0..batch.packets).map(|index| batch.start + index * batch.segment);
        for (index, start) in starts.enumerate().rev() {
            let end = batch.start + batch.length.min((index + 1) * batch.segment);
            let icrc: &mut [u8; ICRC] =
                (&mut self.buffer[end - ICRC..end]).try_into().expect("the range has four bytes");
            if self.socket.icrc && self.socket.address.is_ipv4() {
                let length = end - ICRC - start;
                let change = self.tables.without_identification(length, index as u16);
                *icrc = (u32::from_le_bytes(*icrc) ^ change).to_le_bytes();
            }
            let length = end - start;
            let single = Batch { route: batch.route, start, length, segment: length, packets: 1 };
            self.batches.push_front(single);
        }
        if self.gso == Segmentation::On {
            self.gso = Segmentation::Doubted;
        }
    }
}

impl AsFd for RoceSender {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Batch {
    /// Returns true if a further packet of `wire` bytes with its ICRC can be added to the batch.
    fn can_add(&self, route: usize, wire: usize) -> bool {
        self.route == route
            && wire <= self.segment
            && self.length == self.packets * self.segment
            && self.packets < OWN_IDENTIFICATIONS
            && self.length + wire <= LONGEST
    }
}

/// Checks that the size of a packet is a multiple of 4 bytes, from that of a BTH to [`MAX_PACKET`].
fn check(length: usize) -> Result<(), PushError> {
    let is_legal = length.is_multiple_of(4) && (BTH..=MAX_PACKET).contains(&length);
    if is_legal { Ok(()) } else { Err(PushError::Length { length }) }
}
