//! Management datagrams (MADs): 256 bytes, with a common header of 24 bytes in all classes.
//!
//! | module | contents |
//! |---|---|
//! | [`header`], [`attribute_id`] | the common header: class, method, status, transaction ID, attribute ID |
//! | [`smp`] | SMPs: headers, and forwarding along directed routes |
//! | [`sm`] | attributes of subnet management |
//! | [`sa`] | SA records, and their selection by component masks |
//! | [`rmpp`] | the RMPP header, segment counts and payload lengths |
//! | [`pm`] | performance management attributes (port counters) |
//! | [`vendor`] | vendor classes: ibping, ibtracer |
//! | [`cm`] | communication management messages |
//! | [`class_port_info`] | ClassPortInfo |
//! | [`acm`] | ACM address resolution by multicast |
//!
//! A [`Mad`] owns its bytes and reads header fields in place. [`Mad::attribute`] parses the data as an
//! attribute:
//!
//! ```
//! use ib_wire::mad::sm::NodeInfo;
//! use ib_wire::mad::{AttributeId, Mad, Method, MgmtClass, TransactionId};
//!
//! let mut mad = Mad::new(MgmtClass::SUBN_LID_ROUTED, Method::GET, TransactionId(7));
//! mad.set_attribute_id(AttributeId::NODE_INFO);
//! assert_eq!(
//!     mad.to_string(),
//!     "SubnMgtLID Get NodeInfo mod 0x0 tid 0x0000000000000007 ok"
//! );
//! assert_eq!(mad.attribute::<NodeInfo>().map(|info| info.num_ports), Some(0));
//! ```

use std::fmt;

pub mod acm;
pub mod attribute_id;
pub mod class_port_info;
pub mod cm;
mod codes;
pub mod header;
pub mod pm;
pub mod rmpp;
pub mod sa;
pub mod sm;
pub mod smp;
pub mod vendor;

pub use attribute_id::AttributeId;
pub use class_port_info::ClassPortInfo;
pub(crate) use codes::{codes, masks};
pub use header::{MadHeader, MadStatus, Method, MgmtClass, TransactionId};

/// The length of a MAD in bytes.
pub const MAD_LENGTH: usize = 256;

/// A management datagram (MAD): its 256 bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Mad(pub [u8; MAD_LENGTH]);

/// An attribute, which defines the format of a MAD's data.
pub trait Attribute: Sized {
    /// The attribute ID.
    const ID: AttributeId;

    /// The length on the wire in bytes.
    const LENGTH: usize;

    /// Returns true if this management class defines the attribute.
    fn belongs_to(class: MgmtClass) -> bool;

    /// Parses the attribute from the first [`Attribute::LENGTH`] bytes.
    ///
    /// # Panics
    /// Panics if `bytes` is shorter than the attribute.
    fn read(bytes: &[u8]) -> Self;

    /// Writes the attribute to the first [`Attribute::LENGTH`] bytes. Does not change reserved
    /// bits.
    ///
    /// # Panics
    /// Panics if `bytes` is shorter than the attribute.
    fn write(&self, bytes: &mut [u8]);
}

/// Implements [`Attribute`] for a struct that `layout!` has defined.
macro_rules! attribute {
    ($name:ident = $id:ident in $($class:ident)|+) => {
        impl $crate::mad::Attribute for $name {
            const ID: $crate::mad::AttributeId = $crate::mad::AttributeId::$id;
            const LENGTH: usize = $name::LENGTH;

            #[inline]
            fn belongs_to(class: $crate::mad::MgmtClass) -> bool {
                matches!(class, $($crate::mad::MgmtClass::$class)|+)
            }

            #[inline]
            fn read(bytes: &[u8]) -> Self {
                Self::parse(bytes.first_chunk().expect("the data is at least as long as the attribute"))
            }

            #[inline]
            fn write(&self, bytes: &mut [u8]) {
                self.emit(bytes.first_chunk_mut().expect("the data is at least as long as the attribute"));
            }
        }
    };
}

pub(crate) use attribute;

impl Mad {
    /// Creates a MAD with this class, method and transaction ID. The base version is 1, and the
    /// class version is [`MgmtClass::version`]. All other bytes are zero.
    #[must_use]
    pub fn new(class: MgmtClass, method: Method, transaction_id: TransactionId) -> Self {
        let mut mad = Self([0; MAD_LENGTH]);
        mad.0[0] = 1;
        mad.0[1] = class.0;
        mad.0[2] = class.version();
        mad.0[3] = method.0;
        mad.set_transaction_id(transaction_id);
        mad
    }

    /// Returns the common header.
    #[must_use]
    pub fn header(&self) -> MadHeader {
        MadHeader::parse(self.0.first_chunk().expect("a MAD is longer than its header"))
    }

    /// Returns the base version.
    #[inline]
    #[must_use]
    pub const fn base_version(&self) -> u8 {
        self.0[0]
    }

    /// Returns the management class.
    #[inline]
    #[must_use]
    pub const fn class(&self) -> MgmtClass {
        MgmtClass(self.0[1])
    }

    /// Returns the class version.
    #[inline]
    #[must_use]
    pub const fn class_version(&self) -> u8 {
        self.0[2]
    }

    /// Returns the method.
    #[inline]
    #[must_use]
    pub const fn method(&self) -> Method {
        Method(self.0[3])
    }

    /// Sets the method.
    #[inline]
    pub const fn set_method(&mut self, method: Method) {
        self.0[3] = method.0;
    }

    /// Returns the status, without the direction bit of a directed-route SMP.
    #[inline]
    #[must_use]
    pub const fn status(&self) -> MadStatus {
        let status = u16::from_be_bytes([self.0[4], self.0[5]]);
        MadStatus(if self.0[1] == MgmtClass::SUBN_DIRECTED_ROUTE.0 {
            status & 0x7fff
        } else {
            status
        })
    }

    /// Sets the status. Does not change the direction bit of a directed-route SMP.
    #[inline]
    pub const fn set_status(&mut self, status: MadStatus) {
        let [mut high, low] = status.0.to_be_bytes();
        if self.0[1] == MgmtClass::SUBN_DIRECTED_ROUTE.0 {
            high = high & 0x7f | self.0[4] & 0x80;
        }
        self.0[4] = high;
        self.0[5] = low;
    }

    /// Returns the transaction ID.
    #[inline]
    #[must_use]
    pub fn transaction_id(&self) -> TransactionId {
        TransactionId(u64::from_be_bytes(self.0[8..16].try_into().expect("the slice has 8 bytes")))
    }

    /// Sets the transaction ID.
    #[inline]
    pub fn set_transaction_id(&mut self, transaction_id: TransactionId) {
        self.0[8..16].copy_from_slice(&transaction_id.0.to_be_bytes());
    }

    /// Returns the attribute ID.
    #[inline]
    #[must_use]
    pub const fn attribute_id(&self) -> AttributeId {
        AttributeId(u16::from_be_bytes([self.0[16], self.0[17]]))
    }

    /// Sets the attribute ID.
    #[inline]
    pub const fn set_attribute_id(&mut self, id: AttributeId) {
        [self.0[16], self.0[17]] = id.0.to_be_bytes();
    }

    /// Returns the attribute modifier.
    #[inline]
    #[must_use]
    pub const fn attribute_modifier(&self) -> u32 {
        u32::from_be_bytes([self.0[20], self.0[21], self.0[22], self.0[23]])
    }

    /// Sets the attribute modifier.
    #[inline]
    pub const fn set_attribute_modifier(&mut self, modifier: u32) {
        [self.0[20], self.0[21], self.0[22], self.0[23]] = modifier.to_be_bytes();
    }

    /// Returns the data: the bytes after the headers of the class.
    #[inline]
    #[must_use]
    pub fn data(&self) -> &[u8] {
        let class = self.class();
        &self.0[class.data_offset()..class.data_end()]
    }

    /// Returns the data as a mutable slice.
    #[inline]
    pub fn data_mut(&mut self) -> &mut [u8] {
        let class = self.class();
        &mut self.0[class.data_offset()..class.data_end()]
    }

    /// Parses the data as attribute `A`; `None` if the MAD has another attribute ID, or its class
    /// does not define the attribute.
    #[inline]
    #[must_use]
    pub fn attribute<A: Attribute>(&self) -> Option<A> {
        let carries = self.attribute_id() == A::ID && A::belongs_to(self.class());
        carries.then(|| A::read(self.data()))
    }

    /// Sets the attribute ID and writes the attribute to the data. Does not change reserved bits.
    ///
    /// # Panics
    /// Panics if the class of the MAD does not define the attribute.
    #[inline]
    pub fn set_attribute<A: Attribute>(&mut self, attribute: &A) {
        let class = self.class();
        assert!(A::belongs_to(class), "class {class} has no attribute {}", A::ID);
        self.set_attribute_id(A::ID);
        attribute.write(self.data_mut());
    }

    /// Converts a request into its response: sets the response method, and the given status.
    ///
    /// If the method has no response, such as Send, the method is not changed. For directed-route
    /// SMPs use [`smp::answer`] instead.
    pub fn answer(&mut self, status: MadStatus) {
        if let Some(method) = self.method().response() {
            self.set_method(method);
        }
        self.set_status(status);
    }
}

impl Default for Mad {
    /// Returns a MAD whose bytes are all zero.
    fn default() -> Self {
        Self([0; MAD_LENGTH])
    }
}

impl fmt::Display for Mad {
    /// Writes one line: class, method, attribute, modifier, transaction ID and status.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (class, id) = (self.class(), self.attribute_id());
        write!(f, "{class} {} ", self.method())?;
        match id.name(class) {
            Some(name) => f.write_str(name)?,
            None => write!(f, "{id}")?,
        }
        let (modifier, status) = (self.attribute_modifier(), self.status());
        write!(f, " mod 0x{modifier:x} tid {} {status}", self.transaction_id())
    }
}

impl fmt::Debug for Mad {
    /// Writes the line of `Display`, and all bytes in hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mad({self};")?;
        for (index, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02x}", if index % 4 == 0 { " " } else { "" })?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests;
