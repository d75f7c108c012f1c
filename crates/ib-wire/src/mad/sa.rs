//! Subnet administration (SA): header, records, and selection by component masks; IBTA volume 1,
//! chapter 15.2.
//!
//! The fields after the common MAD header: byte offset, name, and size in bytes in parentheses.
//!
//! ```text
//! 24 RMPP header (12)
//! 36 SM_Key (8)
//! 44 AttributeOffset (2): the size of a record in a table, in units of 8 bytes
//! 46 reserved (2)
//! 48 ComponentMask (8)
//! 56 data (200)
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`path`] | PathRecord, MultiPathRecord |
//! | [`codes`] | codes of rates and life times, and selectors |
//! | [`multicast`] | MCMemberRecord |
//! | [`service`] | InformInfo, InformInfoRecord, ServiceRecord, SA notices |
//! | [`tables`] | records that contain an attribute of subnet management |
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
    /// The SA header, at byte 36 of a MAD.
    pub struct SaHeader: 20 {
        /// The SM_Key, by which trusted requesters identify themselves; otherwise zero.
        pub sm_key: u64 = bits(0, 0, 64),
        /// The size of a record in a table, in units of 8 bytes; 0 if the MAD has no table.
        pub attribute_offset: u16 = bits(8, 0, 16),
        /// The component mask: a record must match the request in these components.
        pub component_mask: ComponentMask = bits(12, 0, 64),
    }
}

/// The component mask of a request: bit N is set if the request specifies component N of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ComponentMask(pub u64);

crate::field!(ComponentMask(u64));

impl ComponentMask {
    /// Returns the mask in which the bits of these components are set.
    #[must_use]
    pub fn of(components: &[u8]) -> Self {
        Self(components.iter().fold(0, |mask, bit| mask | 1 << bit))
    }

    /// Returns true if the bit of a component is set.
    #[inline]
    #[must_use]
    pub const fn has(self, component: u8) -> bool {
        self.0 >> component & 1 != 0
    }
}

/// A component of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component {
    /// The bit in the component mask, 0 to 63.
    pub bit: u8,
    /// The position of the component in the record.
    pub at: Bits,
}

/// An SA attribute that is returned in tables.
pub trait Record: Attribute {
    /// The size in bytes of a record in a table, including padding: a multiple of 8.
    const STRIDE: usize;

    /// The components in ascending order of their bits, without reserved components.
    const COMPONENTS: &'static [Component];

    /// Encodes the record, padded with zeros to [`Record::STRIDE`] bytes.
    fn to_record(&self) -> Vec<u8> {
        let mut bytes = vec![0; Self::STRIDE];
        self.write(&mut bytes);
        bytes
    }
}

/// Returns true if a record equals a template in all components that the mask selects.
///
/// Ignores bits of the mask that belong to no component.
///
/// Some components, such as selectors and rates, are not compared for equality. The caller must
/// clear their bits in the mask, and must compare these components itself.
///
/// # Panics
/// Panics if `template` or `record` is too short for a compared component.
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

/// Parses the records of a table that was reassembled from RMPP segments.
///
/// `attribute_offset` is the field of the SA header: the distance between the starts of consecutive
/// records, in units of 8 bytes. Returns no records if the distance is shorter than `R::LENGTH`
/// bytes. The padding of the last record can be missing.
pub fn records<R: Record>(data: &[u8], attribute_offset: u16) -> impl Iterator<Item = R> {
    let stride = usize::from(attribute_offset) * 8;
    let data = if stride < R::LENGTH { &[] } else { data };
    let chunks = data.chunks(stride.max(1));
    chunks.filter(|chunk| chunk.len() >= R::LENGTH).map(|chunk| R::read(chunk))
}

/// Access to the SA header, which is valid only in the SA class.
impl Mad {
    /// Returns the SA header.
    #[must_use]
    pub fn sa(&self) -> SaHeader {
        SaHeader::parse(self.0[36..].first_chunk().expect("a MAD has 256 bytes"))
    }

    /// Writes the SA header.
    pub fn set_sa(&mut self, header: &SaHeader) {
        header.emit(self.0[36..].first_chunk_mut().expect("a MAD has 256 bytes"));
    }

    /// Returns the component mask of an SA request.
    #[inline]
    #[must_use]
    pub fn component_mask(&self) -> ComponentMask {
        ComponentMask(u64::from_be_bytes(self.0[48..56].try_into().expect("the slice has 8 bytes")))
    }
}

/// Implements [`Record`] for a layout, given its attribute ID, its stride, and the list of its
/// components. Each component follows its bit in the component mask.
///
/// A component is a field of the layout, a field of a nested layout (`[port_info PortInfo m_key]`),
/// or a position (`(BYTE BIT WIDTH)`).
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
            "the stride of a record is a multiple of 8 bytes and at least its length"
        );
    };
    (@place $name:ident $field:ident) => {
        $crate::layout::find_field($name::FIELDS, stringify!($field))
    };
    (@place $name:ident [$field:ident $inner:ident $part:ident]) => {
        $crate::layout::find_field($inner::FIELDS, stringify!($part))
            .offset_by($crate::layout::find_field($name::FIELDS, stringify!($field)).byte)
    };
    (@place $name:ident ($byte:literal $bit:literal $width:literal)) => {
        $crate::layout::Bits { byte: $byte, bit: $bit, width: $width }
    };
}

pub(crate) use record;

#[cfg(test)]
mod tests;
