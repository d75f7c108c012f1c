//! Subnet management packets (SMPs); IBTA volume 1, chapter 14.2.1.
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
//! Offsets and sizes are in bytes; sizes of fields separated by `|` are in bits.
//!
//! Entry 0 of both paths is unused. Entry 1 of the initial path is the egress port of the
//! requester.

use super::{AttributeId, Mad, MadStatus, Method, MgmtClass, TransactionId};

pub mod hop;

pub use hop::{DropReason, HopAction, HopNode, receive, send};

/// The permissive LID. As `DrSLID`, it means that no LID-routed part precedes the directed route.
/// As `DrDLID`, it means that no LID-routed part follows the directed route.
pub const PERMISSIVE_LID: u16 = 0xffff;

/// The maximum number of hops of a directed route.
pub const MAX_HOPS: u8 = 63;

const INITIAL_PATH: usize = 128;
const RETURN_PATH: usize = 192;

/// Access to the header fields of SMPs. All fields except the M_Key are valid only in directed-route
/// SMPs.
impl Mad {
    /// Returns the M_Key.
    #[inline]
    #[must_use]
    pub fn m_key(&self) -> u64 {
        u64::from_be_bytes(self.0[24..32].try_into().expect("the M_Key has 8 bytes"))
    }

    /// Sets the M_Key.
    #[inline]
    pub fn set_m_key(&mut self, key: u64) {
        self.0[24..32].copy_from_slice(&key.to_be_bytes());
    }

    /// Returns the direction bit: true if the directed-route SMP is returning to the requester.
    #[inline]
    #[must_use]
    pub const fn is_returning(&self) -> bool {
        self.0[4] & 0x80 != 0
    }

    /// Sets the direction bit to `returning`.
    #[inline]
    pub const fn set_returning(&mut self, returning: bool) {
        self.0[4] = self.0[4] & 0x7f | (returning as u8) << 7;
    }

    /// Returns the hop pointer: the index of the current hop in the initial path and in the return path.
    #[inline]
    #[must_use]
    pub const fn hop_pointer(&self) -> u8 {
        self.0[6]
    }

    /// Sets the hop pointer.
    #[inline]
    pub const fn set_hop_pointer(&mut self, pointer: u8) {
        self.0[6] = pointer;
    }

    /// Returns the hop count: the number of hops of the directed route. Values above 63 are invalid.
    #[inline]
    #[must_use]
    pub const fn hop_count(&self) -> u8 {
        self.0[7]
    }

    /// Returns `DrSLID`: the source LID of the LID-routed part before the directed route; 0xffff if
    /// there is no such part.
    #[inline]
    #[must_use]
    pub const fn dr_slid(&self) -> u16 {
        u16::from_be_bytes([self.0[32], self.0[33]])
    }

    /// Returns `DrDLID`: the destination LID of the LID-routed part after the directed route;
    /// 0xffff if there is no such part.
    #[inline]
    #[must_use]
    pub const fn dr_dlid(&self) -> u16 {
        u16::from_be_bytes([self.0[34], self.0[35]])
    }

    /// Sets `DrSLID` and `DrDLID`. `slid` is 0xffff if no LID-routed part precedes the directed route.
    /// `dlid` is 0xffff if no LID-routed part follows it.
    #[inline]
    pub const fn set_dr_lids(&mut self, slid: u16, dlid: u16) {
        [self.0[32], self.0[33]] = slid.to_be_bytes();
        [self.0[34], self.0[35]] = dlid.to_be_bytes();
    }

    /// Returns the initial path: the egress port of each hop. Entry 0 is unused.
    #[inline]
    #[must_use]
    pub fn initial_path(&self) -> &[u8; 64] {
        self.0[INITIAL_PATH..RETURN_PATH].first_chunk().expect("the initial path has 64 bytes")
    }

    /// Returns the return path: the ingress port of each hop. Entry 0 is unused.
    #[inline]
    #[must_use]
    pub fn return_path(&self) -> &[u8; 64] {
        self.0[RETURN_PATH..].first_chunk().expect("the return path has 64 bytes")
    }
}

/// Returns a directed-route request without LID-routed parts.
///
/// `path` contains the egress port of each hop, starting with the egress port of the requester. It
/// is empty for a request to the requester's own node. Call [`send`] to determine the egress port
/// of the requester.
///
/// # Panics
/// Panics if `path` has more than 63 hops.
#[must_use]
pub fn directed_request(
    method: Method,
    transaction_id: TransactionId,
    (id, modifier): (AttributeId, u32),
    path: &[u8],
) -> Mad {
    assert!(
        path.len() <= usize::from(MAX_HOPS),
        "the directed route has {} hops: expected at most 63",
        path.len()
    );
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

/// Converts a delivered request into its response. Sets the method and the status, and clears the
/// M_Key.
///
/// For a directed route, also sets the direction bit, and sets the hop pointer to hop count + 1.
/// Does not change the return path. Call [`send`] to determine the egress port of the response.
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
