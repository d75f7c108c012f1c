//! The kernel's devices for management datagrams, `/dev/infiniband/umadN`.
//!
//! | module | holds |
//! |---|---|
//! | [`abi`] | the binary interface: the header before every datagram, the ioctls |

pub mod abi;
