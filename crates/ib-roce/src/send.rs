//! Sending: packets are put one behind the other into a buffer, and the system takes many at once.

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

use crate::control::Control;
use crate::counters::{RoceSendCounters, count};
use crate::error::PushError;
use crate::icrc::{BTH, ICRC, MAX_PACKET, OWN_IDENTIFICATIONS, Tables};
use crate::udp::UdpSocket;
use routes::Routes;

/// The sending half of a [`RoceSocket`](super::RoceSocket).
///
/// Consecutive packets of one route and one length, of which the last may be shorter, become one
/// datagram that the system or the hardware cuts (`UDP_SEGMENT`), and up to 32 such datagrams are
/// handed over with one call.
pub struct RoceSender {
    socket: Arc<UdpSocket>,
    tables: &'static Tables,
    peer_port: u16,
    routes: Routes,
    /// The packets of the batches, one behind the other, and how many bytes they are.
    buffer: Box<[u8]>,
    used: usize,
    batches: VecDeque<Batch>,
    gso: Segmentation,
    counters: RoceSendCounters,
}

/// Packets that are handed to the system as one datagram.
#[derive(Clone, Copy)]
struct Batch {
    route: usize,
    /// Where they are in the buffer.
    start: usize,
    length: usize,
    /// The length of each, ICRC included, but for the last one, which may be shorter.
    segment: usize,
    packets: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Segmentation {
    On,
    /// The system has refused a datagram of several packets, which may be its own fault.
    Doubted,
    Off,
}

/// How many bytes of packets are put together; four of the longest datagrams. More would only push
/// them out of the processor's cache before they are copied.
const BUFFER: usize = 256 * 1024;

/// How many datagrams one call hands over.
const CALL: usize = 32;

/// The longest payload of a datagram over IPv4.
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

    /// Takes a packet of so many bytes from the BTH to the end of the pad, which a function writes
    /// in place; they hold old data before. The ICRC is appended. The packet leaves with
    /// [`RoceSender::flush`], or earlier when the buffer is full.
    ///
    /// The packet leaves from the socket's own port, whatever [`Route::source_port`] wants, and the
    /// system chooses the flow label of IPv6: the ICRC does not cover it. A hop limit of 0 is taken
    /// for 64.
    ///
    /// # Errors
    /// Fails, before the function is called, when nothing can be taken now, or the length or the
    /// route cannot be.
    #[inline]
    pub fn push(
        &mut self,
        route: &Route,
        length: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), PushError> {
        check(length)?;
        self.reserve(length)?;
        let (start, identification) = self.place(route, length)?;
        fill(&mut self.buffer[start..start + length]);
        self.seal(start, length, identification);
        Ok(())
    }

    /// As [`RoceSender::push`], for who knows the route and the length only when the packet is written:
    /// a function gets room for [`MAX_PACKET`] bytes and returns both, or `None` when there is no packet
    /// to send. Returns whether there was one.
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
    /// Fails, before the function is called, when nothing can be taken now; and after it when the length
    /// or the route cannot be: that packet is lost.
    #[inline]
    pub fn push_next(
        &mut self,
        write: impl FnOnce(&mut [u8]) -> Option<(Route, usize)>,
    ) -> Result<bool, PushError> {
        self.reserve(MAX_PACKET)?;
        let room = &mut self.buffer[self.used..self.used + MAX_PACKET];
        let Some((route, length)) = write(room) else { return Ok(false) };
        check(length)?;
        let (start, identification) = self.place(&route, length)?;
        self.seal(start, length, identification);
        Ok(true)
    }

    /// Hands over what was pushed, and returns how many packets the system did not take since its
    /// buffers are full: they are kept for the next time. Packets that it refuses for another reason
    /// are counted and are lost, as they may be on any way.
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

    /// Returns how many packets wait to be handed over.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.batches.iter().map(|batch| batch.packets).sum()
    }

    /// Returns what was counted.
    #[must_use]
    pub const fn counters(&self) -> &RoceSendCounters {
        &self.counters
    }

    /// Returns whether several packets are handed over as one.
    #[must_use]
    pub fn gso(&self) -> bool {
        self.gso != Segmentation::Off
    }

    /// Waits until the system takes packets, the clock reaches a moment or the alarm rings.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn wait(&self, until: Instant, alarm: Option<&Alarm>) -> io::Result<()> {
        self.socket.wait(libc::POLLOUT, until, alarm)
    }

    /// Returns the port that packets are sent to.
    #[must_use]
    pub const fn peer_port(&self) -> u16 {
        self.peer_port
    }

    /// Sets the port that packets pushed from now on are sent to.
    pub fn set_peer_port(&mut self, port: u16) {
        self.peer_port = port;
        self.routes.forget();
    }

    /// Finds room for a packet of so many bytes at the end of what is used.
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

    /// Takes the packet at the end of what is used into a batch, and returns where it starts in the
    /// buffer and the identification that it will have.
    fn place(&mut self, route: &Route, length: usize) -> Result<(usize, u16), PushError> {
        let number = self.routes.number(route, &self.socket, self.peer_port)?;
        let (start, wire) = (self.used, length + ICRC);
        self.used += wire;
        if self.gso == Segmentation::On
            && let Some(last) = self.batches.back_mut()
            && last.takes(number, wire)
        {
            last.length += wire;
            last.packets += 1;
            return Ok((start, last.packets as u16 - 1));
        }
        let batch = Batch { route: number, start, length: wire, segment: wire, packets: 1 };
        self.batches.push_back(batch);
        Ok((start, 0))
    }

    /// Appends the ICRC to the packet that was placed last.
    fn seal(&mut self, start: usize, length: usize, identification: u16) {
        let (bytes, icrc) = self.buffer[start..start + length + ICRC].split_at_mut(length);
        let batch = self.batches.back().expect("a packet has its place in a batch");
        let value = if self.socket.icrc {
            let headers = &self.routes.prepared(batch.route).headers;
            headers.icrc(self.tables, bytes, identification)
        } else {
            0
        };
        icrc.copy_from_slice(&value.to_le_bytes());
    }

    /// Makes room for a packet.
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

    /// Hands over as many batches as one call can, and returns how many were taken, at least one.
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
                // The system only reads from what is sent.
                iov_base: bytes.as_ptr().cast_mut().cast(),
                iov_len: bytes.len(),
            });
            let header = headers[index].write(header(vector));
            header.msg_hdr.msg_name = (&raw const prepared.destination).cast_mut().cast();
            header.msg_hdr.msg_namelen = prepared.destination.length();
            control.attach(&mut header.msg_hdr);
        }
        // SAFETY: the first `count` headers were written. They name live vectors, addresses and
        // control messages, and the vectors live bytes, all of which the call reads. None of them
        // moves before it returns.
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
                // What it refused together it took alone.
                self.gso = Segmentation::Off;
            }
        }
    }

    fn drop_refused(&mut self, error: &io::Error) {
        let batch = self.batches.pop_front().expect("there was something to be refused");
        count(&mut self.counters.errors, error, batch.packets as u64);
        if self.gso == Segmentation::Doubted {
            self.gso = Segmentation::On;
        }
    }

    /// Makes the first batch many, with a packet each. Each will have the identification 0 instead
    /// of the one that its ICRC was made for.
    #[cold]
    fn split(&mut self) {
        let batch = self.batches.pop_front().expect("there was something to be refused");
        let starts = (0..batch.packets).map(|index| batch.start + index * batch.segment);
        for (index, start) in starts.enumerate().rev() {
            let end = batch.start + batch.length.min((index + 1) * batch.segment);
            let icrc: &mut [u8; ICRC] =
                (&mut self.buffer[end - ICRC..end]).try_into().expect("four bytes");
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
    /// Returns whether a further packet may be part of it.
    fn takes(&self, route: usize, wire: usize) -> bool {
        self.route == route
            && wire <= self.segment
            && self.length == self.packets * self.segment
            && self.packets < OWN_IDENTIFICATIONS
            && self.length + wire <= LONGEST
    }
}

/// Returns an error when no packet has so many bytes.
fn check(length: usize) -> Result<(), PushError> {
    let is_legal = length.is_multiple_of(4) && (BTH..=MAX_PACKET).contains(&length);
    if is_legal { Ok(()) } else { Err(PushError::Length { length }) }
}
