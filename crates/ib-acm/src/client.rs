//! Client of the ACM service: queries paths, counters and endpoints.
//!
//! | file | holds |
//! |---|---|
//! | `client/service.rs` | [`ServiceAddress`]: address of the service, and how clients find the service |
//! | `client/blocking.rs` | [`Client`]: a blocking client |
//! | `client/stream.rs` | a socket with time limits |
//! | `client/pipeline.rs` | [`Pipeline`]: outstanding requests and their replies in a byte stream; sans-IO |
//! | `client/request.rs` | [`Request`]: requests and their encoding |
//! | `client/reply.rs` | [`Reply`]: replies and their decoding |
//! | `client/error.rs` | [`ClientError`]: errors of requests |
//!
//! ```no_run
//! use ib_acm::Address;
//! use ib_acm::client::{Client, ClientOptions, ResolveOptions, ServiceAddress};
//!
//! let mut client = Client::connect(&ServiceAddress::find(), ClientOptions::default())?;
//! let destination = Address::parse("10.1.2.3")?;
//! let resolved = client.resolve(None, &destination, ResolveOptions::default())?;
//! eprintln!("LID {} from {:?}", resolved.path.dlid, resolved.source);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blocking;
mod error;
mod pipeline;
mod reply;
mod request;
mod service;
mod stream;

pub use blocking::{Client, ClientOptions};
pub use error::{ClientError, RequestError};
pub use pipeline::{Answer, Pipeline, TransactionNumber};
pub use reply::{
    Counters, EndpointDescription, Reply, ReplyDefect, ReplyError, Resolved, ResolvedPath,
};
pub use request::{CounterScope, Request, ResolveOptions};
pub use service::{DEFAULT_PORT, ServiceAddress, ServiceFiles};

#[cfg(test)]
mod tests;
