//! What the SA answers queries from, and the records of an answer.

use std::sync::Arc;

use ib_types::{Gid, PKey};
use ib_wire::mad::AttributeId;
use ib_wire::mad::sa::Record;
use ib_wire::mad::sm::SmInfo;

use super::subnet::Subnet;
use crate::multicast::MulticastTables;
use crate::tables::{Tables, WrittenTables};

/// What the SA answers queries from.
#[derive(Clone, Copy)]
pub(crate) struct SubnetView<'a> {
    /// The subnet, once it was up.
    pub(crate) subnet: Option<&'a Arc<Subnet>>,
    pub(crate) tables: &'a Tables,
    pub(crate) multicast: &'a MulticastTables,
    pub(crate) written: &'a WrittenTables,
    /// What the manager says of itself.
    pub(crate) manager: SmInfo,
    /// The key of those who are trusted.
    pub(crate) sa_key: u64,
}

/// The port that sends a query: what it may see depends on its partitions.
pub(super) struct Viewer<'a> {
    pub(super) gid: Option<Gid>,
    pub(super) keys: &'a [PKey],
    /// True if the query has the `SA_Key`: all records are visible.
    pub(super) trusted: bool,
}

/// The records of an answer, one behind the other.
#[derive(Debug)]
pub(super) struct Records {
    pub(super) id: AttributeId,
    pub(super) bytes: Vec<u8>,
    pub(super) stride: usize,
    /// The length of a record without the gap to the next one.
    pub(super) length: usize,
}

impl SubnetView<'_> {
    /// Returns the LID and GID of the manager.
    pub(super) fn address(&self) -> (u16, Gid) {
        let lid =
            self.subnet.and_then(|subnet| subnet.found.own.and_then(|own| subnet.base_lid(own)));
        let prefix = self.subnet.map_or(0, |subnet| subnet.prefix);
        (lid.unwrap_or(0), Gid::new(prefix, self.manager.guid))
    }
}

impl Records {
    pub(super) fn of<R: Record>(bytes: Vec<u8>) -> Self {
        Self { id: R::ID, bytes, stride: R::STRIDE, length: R::LENGTH }
    }
}
