//! Sockets of the server: abstract Unix names or loopback UDP.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};

use rustix::process::Uid;

use crate::socket_name;

/// Listening address of a simulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Prefix of abstract Unix socket names, which clients read from `IBSIM_SOCKNAME`.
    Name(String),
    /// UDP on the loopback device. This port (`IBSIM_SERVER_PORT`) is that of the control socket;
    /// the port of client number N is this port + 1 + N. Client numbers whose port is in use are
    /// skipped.
    Port(u16),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "@{name}"),
            Self::Port(port) => write!(f, "127.0.0.1:{port}"),
        }
    }
}

/// Error of opening the control socket.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct BindError {
    /// Listening address.
    pub address: String,
    /// The error of the operating system.
    pub source: io::Error,
}

/// Sender of a control message.
#[derive(Clone, Debug)]
pub(super) enum Sender {
    Name { address: UnixAddress, process: i32, user: u32 },
    Port(SocketAddrV4),
}

impl PartialEq for Sender {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Name { address: a, .. }, Self::Name { address: b, .. }) => {
                a.as_abstract_name().is_some() && a.as_abstract_name() == b.as_abstract_name()
            }
            (Self::Port(a), Self::Port(b)) => a == b,
            _ => false,
        }
    }
}

impl Sender {
    /// Returns true if the sender runs as a trusted user: the user of this process, or root.
    /// Returns true for every UDP sender, because the user of a UDP sender is unknown.
    pub(super) fn is_own_user(&self) -> bool {
        match self {
            Self::Name { user, .. } => ib_os::unix::is_trusted(Uid::from_raw(*user)),
            Self::Port(_) => true,
        }
    }

    /// Returns true if the sender may use this client ID. On Unix sockets, the sender's socket name
    /// must contain the ID; on UDP, any port number is a valid ID.
    pub(super) fn may_be(&self, server: &Address, id: u32) -> bool {
        match (self, server) {
            (Self::Name { address, .. }, Address::Name(base)) => {
                let expected = format!("{base}:ctl{id}");
                let found = address.as_abstract_name().unwrap_or_default();
                found.strip_suffix(b"\0").unwrap_or(found) == expected.as_bytes()
            }
            (Self::Port(_), Address::Port(_)) => u16::try_from(id).is_ok(),
            _ => false,
        }
    }

    /// Returns true if the sender's process is known to have exited. On UDP, the process has exited
    /// if the sender's port is not among the used `ports`.
    pub(super) fn is_dead(&self, ports: Option<&HashSet<u16>>) -> bool {
        match self {
            Self::Name { process, .. } => {
                // SAFETY: signal 0 is not delivered; the call only checks whether the process exists.
                let exists = unsafe { libc::kill(*process, 0) } == 0;
                !exists && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
            }
            Self::Port(address) => ports.is_some_and(|ports| !ports.contains(&address.port())),
        }
    }
}

/// Returns the IPv4 UDP ports that are in use; `None` if the system does not list them.
pub(super) fn bound_ports() -> Option<HashSet<u16>> {
    let text = std::fs::read_to_string("/proc/net/udp").ok()?;
    let port = |line: &str| {
        let local = line.split_whitespace().nth(1)?;
        u16::from_str_radix(local.split_once(':')?.1, 16).ok()
    };
    Some(text.lines().skip(1).filter_map(port).collect())
}

/// The server's socket for control messages of all clients.
pub(super) enum ControlSocket {
    Name(UnixDatagram),
    Port(UdpSocket),
}

impl ControlSocket {
    pub(super) fn bind(address: &Address) -> Result<Self, BindError> {
        let bind = || match address {
            Address::Name(base) => {
                let socket = UnixDatagram::bind_addr(&socket_name(base, "ctl")?)?;
                socket.set_nonblocking(true)?;
                enable_credentials(&socket)?;
                Ok(Self::Name(socket))
            }
            Address::Port(port) => {
                let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, *port))?;
                socket.set_nonblocking(true)?;
                Ok(Self::Port(socket))
            }
        };
        bind().map_err(|source| BindError { address: address.to_string(), source })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Name(socket) => socket.as_fd(),
            Self::Port(socket) => socket.as_fd(),
        }
    }

    /// Receives a datagram with its sender, if any.
    pub(super) fn receive(&self, bytes: &mut [u8]) -> io::Result<Option<(usize, Sender)>> {
        let result = match self {
            Self::Name(socket) => receive_with_credentials(socket, bytes),
            Self::Port(socket) => socket.recv_from(bytes).map(|(length, address)| match address {
                std::net::SocketAddr::V4(address) => (length, Sender::Port(address)),
                std::net::SocketAddr::V6(_) => unreachable!("the socket is IPv4"),
            }),
        };
        match result {
            Ok(received) => Ok(Some(received)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn send(&self, to: &Sender, bytes: &[u8]) -> io::Result<usize> {
        match (self, to) {
            (Self::Name(socket), Sender::Name { address, .. }) => {
                socket.send_to_addr(bytes, address)
            }
            (Self::Port(socket), Sender::Port(address)) => socket.send_to(bytes, address),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }
}

/// The data socket for one client, connected to the client's data socket.
pub(super) enum DataSocket {
    Name(UnixDatagram),
    Port(UdpSocket),
}

impl DataSocket {
    pub(super) fn open(server: &Address, client: u32, id: u32) -> io::Result<Self> {
        match server {
            Address::Name(base) => {
                let socket = UnixDatagram::bind_addr(&socket_name(base, &format!("out{client}"))?)?;
                socket.connect_addr(&socket_name(base, &format!("in{id}"))?)?;
                socket.set_nonblocking(true)?;
                Ok(Self::Name(socket))
            }
            Address::Port(port) => {
                let own = u32::from(*port) + 1 + client;
                let own = u16::try_from(own).map_err(|_| {
                    io::Error::other(format!("no UDP port above {port} is free for a client"))
                })?;
                let peer = u16::try_from(id).map_err(|_| io::ErrorKind::InvalidInput)?;
                let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, own))?;
                socket.connect((Ipv4Addr::LOCALHOST, peer))?;
                socket.set_nonblocking(true)?;
                Ok(Self::Port(socket))
            }
        }
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Name(socket) => socket.as_fd(),
            Self::Port(socket) => socket.as_fd(),
        }
    }
}

/// Enables `SCM_CREDENTIALS`, by which the kernel adds the sender's process to each datagram.
fn enable_credentials(socket: &UnixDatagram) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the option's value is a live `c_int`, whose size is given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PASSCRED,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Receives a datagram. Returns its length, and the sender with address, process and user.
fn receive_with_credentials(
    socket: &UnixDatagram,
    bytes: &mut [u8],
) -> io::Result<(usize, Sender)> {
    // SAFETY: these plain structures are valid if all bits are zero.
    let (mut address, mut header): (libc::sockaddr_un, libc::msghdr) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    let mut control = [0u64; 16];
    let mut vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    header.msg_name = (&raw mut address).cast();
    header.msg_namelen = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control) as _;
    // SAFETY: every pointer of the header refers to live memory of the length that the header gives
    // for it.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT) };
    if length < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut credentials = None;
    // SAFETY: the macros stay within the control buffer and the length that the system stored.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
    while !message.is_null() {
        // SAFETY: a non-null pointer from these macros refers to a whole control message in the
        // buffer.
        unsafe {
            if (*message).cmsg_level == libc::SOL_SOCKET
                && (*message).cmsg_type == libc::SCM_CREDENTIALS
            {
                let data = libc::CMSG_DATA(message).cast::<libc::ucred>();
                credentials = Some(data.read_unaligned());
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
    }
    let credentials = credentials.ok_or(io::ErrorKind::PermissionDenied)?;
    let start = std::mem::offset_of!(libc::sockaddr_un, sun_path);
    let used = (header.msg_namelen as usize).saturating_sub(start).min(address.sun_path.len());
    let path: Vec<u8> = address.sun_path[..used].iter().map(|&c| c as u8).collect();
    let address = match path.split_first() {
        Some((0, name)) => UnixAddress::from_abstract_name(name)?,
        _ => UnixAddress::from_pathname("")?,
    };
    let sender = Sender::Name { address, process: credentials.pid, user: credentials.uid };
    Ok((length as usize, sender))
}
