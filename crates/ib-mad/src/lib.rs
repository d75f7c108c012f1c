//! MAD transactions: requests with timeouts and retries, and their responses of any length.
//!
//! Every request ends with exactly one completion: a response or an error. Requester and responder
//! own no socket, thread or clock.
//!
//! | module | contents |
//! |---|---|
//! | [`client`] | [`Client`]: blocking calls over a link |
//! | [`requester`] | [`Requester`]: transaction IDs, timeouts, retries, the window of outstanding requests |
//! | [`responder`] | [`Responder`]: receives requests, sends responses of any length |
//! | [`request`] | [`Request`], [`Timing`], [`Completion`] |
//! | [`message`] | [`Message`]: a received request or response of one or several MADs |
//! | [`rmpp`] | RMPP: segmentation and reassembly of messages |
//! | [`error`] | errors |
//! | `replies`, `timers` | the queue of outgoing ACKs; the kinds of timers |
//!
//! A driver passes received MADs and the time to a requester or responder, and polls it for MADs to send, events, and
//! the next deadline:
//!
//! ```
//! use ib_link::{Incoming, Remote};
//! use ib_mad::{Request, Requester, Responder, ResponderEvent};
//! use ib_types::Instant;
//! use ib_wire::mad::{Mad, MadStatus, Method, MgmtClass, TransactionId};
//!
//! let now = Instant::ZERO;
//! let mut requester = Requester::new(Default::default());
//! let mut responder = Responder::new(Default::default());
//!
//! // The requester assigns a transaction ID.
//! let table = Mad::new(MgmtClass::SUBN_ADM, Method::GET_TABLE, TransactionId(0));
//! let started = requester.start(Request::new(Remote::gsi(7), table))?;
//! let request = requester.poll_transmit(now).expect("the window is open");
//!
//! // The responder sends 1000 bytes, which do not fit into one MAD.
//! responder.handle(now, &Incoming::Received(request));
//! let Some(ResponderEvent::Request(request)) = responder.poll_event() else { panic!() };
//! let mut header = *request.mad();
//! header.answer(MadStatus::OK);
//! responder.respond_message(request.datagram(), header, vec![42; 1000])?;
//!
//! // Segments and ACKs are exchanged until the response is complete.
//! let completion = loop {
//!     while let Some(segment) = responder.poll_transmit(now) {
//!         requester.handle(now, &Incoming::Received(segment));
//!     }
//!     while let Some(acknowledgement) = requester.poll_transmit(now) {
//!         responder.handle(now, &Incoming::Received(acknowledgement));
//!     }
//!     if let Some(completion) = requester.poll_event() {
//!         break completion;
//!     }
//! };
//! assert_eq!(completion.transaction_id, started);
//! assert_eq!(completion.result?.data(), [42; 1000]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod client;
pub mod error;
pub mod message;
mod replies;
pub mod request;
pub mod requester;
pub mod responder;
pub mod rmpp;
mod timers;

pub use client::{Client, drive};
pub use error::{CallError, Failure, RespondError, StartError};
pub use message::Message;
pub use request::{AnswerFrom, Backoff, Completion, OnLoss, Request, Timing, Urgency};
pub use requester::{Requester, RequesterConfig, RequesterCounters};
pub use responder::{Responder, ResponderConfig, ResponderCounters, ResponderEvent};
pub use rmpp::ReceiveLimits;
