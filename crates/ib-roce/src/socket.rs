//! The RoCEv2 link: a sender and a receiver on one UDP socket.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use ib_os::alarm::Alarm;
use ib_types::{Gid, Instant};

use crate::control::{address_of, gid_of};
use crate::counters::RoceCounters;
use crate::error::RoceError;
use crate::interface::RoceInterface;
use crate::options::RoceOptions;
use crate::receive::RoceReceiver;
use crate::send::RoceSender;
use crate::udp::UdpSocket;

/// A link for RoCEv2 packets of one family of addresses.
///
/// Its halves can be borrowed at once, so that a response can be pushed while the request is read. They can be moved
/// out of it, such as to two threads.
pub struct RoceSocket {
    /// The sending half.
    pub sender: RoceSender,
    /// The receiving half.
    pub receiver: RoceReceiver,
    socket: Arc<UdpSocket>,
}

impl RoceSocket {
    /// Opens a socket.
    ///
    /// # Errors
    /// Fails when the address is not the machine's, the port is taken or the system lacks an option
    /// without which RoCEv2 does not work.
    pub fn bind(options: &RoceOptions) -> Result<Self, RoceError> {
        let socket = Arc::new(UdpSocket::bind(options)?);
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

    /// Returns the GIDs of the socket: that of its address, or of all of the machine's addresses of
    /// its family when it is unspecified.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn gids(&self) -> io::Result<Vec<Gid>> {
        if !self.socket.is_unspecified() {
            return Ok(vec![gid_of(self.socket.address)]);
        }
        let interfaces = RoceInterface::all()?;
        let addresses = interfaces.iter().flat_map(|interface| &interface.addresses);
        let own = addresses.filter(|address| address.is_ipv4() == self.socket.address.is_ipv4());
        Ok(own.map(|&address| gid_of(address)).collect())
    }

    /// Joins a multicast group on the interface with a number ([`RoceInterface::index`]), so that the
    /// machine takes what is sent to it. Only a socket with an unspecified address gets to see that:
    /// the packets' routes have the group as their source.
    ///
    /// # Errors
    /// Fails when the GID is no group of the socket's family, there is no such interface or the socket
    /// is a member already.
    pub fn join(&self, group: Gid, interface: u32) -> io::Result<()> {
        self.socket.set_member(address_of(group), interface, true)
    }

    /// Leaves a multicast group.
    ///
    /// # Errors
    /// Fails when the socket is no member.
    pub fn leave(&self, group: Gid, interface: u32) -> io::Result<()> {
        self.socket.set_member(address_of(group), interface, false)
    }

    /// Flushes, and waits until a packet has come, the clock reaches a moment or the alarm rings; or
    /// until the system takes more packets, when it did not take all.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn wait(&mut self, until: Instant, alarm: Option<&Alarm>) -> io::Result<()> {
        let Some(writes) = self.begin_wait() else { return Ok(()) };
        let events = libc::POLLIN | if writes { libc::POLLOUT } else { 0 };
        self.socket.wait(events, until, alarm)
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
