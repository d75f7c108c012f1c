//! Options and errors of opening HCAs.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use ib_types::Mtu;
use ib_wire::mad::MgmtClass;

use ib_attach::{AttachError, AttachOptions};
use ib_roce::{RoceError, RoceOptions};

/// Options of an HCA on Ethernet.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// IP address of the HCA.
    pub address: IpAddr,
    /// Options of the HCA's socket. Their `address` is ignored: the HCA's address is used.
    pub socket: RoceOptions,
    /// Upper limit of the path MTU; `None` for the limit of the network interface only.
    pub mtu: Option<Mtu>,
    /// Maximum number of packets in flight per connection. If `None`, the limit is 256 for an HCA with its own socket,
    /// because the socket's buffers limit the window. For an HCA at an HCA daemon, it is the number of slots of a ring.
    pub window: Option<u32>,
    /// Time that [`Device::wait`](crate::Device::wait) polls before it sleeps.
    pub spin: Duration,
    /// Seed of keys, queue pair numbers and PSNs; `None` for a random seed.
    pub seed: Option<[u8; 32]>,
}

impl DeviceOptions {
    /// Returns the default options for an address.
    #[must_use]
    pub const fn new(address: IpAddr) -> Self {
        Self {
            address,
            socket: RoceOptions::new(address),
            mtu: None,
            window: None,
            spin: Duration::ZERO,
            seed: None,
        }
    }
}

/// Options of an HCA at a port of a fabric that another process simulates.
#[derive(Clone, Debug)]
pub struct AttachedOptions {
    /// The simulator to attach to, and the port in its fabric.
    pub port: AttachOptions,
    /// Management class that the HCA serves, if any.
    pub class: Option<MgmtClass>,
    /// Upper limit of the path MTU; `None` for the limit of the port only.
    pub mtu: Option<Mtu>,
    /// Maximum number of packets in flight per connection.
    pub window: u32,
    /// Time that [`Device::wait`](crate::Device::wait) polls before it sleeps.
    pub spin: Duration,
    /// Time within which an SM has to activate the port.
    pub patience: Duration,
    /// Seed of keys, queue pair numbers and PSNs; `None` for a random seed.
    pub seed: Option<[u8; 32]>,
}

impl AttachedOptions {
    /// Returns the default options for a port. The HCA serves communication management. The port
    /// has to become Active within ten seconds.
    #[must_use]
    pub const fn new(port: AttachOptions) -> Self {
        let patience = Duration::from_secs(10);
        let class = Some(MgmtClass::COMMUNICATION);
        Self { port, class, mtu: None, window: 256, spin: Duration::ZERO, patience, seed: None }
    }
}

/// The reason why an HCA cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The socket cannot be opened.
    #[error(transparent)]
    Socket(#[from] RoceError),
    /// No network interface of the machine has the address.
    #[error("no network interface has the address {0}")]
    NoInterface(IpAddr),
    /// The MTU of the interface is too small for the smallest path MTU, 256 bytes.
    #[error("the MTU of {name} is {mtu}: RoCEv2 needs at least 336 bytes")]
    SmallMtu {
        /// Name of the interface.
        name: String,
        /// MTU of the interface.
        mtu: u32,
    },
    /// The HCA could not be attached to the simulator.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The server's port has another link layer than expected for this kind of server.
    #[error(
        "{name}: found the other link layer; expected InfiniBand at a simulator, and Ethernet at an HCA daemon"
    )]
    LinkLayer {
        /// Name of the server.
        name: String,
    },
    /// The port did not become Active in time.
    #[error(
        "port {number} of {node} is not active: expected a subnet manager, such as that of `ibfabric sim --sm`"
    )]
    NotActive {
        /// Name of the node that has the port.
        node: String,
        /// Number of this port on its node.
        number: u8,
    },
    /// A system call failed.
    #[error("{doing}: {source}")]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Returns the seeds of the HCA and of the connection manager: derived from `given`, or random if `given` is `None`.
pub(crate) fn seeds(given: Option<[u8; 32]>) -> Result<[[u8; 32]; 2], DeviceError> {
    if let Some(seed) = given {
        return Ok([seed, seed.map(|byte| !byte)]);
    }
    let doing = "getting random bytes";
    let random = || ib_os::random().map_err(|source| DeviceError::Io { doing, source });
    Ok([random()?, random()?])
}
