//! The data that the SA answers queries from, and the records of a response.

use std::sync::Arc;

use ib_types::{Gid, PKey};
use ib_wire::mad::AttributeId;
use ib_wire::mad::sa::Record;
use ib_wire::mad::sm::SmInfo;

use super::subnet::Subnet;
use crate::multicast::MulticastTables;
use crate::tables::{Tables, WrittenTables};

/// The data that the SA answers queries from.
#[derive(Clone, Copy)]
pub(crate) struct SubnetView<'a> {
    /// The last subnet that was up; `None` if there was none, or if this SM is not the master.
    pub(crate) subnet: Option<&'a Arc<Subnet>>,
    pub(crate) tables: &'a Tables,
    pub(crate) multicast: &'a MulticastTables,
    pub(crate) written: &'a WrittenTables,
    /// SMInfo of this SM.
    pub(crate) manager: SmInfo,
    /// `SA_Key` of trusted requests.
    pub(crate) sa_key: u64,
}

/// The port that sends a query. Its partitions limit the visible records.
pub(super) struct Viewer<'a> {
    pub(super) gid: Option<Gid>,
    pub(super) keys: &'a [PKey],
    /// True if the query has the `SA_Key`: all records are visible.
    pub(super) trusted: bool,
}

/// The records of a response, concatenated.
#[derive(Debug)]
pub(super) struct Records {
    pub(super) id: AttributeId,
    pub(super) bytes: Vec<u8>,
    pub(super) stride: usize,
    /// Length of a record in bytes without padding.
    pub(super) length: usize,
}

impl SubnetView<'_> {
    /// Returns LID and GID of the SM.
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
