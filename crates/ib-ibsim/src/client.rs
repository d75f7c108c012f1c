//! The client's side of the ibsim protocol.
//!
//! [`IbsimLink`] is a [`MadLink`](ib_link::MadLink) at a port that ibsim or this crate's server
//! simulates. It uses a [`Client`], the connection to the server, which exchanges control messages
//! and sends requests without blocking.
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

/// Time that a disconnecting client waits for the server's reply.
const DISCONNECT_TIMEOUT: Duration = Duration::from_millis(200);

/// Time that an attaching client waits for the port's NodeInfo response.
const NODE_INFO_TIMEOUT: Duration = Duration::from_millis(500);

/// Interval between attempts to connect to a server.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Error of attaching to a simulator, or of a control message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No server listens.
    #[error(
        "no simulator listens on {server} after {seconds:.1} s: {source}; expected a running `ibfabric sim` or ibsim"
    )]
    NoServer {
        /// Address of the server.
        server: String,
        /// Time limit in seconds.
        seconds: f64,
        /// The error of the last attempt to connect.
        source: io::Error,
    },
    /// The server has refused the request.
    #[error("the simulator at {server} refuses {what}")]
    Refused {
        /// Address of the server.
        server: String,
        /// The refused request.
        what: String,
    },
    /// The server has not replied in time.
    #[error(
        "the simulator at {server} did not reply to the request for {what} within {seconds:.1} s"
    )]
    Silent {
        /// Address of the server.
        server: String,
        /// The request.
        what: String,
        /// Time limit in seconds.
        seconds: f64,
    },
    /// The reply is malformed.
    #[error("the simulator at {server} sent a malformed reply to the request for {what}: {source}")]
    Message {
        /// Address of the server.
        server: String,
        /// The request.
        what: String,
        /// The reason why the reply cannot be parsed.
        source: MessageError,
    },
    /// The name of the node is too long for the message.
    #[error("the node name {node:?} has {} bytes: expected at most 31", node.len())]
    Node {
        /// Name of the node.
        node: String,
    },
    /// A system call failed.
    #[error("{doing} failed (simulator at {server}): {source}")]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// Address of the server.
        server: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// A client's connection to a server. Several threads can share the connection: control messages
/// are exchanged one at a time.
///
/// Disconnects when dropped.
pub struct Client {
    server: String,
    sockets: Sockets,
    number: u32,
    node: String,
    patience: Duration,
    /// Locked while a control message waits for its reply.
    exchange: Mutex<()>,
    left: AtomicBool,
    is_sm: AtomicBool,
    /// Port GUID from the NodeInfo that the port itself has returned.
    port_guid: Option<Guid>,
}

impl Client {
    /// Attaches to a node of a simulator. Waits at most [`Attach::patience`] for the server to
    /// start, and then at most as long for the server's reply.
    ///
    /// # Errors
    /// Fails if no server listens, or if the server refuses the client. ibsim refuses an unknown
    /// node, and any client if it has no room for more.
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
            if started.elapsed() + RETRY_INTERVAL >= attach.patience {
                let seconds = started.elapsed().as_secs_f64();
                let server = attach.server.to_string();
                return Err(ClientError::NoServer { server, seconds, source: error });
            }
            std::thread::sleep(RETRY_INTERVAL);
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
            format!("a client at node {node:?}")
        };
        let explained = |error: ClientError| match error {
            ClientError::Refused { server, what } => {
                let what = format!("{what}: there is no such node, or no room for one more client");
                ClientError::Refused { server, what }
            }
            error => error,
        };
        let id = client.sockets.id();
        let connect = Connect { id, queue_pair: 0, is_sm: false, node };
        let answer = client.exchange(kind::CONNECT, &connect.to_bytes(), &what);
        let answer = answer.map_err(explained)?;
        // ibsim returns the client's number in the payload only; the header of its reply has client
        // 0.
        let connected = Connect::parse(&answer.payload);
        (client.number, client.node) = (connected.id, connected.node);
        let connected = client.sockets.connect_data(client.number);
        connected.map_err(failed("connecting the data socket"))?;
        let port_guid = client.query_port_guid();
        client.port_guid = port_guid.map_err(failed("querying the NodeInfo of the port"))?;
        if attach.is_sm {
            // IsSM is set by a separate message instead of the flag in the connect message. If that flag is set, ibsim
            // neither sets IsSM nor sends trap 144. Other servers would set IsSM before this client can receive, so the
            // first queries of other SMs would be lost.
            client.set_is_sm(true)?;
        }
        Ok(client)
    }

    /// Returns the server's address as text for error messages.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the name of the node at which the server has attached the client.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Returns the data socket, for polling.
    #[must_use]
    pub fn data(&self) -> BorrowedFd<'_> {
        self.sockets.data()
    }

    /// Returns the control socket, at which only replies to control messages arrive.
    #[must_use]
    pub fn control_socket(&self) -> BorrowedFd<'_> {
        self.sockets.control()
    }

    /// Sends a control message of the given [`kind`] and waits for the reply.
    ///
    /// # Errors
    /// Fails if the server refuses the message, has exited or does not reply in time.
    ///
    /// # Panics
    /// Panics if the payload has more than 64 bytes.
    pub fn control(&self, kind: u32, payload: &[u8]) -> Result<Control, ClientError> {
        self.exchange(kind, payload, &format!("control message {kind}"))
    }

    /// Sets or clears `IsSM` in the port's capability mask. With `IsSM` the client also receives unsolicited MADs.
    ///
    /// # Errors
    /// As [`Client::control`].
    pub fn set_is_sm(&self, is_sm: bool) -> Result<(), ClientError> {
        if is_sm {
            // The client's own flag is set before the reply arrives, so that `leave` clears IsSM at
            // the server even if the reply is lost.
            self.is_sm.store(true, Ordering::Relaxed);
        }
        self.control(kind::SET_IS_SM, &u32::from(is_sm).to_ne_bytes()).map(drop)?;
        self.is_sm.store(is_sm, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the GID prefix and the GUID of the port.
    ///
    /// If the port has responded to a NodeInfo query, the GUID is taken from that response. In its
    /// reply to [`kind::GET_GID`], ibsim returns the node's GUID instead, in the byte order of the
    /// machine on which ibsim runs.
    ///
    /// # Errors
    /// As [`Client::control`].
    pub fn gid(&self) -> Result<(u64, Guid), ClientError> {
        let gid = self.control(kind::GET_GID, &[])?.payload;
        let prefix = u64::from_be_bytes(*gid.first_chunk().expect("the payload has 64 bytes"));
        let guid = *gid[8..].first_chunk().expect("56 bytes follow the prefix");
        Ok((prefix, self.port_guid.unwrap_or(Guid(u64::from_be_bytes(guid)))))
    }

    /// Queries the NodeInfo of the client's port with a directed-route SMP without hops.
    fn query_port_guid(&self) -> io::Result<Option<Guid>> {
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
        let (mut inbox, deadline) = (Inbox::new(), clock::now() + NODE_INFO_TIMEOUT);
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

    /// Sends the requests in order until the socket is full. Returns the number of sent requests.
    ///
    /// # Errors
    /// Fails if the server has exited.
    pub fn send(&self, requests: &[[u8; Request::LENGTH]]) -> io::Result<usize> {
        batch::send(self.data(), requests)
    }

    /// Clears `IsSM` and disconnects, unless the client has already disconnected. A process that exits without dropping
    /// the client must call this function. Nothing can be sent afterwards.
    pub fn leave(&self) {
        if self.sockets.is_attached() && !self.left.swap(true, Ordering::Relaxed) {
            let _turn = self.exchange.lock().unwrap_or_else(PoisonError::into_inner);
            // ibsim does not clear IsSM when a client disconnects, so other SMs would ctotinue on
            // query this port.
            if self.is_sm.swap(false, Ordering::Relaxed) {
                let duty = Control::new(self.number, kind::SET_IS_SM, &0_u32.to_ne_bytes());
                if self.sockets.send_control(&duty.to_bytes()).is_ok() {
                    let _ =
                        self.sockets.receive_control(&mut [0; Control::LENGTH], DISCONNECT_TIMEOUT);
                }
            }
            let goodbye = Control::new(self.number, kind::DISCONNECT, &[]).to_bytes();
            // A send error means that the server has exited, so no reply will arrive.
            if self.sockets.send_control(&goodbye).is_ok() {
                let _ = self.sockets.receive_control(&mut [0; Control::LENGTH], DISCONNECT_TIMEOUT);
            }
        }
    }

    fn exchange(&self, kind: u32, payload: &[u8], what: &str) -> Result<Control, ClientError> {
        let _turn = self.exchange.lock().unwrap_or_else(PoisonError::into_inner);
        let server = || self.server.clone();
        let what = || what.to_owned();
        let failed = |doing| move |source| ClientError::Io { doing, server: server(), source };
        // Late replies to earlier requests are discarded.
        self.sockets.discard_answers().map_err(failed("reading old answers"))?;
        let request = Control::new(self.number, kind, payload).to_bytes();
        self.sockets.send_control(&request).map_err(failed("sending a control message"))?;
        let deadline = Instant::now() + self.patience;
        let mut bytes = [0; Control::LENGTH + 1];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let received = self.sockets.receive_control(&mut bytes, left);
            let Some(length) = received.map_err(failed("receiving an answer"))? else {
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
