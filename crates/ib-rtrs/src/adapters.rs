//! How engines reach the HCAs of their owner.

use ib_cm::Cm;
use ib_hca::Hca;
use ib_types::PKey;

/// The number by which the owner of HCAs knows one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AdapterId(pub u32);

/// An HCA and its connection manager.
#[derive(Debug)]
pub struct Adapter<'a> {
    /// The HCA.
    pub hca: &'a mut Hca,
    /// Its connection manager.
    pub cm: &'a mut Cm,
}

/// The HCAs that an engine may use. They stay their owner's, who drives them.
pub trait Adapters {
    /// Returns an HCA; `None` once it is gone.
    fn get(&mut self, id: AdapterId) -> Option<Adapter<'_>>;

    /// Returns whether the port of an HCA belongs to a partition. Unless the owner knows better it belongs to the
    /// default one only.
    fn is_in_partition(&self, id: AdapterId, p_key: PKey) -> bool {
        let _ = id;
        p_key.matches(PKey::DEFAULT)
    }
}
