//! The daemon of the ACM service: its event loop, its ports, and the sockets of its clients.
//!
//! | module | holds |
//! |---|---|
//! | `config` | [`AcmConfig`], the configuration of the process |
//! | `console`, `metrics` | commands of `ibfabric acm ctl`; metrics for Prometheus |
//! | `daemon` | [`run`], the event loop |
//! | `datagrams` | the UD QPs of the service at an HCA, one for each partition |
//! | `device` | [`DevicePort`]: a port of the service in a fabric that another process simulates |
//! | `lock` | the lock file that prevents a second service |
//! | `publish` | files and links by which clients find the service |
//! | `server` | [`Server`]: the sockets of clients |
//! | `settings` | options, addresses and routes from files |
//! | `sim` | [`SimPorts`]: ports of the service in a fabric that this process simulates in virtual time |
//! | `open_port` | the open ports of the service |
//! | `umad` | [`UmadPort`]: a port of a real HCA, without UD QPs; `ipoib`: its IP addresses |

mod config;
mod console;
mod daemon;
mod data;
mod datagrams;
mod device;
mod ipoib;
mod lock;
mod metrics;
mod open_port;
mod publish;
mod server;
mod settings;
mod sim;
mod umad;

pub use config::{AcmConfig, DEFAULT_SOCKET, PortSelection};
pub use console::{AcmRequest, name as console_name};
pub use daemon::run;
pub use data::{AcmCachedAddress, AcmFlushed, AcmStatus};
pub use device::DevicePort;
pub use server::{ListenError, RejectedClients, Server, ServerOptions};
pub use sim::SimPorts;
pub use umad::{UmadPort, UmadPortError};
