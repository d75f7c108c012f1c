//! Collects what adapters note of their queue pairs.
//!
//! | module | holds |
//! |---|---|
//! | [`frame`] | [`Link`]: the headers of the link around a packet, as a capture file has them |
//! | [`mod@file`] | [`CaptureFile`]: the RDMA packets of capture files, whoever wrote them |
//! | [`mod@correlate`] | [`Correlator`]: two captures as one: what arrived, whose clock is late, where time goes |
//! | [`dissect`] | [`Dissector`]: what is in such a packet, up to management datagrams, RTRS and RNBD |
//! | [`collect`] | [`Collector`]: the packets of many queue pairs in one pcapng stream, with all that was missed |
//!
//! Nothing here owns a thread, a file or a clock.

pub mod collect;
pub mod correlate;
pub mod dissect;
pub mod file;
pub mod frame;

pub use collect::{Collector, Counted};
pub use correlate::{Correlation, Correlator};
pub use dissect::{Dissection, Dissector};
pub use file::{CaptureFile, Content, Foreign, Frame, Item};
pub use frame::Link;
