//! HCAs at own addresses and at ports of a fabric that another process simulates: what `rdma`, `rtrs` and `nbd`
//! share.

use std::env;
use std::time::Duration;

use ib_acm::client::ServiceAddress;
use ib_attach::AttachOptions;
use ib_device::{AttachedOptions, Device, DeviceOptions};
use ib_types::Mtu;

use crate::failure::{Failure, say};

/// How an HCA is opened.
#[derive(Clone, Debug)]
pub(super) struct PortOptions {
    pub(super) port: AttachOptions,
    pub(super) mtu: Option<Mtu>,
    /// How long something to do is looked for until the program sleeps, in microseconds.
    pub(super) spin: u64,
    /// How many packets of a connection may be in flight; the usual number without it.
    pub(super) window: Option<u32>,
    /// What `--acm` says.
    pub(super) acm: Option<String>,
}

/// Opens an HCA at an own address. The HCA reports the first packet that it drops because of a UDP checksum of zero.
pub(super) fn open(options: DeviceOptions) -> Result<Device, Failure> {
    let mut device = Device::open(options).map_err(Failure::unusable)?;
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

/// Opens an HCA at a port.
pub(super) fn attach(options: &PortOptions) -> Result<Device, Failure> {
    let usual = AttachedOptions::new(options.port.clone());
    let options_of_device = AttachedOptions {
        mtu: options.mtu,
        spin: Duration::from_micros(options.spin),
        window: options.window.unwrap_or(usual.window),
        ..usual
    };
    let mut device = Device::attach(&options_of_device).map_err(Failure::unusable)?;
    if let Some(service) = name_service(options.acm.as_deref()) {
        device.resolve_through(service, |address, why| {
            say!("{address}: no path by IB ACM: {why}; subnet administration is asked");
        });
    }
    Ok(device)
}

/// Returns the service of IB ACM that is asked for paths, if one is.
pub(super) fn name_service(acm: Option<&str>) -> Option<ServiceAddress> {
    let is_wanted = || env::var_os("RDMA_CM_USE_IB_ACM").is_some_and(|value| value == "1");
    match acm {
        Some(service) => Some(ServiceAddress::from_text(service)),
        None => is_wanted().then(ServiceAddress::find),
    }
}
