//! The trait by which clients and servers access HCAs.

use ib_cm::Cm;
use ib_hca::Hca;
use ib_types::PKey;

/// The number of an HCA. The owner of the HCA assigns the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AdapterId(pub u32);

/// An HCA with its connection manager.
#[derive(Debug)]
pub struct Adapter<'a> {
    /// The HCA.
    pub hca: &'a mut Hca,
    /// The connection manager of the HCA.
    pub cm: &'a mut Cm,
}

/// The HCAs that a client or a server may use. The implementor of the trait owns and drives the HCAs.
pub trait Adapters {
    /// Returns an HCA; `None` if the HCA was removed.
    fn get(&mut self, id: AdapterId) -> Option<Adapter<'_>>;

    /// Returns true if the port of an HCA is a member of a partition. The default implementation returns true only for
    /// the default partition.
    fn is_in_partition(&self, id: AdapterId, p_key: PKey) -> bool {
        let _ = id;
        p_key.matches(PKey::DEFAULT)
    }
}
