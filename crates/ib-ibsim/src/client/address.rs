//! Address of a simulator and options of a client. Both can be read from the environment variables
//! of Debian's `libumad2sim.so`.

use std::fmt;
use std::time::Duration;

/// Default time that a client waits for the server to start, and for each reply of the server.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

/// Address of a simulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAddress {
    /// Prefix of abstract Unix socket names.
    Name(String),
    /// UDP.
    Udp {
        /// Host name or IP address of the server.
        host: String,
        /// UDP port of the server's control socket.
        port: u16,
    },
}

/// Error of an environment variable.
#[derive(Debug, thiserror::Error)]
#[error("IBSIM_SERVER_PORT is {found:?}: expected a port number, 0 to 65535")]
pub struct AddressError {
    /// Value of `IBSIM_SERVER_PORT`.
    pub found: String,
}

impl ServerAddress {
    /// Returns the address from the environment: UDP with `IBSIM_SERVER_NAME` and `IBSIM_SERVER_PORT` [default: 7070],
    /// or else the socket name `IBSIM_SOCKNAME` [default: sim].
    ///
    /// # Errors
    /// Fails if the port is not a number.
    pub fn from_environment() -> Result<Self, AddressError> {
        let Some(host) = text("IBSIM_SERVER_NAME") else {
            return Ok(Self::Name(text("IBSIM_SOCKNAME").unwrap_or_else(|| "sim".to_owned())));
        };
        let port = text("IBSIM_SERVER_PORT").map_or(Ok(7070), |port| {
            port.trim().parse().map_err(|_| AddressError { found: port.clone() })
        })?;
        Ok(Self::Udp { host, port })
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "@{name}:ctl"),
            Self::Udp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// Options of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attach {
    /// Address of the simulator.
    pub server: ServerAddress,
    /// Name or description of the node; `None` for the first node.
    pub node: Option<String>,
    /// True if the client sets `IsSM` while it attaches.
    pub is_sm: bool,
    /// Time that the client waits for the server to start, and for each reply of the server.
    pub patience: Duration,
}

impl Attach {
    /// Returns the options to attach to the first node of a simulator.
    #[must_use]
    pub const fn new(server: ServerAddress) -> Self {
        Self { server, node: None, is_sm: false, patience: DEFAULT_TIMEOUT }
    }

    /// Returns the options from the environment. `SIM_HOST` is the node, and `SIM_SET_ISSM` sets
    /// `IsSM`. [`ServerAddress::from_environment`] returns the server's address.
    ///
    /// # Errors
    /// As [`ServerAddress::from_environment`].
    pub fn from_environment() -> Result<Self, AddressError> {
        Ok(Self {
            node: text("SIM_HOST"),
            is_sm: std::env::var_os("SIM_SET_ISSM").is_some(),
            ..Self::new(ServerAddress::from_environment()?)
        })
    }
}

/// Returns the value of an environment variable; `None` if the variable is unset or empty.
fn text(name: &str) -> Option<String> {
    let value = std::env::var_os(name)?.to_string_lossy().into_owned();
    (!value.is_empty()).then_some(value)
}
