//! What is asked of the loop, and what it says.

use std::fmt;
use std::sync::mpsc::Sender;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::StatusCode;
use serde::Deserialize;
use tokio::sync::oneshot;

use ib_os::alarm::Bell;

/// How long the loop may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A JSON text.
pub type Json = Bytes;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Nodes and links.
    Fabric,
    /// The LIDs and IP addresses of all end ports.
    Addresses,
    /// How many pairs of hosts use each link.
    Load,
    /// All that is known of a node.
    Node(u32),
    /// What the service of names at a host knows.
    Names(u32),
    /// The way from a node to another one.
    Path(Way),
    /// The block device and its paths.
    Device,
    /// How far the exercise of the device is.
    Exercise,
    /// The path to an address, by the service of names at a host.
    Resolve(Resolve),
    /// A link is cut or restored.
    Link(Link),
    /// The device is to be exercised.
    Start(Start),
}

/// From a node to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// The first node.
    pub from: u32,
    /// The last one.
    pub to: u32,
}

/// From a node to an address.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolve {
    /// The node.
    pub from: u32,
    /// A name, an IP address or a GID.
    pub to: String,
}

/// A link, and what it shall be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The link's number.
    pub link: u32,
    /// Whether it is to be there.
    pub up: bool,
}

/// How the device is to be exercised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// For how many seconds.
    pub seconds: u32,
}

/// What is said.
pub enum Answer {
    /// This.
    Json(Json),
    /// What a function returns that takes its time, in another thread.
    Later(Box<dyn FnOnce() -> Result<Json, Refusal> + Send>),
    /// Nothing, and why.
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

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status of HTTP.
    pub(super) status: StatusCode,
    /// A line for people.
    pub(super) error: String,
}

impl Refusal {
    /// What is asked for is not there.
    #[must_use]
    pub fn not_found(error: impl fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }

    /// What is asked makes no sense.
    #[must_use]
    pub fn bad(error: impl fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// It cannot be done as things are.
    #[must_use]
    pub fn conflict(error: impl fmt::Display) -> Self {
        Self::new(StatusCode::CONFLICT, error)
    }

    pub(super) fn new(status: StatusCode, error: impl fmt::Display) -> Self {
        Self { status, error: error.to_string() }
    }

    /// Returns the status of HTTP.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// Returns why, in a line.
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

/// Something that is asked. Who drops it has not answered, which is told, too.
#[derive(Debug)]
pub struct Request {
    /// What.
    pub asked: Asked,
    told: oneshot::Sender<Answer>,
}

impl Request {
    /// Answers.
    pub fn answer(self, answer: impl Into<Answer>) {
        // Who has asked may have gone.
        let _ = self.told.send(answer.into());
    }
}

/// Where requests are left. There are never more of them than connections.
#[derive(Clone)]
pub(super) struct Desk {
    requests: Sender<Request>,
    bell: Bell,
}

impl Desk {
    pub(super) const fn new(requests: Sender<Request>, bell: Bell) -> Self {
        Self { requests, bell }
    }

    /// Asks, and waits for what the loop says.
    pub(super) async fn ask(&self, asked: Asked) -> Result<Json, Refusal> {
        let ends = || Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the fabric ends");
        let (told, answer) = oneshot::channel();
        self.requests.send(Request { asked, told }).map_err(|_| ends())?;
        self.bell.ring();
        let late = |_| {
            let seconds = PATIENCE.as_secs();
            let error = format!("the fabric has not answered within {seconds} s");
            Refusal::new(StatusCode::GATEWAY_TIMEOUT, error)
        };
        let answer = tokio::time::timeout(PATIENCE, answer).await.map_err(late)?;
        match answer.map_err(|_| ends())? {
            Answer::Json(json) => Ok(json),
            Answer::Refused(refusal) => Err(refusal),
            Answer::Later(compute) => {
                tokio::task::spawn_blocking(compute).await.map_err(|_| ends())?
            }
        }
    }
}
