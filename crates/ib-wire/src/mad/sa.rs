//! Subnet administration: its header, its records and how component masks select them; IBTA volume
//! 1, chapter 15.2.
//!
//! ```text
//! 24 RMPP header (12)
//! 36 SM_Key (8)
//! 44 AttributeOffset (2): the distance of records in units of 8 bytes
//! 46 reserved (2)
//! 48 ComponentMask (8)
//! 56 data (200)
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`path`] | PathRecord, MultiPathRecord |
//! | [`codes`] | rates, life times, selectors |
//! | [`multicast`] | MCMemberRecord |
//! | [`service`] | InformInfo, ServiceRecord and their records |
//! | [`tables`] | records that wrap an attribute of subnet management |
//! | [`port`] | PortInfoRecord |
//! | [`trace`] | TraceRecord |

use crate::layout::{self, Bits};
use crate::mad::{Attribute, Mad};

pub mod codes;
pub mod multicast;
pub mod path;
pub mod port;
pub mod service;
pub mod tables;
pub mod trace;

pub use codes::{LifeTimeCode, RateCode, Selector};
pub use multicast::{JoinState, MCMemberRecord};
pub use path::{MultiPathRecord, PathRecord};
pub use port::PortInfoRecord;
pub use service::{InformInfo, InformInfoRecord, SaNotice, ServiceRecord};
pub use tables::{
    GuidInfoRecord, LinearForwardingRecord, LinkRecord, MulticastForwardingRecord, NodeRecord,
    PKeyTableRecord, SlToVlRecord, SmInfoRecord, SwitchInfoRecord, VlArbitrationRecord,
};
pub use trace::TraceRecord;

crate::layout! {
    /// The header of subnet administration at byte 36 of a datagram.
    pub struct SaHeader: 20 {
        /// The key that shows that the requester is trusted; zero when it is not.
        pub sm_key: u64 = bits(0, 0, 64),
        /// The distance of records in a table, in units of 8 bytes; 0 when there are none.
        pub attribute_offset: u16 = bits(8, 0, 16),
        /// The components of a record that a request gives.
        pub component_mask: ComponentMask = bits(12, 0, 64),
    }
}

/// The components of a record that a request gives, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ComponentMask(pub u64);

crate::field!(ComponentMask(u64));

impl ComponentMask {
    /// Returns the mask of some components.
    #[must_use]
    pub fn of(components: &[u8]) -> Self {
        Self(components.iter().fold(0, |mask, bit| mask | 1 << bit))
    }

    /// Returns true when the component is given.
    #[inline]
    #[must_use]
    pub const fn has(self, component: u8) -> bool {
        self.0 >> component & 1 != 0
    }
}

/// A part of a record that a component mask selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component {
    /// The bit of the mask, 0 to 63.
    pub bit: u8,
    /// Where it stands in the record.
    pub at: Bits,
}

/// An attribute of subnet administration that comes in tables.
pub trait Record: Attribute {
    /// The distance of two records in a table in bytes, a multiple of 8.
    const STRIDE: usize;

    /// The components by rising bits of the mask. Those of reserved parts are missing.
    const COMPONENTS: &'static [Component];

    /// Returns the record as bytes, with zeros up to the distance of two records.
    fn to_record(&self) -> Vec<u8> {
        let mut bytes = vec![0; Self::STRIDE];
        self.write(&mut bytes);
        bytes
    }
}

/// Returns true when a record equals a template in all components that the mask gives.
///
/// Bits of the mask that stand for no component select nothing. Both slices hold at least the
/// record's length. Components that mean more than equality, such as selectors and the rates behind
/// them, have to be taken out of the mask and judged by the caller.
///
/// # Panics
/// Panics when a slice is shorter than a component reaches.
#[must_use]
pub fn matches(
    mask: ComponentMask,
    components: &[Component],
    template: &[u8],
    record: &[u8],
) -> bool {
    let mut given = components.iter().filter(|component| mask.has(component.bit));
    given.all(|component| same(component.at, template, record))
}

fn same(at: Bits, left: &[u8], right: &[u8]) -> bool {
    if at.bit == 0 && at.width.is_multiple_of(8) {
        let bytes = at.byte..at.byte + at.width / 8;
        return left[bytes.clone()] == right[bytes];
    }
    layout::get(left, at) == layout::get(right, at)
}

/// Returns the records of a reassembled table.
///
/// `attribute_offset` is that of the header, in units of 8 bytes; a distance shorter than the record
/// gives none. A last record needs its own length only, not the distance.
pub fn records<R: Record>(data: &[u8], attribute_offset: u16) -> impl Iterator<Item = R> {
    let stride = usize::from(attribute_offset) * 8;
    let data = if stride < R::LENGTH { &[] } else { data };
    let chunks = data.chunks(stride.max(1));
    chunks.filter(|chunk| chunk.len() >= R::LENGTH).map(|chunk| R::read(chunk))
}

/// The header of subnet administration; it means something in that class only.
impl Mad {
    /// Returns the header of subnet administration.
    #[must_use]
    pub fn sa(&self) -> SaHeader {
        SaHeader::parse(self.0[36..].first_chunk().expect("20 bytes"))
    }

    /// Stores the header of subnet administration.
    pub fn set_sa(&mut self, header: &SaHeader) {
        header.emit(self.0[36..].first_chunk_mut().expect("20 bytes"));
    }

    /// Returns the components that a request to subnet administration gives.
    #[inline]
    #[must_use]
    pub fn component_mask(&self) -> ComponentMask {
        ComponentMask(u64::from_be_bytes(self.0[48..56].try_into().expect("8 bytes")))
    }
}

/// Makes a layout a [`Record`]: its number, its distance in tables, its components by bit.
///
/// A component is a field, a field of a field (`[port_info PortInfo m_key]`) or bits (`(0 0 8)`).
macro_rules! record {
    ($name:ident = $id:ident, stride $stride:literal { $($bit:literal: $place:tt),* $(,)? }) => {
        $crate::mad::attribute!($name = $id in SUBN_ADM);

        impl $crate::mad::sa::Record for $name {
            const STRIDE: usize = $stride;
            const COMPONENTS: &'static [$crate::mad::sa::Component] = &[
                $(
                    $crate::mad::sa::Component {
                        bit: $bit,
                        at: $crate::mad::sa::record!(@place $name $place),
                    },
                )*
            ];
        }

        const _: () = assert!(
            $name::LENGTH <= $stride && $stride % 8 == 0,
            "records stand at multiples of 8 bytes"
        );
    };
    (@place $name:ident $field:ident) => {
        $crate::layout::place($name::FIELDS, stringify!($field))
    };
    (@place $name:ident [$field:ident $inner:ident $part:ident]) => {
        $crate::layout::place($inner::FIELDS, stringify!($part))
            .after($crate::layout::place($name::FIELDS, stringify!($field)).byte)
    };
    (@place $name:ident ($byte:literal $bit:literal $width:literal)) => {
        $crate::layout::Bits { byte: $byte, bit: $bit, width: $width }
    };
}

pub(crate) use record;

#[cfg(test)]
mod tests;
