//! Connection management; IBTA volume 1, chapter 12.6.
//!
//! Every message is a Send of class 0x07 version 2, its fields behind the header at byte 24. "Local"
//! is what the sender calls its own, "remote" what the receiver calls its own. Private data comes in
//! full length, padded with zeros.
//!
//! | module | holds |
//! |---|---|
//! | [`connect`] | REQ, REP, RTU and the path that a REQ proposes |
//! | [`refuse`] | REJ and MRA |
//! | [`cma`] | the header of `rdma_cm` in private data |
//! | [`disconnect`] | DREQ and DREP |
//! | [`sidr`] | SIDR_REQ and SIDR_REP: services of datagrams |
//! | [`path`] | LAP and APR: another path for a connection |

pub mod cma;
pub mod connect;
pub mod disconnect;
pub mod path;
pub mod refuse;
pub mod sidr;

pub use cma::CmaHeader;
pub use connect::{ConnectPath, Rep, Req, Rtu};
pub use disconnect::{Drep, Dreq};
pub use path::{Apr, Lap};
pub use refuse::{Mra, Refused, Rej, RejectReason};
pub use sidr::{SidrRep, SidrReq, SidrStatus};

#[cfg(test)]
mod tests;
