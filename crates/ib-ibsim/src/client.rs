//! The client's side of the sockets.
//!
//! [`IbsimLink`] is a port of a simulated fabric as a [`MadLink`](ib_link::MadLink): the fabric of a
//! real ibsim or of our own server. Below it, [`Client`] is the bare connection: control messages
//! with their answers, and requests that go and come without blocking.
//!
//! ```no_run
//! use ib_link::MadLink;
//! use ib_ibsim::client::{Attach, IbsimLink};
//!
//! let mut link = IbsimLink::attach(&Attach::from_environment()?)?;
//! assert_ne!(link.port()?.number, 255);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ib_types::Guid;
use ib_wire::mad::sm::NodeInfo;
use ib_wire::mad::smp::PERMISSIVE_LID;
use ib_wire::mad::{AttributeId, Mad, Method, MgmtClass, TransactionId};

use super::message::{Connect, Control, MessageError, Request, kind};
use ib_os::batch;
use ib_os::clock;

mod address;
mod link;
mod queue;
mod socket;

pub use address::{AddressError, Attach, ServerAddress};
pub use link::IbsimLink;
pub use queue::{Inbox, Outbox};
use socket::Sockets;

/// How long a client that leaves waits for the server to say so.
const GOODBYE: Duration = Duration::from_millis(200);

/// How long a client that comes waits for the port to say who it is.
const INTRODUCTION: Duration = Duration::from_millis(500);

/// How often is tried whether a server has come up.
const TRY_EVERY: Duration = Duration::from_millis(50);

/// Why a client cannot attach, or a control message was not answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Nobody listens.
    #[error("no simulator listens at {server} after {seconds:.1} s: {source}")]
    NoServer {
        /// Where one was looked for.
        server: String,
        /// How long, in seconds.
        seconds: f64,
        /// What the system said last.
        source: io::Error,
    },
    /// The server said no.
    #[error("the simulator at {server} refuses {what}")]
    Refused {
        /// The server.
        server: String,
        /// What it refuses.
        what: String,
    },
    /// The server does not answer.
    #[error("the simulator at {server} did not answer {what} within {seconds:.1} s")]
    Silent {
        /// The server.
        server: String,
        /// What was asked.
        what: String,
        /// How long the answer was waited for, in seconds.
        seconds: f64,
    },
    /// The answer is none.
    #[error("the simulator at {server} answered {what} with no message: {source}")]
    Message {
        /// The server.
        server: String,
        /// What was asked.
        what: String,
        /// What is wrong with the answer.
        source: MessageError,
    },
    /// The name of the node does not fit into the message.
    #[error("the name {node:?} has {} bytes, expected at most 31", node.len())]
    Node {
        /// The name.
        node: String,
    },
    /// The system failed.
    #[error("{doing} for the simulator at {server}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The server.
        server: String,
        /// What the system said.
        source: io::Error,
    },
}

/// A client's connection; shared by threads it still exchanges one control message at a time.
///
/// Dropping it says goodbye to the server.
pub struct Client {
    server: String,
    sockets: Sockets,
    number: u32,
    node: String,
    patience: Duration,
    /// Held while a control message waits for its answer.
    exchange: Mutex<()>,
    left: AtomicBool,
    is_sm: AtomicBool,
    /// What the port itself says.
    port_guid: Option<Guid>,
}

impl Client {
    /// Attaches to a node of a simulator. Waits for the server to come up, and for its answer, no
    /// longer than [`Attach::patience`] each.
    ///
    /// # Errors
    /// Fails when no server comes up or it refuses, as ibsim does for an unknown node and for more
    /// clients than it has room for.
    pub fn attach(attach: &Attach) -> Result<Self, ClientError> {
        let started = Instant::now();
        loop {
            let error = match Self::try_attach(attach) {
                Err(ClientError::Io { source, .. })
                    if source.kind() == io::ErrorKind::ConnectionRefused =>
                {
                    source
                }
                result => return result,
            };
            if started.elapsed() + TRY_EVERY >= attach.patience {
                let seconds = started.elapsed().as_secs_f64();
                let server = attach.server.to_string();
                return Err(ClientError::NoServer { server, seconds, source: error });
            }
            std::thread::sleep(TRY_EVERY);
        }
    }

    fn try_attach(attach: &Attach) -> Result<Self, ClientError> {
        let node = attach.node.clone().unwrap_or_default();
        if node.len() > 31 {
            return Err(ClientError::Node { node });
        }
        let failed = |doing| {
            let server = attach.server.to_string();
            move |source| ClientError::Io { doing, server, source }
        };
        let mut client = Self {
            server: attach.server.to_string(),
            sockets: Sockets::open(&attach.server).map_err(failed("opening sockets"))?,
            number: 0,
            node: String::new(),
            patience: attach.patience,
            exchange: Mutex::new(()),
            left: AtomicBool::new(false),
            is_sm: AtomicBool::new(false),
            port_guid: None,
        };
        let what = if node.is_empty() {
            "a client at the first node".to_owned()
        } else {
            format!(
                "a client at node {node:?}: there is no such node, or no room for one more client"
            )
        };
        let id = client.sockets.id();
        let connect = Connect { id, queue_pair: 0, is_sm: false, node };
        let answer = client.exchange(kind::CONNECT, &connect.to_bytes(), &what)?;
        // ibsim tells the number here alone; the header of its answer says 0.
        let connected = Connect::parse(&answer.payload);
        (client.number, client.node) = (connected.id, connected.node);
        let connected = client.sockets.connect_data(client.number);
        connected.map_err(failed("connecting the data socket"))?;
        let port_guid = client.ask_port_guid();
        client.port_guid = port_guid.map_err(failed("asking the port for its NodeInfo"))?;
        if attach.is_sm {
            // Not with the wish: ibsim then tells nobody, neither by the port's capability mask nor by
            // trap 144, and where others are told, their questions come while the port's own answer
            // is waited for, and would be lost.
            client.set_is_sm(true)?;
        }
        Ok(client)
    }

    /// Returns the server's name for messages.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the number by which the server knows the client.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Returns the node that the server attached the client to, as the server calls it.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Returns the socket of the requests, to wait for.
    #[must_use]
    pub fn data(&self) -> BorrowedFd<'_> {
        self.sockets.data()
    }

    /// Returns the socket of the control messages; nothing comes from it unasked.
    #[must_use]
    pub fn control_socket(&self) -> BorrowedFd<'_> {
        self.sockets.control()
    }

    /// Asks the server something, one of [`kind`], and waits for the answer.
    ///
    /// # Errors
    /// Fails when the server refuses, has gone or does not answer in time.
    ///
    /// # Panics
    /// Panics when the payload has more than 64 bytes.
    pub fn control(&self, kind: u32, payload: &[u8]) -> Result<Control, ClientError> {
        self.exchange(kind, payload, &format!("control message {kind}"))
    }

    /// Takes up or gives up the duty of a subnet manager: with it come datagrams that nobody asked
    /// for, and the port's capability mask says so.
    ///
    /// # Errors
    /// As [`Client::control`].
    pub fn set_is_sm(&self, is_sm: bool) -> Result<(), ClientError> {
        if is_sm {
            // Before it is certain: it is given back in any case.
            self.is_sm.store(true, Ordering::Relaxed);
        }
        self.control(kind::SET_IS_SM, &u32::from(is_sm).to_ne_bytes()).map(drop)?;
        self.is_sm.store(is_sm, Ordering::Relaxed);
        Ok(())
    }

    /// Asks for the upper half of the port's GIDs and for its GUID.
    ///
    /// Of the GUID the port's own NodeInfo is believed first: what ibsim tells with the GID is the
    /// GUID of the node, and that in its machine's byte order.
    ///
    /// # Errors
    /// As [`Client::control`].
    pub fn gid(&self) -> Result<(u64, Guid), ClientError> {
        let gid = self.control(kind::GET_GID, &[])?.payload;
        let prefix = u64::from_be_bytes(*gid.first_chunk().expect("64 bytes"));
        let guid = *gid[8..].first_chunk().expect("56 bytes");
        Ok((prefix, self.port_guid.unwrap_or(Guid(u64::from_be_bytes(guid)))))
    }

    /// Asks the own port for its GUID as anybody else would: with a directed route of no hops.
    fn ask_port_guid(&self) -> io::Result<Option<Guid>> {
        let mut mad = Mad::new(MgmtClass::SUBN_DIRECTED_ROUTE, Method::GET, TransactionId(1));
        mad.set_attribute_id(AttributeId::NODE_INFO);
        mad.0[32..36].fill(0xff);
        let request = Request {
            dlid: PERMISSIVE_LID,
            slid: PERMISSIVE_LID,
            destination_queue_pair: 0,
            source_queue_pair: 0,
            status: 0,
            length: 256,
            mad: mad.0,
        };
        if self.send(&[request.to_bytes()])? == 0 {
            return Ok(None);
        }
        let (mut inbox, deadline) = (Inbox::new(), clock::now() + INTRODUCTION);
        while clock::now() < deadline {
            while let Some(answer) = inbox.next(self)? {
                let mad = Mad(answer.mad);
                let info = mad.attribute::<NodeInfo>().filter(|info| !info.port_guid.is_zero());
                if answer.status == 0 && info.is_some() {
                    return Ok(info.map(|info| info.port_guid));
                }
            }
            ib_os::poll::wait(self.data(), false, clock::milliseconds_until(deadline))?;
        }
        Ok(None)
    }

    /// Sends requests as far as the server takes them now and returns how many went.
    ///
    /// # Errors
    /// Fails when the server has gone.
    pub fn send(&self, requests: &[[u8; Request::LENGTH]]) -> io::Result<usize> {
        batch::send(self.data(), requests)
    }

    /// Gives back the duty of a subnet manager and says goodbye to the server, once; for a client that
    /// is never dropped. Nothing can be sent afterwards.
    pub fn leave(&self) {
        if self.sockets.is_attached() && !self.left.swap(true, Ordering::Relaxed) {
            let _turn = self.exchange.lock().unwrap_or_else(PoisonError::into_inner);
            // ibsim does not take the duty from a client that leaves: its port would go on saying that
            // there is a manager, whom the others ask in vain.
            if self.is_sm.swap(false, Ordering::Relaxed) {
                let duty = Control::new(self.number, kind::SET_IS_SM, &0_u32.to_ne_bytes());
                if self.sockets.say(&duty.to_bytes()).is_ok() {
                    let _ = self.sockets.hear(&mut [0; Control::LENGTH], GOODBYE);
                }
            }
            let goodbye = Control::new(self.number, kind::DISCONNECT, &[]).to_bytes();
            // A server that has gone need not be told.
            if self.sockets.say(&goodbye).is_ok() {
                let _ = self.sockets.hear(&mut [0; Control::LENGTH], GOODBYE);
            }
        }
    }

    fn exchange(&self, kind: u32, payload: &[u8], what: &str) -> Result<Control, ClientError> {
        let _turn = self.exchange.lock().unwrap_or_else(PoisonError::into_inner);
        let server = || self.server.clone();
        let what = || what.to_owned();
        let failed = |doing| move |source| ClientError::Io { doing, server: server(), source };
        // An answer that came after its question was given up answers nothing now.
        self.sockets.discard_answers().map_err(failed("reading old answers"))?;
        let question = Control::new(self.number, kind, payload).to_bytes();
        self.sockets.say(&question).map_err(failed("sending a control message"))?;
        let deadline = Instant::now() + self.patience;
        let mut bytes = [0; Control::LENGTH + 1];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let heard = self.sockets.hear(&mut bytes, left);
            let Some(length) = heard.map_err(failed("receiving an answer"))? else {
                let seconds = self.patience.as_secs_f64();
                return Err(ClientError::Silent { server: server(), what: what(), seconds });
            };
            let answer = Control::parse(&bytes[..length]).map_err(|source| {
                ClientError::Message { server: server(), what: what(), source }
            })?;
            match answer.kind {
                kind::ERROR => {
                    return Err(ClientError::Refused { server: server(), what: what() });
                }
                other if other == kind => return Ok(answer),
                _ => {}
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests;
