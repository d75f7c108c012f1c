//! Drives a software HCA on its link.
//!
//! | module | holds |
//! |---|---|
//! | `driver` | [`Driver`]: a thread that drives a [`Device`] for other threads |
//! | `endpoint` | [`Device::connect`], [`Device::accept`]: queue pairs that the connection manager connects |
//! | `resolve` | [`Device::path_to`], [`Device::find`]: paths and addresses of peers |
//! | `device` | [`Device`]: HCA, connection manager and link, driven by the caller |
//! | [`sim`] | [`SimDevice`]: an HCA at a port of a simulated fabric in this process, in virtual time |
//! | `attached` | the link to a port of a fabric that another process simulates |
//! | `acm` | queries to an ACM service |
//! | `engines` | [`Engines`]: an HCA and its connection manager |
//! | `options`, `path`, `route`, `event` | [`DeviceOptions`], [`Path`], [`route_of`], [`DeviceEvent`] |

mod acm;
mod attached;
mod device;
mod driver;
mod endpoint;
mod engines;
mod event;
mod options;
mod path;
mod resolve;
mod route;
pub mod sim;

pub use device::{Device, LinkCounters};
pub use driver::{DrivenCq, DrivenQp, Driver, DriverHandle, Stopped};
pub use endpoint::{ConnectError, Endpoint, EndpointOptions, Request};
pub use engines::Engines;
pub use event::DeviceEvent;
pub use ib_os::inbox::WorkError;
pub use ib_roce::{address_of, gid_of};
pub use options::{AttachedOptions, DeviceError, DeviceOptions};
pub use path::{Path, PathError};
pub use route::route_of;
pub use sim::{SimDevice, SimDeviceError, SimDeviceOptions, SimDevices};
