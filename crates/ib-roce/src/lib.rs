//! RoCEv2 over an ordinary UDP socket: packets from the BTH to the end of the pad, without driver
//! or privilege.
//!
//! | module | holds |
//! |---|---|
//! | `options` | [`RoceOptions`], [`RoceError`]: how a socket is opened and why not |
//! | `send` | [`RoceSender`]: packets become datagrams, many with one call |
//! | `receive` | [`RoceReceiver`]: datagrams become packets |
//! | `icrc` | [`IcrcCheck`]: the ICRC, and how it is checked without the whole IP header |
//! | `interface` | [`RoceInterface`]: GIDs, MTU and GUID of the machine's network interfaces |
//! | `counters` | [`RoceCounters`]: what went, what came and what was lost |
//! | `socket`, `control` | the system's side |
//!
//! # Ports
//!
//! A socket sends from the port that it listens on, 4791 by itself, although RoCEv2 wants a port of
//! 49152 or above for each flow. Other implementations take packets from any port. It takes away
//! from networks with several ways the means to spread flows between the same two addresses.
//!
//! # Addresses
//!
//! A socket has one family. An HCA with GIDs of both opens two.
//!
//! # Identifications
//!
//! The ICRC covers the identification of IPv4, which the system chooses: 0 for the packets of a
//! socket that is not connected and forbids fragments, and 0, 1, 2 and so on for those that it cuts
//! a datagram into. The senders here count on both. The system does not tell the identification of
//! what arrives: see [`IcrcCheck`].
//!
//! ```
//! use std::net::Ipv4Addr;
//! use ib_link::Route;
//! use ib_os::clock;
//! use ib_roce::{RoceOptions, RoceSocket};
//!
//! // Each end has its own port here, since both are on the same machine.
//! let options = RoceOptions { port: 0, ..RoceOptions::new(Ipv4Addr::LOCALHOST.into()) };
//! let (mut here, mut there) = (RoceSocket::bind(&options)?, RoceSocket::bind(&options)?);
//! here.set_peer_port(there.port());
//!
//! let gid = Ipv4Addr::LOCALHOST.into();
//! let route = Route { source: gid, destination: gid, is_global: true, ..Route::default() };
//! here.push(&route, 12, |bth| bth.fill(0x64))?;
//! assert_eq!(here.flush(), 0);
//!
//! there.wait(clock::now() + std::time::Duration::from_secs(10), None)?;
//! let packet = there.receive()?.expect("what was sent");
//! assert_eq!(packet.bytes, [0x64; 12]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod control;
mod counters;
mod icrc;
mod interface;
mod options;
mod receive;
mod send;
mod socket;

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use ib_link::Route;
use ib_types::{Gid, Instant};

pub use counters::{ErrorCounters, RoceCounters, RoceReceiveCounters, RoceSendCounters};
use ib_os::alarm::Alarm;
use ib_os::clock;
use ib_os::poll;
pub use icrc::IcrcCheck;
pub use interface::{RoceInterface, active_mtu};
pub use options::{RoceError, RoceOptions};
pub use receive::{RocePacket, RoceReceiver};
pub use send::{PushError, RoceSender};
use socket::Socket;

/// The length of the longest packet in bytes, from the BTH to the end of the pad: the largest payload,
/// and more than all headers before it.
pub const MAX_PACKET: usize = 4096 + 64;

/// How many bytes of an interface's MTU are left to headers.
const HEADERS: usize = 80;

/// The length of a BTH in bytes.
const BTH: usize = 12;

/// The length of an ICRC in bytes.
const ICRC: usize = 4;

/// A link for RoCEv2 packets of one family of addresses.
///
/// Its halves can be borrowed at once, so that an answer can be pushed while the packet is looked at,
/// or be given to two threads.
pub struct RoceSocket {
    sender: RoceSender,
    receiver: RoceReceiver,
    socket: Arc<Socket>,
}

impl RoceSocket {
    /// Opens a socket.
    ///
    /// # Errors
    /// Fails when the address is not the machine's, the port is taken or the system lacks an option
    /// without which RoCEv2 does not work.
    pub fn bind(options: &RoceOptions) -> Result<Self, RoceError> {
        let socket = Arc::new(Socket::bind(options)?);
        Ok(Self {
            sender: RoceSender::new(Arc::clone(&socket), options.peer_port),
            receiver: RoceReceiver::new(Arc::clone(&socket)),
            socket,
        })
    }

    /// Returns the address that it was bound to, which may be unspecified.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.socket.address
    }

    /// Returns the port, which the system has chosen when it was asked for 0.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.socket.port
    }

    /// Returns the sizes of the system's buffers for receiving and for sending in bytes, as it counts
    /// them: Linux doubles what it is asked for, and without privilege keeps to a limit.
    #[must_use]
    pub fn buffer_sizes(&self) -> (usize, usize) {
        (self.socket.receive_buffer, self.socket.send_buffer)
    }

    /// Returns whether several packets are handed over as one.
    #[must_use]
    pub fn gso(&self) -> bool {
        self.sender.gso()
    }

    /// Returns whether several packets are taken as one.
    #[must_use]
    pub fn gro(&self) -> bool {
        self.receiver.gro()
    }

    /// Returns the GIDs of the socket: that of its address, or of all of the machine's addresses of
    /// its family when it is unspecified.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn gids(&self) -> io::Result<Vec<Gid>> {
        if !self.socket.is_unspecified() {
            return Ok(vec![interface::to_gid(self.socket.address)]);
        }
        let interfaces = RoceInterface::all()?;
        let addresses = interfaces.iter().flat_map(|interface| &interface.addresses);
        let own = addresses.filter(|address| address.is_ipv4() == self.socket.address.is_ipv4());
        Ok(own.map(|&address| interface::to_gid(address)).collect())
    }

    /// Joins a multicast group on the interface with a number ([`RoceInterface::index`]), so that the
    /// machine takes what is sent to it. Only a socket with an unspecified address gets to see that:
    /// the packets' routes have the group as their source.
    ///
    /// # Errors
    /// Fails when the GID is no group of the socket's family, there is no such interface or the socket
    /// is a member already.
    pub fn join(&self, group: Gid, interface: u32) -> io::Result<()> {
        self.socket.set_member(interface::to_address(group), interface, true)
    }

    /// Leaves a multicast group.
    ///
    /// # Errors
    /// Fails when the socket is no member.
    pub fn leave(&self, group: Gid, interface: u32) -> io::Result<()> {
        self.socket.set_member(interface::to_address(group), interface, false)
    }

    /// Returns the UDP port that packets go to.
    #[must_use]
    pub const fn peer_port(&self) -> u16 {
        self.sender.peer_port()
    }

    /// As [`RoceSender::set_peer_port`].
    pub fn set_peer_port(&mut self, port: u16) {
        self.sender.set_peer_port(port);
    }

    /// As [`RoceSender::push`].
    ///
    /// # Errors
    /// As [`RoceSender::push`].
    #[inline]
    pub fn push(
        &mut self,
        route: &Route,
        length: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), PushError> {
        self.sender.push(route, length, fill)
    }

    /// As [`RoceSender::push_next`].
    ///
    /// # Errors
    /// As [`RoceSender::push_next`].
    #[inline]
    pub fn push_next(
        &mut self,
        write: impl FnOnce(&mut [u8]) -> Option<(Route, usize)>,
    ) -> Result<bool, PushError> {
        self.sender.push_next(write)
    }

    /// As [`RoceSender::flush`].
    pub fn flush(&mut self) -> usize {
        self.sender.flush()
    }

    /// As [`RoceReceiver::receive`].
    ///
    /// # Errors
    /// As [`RoceReceiver::receive`].
    pub fn receive(&mut self) -> io::Result<Option<RocePacket<'_>>> {
        self.receiver.receive()
    }

    /// As [`RoceReceiver::take_refused`].
    pub fn take_refused(&mut self) -> Option<IpAddr> {
        self.receiver.take_refused()
    }

    /// Returns whether packets that have come already are to be taken, without asking the system.
    #[must_use]
    pub const fn has_more(&self) -> bool {
        self.receiver.has_more()
    }

    /// Flushes, and waits until a packet has come, the clock reaches a moment or the alarm rings; or
    /// until the system takes more packets, when it did not take all.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn wait(&mut self, until: Instant, alarm: Option<&Alarm>) -> io::Result<()> {
        let Some(writes) = self.begin_wait() else { return Ok(()) };
        wait_files(&mut [poll::watched(self.as_fd(), writes), ringing(alarm)], until)
    }

    /// Flushes the send queue and prepares a wait of the caller for this socket to become readable. Returns true if the
    /// caller has to wait for it to become writable, too, and `None` if a packet is there already.
    pub fn begin_wait(&mut self) -> Option<bool> {
        let unsent = self.sender.flush();
        if self.receiver.has_more() {
            return None;
        }
        self.receiver.expect_more();
        Some(unsent != 0)
    }

    /// Lends both halves.
    pub fn halves(&mut self) -> (&mut RoceSender, &mut RoceReceiver) {
        (&mut self.sender, &mut self.receiver)
    }

    /// Gives both halves away, as to two threads.
    #[must_use]
    pub fn into_halves(self) -> (RoceSender, RoceReceiver) {
        (self.sender, self.receiver)
    }

    /// Returns what was counted.
    #[must_use]
    pub fn counters(&self) -> RoceCounters {
        RoceCounters {
            sent: self.sender.counters().clone(),
            received: self.receiver.counters().clone(),
        }
    }
}

impl AsFd for RoceSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl RoceSender {
    /// Waits until the system takes packets, the clock reaches a moment or the alarm rings.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn wait(&self, until: Instant, alarm: Option<&Alarm>) -> io::Result<()> {
        let mut socket = poll::watched(self.as_fd(), true);
        socket.events = libc::POLLOUT;
        wait_files(&mut [socket, ringing(alarm)], until)
    }
}

impl RoceReceiver {
    /// Waits until a packet has come, the clock reaches a moment or the alarm rings.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn wait(&mut self, until: Instant, alarm: Option<&Alarm>) -> io::Result<()> {
        if self.has_more() {
            return Ok(());
        }
        self.expect_more();
        wait_files(&mut [poll::watched(self.as_fd(), false), ringing(alarm)], until)
    }
}

/// Returns an alarm's file to wait for; without an alarm one that is never ready.
fn ringing(alarm: Option<&Alarm>) -> libc::pollfd {
    let never = libc::pollfd { fd: -1, events: 0, revents: 0 };
    alarm.map_or(never, |alarm| poll::watched(alarm.as_fd(), false))
}

fn wait_files(files: &mut [libc::pollfd], until: Instant) -> io::Result<()> {
    poll::wait_any_for(files, until.since(clock::now()))
}

#[cfg(test)]
mod tests;
