//! Servers and clients of block devices over RTRS.
//!
//! | module | holds |
//! |---|---|
//! | `config`, `endpoint` | configurations; ends of paths and networks |
//! | `serve` | [`serve()`], the server of block devices |
//! | [`bench`] | the benchmark of a device |
//! | [`remote`] | a device of a server, and the wait until it is open |
//! | `paths` | HCAs, and the paths that start from them |
//! | `nbd` | [`nbd()`], a device of a server for programs of this machine |
//! | `control` | statistics and controls over a socket |
//! | `mount` | [`mount()`], the same as files |

pub mod bench;
mod config;
mod control;
mod endpoint;
mod mount;
mod nbd;
mod paths;
pub mod remote;
mod serve;

pub use config::{
    ControlConfig, Export, LinkConfig, NbdConfig, RemoteDeviceConfig, RtrsServeConfig, Store,
};
pub use endpoint::{Endpoint, Network, RequestedPath};
pub use mount::mount;
pub use nbd::nbd;
pub use serve::serve;
