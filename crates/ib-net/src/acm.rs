//! What joins the service of IB ACM to the world: ports of adapters, and programs of the machine.
//!
//! | module | holds |
//! |---|---|
//! | `datagrams` | queue pairs of datagrams at an adapter |
//! | `sim` | [`SimPorts`]: ports of a simulated fabric, in its process and its time |

mod datagrams;
mod sim;

pub use sim::SimPorts;
