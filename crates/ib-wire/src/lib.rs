//! InfiniBand on the wire: packet headers, checksums and management datagrams.
//!
//! | module | holds |
//! |---|---|
//! | [`packet`] | the headers of a packet, the checked view of one, the builder |
//! | [`crc`] | ICRC and VCRC |
//! | [`mad`] | management datagrams: SMPs, subnet administration, counters, connections, vendors |
//! | [`acm`] | what programs ask the service of IB ACM on their machine |
//! | [`rtrs`], [`rnbd`] | block data over connections, and the block devices on top of it |
//! | [`mod@layout`] | how a wire layout is described once |
//!
//! Nothing here does I/O or knows the time. `parse` takes bytes whose length was checked and never
//! fails on what they say: codes that nobody has named survive.

pub mod acm;
pub mod crc;
pub mod layout;
mod little;
pub mod mad;
pub mod packet;
pub mod rnbd;
pub mod rtrs;
