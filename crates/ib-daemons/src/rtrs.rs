//! Servers and clients of RTRS block devices.
//!
//! | module | holds |
//! |---|---|
//! | `config`, `endpoint` | configurations; parsing of endpoints and networks in option values |
//! | `serve` | [`serve()`], the block server |
//! | [`mod@bench`] | the benchmark of a block device |
//! | [`remote`] | opening and closing of a remote device |
//! | `paths` | HCAs at the local endpoints of paths |
//! | `nbd` | [`nbd()`], which exports a remote device over NBD |
//! | `control` | statistics and control of paths over a socket |
//! | `mount` | [`mount()`], which serves statistics and control as files |

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
