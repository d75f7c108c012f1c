//! Wire layouts described once: parsing, emitting and the table of fields come from one list.
//!
//! InfiniBand packs fields of any number of bits into big-endian bytes. A field stands at a byte,
//! starts at one of its bits, counted from the most significant one, and is so many bits wide:
//! `bits(34, 5, 3)` are the three lowest bits of byte 34.

use ib_types::{Gid, Guid, PKey, Psn, QKey, Qpn, ServiceLevel, VirtualLane};

/// A value that is some bits of a wire layout.
pub trait Field: Copy {
    /// Reads the value from `width` bits that start at a bit of a byte.
    fn read(bytes: &[u8], at: Bits) -> Self;

    /// Writes the value into the bits and leaves those around them alone.
    fn write(self, bytes: &mut [u8], at: Bits);

    /// Reads values that stand one after the other in `at`.
    #[inline]
    fn read_array<const N: usize>(bytes: &[u8], at: Bits) -> [Self; N] {
        std::array::from_fn(|index| Self::read(bytes, at.part(index, N)))
    }

    /// Writes values one after the other.
    #[inline]
    fn write_array<const N: usize>(values: &[Self; N], bytes: &mut [u8], at: Bits) {
        for (index, value) in values.iter().enumerate() {
            value.write(bytes, at.part(index, N));
        }
    }
}

/// The place of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// The byte that the field starts in.
    pub byte: usize,
    /// The first bit, 0 for the most significant one of the byte to 7.
    pub bit: usize,
    /// The number of bits, at least 1.
    pub width: usize,
}

/// A field's name and place: what a [`layout!`](crate::layout!) lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldInfo {
    /// The name of the struct's member.
    pub name: &'static str,
    /// Where it stands.
    pub at: Bits,
}

/// Returns up to 64 bits as a number.
///
/// # Panics
/// Panics when the bits reach beyond the bytes or are more than 64.
#[inline]
#[must_use]
pub fn get(bytes: &[u8], at: Bits) -> u64 {
    let Bits { byte, bit, width } = at;
    assert!(width <= 64, "a number has at most 64 bits");
    let end = bit + width;
    let mut value = 0u128;
    for &next in &bytes[byte..byte + end.div_ceil(8)] {
        value = value << 8 | u128::from(next);
    }
    let low = value >> (end.div_ceil(8) * 8 - end);
    (low & ((1u128 << width) - 1)) as u64
}

/// Stores a number in up to 64 bits; its higher bits are dropped.
///
/// # Panics
/// Panics when the bits reach beyond the bytes or are more than 64.
#[inline]
pub fn set(bytes: &mut [u8], at: Bits, value: u64) {
    let Bits { byte, bit, width } = at;
    assert!(width <= 64, "a number has at most 64 bits");
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
        debug_assert!(at.bit == 0 && at.width == 8 * N, "whole bytes");
        bytes[at.byte..at.byte + N].try_into().expect("the slice has N bytes")
    }

    #[inline]
    fn write_array<const N: usize>(values: &[Self; N], bytes: &mut [u8], at: Bits) {
        debug_assert!(at.bit == 0 && at.width == 8 * N, "whole bytes");
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
                debug_assert!(at.width == $width, concat!("a field of ", $width, " bits"));
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
    ServiceLevel: 4 = |value: u64| Self::new(value as u8 & 15).expect("four bits"),
    VirtualLane: 4 = |value: u64| Self::new(value as u8 & 15).expect("four bits"),
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

/// Values of one width, one after the other: byte strings, tables of ports, of GUIDs, of nibbles.
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
    /// Returns the place of one of `count` equal parts.
    #[inline]
    #[must_use]
    pub const fn part(self, index: usize, count: usize) -> Self {
        let width = self.width / count;
        let first = self.bit + index * width;
        Self { byte: self.byte + first / 8, bit: first % 8, width }
    }

    /// Returns the place as seen from `bytes` before the start of the layout.
    #[must_use]
    pub const fn after(self, bytes: usize) -> Self {
        Self { byte: self.byte + bytes, ..self }
    }
}

/// Returns the place of a field by its name.
///
/// # Panics
/// Panics when the layout has no such field; in a constant that is an error of the compiler.
#[must_use]
pub const fn place(fields: &[FieldInfo], name: &str) -> Bits {
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

/// Makes a newtype a [`Field`]: `field!(PortState(u8))`.
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

/// Defines a struct by its layout: its length in bytes and where each field stands.
///
/// It gets `LENGTH`, `FIELDS`, `parse`, which reads any bytes, and `emit`, which leaves reserved bits
/// as they are. Unknown codes survive because fields are numbers or newtypes of numbers. A layout and
/// an array of fields are fields themselves.
///
/// ```
/// ib_wire::layout! {
///     /// A made-up header of two bytes.
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

        #[allow(dead_code, reason = "a layout that is not public may need only some of them")]
        impl $name {
            /// The length on the wire in bytes.
            $visible const LENGTH: usize = $length;

            /// The fields in the order of the wire.
            $visible const FIELDS: &'static [$crate::layout::FieldInfo] = &[
                $(
                    $crate::layout::FieldInfo {
                        name: stringify!($field),
                        at: $crate::layout::Bits { byte: $byte, bit: $bit, width: $width },
                    },
                )+
            ];

            /// Returns the layout with all fields zero.
            #[must_use]
            $visible fn zeroed() -> Self {
                Self::parse(&[0; $length])
            }

            /// Reads the fields. Any bytes are legal.
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

            /// Writes the fields and leaves all other bits alone.
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

            /// Returns the fields as bytes, with zeros where the layout has none.
            #[must_use]
            $visible fn to_bytes(self) -> [u8; $length] {
                let mut bytes = [0; $length];
                self.emit(&mut bytes);
                bytes
            }
        }

        /// The layout as a part of a bigger one; it starts at bit 0 of a byte.
        impl $crate::layout::Field for $name {
            #[inline]
            fn read(bytes: &[u8], at: $crate::layout::Bits) -> Self {
                debug_assert!(at.bit == 0 && at.width == 8 * $length, "the whole layout");
                Self::parse(bytes[at.byte..].first_chunk().expect("the layout has room"))
            }

            #[inline]
            fn write(self, bytes: &mut [u8], at: $crate::layout::Bits) {
                debug_assert!(at.bit == 0 && at.width == 8 * $length, "the whole layout");
                self.emit(bytes[at.byte..].first_chunk_mut().expect("the layout has room"));
            }
        }
    };
}

#[cfg(test)]
mod tests;
