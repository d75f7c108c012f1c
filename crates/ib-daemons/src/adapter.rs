//! HCAs at local IP addresses and at ports of a simulated fabric, for `rdma`, `rtrs` and `nbd`.

use std::env;
use std::time::Duration;

use ib_acm::client::ServiceAddress;
use ib_attach::AttachOptions;
use ib_device::{AttachedOptions, Device, DeviceOptions};
use ib_types::Mtu;

use crate::error::DaemonError;
use crate::message::say;

/// Options of an HCA.
#[derive(Clone, Debug)]
pub struct PortOptions {
    /// The simulator and the port.
    pub port: AttachOptions,
    /// Maximum MTU; `None` for that of the port.
    pub mtu: Option<Mtu>,
    /// Time in microseconds for which the HCA is polled before the process sleeps.
    pub spin: u64,
    /// Maximum number of outstanding packets of a connection; `None` for the default.
    pub window: Option<u32>,
    /// The value of `--acm`.
    pub acm: Option<String>,
}

/// Opens an HCA at a local IP address. The first packet with a UDP checksum of zero that it drops is reported.
///
/// # Errors
/// Fails if the address cannot be used.
pub fn open(options: DeviceOptions) -> Result<Device, DaemonError> {
    let mut device = Device::open(options).map_err(DaemonError::failed)?;
    let mut was_reported = false;
    device.on_zero_checksum(move |peer| {
        if !std::mem::replace(&mut was_reported, true) {
            say!(
                "{peer}: packets with a UDP checksum of zero are dropped, as Linux soft RoCE sends them; \
                 --allow-zero-checksum takes them"
            );
        }
    });
    Ok(device)
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
            say!("{address}: no path by ACM: {why}; querying the SA");
        });
    }
    Ok(device)
}

/// Returns the ACM service that is queried for paths, if any.
#[must_use]
pub fn name_service(acm: Option<&str>) -> Option<ServiceAddress> {
    let is_enabled = || env::var_os("RDMA_CM_USE_IB_ACM").is_some_and(|value| value == "1");
    match acm {
        Some(service) => Some(ServiceAddress::from_text(service)),
        None => is_enabled().then(ServiceAddress::find),
    }
}
