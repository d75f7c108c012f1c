//! Observation and control of a running program by other processes of the same machine.
//!
//! Daemons respond to requests over control sockets ([`lines`]), let other processes capture the packets of their HCAs
//! ([`capture`]), and publish metrics ([`page`]).
//!
//! | module | contents |
//! |---|---|
//! | [`lines`] | the control protocol: requests and replies as lines of JSON over a private Unix socket |
//! | [`queue`] | a queue of requests from other threads to an event loop |
//! | [`capture`] | captures of queue pairs: clients start them over a socket, and a thread writes the packets |
//! | [`page`] | an HTTP server of metrics |
//!
//! # Example
//! A program serves a control socket, and a client sends a request:
//!
//! ```
//! use ib_control::lines::{LineClient, LineServer, Reply};
//! use serde_json::json;
//!
//! # fn main() -> std::io::Result<()> {
//! let name = format!("control-example-{}", std::process::id());
//! LineServer::bind(&name)?.serve(|line| {
//!     let reply = match line {
//!         "{\"command\":\"status\"}" => Reply::done("2 clients", json!({ "clients": 2 })),
//!         _ => Reply::failed("unknown command"),
//!     };
//!     reply.to_line()
//! })?;
//!
//! let mut client = LineClient::connect(&name)?;
//! let reply = client.request(&json!({ "command": "status" }))?;
//! assert!(reply.ok);
//! assert_eq!(reply.data["clients"], 2);
//! assert!(!client.request(&json!({ "command": "halt" }))?.ok);
//! # Ok(())
//! # }
//! ```

pub mod capture;
pub mod lines;
pub mod page;
pub mod queue;
