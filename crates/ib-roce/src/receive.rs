//! Receives packets: up to 16 datagrams per system call, each of which can contain several packets.

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;

use ib_link::Route;

use ib_os::alarm::Alarm;
use ib_os::batch::header;
use ib_types::Instant;

use crate::icrc::{BTH, Headers, ICRC, IcrcCheck, MAX_PACKET, OWN_IDENTIFICATIONS, Tables};
use crate::options::{RoceReceiveCounters, count};
use crate::udp::{CUT, UdpSocket};
use crate::udp::{Control, SocketAddress, address_of, from_v4, gid_of};

/// Maximum number of invalid packets that one call of [`RoceReceiver::receive`] drops.
const MOST_BAD: u32 = 64;

/// A received packet.
#[derive(Clone, Copy, Debug)]
pub struct RocePacket<'a> {
    /// Route of a response to the packet. Source and destination address are those of the packet,
    /// swapped. The source port is that of the packet, so that responses belong to the packet's
    /// flow. The flow label is zero, because it is not known. The route is weak
    /// ([`Route::is_weak`]) if `icrc` is [`IcrcCheck::ConsistentWithSomeId`].
    pub route: &'a Route,
    /// Bytes from the BTH to the end of the pad.
    pub bytes: &'a [u8],
    /// Result of the ICRC check.
    pub icrc: IcrcCheck,
}

/// The receiving half of a [`RoceSocket`](crate::RoceSocket).
///
/// Packets that the system or the hardware has merged into one datagram (`UDP_GRO`) are returned
/// one by one. For IPv4 packets of a [`RoceSender`](crate::RoceSender), the ICRC check gives
/// [`IcrcCheck::ConsistentWithOwnId`].
pub struct RoceReceiver {
    socket: Arc<UdpSocket>,
    tables: &'static Tables,
    buffer: Box<[u8]>,
    controls: Box<[Control; CALL]>,
    /// Datagrams that the last receive call has returned.
    datagrams: [Datagram; CALL],
    /// Number of datagrams that the last receive call has returned.
    arrived: usize,
    /// Number of datagrams in `datagrams` whose packets were returned or are in `rest`.
    started: usize,
    /// Packets of the current datagram that were not returned yet.
    rest: Segments,
    route: Route,
    headers: Headers,
    /// Headers of recent flows.
    recent: Box<[Option<(Flow, Headers)>; FLOWS]>,
    /// True if the last receive call has emptied the socket.
    is_empty: bool,
    overflows: u32,
    /// Sender of the last packet that was dropped because of a UDP checksum of zero.
    refused: Option<IpAddr>,
    counters: RoceReceiveCounters,
}

#[derive(Clone, Copy)]
struct Datagram {
    source: SocketAddress,
    length: usize,
    control: usize,
    is_truncated: bool,
}

/// The packets of a datagram that were not returned yet.
#[derive(Clone, Copy, Default)]
struct Segments {
    /// Offset in the receive buffer at which the next packet starts.
    next: usize,
    /// Offset in the receive buffer at which the last packet ends.
    end: usize,
    /// Length of each packet; the last packet can be shorter.
    length: usize,
    /// Expected identification of the next packet. It is right if a sender of this crate sent the
    /// datagram and it arrived unchanged.
    guess: u16,
}

impl Segments {
    const fn is_empty(&self) -> bool {
        self.next >= self.end
    }

    /// Removes the next packet. Returns its start in the buffer, its length and its expected
    /// identification.
    #[inline]
    fn take(&mut self) -> (usize, usize, u16) {
        let (start, guess) = (self.next, self.guess);
        let length = self.length.min(self.end - start);
        self.next += length;
        self.guess = (guess + 1) % OWN_IDENTIFICATIONS as u16;
        (start, length, guess)
    }
}

/// Addresses and source port of a flow. They determine the headers of the flow's packets.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Flow {
    own: IpAddr,
    peer: IpAddr,
    peer_port: u16,
}

/// Data from the control messages of a datagram: destination address, segment size, traffic class
/// and hop limit.
struct DatagramInfo {
    own: IpAddr,
    segment: usize,
    traffic_class: u8,
    hop_limit: u8,
}

/// Maximum number of datagrams per system call.
const CALL: usize = 16;

/// Number of cached flows; a power of two.
const FLOWS: usize = 64;

/// Size of the buffer for a datagram of several packets. The size is not a multiple of the page
/// size, so that the starts of datagrams do not share sets of the processor's cache.
const GRO_BUFFER: usize = 65_536 + 192;

/// Size of the buffer for a datagram of one packet.
const PACKET_BUFFER: usize = MAX_PACKET + ICRC + 44;

impl RoceReceiver {
    pub(super) fn new(socket: Arc<UdpSocket>) -> Self {
        let room = if socket.gro { GRO_BUFFER } else { PACKET_BUFFER };
        let nowhere = Ipv6Addr::UNSPECIFIED.into();
        let datagram =
            Datagram { source: SocketAddress::empty(), length: 0, control: 0, is_truncated: false };
        Self {
            socket,
            tables: Tables::get(),
            buffer: vec![0; room * CALL].into_boxed_slice(),
            controls: Box::new([const { Control::new() }; CALL]),
            datagrams: [datagram; CALL],
            arrived: 0,
            started: 0,
            rest: Segments::default(),
            route: Route::default(),
            headers: Headers::new(nowhere, nowhere, 0, 0),
            recent: Box::new([None; FLOWS]),
            is_empty: false,
            overflows: 0,
            refused: None,
            counters: RoceReceiveCounters::default(),
        }
    }

    /// Returns the next packet; `None` if no packet has arrived. Never waits.
    ///
    /// If the last system call has emptied the socket, this function returns the packets of that
    /// system call, and then returns `None` once without another system call. After a wait for
    /// packets, it makes the system call at once. It also returns `None` after 64 invalid packets,
    /// so that a flood of such packets does not block the caller.
    ///
    /// # Errors
    /// Fails if the socket is unusable. The system also reports errors of sent packets here, which
    /// are only counted.
    pub fn receive(&mut self) -> io::Result<Option<RocePacket<'_>>> {
        let mut bad = 0;
        let (start, length, icrc) = loop {
            if bad == MOST_BAD {
                return Ok(None);
            }
            if !self.rest.is_empty() {
                let (start, whole, guess) = self.rest.take();
                if whole == CUT && self.socket.cuts {
                    self.counters.zero_checksum += 1;
                    self.refused = Some(address_of(self.route.destination));
                    bad += 1;
                    continue;
                }
                if !whole.is_multiple_of(4) || !(BTH + ICRC..=MAX_PACKET + ICRC).contains(&whole) {
                    self.counters.malformed += 1;
                    bad += 1;
                    continue;
                }
                let packet = &self.buffer[start..start + whole];
                match self.check(packet, guess) {
                    Some(icrc) => break (start, whole - ICRC, icrc),
                    None => {
                        self.counters.bad_icrc += 1;
                        bad += 1;
                    }
                }
            } else if self.started < self.arrived {
                self.start();
            } else if std::mem::take(&mut self.is_empty) || self.call()? == 0 {
                return Ok(None);
            }
        };
        self.counters.packets += 1;
        self.counters.bytes += length as u64;
        self.route.is_weak = matches!(icrc, IcrcCheck::ConsistentWithSomeId { .. });
        match icrc {
            IcrcCheck::ConsistentWithSomeId { .. } => self.counters.unverifiable += 1,
            IcrcCheck::ConsistentWithOwnId(identification) => {
                // The system may have merged or split the sender's datagrams. So the guess for the
                // next packet continues from the identification of this packet.
                self.rest.guess = (identification + 1) % OWN_IDENTIFICATIONS as u16;
            }
            IcrcCheck::Verified | IcrcCheck::Unchecked => {}
        }
        let bytes = &self.buffer[start..start + length];
        Ok(Some(RocePacket { route: &self.route, bytes, icrc }))
    }

    /// Returns true if [`RoceReceiver::receive`] can return packets without a system call.
    #[must_use]
    pub const fn has_more(&self) -> bool {
        !self.rest.is_empty() || self.started < self.arrived
    }

    /// Returns the sender of the last packet that was dropped because of a UDP checksum of zero;
    /// `None` if no packet was dropped since the last call.
    pub fn take_refused(&mut self) -> Option<IpAddr> {
        self.refused.take()
    }

    /// Returns the counters of received packets.
    #[must_use]
    pub const fn counters(&self) -> &RoceReceiveCounters {
        &self.counters
    }

    /// Returns true if GRO is enabled.
    #[must_use]
    pub fn gro(&self) -> bool {
        self.socket.gro
    }

    /// Waits until a packet arrives, the time `until` has come, or `alarm` is rung.
    ///
    /// # Errors
    /// Fails with the error of `ppoll`.
    pub fn wait(&mut self, until: Instant, alarm: Option<&Alarm>) -> io::Result<()> {
        if self.has_more() {
            return Ok(());
        }
        self.expect_more();
        self.socket.wait(libc::POLLIN, until, alarm)
    }

    /// Makes the next [`RoceReceiver::receive`] do a receive call, even if the previous receive call
    /// has emptied the socket.
    pub(super) const fn expect_more(&mut self) {
        self.is_empty = false;
    }

    fn check(&self, packet: &[u8], guess: u16) -> Option<IcrcCheck> {
        if self.socket.icrc {
            self.headers.check(self.tables, packet, guess)
        } else {
            Some(IcrcCheck::Unchecked)
        }
    }

    const fn room(&self) -> usize {
        self.buffer.len() / CALL
    }

    /// Receives datagrams from the system. Returns their number.
    fn call(&mut self) -> io::Result<usize> {
        let room = self.room();
        (self.arrived, self.started) = (0, 0);
        let mut buffers = self.buffer.chunks_exact_mut(room);
        let mut vectors: [libc::iovec; CALL] = std::array::from_fn(|_| {
            let buffer = buffers.next().expect("each datagram has a buffer");
            libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: room }
        });
        let mut headers = vectors.each_mut().map(header);
        let rest = self.datagrams.iter_mut().zip(self.controls.iter_mut());
        for (header, (datagram, control)) in headers.iter_mut().zip(rest) {
            header.msg_hdr.msg_name = (&raw mut datagram.source).cast();
            header.msg_hdr.msg_namelen = size_of::<SocketAddress>() as libc::socklen_t;
            control.attach_whole(&mut header.msg_hdr);
        }
        // SAFETY: the headers refer to live addresses and control buffers and, by their vectors, to
        // disjoint parts of the live buffer. The headers and vectors contain the lengths of this
        // memory. No other code uses this memory during the call. The null pointer means that there
        // is no timeout.
        let count = unsafe {
            libc::recvmmsg(
                self.socket.file.as_raw_fd(),
                headers.as_mut_ptr(),
                CALL as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => Ok(0),
                Some(libc::EBADF | libc::EFAULT | libc::EINVAL | libc::ENOTSOCK) => Err(error),
                _ => {
                    count_error(&mut self.counters, &error);
                    Ok(0)
                }
            };
        }
        self.arrived = count as usize;
        self.is_empty = self.arrived < CALL;
        for (datagram, header) in self.datagrams.iter_mut().zip(&headers[..self.arrived]) {
            datagram.length = header.msg_len as usize;
            datagram.control = header.msg_hdr.msg_controllen as _;
            datagram.is_truncated = header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
        }
        Ok(self.arrived)
    }

    /// Prepares to return the packets of the next datagram.
    fn start(&mut self) {
        let (index, room) = (self.started, self.room());
        let Datagram { source, length, control, is_truncated } = self.datagrams[index];
        self.started += 1;
        self.counters.batches += 1;
        if is_truncated {
            self.counters.truncated += 1;
            return;
        }
        let info = self.read_control(index, control);
        let (peer, peer_port) = source.get();
        self.headers = self.flow_headers(Flow { own: info.own, peer, peer_port });
        self.route = Route {
            source: gid_of(info.own),
            destination: gid_of(peer),
            is_global: true,
            traffic_class: info.traffic_class,
            hop_limit: info.hop_limit,
            source_port: peer_port,
            ..Route::default()
        };
        let start = index * room;
        let segment = if info.segment == 0 { length } else { info.segment };
        self.rest = Segments { next: start, end: start + length, length: segment, guess: 0 };
        if length == 0 {
            self.counters.malformed += 1;
        }
    }

    /// Reads the control messages of a datagram.
    fn read_control(&mut self, index: usize, length: usize) -> DatagramInfo {
        let number = |data: &[u8]| {
            // The control message of the IPv4 type of service has 1 byte of data; the other numbers
            // that are read have 4.
            data.first_chunk().map_or(i32::from(data[0]), |&bytes| i32::from_ne_bytes(bytes))
        };
        let own = self.socket.address;
        let mut info = DatagramInfo { own, segment: 0, traffic_class: 0, hop_limit: 0 };
        for (level, kind, data) in self.controls[index].messages(length) {
            match (level, kind) {
                _ if data.is_empty() => {}
                (libc::SOL_UDP, libc::UDP_GRO) => info.segment = number(data) as usize,
                (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    info.traffic_class = number(data) as u8;
                }
                (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                    info.hop_limit = number(data) as u8;
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let at = std::mem::offset_of!(libc::in_pktinfo, ipi_addr);
                    if let Some(&bytes) = data.get(at..).and_then(<[u8]>::first_chunk) {
                        let s_addr = u32::from_ne_bytes(bytes);
                        info.own = from_v4(libc::in_addr { s_addr }).into();
                    }
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let at = std::mem::offset_of!(libc::in6_pktinfo, ipi6_addr);
                    if let Some(&bytes) = data.get(at..).and_then(<[u8]>::first_chunk::<16>) {
                        info.own = Ipv6Addr::from(bytes).into();
                    }
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    // The system reports the number of drops since the socket was opened, modulo
                    // 2^32. So only the difference from the previous report is added.
                    let overflows = number(data) as u32;
                    self.counters.overflows += u64::from(overflows.wrapping_sub(self.overflows));
                    self.overflows = overflows;
                }
                _ => {}
            }
        }
        info
    }

    /// Returns the headers of a flow's packets.
    fn flow_headers(&mut self, flow: Flow) -> Headers {
        let last = match flow.peer {
            IpAddr::V4(peer) => peer.octets()[3],
            IpAddr::V6(peer) => peer.octets()[15],
        };
        let slot = &mut self.recent[(usize::from(last) ^ usize::from(flow.peer_port)) % FLOWS];
        if let Some((before, headers)) = slot
            && *before == flow
        {
            return *headers;
        }
        let headers = Headers::new(flow.peer, flow.own, flow.peer_port, self.socket.port);
        *slot = Some((flow, headers));
        headers
    }
}

impl AsFd for RoceReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Counts an error that a receive call has returned. The error can be that of a packet that the
/// socket has sent.
#[cold]
fn count_error(counters: &mut RoceReceiveCounters, error: &io::Error) {
    count(&mut counters.errors, error, 1);
}
