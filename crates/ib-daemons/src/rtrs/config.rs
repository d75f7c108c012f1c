//! The configuration of servers and clients.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use ib_rtrs::Policy;
use ib_storage::nbd::NbdAddress;
use ib_types::Mtu;

use super::endpoint::{Network, RequestedPath};
use crate::own_capture::OwnCapture;

/// The configuration of HCAs.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// The name of the simulator at whose ports the HCAs are; `None` for RoCEv2.
    pub attach: Option<String>,
    /// The nodes of the simulated fabric, as `NODE` or `NODE:PORT`; the first host if it is empty.
    pub node: Vec<String>,
    /// The ACM service that is queried for paths and names.
    pub acm: Option<String>,
    /// The own UDP port of RoCEv2.
    pub udp_port: u16,
    /// The UDP port of the other end, if it is another one.
    pub peer_udp_port: Option<u16>,
    /// True if IPv4 packets with a UDP checksum of zero are accepted.
    pub allow_zero_checksum: bool,
    /// Maximum MTU; `None` for that of the network.
    pub mtu: Option<Mtu>,
    /// Time in microseconds for which the HCA is polled before the program sleeps.
    pub spin: u64,
    /// The file with the key that both ends have to know.
    pub key_file: Option<PathBuf>,
}

impl LinkConfig {
    /// Returns whether both ends have the same port of UDP.
    pub(super) fn is_one_port(&self) -> bool {
        self.peer_udp_port.is_none_or(|port| port == self.udp_port)
    }
}

/// The configuration of statistics and controls.
#[derive(Clone, Debug, Default)]
pub struct ControlConfig {
    /// The control socket.
    pub control: Option<PathBuf>,
    /// The TCP port of metrics on the loopback device.
    pub metrics_port: Option<u16>,
}

/// The configuration of a session with a server, and of its device.
#[derive(Clone, Debug)]
pub struct RemoteDeviceConfig {
    /// The paths to the server.
    pub path: Vec<RequestedPath>,
    /// The name of the device at the server.
    pub device: String,
    /// The port of `rdma_cm` at the server.
    pub port: u16,
    /// The name of the session; `None` for that of this machine and process.
    pub session: Option<String>,
    /// The choice of a path for a request.
    pub policy: Policy,
    /// Number of connections of each path; `None` for one more than there are processors.
    pub connections: Option<u64>,
    /// True if the server invalidates the key of each read.
    pub need_invalidation: bool,
    /// Time in which the device has to be open at first.
    pub wait: Duration,
    /// True if a server of Linux is trusted to keep writes that were not flushed.
    pub trust_cache: bool,
    /// Time in milliseconds before a failed path is connected again.
    pub reconnect_delay: u64,
    /// Statistics and controls.
    pub control: ControlConfig,
    /// The capture of the packets of the HCAs.
    pub capture: Option<OwnCapture>,
    /// The HCAs.
    pub link: LinkConfig,
}

/// A device that is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// Where its data lies.
    pub store: Store,
}

/// Where the data of a device lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Store {
    /// In memory, of so many bytes.
    Memory(u64),
    /// In a file, or a block device.
    File(PathBuf),
}

/// The configuration of a server of block devices.
#[derive(Clone, Debug)]
pub struct RtrsServeConfig {
    /// The own addresses; empty in a simulated fabric.
    pub listen: Vec<IpAddr>,
    /// The devices that are offered.
    pub export: Vec<Export>,
    /// The port of `rdma_cm`.
    pub port: u16,
    /// Maximum number of outstanding requests of a session.
    pub queue_depth: u64,
    /// Maximum length in bytes of the data of a request.
    pub max_io_size: u64,
    /// True if keys of chunks stay valid after a request.
    pub no_always_invalidate: bool,
    /// The networks whose clients may connect; all if it is empty.
    pub allow: Vec<Network>,
    /// Statistics and controls.
    pub control: ControlConfig,
    /// The capture of the packets of the HCAs.
    pub capture: Option<OwnCapture>,
    /// The HCAs.
    pub link: LinkConfig,
}

/// The configuration of an NBD server in front of a device of an RTRS server.
#[derive(Clone, Debug)]
pub struct NbdConfig {
    /// The session and the device.
    pub remote: RemoteDeviceConfig,
    /// The address of the NBD server.
    pub address: NbdAddress,
    /// True if the device is offered read-only.
    pub read_only: bool,
    /// Maximum number of outstanding requests.
    pub depth: usize,
}
