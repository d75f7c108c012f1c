//! Configuration of RTRS servers and clients.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ib_rtrs::Policy;
use ib_storage::nbd::NbdAddress;
use ib_types::Mtu;

use super::endpoint::{Network, RequestedPath};
use crate::own_capture::OwnCapture;

/// Configuration of the HCAs.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// Name of the simulator to whose fabric the HCAs are attached; `None` for RoCEv2.
    pub attach: Option<String>,
    /// The nodes at which HCAs are attached to the simulated fabric, as `NODE` or `NODE:PORT`; an empty list stands for
    /// the first host.
    pub node: Vec<String>,
    /// The ACM service to query for paths and names. If `None`, the environment variable `RDMA_CM_USE_IB_ACM` decides
    /// whether one is queried.
    pub acm: Option<String>,
    /// Local UDP port of RoCEv2.
    pub udp_port: u16,
    /// UDP port of the peer, if it differs from the local one.
    pub peer_udp_port: Option<u16>,
    /// True if IPv4 packets with a UDP checksum of zero are accepted.
    pub allow_zero_checksum: bool,
    /// Maximum MTU; `None` for the MTU of the network.
    pub mtu: Option<Mtu>,
    /// How long the HCA is polled before the process sleeps, in microseconds.
    pub spin: u64,
    /// File with the key that client and server share.
    pub key_file: Option<PathBuf>,
}

impl LinkConfig {
    /// Returns true if the local and the peer's UDP port are the same.
    pub(super) fn is_one_port(&self) -> bool {
        self.peer_udp_port.is_none_or(|port| port == self.udp_port)
    }
}

/// Configuration of the control socket and of the metrics server.
#[derive(Clone, Debug, Default)]
pub struct ControlConfig {
    /// Path of the control socket; `None` for no socket.
    pub control: Option<PathBuf>,
    /// The TCP address at which metrics are served.
    pub metrics: Option<SocketAddr>,
}

/// Configuration of a client's session and of the remote device that it opens.
#[derive(Clone, Debug)]
pub struct RemoteDeviceConfig {
    /// The paths to the server.
    pub path: Vec<RequestedPath>,
    /// Name that the server has given to the device.
    pub device: String,
    /// `rdma_cm` port on which the server listens.
    pub port: u16,
    /// Name of the session; `None` for a name made from the host name and the process ID.
    pub session: Option<String>,
    /// Policy that selects the path of a request.
    pub policy: Policy,
    /// Number of connections of each path; `None` for the number of processors plus one.
    pub connections: Option<u64>,
    /// True if the client asks the server to invalidate the remote key of each read.
    pub need_invalidation: bool,
    /// How long to wait until the device is open for the first time.
    pub wait: Duration,
    /// True if a Linux server is trusted not to lose writes that were not flushed.
    pub trust_cache: bool,
    /// Delay in milliseconds before a failed path is reconnected.
    pub reconnect_delay: u64,
    /// Configuration of the control socket and of the metrics server.
    pub control: ControlConfig,
    /// Options of the capture of all QPs; `None` for no capture.
    pub capture: Option<OwnCapture>,
    /// Configuration of the HCAs.
    pub link: LinkConfig,
}

/// An exported device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Name under which the device is exported.
    pub name: String,
    /// Where the data of the device is stored.
    pub store: Store,
}

/// Where the data of an exported device is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Store {
    /// In memory; the value is the size in bytes.
    Memory(u64),
    /// In a file or on a block device.
    File(PathBuf),
}

/// Configuration of an RTRS server that exports block devices.
#[derive(Clone, Debug)]
pub struct RtrsServeConfig {
    /// IP addresses of the HCAs that listen for clients, with their `rdma_cm` ports; empty in a simulated fabric.
    pub listen: Vec<SocketAddr>,
    /// Exported devices.
    pub export: Vec<Export>,
    /// `rdma_cm` port of the HCAs in a simulated fabric.
    pub port: u16,
    /// Maximum number of outstanding requests of each session.
    pub queue_depth: u64,
    /// Maximum size of a request's data in bytes.
    pub max_io_size: u64,
    /// True if the remote keys of chunks stay valid when a request has completed.
    pub no_always_invalidate: bool,
    /// Networks from which clients may connect; an empty list allows all clients.
    pub allow: Vec<Network>,
    /// Configuration of the control socket and of the metrics server.
    pub control: ControlConfig,
    /// Options of the capture of all QPs; `None` for no capture.
    pub capture: Option<OwnCapture>,
    /// Configuration of the HCAs.
    pub link: LinkConfig,
}

/// Configuration of an NBD server, which exports a remote device.
#[derive(Clone, Debug)]
pub struct NbdConfig {
    /// Configuration of the session and of the remote device.
    pub remote: RemoteDeviceConfig,
    /// Address on which the NBD server listens.
    pub address: NbdAddress,
    /// True if the export is read-only.
    pub read_only: bool,
    /// Maximum number of outstanding requests to the remote device.
    pub depth: usize,
}
