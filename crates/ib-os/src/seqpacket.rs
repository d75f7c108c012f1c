//! JSON messages with file descriptors over a private Unix socket of type `SOCK_SEQPACKET`.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::{IoSlice, IoSliceMut};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect,
    listen, recvmsg, sendmsg, socket_with,
};
use serde::{Deserialize, Serialize};

/// Maximum size of a message in bytes.
const MAX_MESSAGE: usize = 64 * 1024;

/// Listens on a socket with the given abstract name.
pub fn listen_at(name: &str, flags: SocketFlags) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | flags;
    let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    bind(&listener, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    listen(&listener, 64)?;
    Ok(listener)
}

/// Connects to the socket with the given abstract name. The caller must check the user of the server.
pub fn call(name: &str) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    connect(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    Ok(socket)
}

/// Sends a message with at most three file descriptors.
pub fn send<M: Serialize>(socket: impl AsFd, message: &M, files: &[&OwnedFd]) -> io::Result<()> {
    let text = serde_json::to_vec(message).map_err(io::Error::other)?;
    if text.len() > MAX_MESSAGE {
        let what =
            format!("found a message of {} bytes: expected at most {MAX_MESSAGE}", text.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let files: Vec<_> = files.iter().map(|file| file.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        assert!(
            ancillary.push(SendAncillaryMessage::ScmRights(&files)),
            "at most three descriptors"
        );
    }
    sendmsg(socket, &[IoSlice::new(&text)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Sends a request as [`send`] does. If the server has closed the connection, this is not an error: [`receive`] returns
/// the last message that the server has sent.
pub fn request<M: Serialize>(socket: impl AsFd, message: &M, files: &[&OwnedFd]) -> io::Result<()> {
    match send(socket, message, files) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
            ) =>
        {
            Ok(())
        }
        sent => sent,
    }
}

/// Result of [`receive`].
pub enum Received<M> {
    /// A message, and the file descriptors that were sent with it.
    Message(M, Vec<OwnedFd>),
    /// The data is not a valid message; the text is the reason.
    Malformed(String),
    /// No message has arrived yet.
    Empty,
    /// The peer has disconnected.
    Disconnected,
}

/// Receives the next message without waiting. If there is no message, returns the reason.
pub fn receive<M: for<'a> Deserialize<'a>>(socket: impl AsFd) -> io::Result<Received<M>> {
    let mut bytes = vec![0; MAX_MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let mut take = || recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags);
    let received = match take() {
        // If the peer has closed the socket without reading all messages, the first read fails with ECONNRESET. Further
        // reads return the peer's messages.
        Err(rustix::io::Errno::CONNRESET) => take(),
        received => received,
    };
    let length = match received {
        Ok(received) => received.bytes,
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(Received::Empty),
        Err(rustix::io::Errno::CONNRESET) => return Ok(Received::Disconnected),
        Err(error) => return Err(error.into()),
    };
    if length == 0 {
        return Ok(Received::Disconnected);
    }
    let mut files = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(new) = message {
            files.extend(new);
        }
    }
    Ok(match serde_json::from_slice(&bytes[..length]) {
        Ok(message) => Received::Message(message, files),
        Err(error) => Received::Malformed(error.to_string()),
    })
}

#[cfg(test)]
mod tests;
