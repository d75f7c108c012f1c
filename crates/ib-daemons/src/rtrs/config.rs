//! Configuration of servers and clients.

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
    /// Name of the simulator that the HCAs are attached to; `None` for RoCEv2.
    pub attach: Option<String>,
    /// The nodes of the simulated fabric, as `NODE` or `NODE:PORT`; the first host if it is empty.
    pub node: Vec<String>,
    /// ACM service that is queried for paths and names.
    pub acm: Option<String>,
    /// Local UDP port of RoCEv2.
    pub udp_port: u16,
    /// UDP port of the peer, if it differs.
    pub peer_udp_port: Option<u16>,
    /// True if IPv4 packets with a UDP checksum of zero are accepted.
    pub allow_zero_checksum: bool,
    /// Maximum MTU; `None` for that of the network.
    pub mtu: Option<Mtu>,
    /// Time in microseconds for which the HCA is polled before the process sleeps.
    pub spin: u64,
    /// File with the key that client and server share.
    pub key_file: Option<PathBuf>,
}

impl LinkConfig {
    /// Returns true if both ends use the same UDP port.
    pub(super) fn is_one_port(&self) -> bool {
        self.peer_udp_port.is_none_or(|port| port == self.udp_port)
    }
}

/// The configuration of statistics and controls.
#[derive(Clone, Debug, Default)]
pub struct ControlConfig {
    /// The control socket.
    pub control: Option<PathBuf>,
    /// TCP port of metrics on the loopback device.
    pub metrics_port: Option<u16>,
}

/// Configuration of a client's session and its device.
#[derive(Clone, Debug)]
pub struct RemoteDeviceConfig {
    /// The paths to the server.
    pub path: Vec<RequestedPath>,
    /// Name of the device at the server.
    pub device: String,
    /// `rdma_cm` port of the server.
    pub port: u16,
    /// Name of the session; `None` for the name of this machine and process.
    pub session: Option<String>,
    /// Policy that selects a path for a request.
    pub policy: Policy,
    /// Number of connections of each path; `None` for the number of processors plus one.
    pub connections: Option<u64>,
    /// True if the server invalidates the remote key of each read.
    pub need_invalidation: bool,
    /// Time limit for the first opening of the device.
    pub wait: Duration,
    /// True if a Linux server is trusted to keep writes that were not flushed.
    pub trust_cache: bool,
    /// Time in milliseconds before a failed path is reconnected.
    pub reconnect_delay: u64,
    /// Statistics and control.
    pub control: ControlConfig,
    /// Capture of the packets of the HCAs.
    pub capture: Option<OwnCapture>,
    /// Configuration of the HCAs.
    pub link: LinkConfig,
}

/// An exported device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Name of the device.
    pub name: String,
    /// Storage of the device.
    pub store: Store,
}

/// Storage of an exported device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Store {
    /// Memory, with its size in bytes.
    Memory(u64),
    /// A file or a block device.
    File(PathBuf),
}

/// Configuration of a block server.
#[derive(Clone, Debug)]
pub struct RtrsServeConfig {
    /// Local addresses; empty in a simulated fabric.
    pub listen: Vec<IpAddr>,
    /// Exported devices.
    pub export: Vec<Export>,
    /// `rdma_cm` port.
    pub port: u16,
    /// Maximum number of outstanding requests of a session.
    pub queue_depth: u64,
    /// Maximum I/O size in bytes.
    pub max_io_size: u64,
    /// True if remote keys of chunks remain valid after a request.
    pub no_always_invalidate: bool,
    /// Networks whose clients may connect; all if empty.
    pub allow: Vec<Network>,
    /// Statistics and control.
    pub control: ControlConfig,
    /// Capture of the packets of the HCAs.
    pub capture: Option<OwnCapture>,
    /// Configuration of the HCAs.
    pub link: LinkConfig,
}

/// Configuration of an NBD server that exports a remote device.
#[derive(Clone, Debug)]
pub struct NbdConfig {
    /// Session and device.
    pub remote: RemoteDeviceConfig,
    /// Listening address of the NBD server.
    pub address: NbdAddress,
    /// True if the export is read-only.
    pub read_only: bool,
    /// Maximum number of outstanding requests.
    pub depth: usize,
}
