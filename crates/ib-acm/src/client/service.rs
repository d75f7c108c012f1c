//! Addresses of services, and how clients find them.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Default TCP port of services.
pub const DEFAULT_PORT: u16 = 6125;

/// IP address of this machine's service, if clients connect to it over TCP.
const THIS_HOST: &str = "127.0.0.1";

/// Address of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServiceAddress {
    /// Path of a Unix domain socket.
    #[cfg(unix)]
    Unix(PathBuf),
    /// A TCP port.
    Tcp {
        /// Name or IP address of the host.
        host: String,
        /// Port number.
        port: u16,
    },
}

impl ServiceAddress {
    /// Finds the service of this machine in the same way as librdmacm: at the TCP port in the port file or, if the
    /// file is missing or has no port, at [`ServiceFiles::socket`].
    #[must_use]
    pub fn find() -> Self {
        Self::find_in(&ServiceFiles::default())
    }

    /// Like [`find`](Self::find), but with the given files.
    #[must_use]
    pub fn find_in(files: &ServiceFiles) -> Self {
        match files.port() {
            Some(port) => Self::tcp(THIS_HOST, port),
            None => Self::local(&files.socket),
        }
    }

    /// Returns the address that `ib_acme` uses by default: [`ServiceFiles::own_socket`] on this machine.
    #[must_use]
    pub fn default_for_machine() -> Self {
        Self::local(&ServiceFiles::default().own_socket)
    }

    /// Parses the address of a service. On Unix, a text with a `/` is the path of a Unix domain socket. Any other text
    /// is the name or the IP address of a host. The TCP port of that host is then read from this machine's port file.
    /// If the file has no port, the TCP port is [`DEFAULT_PORT`].
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self::from_text_in(text, &ServiceFiles::default())
    }

    /// Like [`Self::from_text`], but with the given files.
    #[must_use]
    pub fn from_text_in(text: &str, files: &ServiceFiles) -> Self {
        #[cfg(unix)]
        if text.contains('/') {
            return Self::Unix(text.into());
        }
        Self::tcp(text, files.port().unwrap_or(DEFAULT_PORT))
    }

    /// Returns the address for a TCP port of a host.
    #[must_use]
    pub fn tcp(host: &str, port: u16) -> Self {
        Self::Tcp { host: host.to_owned(), port }
    }

    /// Returns the address of a Unix domain socket. On systems without such sockets, returns the default TCP port of
    /// this machine.
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

/// Paths of the files by which clients find the service of their machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceFiles {
    /// Text file with the TCP port of the service. It exists only while the service listens on TCP.
    pub port_file: PathBuf,
    /// Unix domain socket that librdmacm and other programs use.
    pub socket: PathBuf,
    /// Unix domain socket that `ib_acme` uses by default.
    pub own_socket: PathBuf,
}

impl ServiceFiles {
    /// Returns the port in the port file; `None` if there is no file or the file has no port.
    fn port(&self) -> Option<u16> {
        let mut text = String::new();
        // Reads a bounded number of bytes, because the caller may have named a large file.
        File::open(&self.port_file).ok()?.take(16).read_to_string(&mut text).ok()?;
        text.split_whitespace().next()?.parse().ok().filter(|&port| port != 0)
    }
}

impl Default for ServiceFiles {
    /// Returns the file paths that ibacm uses.
    fn default() -> Self {
        Self {
            port_file: "/run/ibacm.port".into(),
            socket: "/run/ibacm.sock".into(),
            own_socket: "/run/ibacm-unix.sock".into(),
        }
    }
}
