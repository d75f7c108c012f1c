//! Layouts of whole bytes whose numbers have their least significant byte first, described once.

/// A value that is some whole bytes of a layout.
pub(crate) trait Little: Copy {
    /// Reads the value from the bytes at its place on.
    fn read(bytes: &[u8]) -> Self;

    /// Writes the value to the bytes at its place on.
    fn write(self, bytes: &mut [u8]);
}

macro_rules! numbers {
    ($($number:ty),+) => {$(
        impl Little for $number {
            #[inline]
            fn read(bytes: &[u8]) -> Self {
                Self::from_le_bytes(*bytes.first_chunk().expect("the layout has room"))
            }

            #[inline]
            fn write(self, bytes: &mut [u8]) {
                *bytes.first_chunk_mut().expect("the layout has room") = self.to_le_bytes();
            }
        }
    )+};
}

numbers!(u8, u16, i16, u32, u64);

impl<const N: usize> Little for [u8; N] {
    #[inline]
    fn read(bytes: &[u8]) -> Self {
        *bytes.first_chunk().expect("the layout has room")
    }

    #[inline]
    fn write(self, bytes: &mut [u8]) {
        *bytes.first_chunk_mut().expect("the layout has room") = self;
    }
}

/// Makes a newtype of a number a [`Little`].
macro_rules! little_field {
    ($($name:ident),+ $(,)?) => {$(
        impl $crate::little::Little for $name {
            #[inline]
            fn read(bytes: &[u8]) -> Self {
                Self($crate::little::Little::read(bytes))
            }

            #[inline]
            fn write(self, bytes: &mut [u8]) {
                $crate::little::Little::write(self.0, bytes);
            }
        }
    )+};
}

/// Defines a struct by its layout: its length in bytes and at which byte each field starts.
///
/// It gets `LENGTH`, `parse`, which reads any bytes, `emit`, which leaves all other bytes as they are,
/// and `to_bytes`.
macro_rules! little {
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

            /// Returns the layout with all fields zero.
            #[must_use]
            pub fn zeroed() -> Self {
                Self::parse(&[0; $length])
            }

            /// Reads the fields. Any bytes are legal.
            #[inline]
            #[must_use]
            pub fn parse(bytes: &[u8; $length]) -> Self {
                Self { $( $field: $crate::little::Little::read(&bytes[$at..]), )+ }
            }

            /// Writes the fields and leaves all other bytes alone.
            #[inline]
            pub fn emit(&self, bytes: &mut [u8; $length]) {
                $( $crate::little::Little::write(self.$field, &mut bytes[$at..]); )+
            }

            /// Returns the fields as bytes, with zeros where the layout has none.
            #[must_use]
            pub fn to_bytes(self) -> [u8; $length] {
                let mut bytes = [0; $length];
                self.emit(&mut bytes);
                bytes
            }
        }
    };
}

pub(crate) use little;
pub(crate) use little_field;
