//! The HCA daemon: owns the RoCEv2 socket of an IP address, and shares the address among HCAs of other processes.
//!
//! | file | holds |
//! |---|---|
//! | `server.rs` | the event loop, and the processes that attach and detach |
//! | `exchange.rs` | packets between the rings of the processes and the socket |
//! | `head_of_queue.rs` | how long a full ring blocks the packets behind it; sans-IO |
//!
//! [`ib_attach::Demultiplexer`] selects the process that gets a packet.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use ib_attach::{AttachServer, LinkLayer, PortDetails, hca_daemon_name};
use ib_device::{DeviceOptions, LocalPort};
use ib_link::LinkPort;
use ib_os::daemon::{self, Detached};
use ib_roce::{RoceOptions, RoceSocket, gid_of};
use ib_types::PKey;
use ib_wire::mad::sa::RateCode;

use crate::error::DaemonError;
use crate::message::{note, say};

mod exchange;
mod head_of_queue;
mod server;

use server::HcaServer;

/// Configuration of an HCA daemon.
#[derive(Clone, Debug)]
pub struct HcaConfig {
    /// The IP address that the daemon serves.
    pub address: IpAddr,
    /// True if IPv4 packets with a UDP checksum of zero are accepted.
    pub allow_zero_checksum: bool,
    /// Time without any attached process after which the daemon exits; `None` if it does not exit by itself.
    pub exit_idle: Option<Duration>,
    /// True if the daemon runs in the background.
    pub is_background: bool,
    /// File to which the messages of a daemon in the background are appended; `None` if they are discarded.
    pub log_file: Option<PathBuf>,
}

/// Serves an IP address until a signal stops the process, or until the address is unused for the configured time. If
/// `config.is_background` is true and another HCA daemon of this user already serves the address, returns at once.
///
/// Returns the exit status of the process.
///
/// # Errors
/// Fails if the machine does not have the address, if another process uses the address, or if a system call fails.
pub fn run(config: &HcaConfig, out: &mut dyn Write) -> Result<u8, DaemonError> {
    let address = config.address;
    let mut starting = None;
    let mut log = None;
    if config.is_background {
        daemon::close_inherited_files();
        let open = |path| OpenOptions::new().create(true).append(true).open(path);
        let cannot = |error| DaemonError::Failed(format!("--log-file: {error}"));
        log = config.log_file.as_ref().map(open).transpose().map_err(cannot)?;
        match daemon::detach() {
            Ok(Detached::Caller(status)) => return Ok(status),
            Ok(Detached::Background(it)) => starting = Some(it),
            Err(error) => return Err(DaemonError::Failed(format!("--background: {error}"))),
        }
    }
    let name = hca_daemon_name(address);
    let server = match AttachServer::bind(&name) {
        Err(error) if config.is_background && error.kind() == io::ErrorKind::AddrInUse => {
            note!("an HCA daemon serves {address} already");
            return Ok(0);
        }
        bound => bound.map_err(|error| {
            DaemonError::Failed(format!("cannot listen on @{name}:data: {error}"))
        })?,
    };
    let options = DeviceOptions::new(address);
    let local = LocalPort::of(&options).map_err(DaemonError::failed)?;
    let allow_zero_checksum = config.allow_zero_checksum;
    let socket = RoceOptions { allow_zero_checksum, ..RoceOptions::new(address) };
    let socket = RoceSocket::bind(&socket).map_err(DaemonError::failed)?;
    ib_os::poll::allow_files();
    let mut server = HcaServer::new(server, socket, details(address, &local))?;
    if let Some(starting) = starting {
        // The daemon must not keep the caller's working directory in use.
        let moved = std::env::set_current_dir("/");
        let started = moved.and_then(|()| starting.finish(log.as_ref()));
        started.map_err(|error| DaemonError::Failed(format!("--background: {error}")))?;
    } else {
        writeln!(out, "READY {address}")?;
        out.flush()?;
    }
    if let Err(error) = daemon::notify("READY=1") {
        say!("cannot notify the service manager: {error}");
    }
    let counters = server.run(config.exit_idle)?;
    note!("{address}: {counters}");
    Ok(0)
}

/// Returns the attributes of the port, without a block of queue pair numbers.
fn details(address: IpAddr, local: &LocalPort) -> PortDetails {
    let gid = gid_of(address);
    let (gid_prefix, port_guid) = ((gid.0 >> 64) as u64, ib_types::Guid(gid.0 as u64));
    PortDetails {
        port: LinkPort {
            node_guid: local.guid,
            port_guid,
            gid_prefix,
            number: 1,
            ..LinkPort::default()
        },
        is_active: true,
        mtu: local.mtu,
        rate: RateCode::GBPS_100,
        registrations: 0,
        port_count: 1,
        p_keys: vec![PKey::DEFAULT.0],
        node: local.name.clone(),
        addresses: vec![address],
        qpn_block: 0,
        link_layer: LinkLayer::Ethernet,
    }
}
