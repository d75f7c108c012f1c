//! The calls of the API: the requests of clients, and the answers of the event loop.

use std::fmt;
use std::sync::mpsc::Sender;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::StatusCode;
use serde::Deserialize;
use tokio::sync::oneshot;

use ib_os::alarm::Bell;

/// Time limit for the event loop's answer to a call. If there is no answer in time, the client gets status 504.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// A JSON document.
pub type Json = Bytes;

/// A call of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiCall {
    /// Returns the nodes and the links of the fabric.
    Fabric,
    /// Returns the LIDs and IP addresses of all end ports.
    Addresses,
    /// Returns, for each link, the number of host pairs whose path uses the link.
    Load,
    /// Returns ports, LFT and properties of a node.
    Node(u32),
    /// Returns the cache and the counters of the ACM service at a host.
    Names(u32),
    /// Returns the path from one node to another.
    Path(PathQuery),
    /// Returns the state of the block device and its paths.
    Device,
    /// Returns the progress of the load generator.
    Exercise,
    /// Resolves an address to a path with the ACM service at a host.
    Resolve(Resolve),
    /// Cuts or restores a link.
    Link(Link),
    /// Starts the load generator.
    Start(Start),
}

/// The two ends of a path, as node numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathQuery {
    /// Number of the source node.
    pub from: u32,
    /// Number of the destination node.
    pub to: u32,
}

/// An address that the ACM service at a host has to resolve.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolve {
    /// Number of the node whose ACM service resolves the address.
    pub from: u32,
    /// A name, an IP address or a GID.
    pub to: String,
}

/// A call that cuts or restores a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Number of the link.
    pub link: u32,
    /// True if the link has to be restored, false if it has to be cut.
    pub up: bool,
}

/// Parameters of a run of the load generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Duration of the run of the load generator, in seconds.
    pub seconds: u32,
}

/// An answer of the event loop.
pub enum Answer {
    /// A result that is available at once.
    Json(Json),
    /// A function that computes the result. The server runs it in another thread.
    Later(Box<dyn FnOnce() -> Result<Json, Refusal> + Send>),
    /// An error.
    Refused(Refusal),
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(json) => f.debug_tuple("Json").field(json).finish(),
            Self::Later(_) => f.write_str("Later"),
            Self::Refused(why) => f.debug_tuple("Refused").field(why).finish(),
        }
    }
}

/// An error that the API returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status.
    pub(super) status: StatusCode,
    /// The error as one line of text for users.
    pub(super) error: String,
}

impl Refusal {
    /// Returns the error for an object that does not exist (404).
    #[must_use]
    pub fn not_found(error: impl fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }

    /// Returns the error for an invalid request (400).
    #[must_use]
    pub fn bad(error: impl fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// Returns the error for a request that the present state of the fabric does not allow (409).
    #[must_use]
    pub fn conflict(error: impl fmt::Display) -> Self {
        Self::new(StatusCode::CONFLICT, error)
    }

    pub(super) fn new(status: StatusCode, error: impl fmt::Display) -> Self {
        Self { status, error: error.to_string() }
    }

    /// Returns the HTTP status of the error.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// Returns the error as one line of text.
    #[must_use]
    pub fn error(&self) -> &str {
        &self.error
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// A request of a client. If it is dropped without an answer, the client gets status 503.
#[derive(Debug)]
pub struct Request {
    /// The requested call.
    pub call: ApiCall,
    reply: oneshot::Sender<Answer>,
}

impl Request {
    /// Sends an answer to the client.
    pub fn answer(self, answer: impl Into<Answer>) {
        // Sending fails if the client has disconnected.
        let _ = self.reply.send(answer.into());
    }
}

/// Sends requests of clients to the event loop. Each connection has at most one outstanding request.
#[derive(Clone)]
pub(super) struct RequestQueue {
    requests: Sender<Request>,
    bell: Bell,
}

impl RequestQueue {
    pub(super) const fn new(requests: Sender<Request>, bell: Bell) -> Self {
        Self { requests, bell }
    }

    /// Sends a request to the event loop and waits for its answer.
    pub(super) async fn call(&self, call: ApiCall) -> Result<Json, Refusal> {
        let stopped =
            || Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the fabric is being stopped");
        let (reply, answer) = oneshot::channel();
        self.requests.send(Request { call, reply }).map_err(|_| stopped())?;
        self.bell.ring();
        let late = |_| {
            let seconds = ANSWER_TIMEOUT.as_secs();
            let error = format!("the fabric has not responded within {seconds} s; try again");
            Refusal::new(StatusCode::GATEWAY_TIMEOUT, error)
        };
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, answer).await.map_err(late)?;
        match answer.map_err(|_| stopped())? {
            Answer::Json(json) => Ok(json),
            Answer::Refused(refusal) => Err(refusal),
            Answer::Later(compute) => {
                tokio::task::spawn_blocking(compute).await.map_err(|_| stopped())?
            }
        }
    }
}
