//! Configuration files of the service, in the formats of ibacm.
//!
//! | module | file of ibacm | holds |
//! |---|---|---|
//! | [`options`] | `ibacm_opts.cfg` | [`Options`]: options of address and route resolution |
//! | [`addresses`] | `ibacm_addr.cfg` | [`AddressFile`]: names and addresses of the machine's endpoints |
//! | [`hosts`] | `ibacm_hosts.data` | [`HostFile`]: preloaded names and addresses of other machines, and their GIDs |
//! | [`routes`] | `ibacm_route.data` | [`Routes`]: preloaded routes, as dumped by an SM |
//!
//! The readers and writers open no files. Readers take the contents of a file, and writers return text. Readers that
//! can fail also take the name of the file, for the error. Lines end with a line feed, with or without a carriage
//! return. A word that starts with `#` begins a comment.
//!
//! Readers accept the formats of ibacm. Each part that a reader ignores is reported as a [`Warning`] with the found
//! text, the expected text and the consequence. Only [`Options::read`] fails if a value is invalid.
//!
//! ```
//! use ib_acm::config::Options;
//!
//! let read = Options::read("ibacm_opts.cfg", b"timeout 500 ms\nroute_prot acm\n")?;
//! assert_eq!(read.value.timeout.as_millis(), 500);
//! assert_eq!(
//!     read.warnings[0].at("ibacm_opts.cfg").to_string(),
//!     "ibacm_opts.cfg:1: found `ms`, expected the end of the line; the found text is ignored",
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
