//! Event loops of the daemons, and what only one of them needs.
//!
//! | module | holds |
//! |---|---|
//! | [`acm`] | ports and sockets of the ACM service |
//! | [`up`] | embedded hosts and the HTTP API of `ibfabric up` |

pub mod acm;
pub mod up;
