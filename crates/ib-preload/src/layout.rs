//! Layouts of the structures that a program exchanges with a device, in the byte order of the machine.

/// The type of a field of an ABI structure, in the byte order of the machine.
pub(crate) trait Field: Sized {
    /// Size of the value in bytes.
    const SIZE: usize;

    /// Reads the value at the start of `bytes`, which has at least [`Self::SIZE`] bytes.
    fn read(bytes: &[u8]) -> Self;

    /// Appends the value to `bytes`.
    fn write(&self, bytes: &mut Vec<u8>);
}

macro_rules! numbers {
    ($($kind:ty),*) => {
        $(impl Field for $kind {
            const SIZE: usize = size_of::<$kind>();

            fn read(bytes: &[u8]) -> Self {
                Self::from_ne_bytes(*bytes.first_chunk().expect("the caller checked the size"))
            }

            fn write(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_ne_bytes());
            }
        })*
    };
}

numbers!(u8, u16, u32, u64, i32);

impl<const N: usize> Field for [u8; N] {
    const SIZE: usize = N;

    fn read(bytes: &[u8]) -> Self {
        *bytes.first_chunk().expect("the caller checked the size")
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }
}

/// An array of bytes with a default value. Rust arrays of more than 32 elements have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bytes<const N: usize>(pub(crate) [u8; N]);

impl<const N: usize> Bytes<N> {
    /// Returns `bytes`, followed by zeros. Bytes beyond the size are left out.
    pub(crate) fn padded(bytes: &[u8]) -> Self {
        let mut all = [0; N];
        let length = bytes.len().min(N);
        all[..length].copy_from_slice(&bytes[..length]);
        Self(all)
    }
}

impl<const N: usize> Default for Bytes<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Field for Bytes<N> {
    const SIZE: usize = N;

    fn read(bytes: &[u8]) -> Self {
        Self(<[u8; N]>::read(bytes))
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        self.0.write(bytes);
    }
}

/// Defines structures whose encoding consists of the fields in order, without padding.
macro_rules! structures {
    ($($(#[$doc:meta])* struct $name:ident: $size:literal { $($field:ident: $kind:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub(crate) struct $name { $(pub(crate) $field: $kind,)* }

            impl Field for $name {
                const SIZE: usize = 0 $(+ <$kind as Field>::SIZE)*;

                fn read(bytes: &[u8]) -> Self {
                    let mut at = 0;
                    $(
                        let $field = <$kind as Field>::read(&bytes[at..]);
                        at += <$kind as Field>::SIZE;
                    )*
                    let _ = at;
                    Self { $($field),* }
                }

                fn write(&self, bytes: &mut Vec<u8>) {
                    $(self.$field.write(bytes);)*
                }
            }

            const _: () = assert!(<$name as Field>::SIZE == $size, stringify!($name));
        )*
    };
}

pub(crate) use structures;

/// Returns the bytes of a structure.
pub(crate) fn bytes_of(structure: &impl Field) -> Vec<u8> {
    let mut bytes = Vec::new();
    structure.write(&mut bytes);
    bytes
}

/// Reads the structure at an offset; `None` if the bytes end before the structure does.
pub(crate) fn take<T: Field>(bytes: &[u8], at: usize) -> Option<T> {
    bytes.get(at..at + T::SIZE).map(T::read)
}
