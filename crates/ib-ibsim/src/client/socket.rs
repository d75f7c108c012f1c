//! The two sockets of a client: abstract Unix names or UDP.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use rustix::net::sockopt::set_socket_passcred;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::address::ServerAddress;
use crate::message::Control;
use crate::socket_name;
use ib_os::unix::check_user;

/// Upper limit of PIDs on Linux. IDs from this number on identify the second and later clients of a
/// process.
const PROCESSES: u32 = 1 << 22;

/// Control and data socket of a client.
pub(super) enum Sockets {
    /// Unix sockets, whose abstract names contain the client's ID.
    Name { base: String, id: u32, control: UnixDatagram, data: UnixDatagram, attached: bool },
    /// UDP sockets.
    Udp { server: SocketAddr, id: u32, control: UdpSocket, data: UdpSocket, attached: bool },
}

impl Sockets {
    /// Opens both sockets and connects the control socket.
    pub(super) fn open(server: &ServerAddress) -> io::Result<Self> {
        match server {
            ServerAddress::Name(base) => {
                let server = socket_name(base, "ctl")?;
                let (id, control) = bind_control(base)?;
                set_socket_passcred(&control, true)?;
                control.connect_addr(&server)?;
                let data = UnixDatagram::bind_addr(&socket_name(base, &format!("in{id}"))?)?;
                Ok(Self::Name { base: base.clone(), id, control, data, attached: false })
            }
            ServerAddress::Udp { host, port } => {
                let server = (host.as_str(), *port).to_socket_addrs()?;
                let server = server.into_iter().find(SocketAddr::is_ipv4).ok_or_else(|| {
                    io::Error::new(io::ErrorKind::AddrNotAvailable, "the host has no IPv4 address")
                })?;
                let (control, data) =
                    (UdpSocket::bind("0.0.0.0:0")?, UdpSocket::bind("0.0.0.0:0")?);
                control.connect(server)?;
                let id = u32::from(data.local_addr()?.port());
                Ok(Self::Udp { server, id, control, data, attached: false })
            }
        }
    }

    /// Returns the ID of the client for the connect message.
    pub(super) const fn id(&self) -> u32 {
        match self {
            Self::Name { id, .. } | Self::Udp { id, .. } => *id,
        }
    }

    /// Connects the data socket after the server has returned the client's number.
    pub(super) fn connect_data(&mut self, number: u32) -> io::Result<()> {
        match self {
            Self::Name { base, data, attached, .. } => {
                *attached = true;
                data.connect_addr(&socket_name(base, &format!("out{number}"))?)?;
                data.set_nonblocking(true)
            }
            Self::Udp { server, data, attached, .. } => {
                *attached = true;
                let port = u32::from(server.port()) + 1 + number;
                let port = u16::try_from(port).map_err(|_| io::ErrorKind::InvalidData)?;
                data.connect(SocketAddr::new(server.ip(), port))?;
                data.set_nonblocking(true)
            }
        }
    }

    /// Returns true if the client is attached, so that it has to disconnect.
    pub(super) const fn is_attached(&self) -> bool {
        match self {
            Self::Name { attached, .. } | Self::Udp { attached, .. } => *attached,
        }
    }

    pub(super) fn send_control(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Name { control, .. } => control.send(bytes),
            Self::Udp { control, .. } => control.send(bytes),
        }
        .map(drop)
    }

    /// Receives a control message; `None` after the time limit.
    pub(super) fn receive_control(
        &self,
        bytes: &mut [u8],
        limit: Duration,
    ) -> io::Result<Option<usize>> {
        // A socket timeout of zero would mean that the call waits without limit.
        let limit = Some(limit.max(Duration::from_millis(1)));
        let heard = match self {
            Self::Name { control, .. } => {
                control.set_read_timeout(limit)?;
                receive_from_own_user(control, bytes)
            }
            Self::Udp { control, .. } => {
                control.set_read_timeout(limit)?;
                control.recv(bytes)
            }
        };
        match heard {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Discards control messages that wait in the socket.
    pub(super) fn discard_answers(&self) -> io::Result<()> {
        let socket = self.control().as_raw_fd();
        let mut bytes = [0_u8; Control::LENGTH];
        loop {
            // SAFETY: the call writes at most the given length into a live buffer.
            let length = unsafe {
                libc::recv(socket, bytes.as_mut_ptr().cast(), bytes.len(), libc::MSG_DONTWAIT)
            };
            if length < 0 {
                let error = io::Error::last_os_error();
                return match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused => Ok(()),
                    io::ErrorKind::Interrupted => continue,
                    _ => Err(error),
                };
            }
        }
    }

    pub(super) fn control(&self) -> BorrowedFd<'_> {
        match self {
            Self::Name { control, .. } => control.as_fd(),
            Self::Udp { control, .. } => control.as_fd(),
        }
    }

    pub(super) fn data(&self) -> BorrowedFd<'_> {
        match self {
            Self::Name { data, .. } => data.as_fd(),
            Self::Udp { data, .. } => data.as_fd(),
        }
    }
}

/// Receives a datagram. Fails unless its `SCM_CREDENTIALS` name this process's user or root as the
/// sender.
///
/// This check of the control socket also covers the data socket: the server binds the name of its
/// data socket before it replies, so no other user can bind this name.
fn receive_from_own_user(socket: &UnixDatagram, bytes: &mut [u8]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let bytes = &mut [IoSliceMut::new(bytes)];
    let received = recvmsg(socket, bytes, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let user = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmCredentials(sender) => Some(sender.uid),
        _ => None,
    });
    check_user(user.ok_or(io::ErrorKind::PermissionDenied)?)?;
    Ok(received.bytes)
}

/// Binds the control socket to the first free ID: the PID, as clients of ibsim do, or an ID above
/// all PIDs.
fn bind_control(base: &str) -> io::Result<(u32, UnixDatagram)> {
    let process = std::process::id();
    for further in 0..1_u32 << 10 {
        let id = process % PROCESSES + further * PROCESSES;
        match UnixDatagram::bind_addr(&socket_name(base, &format!("ctl{id}"))?) {
            Ok(socket) => return Ok((id, socket)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}
