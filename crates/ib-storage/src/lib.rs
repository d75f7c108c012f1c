//! Block storage on this machine: disks, and the drivers of block servers and clients.
//!
//! | module | holds |
//! |---|---|
//! | [`disk`] | disks in memory and files, with io_uring or threads |
//! | [`nbd`] | an NBD server on sockets |
//! | [`rtrs`] | an RNBD server and client over RTRS, on HCAs that one thread drives |

pub mod disk;
pub mod nbd;
pub mod rtrs;
