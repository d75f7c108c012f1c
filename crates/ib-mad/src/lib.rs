//! Management datagram transactions: who asks gets one answer or one reason.
//!
//! | module | holds |
//! |---|---|
//! | [`client`] | [`Client`]: asks over a link and waits |
//! | [`requester`] | [`Requester`]: numbers, time limits, retries, a window of requests |
//! | [`responder`] | [`Responder`]: takes requests, sends responses of any length |
//! | [`request`] | [`Request`], its [`Timing`], its [`Completion`] |
//! | [`message`] | [`Message`]: what arrived, of one datagram or of many segments |
//! | [`rmpp`] | messages of several segments: a receiver and a sender |
//! | [`error`] | what can go wrong |
//! | `replies`, `timers` | acknowledgements on their way out, the table of deadlines |
//!
//! Requester and responder own no socket, thread or clock. They are handed what a link received and
//! the time, and are asked what to send, what has happened, and when to call again:
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
//! // A request goes out under a number of the requester's choice.
//! let table = Mad::new(MgmtClass::SUBN_ADM, Method::GET_TABLE, TransactionId(0));
//! let started = requester.start(Request::new(Remote::gsi(7), table))?;
//! let request = requester.poll_transmit(now).expect("the window is open");
//!
//! // The other side answers with 1000 bytes, which is more than a datagram holds.
//! responder.handle(now, &Incoming::Received(request));
//! let Some(ResponderEvent::Request(request)) = responder.poll_event() else { panic!() };
//! let mut header = *request.mad();
//! header.answer(MadStatus::OK);
//! responder.respond_message(request.datagram(), header, vec![42; 1000])?;
//!
//! // Segments and acknowledgements go to and fro until the answer is whole.
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
