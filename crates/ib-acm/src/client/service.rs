//! Where the service is, and how programs find it.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The TCP port of services that say no other.
pub const DEFAULT_PORT: u16 = 6125;

/// The host of a service that is only known by its port.
const THIS_HOST: &str = "127.0.0.1";

/// Where a service takes connections.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServiceAddress {
    /// At a socket of the file system.
    #[cfg(unix)]
    Unix(PathBuf),
    /// At a TCP port.
    Tcp {
        /// The name or the address of the host.
        host: String,
        /// The port.
        port: u16,
    },
}

impl ServiceAddress {
    /// Returns where programs of this machine find the service, as librdmacm does: at the TCP port that the port file
    /// names, or else at the socket that any program may use.
    #[must_use]
    pub fn find() -> Self {
        Self::find_in(&ServiceFiles::default())
    }

    /// Returns the same for files at other places.
    #[must_use]
    pub fn find_in(files: &ServiceFiles) -> Self {
        match files.port() {
            Some(port) => Self::tcp(THIS_HOST, port),
            None => Self::local(&files.socket),
        }
    }

    /// Returns where administrators' programs find the service of this machine unless told, as `ib_acme` does: at the
    /// socket that the service itself has made.
    #[must_use]
    pub fn default_for_machine() -> Self {
        Self::local(&ServiceFiles::default().own_socket)
    }

    /// Parses the address of a service. A text with a `/` is the path of a socket. Any other text is the name or address of
    /// a host; its port is that of this machine's port file, or [`DEFAULT_PORT`].
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self::from_text_in(text, &ServiceFiles::default())
    }

    /// Returns the same for files at other places.
    #[must_use]
    pub fn from_text_in(text: &str, files: &ServiceFiles) -> Self {
        #[cfg(unix)]
        if text.contains('/') {
            return Self::Unix(text.into());
        }
        Self::tcp(text, files.port().unwrap_or(DEFAULT_PORT))
    }

    /// Returns a TCP port of a host.
    #[must_use]
    pub fn tcp(host: &str, port: u16) -> Self {
        Self::Tcp { host: host.to_owned(), port }
    }

    /// Returns a socket of this machine; its usual port where there are no such sockets.
    fn local(socket: &Path) -> Self {
        if cfg!(unix) {
            #[cfg(unix)]
            return Self::Unix(socket.to_owned());
        }
        let _ = socket;
        Self::tcp(THIS_HOST, DEFAULT_PORT)
    }
}

impl fmt::Display for ServiceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(unix)]
            Self::Unix(path) => path.display().fmt(f),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// The files by which programs of a machine find its service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceFiles {
    /// What the service's TCP port is in, as text, while it has one.
    pub port_file: PathBuf,
    /// The socket for any program.
    pub socket: PathBuf,
    /// The socket for administrators' programs and the kernel.
    pub own_socket: PathBuf,
}

impl ServiceFiles {
    /// Returns the port in the port file; `None` when there is no file, or no port in it.
    fn port(&self) -> Option<u16> {
        let mut text = String::new();
        // No more than a number takes, whatever lies there.
        File::open(&self.port_file).ok()?.take(16).read_to_string(&mut text).ok()?;
        text.split_whitespace().next()?.parse().ok().filter(|&port| port != 0)
    }
}

impl Default for ServiceFiles {
    /// Returns the files of ibacm.
    fn default() -> Self {
        Self {
            port_file: "/run/ibacm.port".into(),
            socket: "/run/ibacm.sock".into(),
            own_socket: "/run/ibacm-unix.sock".into(),
        }
    }
}
