//! Communication management (CM) messages; IBTA volume 1, chapter 12.6.
//!
//! A message is a MAD with method Send, class 0x07, version 2, and fields from byte 24 on. "Local"
//! fields belong to the sender, "remote" fields to the receiver. Fields of private data have a
//! fixed length, and are padded with zeros.
//!
//! | module | contents |
//! |---|---|
//! | [`connect`] | REQ, REP, RTU, and the paths in a REQ |
//! | [`reject`] | REJ and MRA |
//! | [`cma`] | the `rdma_cm` header in private data |
//! | [`disconnect`] | DREQ and DREP |
//! | [`sidr`] | SIDR_REQ and SIDR_REP: UD services |
//! | [`path`] | LAP and APR: alternate paths |

pub mod cma;
pub mod connect;
pub mod disconnect;
pub mod path;
pub mod reject;
pub mod sidr;

pub use cma::CmaHeader;
pub use connect::{ConnectPath, Rep, Req, Rtu};
pub use disconnect::{Drep, Dreq};
pub use path::{Apr, Lap};
pub use reject::{Mra, ReferencedMessage, Rej, RejectReason};
pub use sidr::{SidrRep, SidrReq, SidrStatus};

#[cfg(test)]
mod tests;
