//! The client of the service: programs ask it for paths, counters and endpoints.
//!
//! | file | holds |
//! |---|---|
//! | `client/service.rs` | [`ServiceAddress`]: where the service is, and how programs find it |
//! | `client/blocking.rs` | [`Client`]: asks and waits |
//! | `client/stream.rs` | a socket whose calls end in time |
//! | `client/pipeline.rs` | [`Pipeline`]: requests under way, and the bytes of a stream made into their answers; sans-IO |
//! | `client/request.rs` | [`Request`]: what can be asked, and its bytes |
//! | `client/reply.rs` | [`Reply`]: what is answered, and the checks of its bytes |
//! | `client/error.rs` | [`ClientError`]: how asking fails |
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

use std::time::Duration;

mod blocking;
mod error;
mod pipeline;
mod reply;
mod request;
mod service;
mod stream;

pub use blocking::Client;
pub use error::{ClientError, RequestError};
pub use pipeline::{Answer, Pipeline, TransactionNumber};
pub use reply::{Counters, EndpointDescription, Reply, ReplyError, Resolved, ResolvedPath, Wrong};
pub use request::{PerfOf, Request, ResolveOptions};
pub use service::{DEFAULT_PORT, ServiceAddress, ServiceFiles};

/// How a client behaves on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// How long connecting may take; the look-up of a host's name is not bounded by it.
    pub connect: Duration,
    /// How long an answer may take. A service asks others several times, for seconds each.
    pub reply: Duration,
}

impl ClientOptions {
    /// The longest time that clocks are asked to add; as good as for ever.
    const LONGEST: Duration = Duration::from_secs(1 << 30);

    /// Returns the options with times that clocks stand.
    fn bounded(self) -> Self {
        let [connect, reply] = [self.connect, self.reply].map(|time| time.min(Self::LONGEST));
        Self { connect, reply }
    }
}

impl Default for ClientOptions {
    /// Returns 5 seconds to connect and 30 for an answer.
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), reply: Duration::from_secs(30) }
    }
}

#[cfg(test)]
mod tests;
