//! Observation and control of a running program by other processes of this machine.
//!
//! | module | holds |
//! |---|---|
//! | [`console`] | request and response lines over a private Unix socket |
//! | [`desk`] | requests of other threads, queued for an event loop |
//! | [`capture`] | captures of queue pairs: started over a socket, written by a thread |
//! | [`page`] | metrics over HTTP |

pub mod capture;
pub mod console;
pub mod desk;
pub mod page;
