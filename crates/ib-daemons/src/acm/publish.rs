//! Files and links by which clients find the ACM service.

use std::fs::{self, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use ib_acm::config::options::{Options, ServerMode};

use super::config::{AcmConfig, DEFAULT_SOCKET};
use crate::error::DaemonError;

/// Symbolic link by which clients find the Unix socket.
const LINK: &str = "/run/ibacm.sock";

/// File in which clients find the TCP port number.
const PORT_FILE: &str = "/run/ibacm-tcp.port";

/// Symbolic link to [`PORT_FILE`], for clients that look for the port number here.
const PORT_LINK: &str = "/run/ibacm.port";

/// Files and links by which clients find the ACM service. Dropping the value removes them.
pub(super) struct Published(Vec<PathBuf>);

impl Published {
    /// Publishes the default sockets. In server mode `Unix`, creates a link to the Unix socket, unless systemd has
    /// opened the socket or `acme_plus_kernel_only` is set. In the other modes, creates a file with the TCP port number
    /// and a link to this file. Creates nothing if the command line specifies the sockets.
    pub(super) fn new(args: &AcmConfig, options: &Options) -> Result<Self, DaemonError> {
        let mut published = Self(Vec::new());
        if !args.has_default_sockets() {
            return Ok(published);
        }
        let failed = |path: &str| {
            let path = path.to_owned();
            move |error| DaemonError::Failed(format!("cannot make {path}: {error}"))
        };
        match options.server_mode {
            ServerMode::Unix => {
                if !args.systemd && !options.acme_plus_kernel_only {
                    published.link(DEFAULT_SOCKET, LINK).map_err(failed(LINK))?;
                }
            }
            ServerMode::Loop | ServerMode::Open => {
                let port = options.server_port;
                write_port(Path::new(PORT_FILE), port).map_err(failed(PORT_FILE))?;
                published.0.push(PORT_FILE.into());
                published.link(PORT_FILE, PORT_LINK).map_err(failed(PORT_LINK))?;
            }
        }
        Ok(published)
    }

    fn link(&mut self, to: &str, at: &str) -> std::io::Result<()> {
        if fs::symlink_metadata(at).is_ok_and(|it| it.is_symlink()) {
            fs::remove_file(at)?;
        }
        symlink(to, at)?;
        self.0.push(at.into());
        Ok(())
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}

/// Writes a port number to a file. The mode becomes 0644, whatever the umask and the mode of an existing file are.
fn write_port(path: &Path, port: u16) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o644).open(path)?;
    file.set_permissions(Permissions::from_mode(0o644))?;
    writeln!(file, "{port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_file_is_writable_by_its_owner_only() {
        let directory = tempfile::tempdir().expect("a temporary directory can be created");
        let path = directory.path().join("ibacm.port");
        for before in [None, Some(0o666)] {
            if let Some(mode) = before {
                fs::set_permissions(&path, Permissions::from_mode(mode))
                    .expect("the mode can be changed");
            }
            write_port(&path, 6125).expect("the file can be written");
            let mode = fs::metadata(&path).expect("the file exists").permissions().mode();
            assert_eq!(mode & 0o777, 0o644);
            assert_eq!(fs::read_to_string(&path).expect("the file can be read"), "6125\n");
        }
    }
}
