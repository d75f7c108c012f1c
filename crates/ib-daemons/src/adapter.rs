//! HCAs at own addresses and at ports of a fabric that another process simulates: what `rdma`, `rtrs` and `nbd`
//! share.

use std::env;
use std::time::Duration;

use ib_acm::client::ServiceAddress;
use ib_attach::AttachOptions;
use ib_device::{AttachedOptions, Device, DeviceOptions};
use ib_types::Mtu;

use crate::error::DaemonError;
use crate::message::say;

/// How an HCA is opened.
#[derive(Clone, Debug)]
pub struct PortOptions {
    /// The simulator and the port.
    pub port: AttachOptions,
    /// Maximum MTU; `None` for that of the port.
    pub mtu: Option<Mtu>,
    /// How long something to do is looked for until the program sleeps, in microseconds.
    pub spin: u64,
    /// How many packets of a connection may be under way; the usual number without it.
    pub window: Option<u32>,
    /// What `--acm` says.
    pub acm: Option<String>,
}

/// Opens an adapter at an own address. The first packet with a UDP checksum of zero that it drops is reported.
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

/// Opens an adapter at a port.
///
/// # Errors
/// Fails if there is no simulator, or no such port.
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
            say!("{address}: no path by IB ACM: {why}; subnet administration is asked");
        });
    }
    Ok(device)
}

/// Returns the service of IB ACM that is asked for paths, if one is.
#[must_use]
pub fn name_service(acm: Option<&str>) -> Option<ServiceAddress> {
    let is_wanted = || env::var_os("RDMA_CM_USE_IB_ACM").is_some_and(|value| value == "1");
    match acm {
        Some(service) => Some(ServiceAddress::from_text(service)),
        None => is_wanted().then(ServiceAddress::find),
    }
}
