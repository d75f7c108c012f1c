//! Sockets in the file system.

use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::fs::Mode;
use rustix::process::umask;

/// Listens at a socket of the file system with some permissions, also where one was left behind; it does not wait.
///
/// # Errors
/// Fails when somebody listens there, something else is there, or the directory takes no socket.
pub(crate) fn listen(path: &Path, mode: u32) -> io::Result<UnixListener> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
    if is_socket {
        match UnixStream::connect(path) {
            Ok(_) => return Err(io::ErrorKind::AddrInUse.into()),
            // Somebody else's, in a directory of all.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            Err(_) => std::fs::remove_file(path)?,
        }
    }
    // Nobody else may come in between: a connection stays, whatever the permissions are then.
    let before = umask(Mode::from_raw_mode(0o777 & !mode));
    let bound = UnixListener::bind(path);
    umask(before);
    let listener = bound?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
