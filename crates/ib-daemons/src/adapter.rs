//! Opens HCAs at local IP addresses and at ports of simulated fabrics, for `rdma`, `rtrs` and `nbd`.

use std::env;
use std::net::IpAddr;
use std::time::Duration;

use ib_acm::client::ServiceAddress;
use ib_attach::AttachOptions;
use ib_device::{AttachedOptions, Device, DeviceOptions};
use ib_types::Mtu;
use ib_wire::mad::MgmtClass;

use crate::error::DaemonError;
use crate::message::note;

/// Options of an HCA at a port of a simulated fabric.
#[derive(Clone, Debug)]
pub struct PortOptions {
    /// The simulator, and the port of its fabric to which the HCA is attached.
    pub port: AttachOptions,
    /// Upper limit of the path MTU; `None` for the limit of the port only.
    pub mtu: Option<Mtu>,
    /// How long the HCA is polled before the process sleeps, in microseconds.
    pub spin: u64,
    /// Maximum number of outstanding packets of each connection; `None` for the default.
    pub window: Option<u32>,
    /// Address of the ACM service to query for paths, from the option `--acm`. For `None`, see [`name_service`].
    pub acm: Option<String>,
}

/// Opens an HCA at the local IP address in `options`. If an HCA daemon serves this address, and the options do not
/// require the HCA to have its own socket, the HCA shares the address through the daemon. When the HCA first drops a
/// packet because of a UDP checksum of zero, a message on standard error names the sender.
///
/// # Errors
/// Fails if the HCA cannot be opened at this IP address.
pub fn open(options: DeviceOptions) -> Result<Device, DaemonError> {
    let mut device = Device::open_or_share(options, Some(MgmtClass::COMMUNICATION))
        .map_err(DaemonError::failed)?;
    let mut was_reported = false;
    device.on_zero_checksum(move |peer| {
        if !std::mem::replace(&mut was_reported, true) {
            note_zero_checksum(peer);
        }
    });
    Ok(device)
}

/// Reports the sender of a packet that was dropped because of a UDP checksum of zero.
pub(crate) fn note_zero_checksum(peer: IpAddr) {
    note!(
        "{peer}: packets with a UDP checksum of zero are dropped; Linux soft RoCE sends such packets, and \
         --allow-zero-checksum accepts them"
    );
}

/// Opens an HCA at a port of a simulated fabric.
///
/// # Errors
/// Fails if the simulator or the port does not exist.
pub fn attach(options: &PortOptions) -> Result<Device, DaemonError> {
    let usual = AttachedOptions::new(options.port.clone());
    let options_of_device = AttachedOptions {
        mtu: options.mtu,
        spin: Duration::from_micros(options.spin),
        window: options.window.unwrap_or(usual.window),
        ..usual
    };
    let mut device = Device::attach(&options_of_device).map_err(DaemonError::failed)?;
    if let Some(service) = name_service(options.acm.as_deref()) {
        device.resolve_through(service, |address, why| {
            note!("{address}: no path by ACM: {why}; querying the SA");
        });
    }
    Ok(device)
}

/// Returns the ACM service to query for paths; `None` if paths are queried from the SA. If `acm` is `None`, an ACM
/// service is used only if the environment variable `RDMA_CM_USE_IB_ACM` is 1.
#[must_use]
pub fn name_service(acm: Option<&str>) -> Option<ServiceAddress> {
    let is_enabled = || env::var_os("RDMA_CM_USE_IB_ACM").is_some_and(|value| value == "1");
    match acm {
        Some(service) => Some(ServiceAddress::from_text(service)),
        None => is_enabled().then(ServiceAddress::find),
    }
}
