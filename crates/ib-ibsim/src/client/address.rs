//! Where a simulator is and what a client wants of it; the environment that Debian's library reads.

use std::fmt;
use std::time::Duration;

/// How long a client waits for a server and for its answers unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where a simulator is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAddress {
    /// By abstract Unix names that start with this one.
    Name(String),
    /// By UDP.
    Udp {
        /// The name or address of the machine.
        host: String,
        /// The port of its control socket.
        port: u16,
    },
}

/// Why the environment names no server.
#[derive(Debug, thiserror::Error)]
#[error("IBSIM_SERVER_PORT is {found:?}, expected a port number")]
pub struct AddressError {
    /// What it says.
    pub found: String,
}

impl ServerAddress {
    /// Returns what the environment names: UDP with `IBSIM_SERVER_NAME` and `IBSIM_SERVER_PORT`
    /// (7070), else the socket name of `IBSIM_SOCKNAME` (`sim`).
    ///
    /// # Errors
    /// Fails when the port is no number.
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

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attach {
    /// The simulator.
    pub server: ServerAddress,
    /// The node to speak through, by name or description; `None` for the first one.
    pub node: Option<String>,
    /// Whether to have the duty of a subnet manager from the start.
    pub is_sm: bool,
    /// How long to wait for the server to come up, and for each of its answers.
    pub patience: Duration,
}

impl Attach {
    /// Attaches to the first node of a simulator.
    #[must_use]
    pub const fn new(server: ServerAddress) -> Self {
        Self { server, node: None, is_sm: false, patience: PATIENCE }
    }

    /// Returns what the environment asks for: `SIM_HOST` names the node, `SIM_SET_ISSM` gives the
    /// duty of a subnet manager, [`ServerAddress::from_environment`] the server.
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

/// Returns a variable of the environment unless it is empty.
fn text(name: &str) -> Option<String> {
    let value = std::env::var_os(name)?.to_string_lossy().into_owned();
    (!value.is_empty()).then_some(value)
}
