//! Observation and control of a running program by other processes of this machine.
//!
//! | module | holds |
//! |---|---|
//! | [`lines`] | the control protocol: requests and replies as lines of JSON over a private Unix socket |
//! | [`queue`] | requests of other threads, queued for an event loop |
//! | [`capture`] | captures of queue pairs: started over a socket, written by a thread |
//! | [`page`] | metrics over HTTP |

pub mod capture;
pub mod lines;
pub mod page;
pub mod queue;
