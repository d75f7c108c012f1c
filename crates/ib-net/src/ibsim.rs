//! The datagrams between ibsim and its clients.
//!
//! A client, most often Debian's `libumad2sim.so` inside an unmodified tool, talks to the simulator over
//! two sockets: control messages of 80 bytes, each of which is answered, and requests of 288 bytes
//! that carry one management datagram each way. The sockets are Unix datagram sockets with abstract
//! names or, when both sides want it, UDP on the loopback device.
//!
//! | module | holds |
//! |---|---|
//! | [`message`] | the two messages |
//! | [`server`] | the simulator's side |

pub mod message;
pub mod server;
