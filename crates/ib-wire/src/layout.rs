//! The [`layout!`](crate::layout!) macro: defines structs whose big-endian fields have any number
//! of bits.
//!
//! The macro generates the struct, `parse`, `emit` and the table of fields from one list of fields.
//! `bits(BYTE, BIT, WIDTH)` is the position of a field: its first byte, its first bit counted from
//! the most significant bit of that byte, and its width in bits. `bits(34, 5, 3)` are the lowest
//! three bits of byte 34.

use ib_types::{Gid, Guid, PKey, Psn, QKey, Qpn, ServiceLevel, VirtualLane};

/// A type that can be a field of a layout.
pub trait Field: Copy {
    /// Reads the value from the bits `at`.
    fn read(bytes: &[u8], at: Bits) -> Self;

    /// Writes the value to the bits `at`. Does not change other bits.
    fn write(self, bytes: &mut [u8], at: Bits);

    /// Reads `N` consecutive values of equal width from the bits `at`.
    #[inline]
    fn read_array<const N: usize>(bytes: &[u8], at: Bits) -> [Self; N] {
        std::array::from_fn(|index| Self::read(bytes, at.part(index, N)))
    }

    /// Writes consecutive values of equal width to the bits `at`.
    #[inline]
    fn write_array<const N: usize>(values: &[Self; N], bytes: &mut [u8], at: Bits) {
        for (index, value) in values.iter().enumerate() {
            value.write(bytes, at.part(index, N));
        }
    }
}

/// The position of a field in a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// The first byte.
    pub byte: usize,
    /// The first bit in this byte: 0 is the most significant bit, 7 the least significant.
    pub bit: usize,
    /// The width of the field in bits, at least 1.
    pub width: usize,
}

/// Name and position of a field of a [`layout!`](crate::layout!).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldInfo {
    /// The name of the struct field.
    pub name: &'static str,
    /// The position.
    pub at: Bits,
}

/// Reads the number of up to 64 bits at `at`.
///
/// # Panics
/// Panics if `at` ends after the last byte or is wider than 64 bits.
#[inline]
#[must_use]
pub fn get(bytes: &[u8], at: Bits) -> u64 {
    let Bits { byte, bit, width } = at;
    assert!(width <= 64, "a field of {width} bits: expected at most 64");
    let end = bit + width;
    let mut value = 0u128;
    for &next in &bytes[byte..byte + end.div_ceil(8)] {
        value = value << 8 | u128::from(next);
    }
    let low = value >> (end.div_ceil(8) * 8 - end);
    (low & ((1u128 << width) - 1)) as u64
}

/// Writes a number of up to 64 bits to `at`. Bits of `value` above the width are ignored.
///
/// # Panics
/// Panics if `at` ends after the last byte or is wider than 64 bits.
#[inline]
pub fn set(bytes: &mut [u8], at: Bits, value: u64) {
    let Bits { byte, bit, width } = at;
    assert!(width <= 64, "a field of {width} bits: expected at most 64");
    let end = bit + width;
    let count = end.div_ceil(8);
    let shift = count * 8 - end;
    let mask = ((1u128 << width) - 1) << shift;
    let value = (u128::from(value) << shift) & mask;
    for (index, slot) in bytes[byte..byte + count].iter_mut().enumerate() {
        let down = (count - 1 - index) * 8;
        *slot = *slot & !((mask >> down) as u8) | (value >> down) as u8;
    }
}

macro_rules! numbers {
    ($($number:ty),+) => {$(
        impl Field for $number {
            #[inline]
            fn read(bytes: &[u8], at: Bits) -> Self {
                get(bytes, at) as $number
            }

            #[inline]
            fn write(self, bytes: &mut [u8], at: Bits) {
                set(bytes, at, u64::from(self));
            }
        }
    )+};
}

numbers!(u16, u32, u64);

impl Field for u8 {
    #[inline]
    fn read(bytes: &[u8], at: Bits) -> Self {
        get(bytes, at) as Self
    }

    #[inline]
    fn write(self, bytes: &mut [u8], at: Bits) {
        set(bytes, at, u64::from(self));
    }

    #[inline]
    fn read_array<const N: usize>(bytes: &[u8], at: Bits) -> [Self; N] {
        debug_assert!(
            at.bit == 0 && at.width == 8 * N,
            "byte arrays start and end at byte boundaries"
        );
        bytes[at.byte..at.byte + N].try_into().expect("the slice has N bytes")
    }

    #[inline]
    fn write_array<const N: usize>(values: &[Self; N], bytes: &mut [u8], at: Bits) {
        debug_assert!(
            at.bit == 0 && at.width == 8 * N,
            "byte arrays start and end at byte boundaries"
        );
        bytes[at.byte..at.byte + N].copy_from_slice(values);
    }
}

impl Field for bool {
    #[inline]
    fn read(bytes: &[u8], at: Bits) -> Self {
        get(bytes, at) != 0
    }

    #[inline]
    fn write(self, bytes: &mut [u8], at: Bits) {
        set(bytes, at, u64::from(self));
    }
}

macro_rules! identifiers {
    ($($name:ident($number:ty)),+) => {$(
        impl Field for $name {
            #[inline]
            fn read(bytes: &[u8], at: Bits) -> Self {
                Self(get(bytes, at) as $number)
            }

            #[inline]
            fn write(self, bytes: &mut [u8], at: Bits) {
                set(bytes, at, u64::from(self.0));
            }
        }
    )+};
}

identifiers!(Guid(u64), PKey(u16), QKey(u32));

macro_rules! narrow {
    ($($name:ident: $width:literal = $read:expr),+ $(,)?) => {$(
        impl Field for $name {
            #[inline]
            fn read(bytes: &[u8], at: Bits) -> Self {
                debug_assert!(at.width == $width, concat!("the field has ", $width, " bits"));
                $read(get(bytes, at))
            }

            #[inline]
            fn write(self, bytes: &mut [u8], at: Bits) {
                set(bytes, at, u64::from(self.get()));
            }
        }
    )+};
}

narrow! {
    Qpn: 24 = |value: u64| Self::truncated(value as u32),
    Psn: 24 = |value: u64| Self::truncated(value as u32),
    ServiceLevel: 4 = |value: u64| Self::new(value as u8 & 15).expect("the value was masked to 4 bits"),
    VirtualLane: 4 = |value: u64| Self::new(value as u8 & 15).expect("the value was masked to 4 bits"),
}

impl Field for Gid {
    #[inline]
    fn read(bytes: &[u8], at: Bits) -> Self {
        Self::from_bytes(<[u8; 16]>::read(bytes, at))
    }

    #[inline]
    fn write(self, bytes: &mut [u8], at: Bits) {
        self.to_bytes().write(bytes, at);
    }
}

/// An array is a field of consecutive values of equal width, such as bytes, ports, GUIDs or 4-bit
/// values.
impl<F: Field, const N: usize> Field for [F; N] {
    #[inline]
    fn read(bytes: &[u8], at: Bits) -> Self {
        F::read_array(bytes, at)
    }

    #[inline]
    fn write(self, bytes: &mut [u8], at: Bits) {
        F::write_array(&self, bytes, at);
    }
}

impl Bits {
    /// Divides this field into `count` equal parts, and returns the position of part `index`.
    #[inline]
    #[must_use]
    pub const fn part(self, index: usize, count: usize) -> Self {
        let width = self.width / count;
        let first = self.bit + index * width;
        Self { byte: self.byte + first / 8, bit: first % 8, width }
    }

    /// Returns the position of this field in a larger layout. `bytes` is the byte offset at which
    /// the larger layout contains the field's own layout.
    #[must_use]
    pub const fn offset_by(self, bytes: usize) -> Self {
        Self { byte: self.byte + bytes, ..self }
    }
}

/// Returns the position of the field with this name.
///
/// # Panics
/// Panics if the layout has no such field. In a constant this is a compile-time error.
#[must_use]
pub const fn find_field(fields: &[FieldInfo], name: &str) -> Bits {
    let mut index = 0;
    while index < fields.len() {
        if same(fields[index].name.as_bytes(), name.as_bytes()) {
            return fields[index].at;
        }
        index += 1;
    }
    panic!("the layout has no field of this name")
}

const fn same(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut index = 0;
    while index < left.len() {
        if left[index] != right[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// Implements [`Field`] for newtypes: `field!(PortState(u8))`.
#[macro_export]
macro_rules! field {
    ($($name:ident($number:ty)),+ $(,)?) => {$(
        impl $crate::layout::Field for $name {
            #[inline]
            fn read(bytes: &[u8], at: $crate::layout::Bits) -> Self {
                Self(<$number as $crate::layout::Field>::read(bytes, at))
            }

            #[inline]
            fn write(self, bytes: &mut [u8], at: $crate::layout::Bits) {
                <$number as $crate::layout::Field>::write(self.0, bytes, at);
            }
        }
    )+};
}

/// Defines a struct and its bit layout. The layout states the length in bytes, and the position of
/// each field.
///
/// The macro adds `LENGTH`, `FIELDS`, `zeroed`, `parse`, `emit` and `to_bytes` to the struct.
/// `emit` does not change reserved bits. Fields are numbers, Booleans, newtypes of numbers, arrays,
/// or other layouts, but not enums. So `parse` and `emit` preserve unknown codes.
///
/// ```
/// ib_wire::layout! {
///     /// An example header of two bytes.
///     pub struct Header: 2 {
///         /// The version, 0 to 15.
///         pub version: u8 = bits(0, 0, 4),
///         /// The length, 0 to 4095.
///         pub length: u16 = bits(0, 4, 12),
///     }
/// }
///
/// let header = Header::parse(&[0x21, 0x05]);
/// assert_eq!(header, Header { version: 2, length: 0x105 });
/// let mut bytes = [0; 2];
/// header.emit(&mut bytes);
/// assert_eq!(bytes, [0x21, 0x05]);
/// ```
#[macro_export]
macro_rules! layout {
    (
        $(#[$attribute:meta])*
        $visible:vis struct $name:ident: $length:literal {
            $(
                $(#[$field_attribute:meta])*
                $field_visible:vis $field:ident: $kind:ty
                    = bits($byte:expr, $bit:expr, $width:expr)
            ),+ $(,)?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visible struct $name {
            $(
                $(#[$field_attribute])*
                $field_visible $field: $kind,
            )+
        }

        #[allow(dead_code, reason = "private layouts use only some of these functions")]
        impl $name {
            /// The length on the wire in bytes.
            $visible const LENGTH: usize = $length;

            /// The fields in wire order.
            $visible const FIELDS: &'static [$crate::layout::FieldInfo] = &[
                $(
                    $crate::layout::FieldInfo {
                        name: stringify!($field),
                        at: $crate::layout::Bits { byte: $byte, bit: $bit, width: $width },
                    },
                )+
            ];

            /// Returns a value whose fields are all zero.
            #[must_use]
            $visible fn zeroed() -> Self {
                Self::parse(&[0; $length])
            }

            /// Parses the fields. Any bytes are valid.
            #[inline]
            #[must_use]
            $visible fn parse(bytes: &[u8; $length]) -> Self {
                Self {
                    $(
                        $field: <$kind as $crate::layout::Field>::read(
                            bytes,
                            $crate::layout::Bits { byte: $byte, bit: $bit, width: $width },
                        ),
                    )+
                }
            }

            /// Writes the fields. Does not change bits outside of fields.
            #[inline]
            $visible fn emit(&self, bytes: &mut [u8; $length]) {
                $(
                    <$kind as $crate::layout::Field>::write(
                        self.$field,
                        bytes,
                        $crate::layout::Bits { byte: $byte, bit: $bit, width: $width },
                    );
                )+
            }

            /// Returns the encoded fields. Bits outside of fields are set to zero.
            #[must_use]
            $visible fn to_bytes(self) -> [u8; $length] {
                let mut bytes = [0; $length];
                self.emit(&mut bytes);
                bytes
            }
        }

        /// A layout can be a field of a larger layout. The field must start at bit 0 of a byte.
        impl $crate::layout::Field for $name {
            #[inline]
            fn read(bytes: &[u8], at: $crate::layout::Bits) -> Self {
                debug_assert!(at.bit == 0 && at.width == 8 * $length, "the field has the size of the layout");
                Self::parse(bytes[at.byte..].first_chunk().expect("the field is inside of the layout"))
            }

            #[inline]
            fn write(self, bytes: &mut [u8], at: $crate::layout::Bits) {
                debug_assert!(at.bit == 0 && at.width == 8 * $length, "the field has the size of the layout");
                self.emit(bytes[at.byte..].first_chunk_mut().expect("the field is inside of the layout"));
            }
        }
    };
}

#[cfg(test)]
mod tests;
