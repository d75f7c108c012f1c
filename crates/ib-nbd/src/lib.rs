//! NBD: block devices over a byte stream, as programs of Linux use them; the server's side.
//!
//! The source is the protocol's own description (NetworkBlockDevice/nbd, `doc/proto.md`): fixed newstyle negotiation,
//! simple and structured replies.
//!
//! | module | holds |
//! |---|---|
//! | `wire` | numbers of the protocol |
//! | `input`, `output` | bytes that have come in, and bytes that are to be sent |
//! | `negotiation` | what is agreed before a device is used |
//! | `transmission` | requests and their replies |

mod input;
mod negotiation;
mod output;
mod session;
mod transmission;
pub mod wire;

pub use session::{Export, NbdError, NbdRequest, RequestToken, Session};
