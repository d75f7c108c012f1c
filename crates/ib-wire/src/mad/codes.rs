//! The macros `codes!` and `masks!`: define newtypes of numbers with named values or bits. The
//! newtypes preserve unknown values.

/// Defines a newtype of a number whose known values have names.
///
/// `Display` writes the name, or the number in hexadecimal if the value is unknown.
macro_rules! codes {
    (
        $(#[$attribute:meta])*
        $name:ident($number:ident) {
            $( $(#[$item_attribute:meta])* $constant:ident = $value:literal $text:literal ),+ $(,)?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $number);

        impl $name {
            $(
                $(#[$item_attribute])*
                pub const $constant: Self = Self($value);
            )+

            /// Returns the name of the value; `None` if the value is unknown.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $( $value => Some($text), )+
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "0x{:x}", self.0),
                }
            }
        }

        $crate::field!($name($number));
    };
}

/// Defines a newtype of a bit mask whose known bits have names.
///
/// `Display` writes the names of the set bits, lowest bit first, separated by `|`, then the unnamed
/// bits in hexadecimal.
macro_rules! masks {
    (
        $(#[$attribute:meta])*
        $name:ident($number:ident) {
            $( $(#[$item_attribute:meta])* $constant:ident = $bit:literal $text:literal ),+ $(,)?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $number);

        impl $name {
            $(
                $(#[$item_attribute])*
                pub const $constant: Self = Self(1 << $bit);
            )+

            /// The named bits and their names, lowest bit first.
            pub const NAMES: &'static [(Self, &'static str)] = &[ $( (Self::$constant, $text) ),+ ];

            /// Returns true if all bits of `other` are set in `self`.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Returns a copy of the mask. The bits of `other` are set in the copy if `set` is true,
            /// and cleared otherwise.
            #[must_use]
            pub const fn with(self, other: Self, set: bool) -> Self {
                if set { Self(self.0 | other.0) } else { Self(self.0 & !other.0) }
            }
        }

        impl std::ops::BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut rest = self.0;
                let mut between = "";
                for (bit, name) in Self::NAMES {
                    if self.contains(*bit) {
                        write!(f, "{between}{name}")?;
                        rest &= !bit.0;
                        between = "|";
                    }
                }
                if rest != 0 || self.0 == 0 { write!(f, "{between}0x{rest:x}") } else { Ok(()) }
            }
        }

        $crate::field!($name($number));
    };
}

pub(crate) use codes;
pub(crate) use masks;
