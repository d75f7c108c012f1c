//! Identifiers of clients and requests.

use std::fmt;

/// The ID of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u32);

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Identifies an outstanding request by its index in the table of requests.
///
/// The index is reused after the request has ended. Requests with the same index differ in `number`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestKey {
    pub(crate) index: u32,
    pub(crate) number: u32,
}
