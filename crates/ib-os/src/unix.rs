//! Unix sockets with paths in the file system, checks of the peer's user, and inherited descriptors.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::fs::Mode;
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Uid, geteuid, umask};

/// Maximum length of a socket path in bytes (unix(7)).
const MAX_PATH: usize = 107;

/// Lowest descriptor numbers for [`inheritable`], in order of preference. `RLIMIT_NOFILE` may exclude the first ones.
const LOWEST: [i32; 3] = [900, 200, 50];

/// Duplicates a descriptor for a program that this process executes. The program and its child processes inherit the
/// duplicate. It has a high number, because programs such as shells use low numbers.
///
/// # Errors
/// Fails if the process has no free file descriptors.
pub fn inheritable(file: &OwnedFd) -> io::Result<OwnedFd> {
    let duplicate = LOWEST.iter().find_map(|&lowest| fcntl_dupfd_cloexec(file, lowest).ok());
    let duplicate = duplicate.map_or_else(|| file.try_clone(), Ok)?;
    fcntl_setfd(&duplicate, FdFlags::empty())?;
    Ok(duplicate)
}

/// Returns true if the user is root or the user of this process. Only processes of these users are accepted as peers.
pub fn is_trusted(user: Uid) -> bool {
    user.is_root() || user == geteuid()
}

/// Returns true if the process at the other end of a socket belongs to root or to the user of this process.
pub fn is_own_user(socket: impl AsFd) -> bool {
    socket_peercred(socket).is_ok_and(|peer| is_trusted(peer.uid))
}

/// Checks that the server at the other end of a socket belongs to root or to the user of this process. Another user may
/// have taken the abstract name first, or may have created the socket in a shared directory.
///
/// # Errors
/// Fails with [`io::ErrorKind::PermissionDenied`] if a process of another user serves the socket.
pub fn check_server(socket: impl AsFd) -> io::Result<()> {
    check_user(socket_peercred(socket)?.uid)
}

/// Makes the same check as [`check_server`] for the user who has sent a datagram.
pub fn check_user(user: Uid) -> io::Result<()> {
    if is_trusted(user) {
        return Ok(());
    }
    let (found, own) = (user.as_raw(), geteuid().as_raw());
    let what = format!("user {found} serves the socket: expected user {own} or root");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
}

/// Listens on a non-blocking socket at the given path, with the given permissions. Replaces an old socket on which no
/// process listens.
///
/// # Errors
/// Fails if another process listens on the socket, if the file at the path is not a socket, or if the directory is not
/// writable.
pub fn listen(path: &Path, mode: u32) -> io::Result<UnixListener> {
    let length = path.as_os_str().len();
    if length > MAX_PATH {
        let what = format!("found a socket path of {length} bytes: expected at most {MAX_PATH}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    if let Ok(there) = std::fs::symlink_metadata(path) {
        if !there.file_type().is_socket() {
            let what = "the path is not a socket";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
        match UnixStream::connect(path) {
            Ok(_) => return Err(io::ErrorKind::AddrInUse.into()),
            // A socket of another user in a shared directory counts as in use.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            Err(_) => std::fs::remove_file(path)?,
        }
    }
    // Without this umask, other users could connect before `set_permissions`, and their connections would remain open.
    let before = umask(Mode::from_raw_mode(0o777 & !mode));
    let bound = UnixListener::bind(path);
    umask(before);
    let listener = bound?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
