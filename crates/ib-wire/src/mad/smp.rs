//! Subnet management packets; IBTA volume 1, chapter 14.2.1.
//!
//! ```text
//!        LID routed          directed route
//!   4    Status              D (1) | Status (15)
//!   6    reserved            HopPointer, HopCount
//!  24    M_Key (8)           M_Key (8)
//!  32    reserved            DrSLID (2), DrDLID (2)
//!  64    data (64)           data (64)
//! 128    reserved            InitialPath (64), ReturnPath (64)
//! ```
//!
//! Index 0 of both paths is unused; index 1 of the initial path is the requester's own port.

use super::{AttributeId, Mad, MadStatus, Method, MgmtClass, TransactionId};

pub mod hop;

pub use hop::{DropReason, HopAction, HopNode, receive, send};

/// The LID that says "the directed route reaches to this end".
pub const PERMISSIVE_LID: u16 = 0xffff;

/// The highest number of hops.
pub const MAX_HOPS: u8 = 63;

const INITIAL_PATH: usize = 128;
const RETURN_PATH: usize = 192;

/// The fields that SMPs add to the common header. Those of the route mean something in a
/// directed-route SMP only.
impl Mad {
    /// Returns the key that guards the port's attributes.
    #[inline]
    #[must_use]
    pub fn m_key(&self) -> u64 {
        u64::from_be_bytes(self.0[24..32].try_into().expect("8 bytes"))
    }

    /// Stores the key that guards the port's attributes.
    #[inline]
    pub fn set_m_key(&mut self, key: u64) {
        self.0[24..32].copy_from_slice(&key.to_be_bytes());
    }

    /// Returns true for a directed-route SMP on its way back.
    #[inline]
    #[must_use]
    pub const fn is_returning(&self) -> bool {
        self.0[4] & 0x80 != 0
    }

    /// Stores the direction.
    #[inline]
    pub const fn set_returning(&mut self, returning: bool) {
        self.0[4] = self.0[4] & 0x7f | (returning as u8) << 7;
    }

    /// Returns where on its path the SMP is.
    #[inline]
    #[must_use]
    pub const fn hop_pointer(&self) -> u8 {
        self.0[6]
    }

    /// Stores where on its path the SMP is.
    #[inline]
    pub const fn set_hop_pointer(&mut self, pointer: u8) {
        self.0[6] = pointer;
    }

    /// Returns the number of hops, legally at most 63.
    #[inline]
    #[must_use]
    pub const fn hop_count(&self) -> u8 {
        self.0[7]
    }

    /// Returns the LID that a LID-routed leg started from, or 0xffff when there was none.
    #[inline]
    #[must_use]
    pub const fn dr_slid(&self) -> u16 {
        u16::from_be_bytes([self.0[32], self.0[33]])
    }

    /// Returns the LID that a LID-routed leg goes to after the directed part, or 0xffff.
    #[inline]
    #[must_use]
    pub const fn dr_dlid(&self) -> u16 {
        u16::from_be_bytes([self.0[34], self.0[35]])
    }

    /// Stores the LIDs of the LID-routed legs; 0xffff means none.
    #[inline]
    pub const fn set_dr_lids(&mut self, slid: u16, dlid: u16) {
        [self.0[32], self.0[33]] = slid.to_be_bytes();
        [self.0[34], self.0[35]] = dlid.to_be_bytes();
    }

    /// Returns the ports that the SMP leaves by, by hop; entry 0 is unused.
    #[inline]
    #[must_use]
    pub fn initial_path(&self) -> &[u8; 64] {
        self.0[INITIAL_PATH..RETURN_PATH].first_chunk().expect("64 bytes")
    }

    /// Returns the ports that the SMP arrived by, by hop; entry 0 is unused.
    #[inline]
    #[must_use]
    pub fn return_path(&self) -> &[u8; 64] {
        self.0[RETURN_PATH..].first_chunk().expect("64 bytes")
    }
}

/// Returns a directed-route request without LID-routed legs.
///
/// `path` holds the port that each hop leaves by, the requester's own first; empty for the requester
/// itself. [`send`] then tells where it goes.
///
/// # Panics
/// Panics when the path has more than 63 hops.
#[must_use]
pub fn directed_request(
    method: Method,
    transaction_id: TransactionId,
    (id, modifier): (AttributeId, u32),
    path: &[u8],
) -> Mad {
    assert!(path.len() <= usize::from(MAX_HOPS), "a directed route has at most 63 hops");
    let mut mad = Mad::new(MgmtClass::SUBN_DIRECTED_ROUTE, method, transaction_id);
    mad.set_attribute_id(id);
    mad.set_attribute_modifier(modifier);
    mad.0[7] = path.len() as u8;
    mad.set_dr_lids(PERMISSIVE_LID, PERMISSIVE_LID);
    mad.0[INITIAL_PATH + 1..][..path.len()].copy_from_slice(path);
    mad
}

/// Returns a LID-routed request.
#[must_use]
pub fn lid_request(
    method: Method,
    transaction_id: TransactionId,
    (id, modifier): (AttributeId, u32),
) -> Mad {
    let mut mad = Mad::new(MgmtClass::SUBN_LID_ROUTED, method, transaction_id);
    mad.set_attribute_id(id);
    mad.set_attribute_modifier(modifier);
    mad
}

/// Turns a request that was delivered into its response: method, status, direction and, for a
/// directed route, the hop pointer behind the path. The collected return path stays.
///
/// The `M_Key` is cleared. [`send`] then tells where the response goes.
pub fn answer(mad: &mut Mad, status: MadStatus) {
    mad.answer(status);
    mad.set_m_key(0);
    if mad.class() == MgmtClass::SUBN_DIRECTED_ROUTE {
        mad.set_returning(true);
        mad.set_hop_pointer(mad.hop_count().saturating_add(1));
    }
}

#[cfg(test)]
mod tests;
