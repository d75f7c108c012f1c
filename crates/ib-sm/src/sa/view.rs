//! The data from which the SA answers queries, and the records of a response.

use std::sync::Arc;

use ib_types::{Gid, PKey};
use ib_wire::mad::AttributeId;
use ib_wire::mad::sa::Record;
use ib_wire::mad::sm::SmInfo;

use super::subnet::Subnet;
use crate::multicast::MulticastTables;
use crate::tables::{Tables, WrittenTables};

/// The data from which the SA answers queries.
#[derive(Clone, Copy)]
pub(crate) struct SubnetView<'a> {
    /// The last subnet that was up. `None` if no subnet was up, or if this SM is not the master.
    pub(crate) subnet: Option<&'a Arc<Subnet>>,
    pub(crate) tables: &'a Tables,
    pub(crate) multicast: &'a MulticastTables,
    pub(crate) written: &'a WrittenTables,
    /// SMInfo of this SM.
    pub(crate) manager: SmInfo,
    /// The `SA_Key` that makes requests trusted.
    pub(crate) sa_key: u64,
}

/// The port that sends a query. Its partitions limit the visible records.
pub(super) struct Viewer<'a> {
    pub(super) gid: Option<Gid>,
    pub(super) keys: &'a [PKey],
    /// True if the query has the `SA_Key`. All records are then visible.
    pub(super) trusted: bool,
}

/// The records of a response, one after the other.
#[derive(Debug)]
pub(super) struct Records {
    pub(super) id: AttributeId,
    pub(super) bytes: Vec<u8>,
    pub(super) stride: usize,
    /// Length of each record in bytes, without padding.
    pub(super) length: usize,
}

impl SubnetView<'_> {
    /// Returns the LID and the GID of the SM.
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
