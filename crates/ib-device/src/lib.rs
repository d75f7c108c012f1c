//! Drives a software HCA on its link.
//!
//! | module | holds |
//! |---|---|
//! | `device` | [`Device`]: HCA, connection manager and link, driven by the caller or by a [`Driver`] thread |
//! | [`sim`] | [`SimDevice`]: an HCA at a port of a simulated fabric in this process, in virtual time |

mod device;
pub mod sim;

pub use device::*;
pub use sim::{SimDevice, SimDeviceError, SimDeviceOptions, SimDevices};
