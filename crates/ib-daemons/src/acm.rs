//! What joins the service of IB ACM to the world: ports of HCAs, and programs of the machine.
//!
//! | module | holds |
//! |---|---|
//! | `datagrams` | queue pairs of datagrams at an HCA |
//! | `device` | [`DevicePort`]: a port of a fabric that another process simulates |
//! | `server` | [`Server`]: the sockets that programs of the machine ask over |
//! | `sim` | [`SimPorts`]: ports of a simulated fabric, in its process and its time |
//! | `umad` | [`UmadPort`]: a port of a real HCA, without queue pairs; `ipoib`: its IP addresses |

mod datagrams;
mod device;
mod ipoib;
mod server;
mod sim;
mod umad;

pub use device::DevicePort;
pub use server::{ListenError, Rejected, Server, ServerOptions};
pub use sim::SimPorts;
pub use umad::{UmadPort, UmadPortError};
