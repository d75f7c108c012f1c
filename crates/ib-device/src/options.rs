//! How HCAs are opened, why they are not, and what their keys are drawn from.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use ib_types::Mtu;
use ib_wire::mad::MgmtClass;

use ib_attach::{AttachError, AttachOptions};
use ib_roce::{RoceError, RoceOptions};

/// How an HCA is opened.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// Its address.
    pub address: IpAddr,
    /// How its socket is opened; the address is taken from above.
    pub socket: RoceOptions,
    /// The largest packets, when they are to be smaller than what the network carries.
    pub mtu: Option<Mtu>,
    /// How many packets of a connection may be in flight.
    pub window: u32,
    /// How long [`Device::wait`](crate::Device::wait) looks for something to do before it sleeps.
    pub spin: Duration,
    /// What keys, numbers and sequence numbers are drawn from; `None` for the system's randomness.
    pub seed: Option<[u8; 32]>,
}

impl DeviceOptions {
    /// Returns the usual options of an address.
    #[must_use]
    pub const fn new(address: IpAddr) -> Self {
        Self {
            address,
            socket: RoceOptions::new(address),
            mtu: None,
            window: 256,
            spin: Duration::ZERO,
            seed: None,
        }
    }
}

/// How an HCA is opened at a port of a fabric that another process simulates.
#[derive(Clone, Debug)]
pub struct AttachedOptions {
    /// Which port of which simulator.
    pub port: AttachOptions,
    /// The class of management datagrams that it serves, if any.
    pub class: Option<MgmtClass>,
    /// The largest packets, when they are to be smaller than what the port carries.
    pub mtu: Option<Mtu>,
    /// How many packets of a connection may be in flight.
    pub window: u32,
    /// How long [`Device::wait`](crate::Device::wait) looks for something to do before it sleeps.
    pub spin: Duration,
    /// How long a subnet manager may take to bring the port into service.
    pub patience: Duration,
    /// What keys, numbers and sequence numbers are drawn from; `None` for the system's randomness.
    pub seed: Option<[u8; 32]>,
}

impl AttachedOptions {
    /// Returns the usual options of a port: communication management is served, and it may take ten seconds to be in service.
    #[must_use]
    pub const fn new(port: AttachOptions) -> Self {
        let patience = Duration::from_secs(10);
        let class = Some(MgmtClass::COMMUNICATION);
        Self { port, class, mtu: None, window: 256, spin: Duration::ZERO, patience, seed: None }
    }
}

/// Why there is no HCA.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The socket cannot be had.
    #[error(transparent)]
    Socket(#[from] RoceError),
    /// The machine does not have the address.
    #[error("no network interface has the address {0}")]
    NoInterface(IpAddr),
    /// The network carries no packet of any MTU.
    #[error("the MTU of {name} is {mtu}: RoCEv2 needs 336 or more")]
    SmallMtu {
        /// The interface.
        name: String,
        /// Its MTU.
        mtu: u32,
    },
    /// The simulator does not give the port.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// No subnet manager has brought the port into service.
    #[error(
        "port {number} of {node} is not active: expected a subnet manager, such as that of `ibfabric sim --sm`"
    )]
    NotActive {
        /// The node.
        node: String,
        /// The number of its port.
        number: u8,
    },
    /// The system failed.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// Returns what keys are drawn from, and what the connection manager's numbers are.
pub(crate) fn seeds(given: Option<[u8; 32]>) -> Result<[[u8; 32]; 2], DeviceError> {
    if let Some(seed) = given {
        return Ok([seed, seed.map(|byte| !byte)]);
    }
    let doing = "getting random bytes";
    let random = || ib_os::random().map_err(|source| DeviceError::Io { doing, source });
    Ok([random()?, random()?])
}
