//! The RoCEv2 socket: a sender and a receiver on one UDP socket.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use ib_os::alarm::Alarm;
use ib_types::{Gid, Instant};

use crate::interface::RoceInterface;
use crate::options::{RoceCounters, RoceError, RoceOptions};
use crate::receive::RoceReceiver;
use crate::send::RoceSender;
use crate::udp::UdpSocket;
use crate::udp::{address_of, gid_of};

/// A RoCEv2 socket for packets of one address family.
///
/// `sender` and `receiver` can be borrowed at the same time, so that a response can be pushed while
/// the request is read. They can also be moved out of the socket, for example to two threads.
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
    /// Fails if the machine does not have the IP address, if the port is in use, or if the system
    /// does not support a required socket option.
    pub fn bind(options: &RoceOptions) -> Result<Self, RoceError> {
        let socket = Arc::new(UdpSocket::bind(options)?);
        Ok(Self {
            sender: RoceSender::new(Arc::clone(&socket), options.peer_port),
            receiver: RoceReceiver::new(Arc::clone(&socket)),
            socket,
        })
    }

    /// Returns the local address, which may be unspecified.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.socket.address
    }

    /// Returns the local port. If the options contain port 0, the system has chosen the port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.socket.port
    }

    /// Returns the sizes of the receive and the send buffer of the socket in bytes. Linux doubles
    /// the requested sizes, and limits them for unprivileged processes.
    #[must_use]
    pub fn buffer_sizes(&self) -> (usize, usize) {
        (self.socket.receive_buffer, self.socket.send_buffer)
    }

    /// Returns the GID of the socket's address. If the address is unspecified, returns the GIDs of
    /// all addresses of its family that the machine has.
    ///
    /// # Errors
    /// Fails with the error of `getifaddrs`.
    pub fn gids(&self) -> io::Result<Vec<Gid>> {
        if !self.socket.is_unspecified() {
            return Ok(vec![gid_of(self.socket.address)]);
        }
        let interfaces = RoceInterface::all()?;
        let addresses = interfaces.iter().flat_map(|interface| &interface.addresses);
        let own = addresses.filter(|address| address.is_ipv4() == self.socket.address.is_ipv4());
        Ok(own.map(|&address| gid_of(address)).collect())
    }

    /// Joins a multicast group on the interface with this index ([`RoceInterface::index`]). Only a
    /// socket with an unspecified address receives packets of the group. In the routes of such
    /// packets, the source is the GID of the group.
    ///
    /// # Errors
    /// Fails if the GID is not a multicast group of the socket's family, if the interface does not
    /// exist, or if the socket is a member already.
    pub fn join(&self, group: Gid, interface: u32) -> io::Result<()> {
        self.socket.set_member(address_of(group), interface, true)
    }

    /// Leaves a multicast group.
    ///
    /// # Errors
    /// Fails if the socket is not a member.
    pub fn leave(&self, group: Gid, interface: u32) -> io::Result<()> {
        self.socket.set_member(address_of(group), interface, false)
    }

    /// Flushes the send buffer. Then waits until a packet arrives, the time `until` has come, or
    /// `alarm` is rung. If packets remain in the send buffer, the wait also ends when the socket is
    /// writable.
    ///
    /// # Errors
    /// Fails with the error of `ppoll`.
    pub fn wait(&mut self, until: Instant, alarm: Option<&Alarm>) -> io::Result<()> {
        let Some(writes) = self.begin_wait() else { return Ok(()) };
        let events = libc::POLLIN | if writes { libc::POLLOUT } else { 0 };
        self.socket.wait(events, until, alarm)
    }

    /// Flushes the send buffer before the caller polls the socket together with other descriptors.
    /// Returns `None` if a packet has already arrived, so that the caller must not wait. Returns
    /// `Some(true)` if the caller has to poll for writability too.
    pub fn begin_wait(&mut self) -> Option<bool> {
        let unsent = self.sender.flush();
        if self.receiver.has_more() {
            return None;
        }
        self.receiver.expect_more();
        Some(unsent != 0)
    }

    /// Returns the counters of the sender and the receiver.
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
