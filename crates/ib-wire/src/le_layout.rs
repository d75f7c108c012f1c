//! The `le_layout!` macro: defines structs of little-endian fields at byte offsets, for RTRS and
//! RNBD.

/// A type that can be a field of a little-endian layout.
pub(crate) trait LittleEndian: Copy {
    /// Reads the value from the start of `bytes`.
    fn read(bytes: &[u8]) -> Self;

    /// Writes the value to the start of `bytes`.
    fn write(self, bytes: &mut [u8]);
}

macro_rules! numbers {
    ($($number:ty),+) => {$(
        impl LittleEndian for $number {
            #[inline]
            fn read(bytes: &[u8]) -> Self {
                Self::from_le_bytes(*bytes.first_chunk().expect("the field is inside of the layout"))
            }

            #[inline]
            fn write(self, bytes: &mut [u8]) {
                *bytes.first_chunk_mut().expect("the field is inside of the layout") = self.to_le_bytes();
            }
        }
    )+};
}

numbers!(u8, u16, i16, u32, u64);

impl<const N: usize> LittleEndian for [u8; N] {
    #[inline]
    fn read(bytes: &[u8]) -> Self {
        *bytes.first_chunk().expect("the field is inside of the layout")
    }

    #[inline]
    fn write(self, bytes: &mut [u8]) {
        *bytes.first_chunk_mut().expect("the field is inside of the layout") = self;
    }
}

/// Implements [`LittleEndian`] for newtypes of numbers.
macro_rules! le_field {
    ($($name:ident),+ $(,)?) => {$(
        impl $crate::le_layout::LittleEndian for $name {
            #[inline]
            fn read(bytes: &[u8]) -> Self {
                Self($crate::le_layout::LittleEndian::read(bytes))
            }

            #[inline]
            fn write(self, bytes: &mut [u8]) {
                $crate::le_layout::LittleEndian::write(self.0, bytes);
            }
        }
    )+};
}

/// Defines a struct and its little-endian layout. The layout states the length in bytes, and the
/// byte offset of each field.
///
/// The macro adds `LENGTH`, `zeroed`, `parse`, `emit` and `to_bytes` to the struct.
macro_rules! le_layout {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident: $length:literal {
            $( $(#[$field_attribute:meta])* pub $field:ident: $kind:ty = $at:literal ),+ $(,)?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $( $(#[$field_attribute])* pub $field: $kind, )+
        }

        impl $name {
            /// The length on the wire in bytes.
            pub const LENGTH: usize = $length;

            /// Returns a value whose fields are all zero.
            #[must_use]
            pub fn zeroed() -> Self {
                Self::parse(&[0; $length])
            }

            /// Parses the fields. Any bytes are valid.
            #[inline]
            #[must_use]
            pub fn parse(bytes: &[u8; $length]) -> Self {
                Self { $( $field: $crate::le_layout::LittleEndian::read(&bytes[$at..]), )+ }
            }

            /// Writes the fields. Does not change bytes outside of fields.
            #[inline]
            pub fn emit(&self, bytes: &mut [u8; $length]) {
                $( $crate::le_layout::LittleEndian::write(self.$field, &mut bytes[$at..]); )+
            }

            /// Returns the encoded fields. Bytes outside of fields are set to zero.
            #[must_use]
            pub fn to_bytes(self) -> [u8; $length] {
                let mut bytes = [0; $length];
                self.emit(&mut bytes);
                bytes
            }
        }
    };
}

pub(crate) use le_field;
pub(crate) use le_layout;
