//! Configuration files of the service, in the formats of ibacm.
//!
//! | module | file of ibacm | holds |
//! |---|---|---|
//! | [`options`] | `ibacm_opts.cfg` | [`Options`]: options of address and route resolution |
//! | [`addresses`] | `ibacm_addr.cfg` | [`AddressFile`]: names and addresses of the machine's endpoints |
//! | [`hosts`] | `ibacm_hosts.data` | [`HostFile`]: preloaded addresses: GIDs of other machines' names and addresses |
//! | [`routes`] | `ibacm_route.data` | [`Routes`]: preloaded routes, as dumped by an SM |
//!
//! Readers take bytes and the file name for messages, writers return text: no file is opened.
//! Lines end with a line feed, with or without a carriage return; a word that starts with `#` begins a comment.
//!
//! Readers accept what ibacm accepts and ignore what it ignores. Each ignored part is reported as a [`Warning`] with what
//! was found, what was expected and the consequence.
//!
//! ```
//! use ib_acm::config::Options;
//!
//! let read = Options::read("ibacm_opts.cfg", b"timeout 500 ms\nroute_prot acm\n")?;
//! assert_eq!(read.value.timeout.as_millis(), 500);
//! assert_eq!(
//!     read.warnings[0].at("ibacm_opts.cfg").to_string(),
//!     "ibacm_opts.cfg:1: found `ms`, expected the end of the line; it is ignored",
//! );
//! # Ok::<(), ib_acm::config::OptionsError>(())
//! ```

pub mod addresses;
pub mod hosts;
pub mod options;
mod parsed;
pub mod routes;
mod text;

pub use addresses::{AddressFile, AddressLine};
pub use hosts::{HostFile, HostLine};
pub use options::{Options, OptionsError};
pub use parsed::{MAX_WARNINGS, Parsed, Warning};
pub use routes::{Routes, RoutesError};
pub use text::Word;
