//! RTRS servers and clients of block devices.
//!
//! | module | holds |
//! |---|---|
//! | `config`, `endpoint` | configurations; endpoints of paths and networks |
//! | `serve` | [`serve()`], the block server |
//! | [`mod@bench`] | the benchmark of a device |
//! | [`remote`] | opening of a remote device |
//! | `paths` | HCAs at the local endpoints of paths |
//! | `nbd` | [`nbd()`], NBD export of a remote device |
//! | `control` | statistics and control over a socket |
//! | `mount` | [`mount()`], statistics and control as files |

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
