//! The daemon of the ACM service: its event loop, ports of HCAs, and sockets of client programs.
//!
//! | module | holds |
//! |---|---|
//! | `config` | [`AcmConfig`], the configuration of the process |
//! | `console`, `metrics` | answers to `ibfabric acm ctl` and to Prometheus |
//! | `daemon` | [`run`], the event loop |
//! | `datagrams` | queue pairs of datagrams at an adapter |
//! | `device` | [`DevicePort`]: a port of a fabric that another process simulates |
//! | `lock` | the lock file that keeps a second service from starting |
//! | `server` | [`Server`]: the sockets that programs of the machine ask over |
//! | `settings` | options, addresses and routes from files |
//! | `sim` | [`SimPorts`]: ports of a simulated fabric, in its process and its time |
//! | `station` | ports of simulators and of this machine |
//! | `umad` | [`UmadPort`]: a port of a real adapter, without queue pairs; `ipoib`: its IP addresses |

mod config;
mod console;
mod daemon;
mod datagrams;
mod device;
mod ipoib;
mod lock;
mod metrics;
mod server;
mod settings;
mod sim;
mod station;
mod umad;

pub use config::{AcmConfig, DEFAULT_SOCKET, Place};
pub use console::{AcmRequest, name as console_name};
pub use daemon::run;
pub use device::DevicePort;
pub use server::{ListenError, Rejected, Server, ServerOptions};
pub use sim::SimPorts;
pub use umad::{UmadPort, UmadPortError};
