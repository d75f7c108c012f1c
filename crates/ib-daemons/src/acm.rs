//! The daemon of the ACM service: its event loop, ports of HCAs, and sockets of client programs.
//!
//! | module | holds |
//! |---|---|
//! | `config` | [`AcmConfig`], the configuration of the process |
//! | `console`, `metrics` | commands of `ibfabric acm ctl`; metrics for Prometheus |
//! | `daemon` | [`run`], the event loop |
//! | `datagrams` | UD QPs of an HCA, one for each partition |
//! | `device` | [`DevicePort`]: a port of a fabric that another process simulates |
//! | `lock` | the lock file that prevents a second service |
//! | `publish` | files and links by which clients find the service |
//! | `server` | [`Server`]: the sockets of clients |
//! | `settings` | options, addresses and routes from files |
//! | `sim` | [`SimPorts`]: ports of a fabric that the same process simulates, in virtual time |
//! | `open_port` | open ports of simulated fabrics and of this machine |
//! | `umad` | [`UmadPort`]: a port of a real HCA, without UD QPs; `ipoib`: its IP addresses |

mod config;
mod console;
mod daemon;
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
pub use device::DevicePort;
pub use server::{ListenError, RejectedClients, Server, ServerOptions};
pub use sim::SimPorts;
pub use umad::{UmadPort, UmadPortError};
