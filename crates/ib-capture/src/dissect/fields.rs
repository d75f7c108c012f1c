//! Names and values of a packet's fields, in their order on the wire.

use std::fmt::Write as _;

use ib_types::Gid;
use ib_wire::layout::{self, Bits, FieldInfo};

/// Value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// The packet does not have the field, or the field was not captured.
    Missing,
    /// Yes or no.
    Flag(bool),
    /// A number below 2^53, which every JSON parser represents exactly.
    Number(u64),
    /// A number that can be 2^53 or larger. It is written in hexadecimal.
    Wide(u64),
    /// A text.
    Text(String),
    /// A group of fields.
    Group(Fields),
    /// A list of values.
    List(Vec<Value>),
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}

macro_rules! values {
    ($($kind:ty => $make:expr),+ $(,)?) => {$(
        impl From<$kind> for Value {
            fn from(value: $kind) -> Self {
                $make(value)
            }
        }
    )+};
}

values! {
    bool => Self::Flag,
    u8 => |value| Self::Number(u64::from(value)),
    u16 => |value| Self::Number(u64::from(value)),
    u32 => |value| Self::Number(u64::from(value)),
    u64 => Self::Wide,
    String => Self::Text,
    &str => |value: &str| Self::Text(value.to_owned()),
    Fields => Self::Group,
    Vec<Value> => Self::List,
}

/// A list of fields: names and values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    /// Creates an empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a field.
    pub fn put(&mut self, name: &'static str, value: impl Into<Value>) {
        self.0.push((name, value.into()));
    }

    /// Adds a field whose value is a text.
    #[allow(clippy::needless_pass_by_value, reason = "callers pass what they have just made")]
    pub fn text(&mut self, name: &'static str, text: impl ToString) {
        self.put(name, text.to_string());
    }

    /// Adds a field whose value is a group of fields.
    pub fn group(&mut self, name: &'static str, group: Self) {
        self.put(name, group);
    }

    /// Adds all fields of another list to the end of this list.
    pub fn extend(&mut self, others: &Self) {
        self.0.extend(others.0.iter().cloned());
    }

    /// Adds the fields of a layout, except those named in `except`. `bytes` has the length of the
    /// layout. A field of 128 bits is shown as a GID. Another field of more than 64 bits is shown
    /// in hexadecimal without trailing zeros.
    pub fn layout(&mut self, layout: &[FieldInfo], bytes: &[u8], except: &[&str]) {
        for FieldInfo { name, at } in layout.iter().filter(|field| !except.contains(&field.name)) {
            self.put(name, read(bytes, *at));
        }
    }

    /// Returns the value of the first field with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Returns all fields in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    /// Returns true if there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Reads a field at the bits `at`.
fn read(bytes: &[u8], at: Bits) -> Value {
    match at.width {
        ..=32 => Value::Number(layout::get(bytes, at)),
        33..=64 => Value::Wide(layout::get(bytes, at)),
        width if !width.is_multiple_of(8) || at.bit != 0 => Value::Missing,
        width => {
            let bytes = &bytes[at.byte..at.byte + width / 8];
            match bytes.try_into() {
                Ok(gid) => Value::Text(Gid::from_bytes(gid).to_string()),
                Err(_) => Value::Text(hex(bytes)),
            }
        }
    }
}

/// Returns bytes in hexadecimal, without trailing zeros.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    bytes[..end].iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string does not fail");
        text
    })
}

/// Returns the bytes before the first zero as text. Control characters are replaced by U+FFFD.
#[must_use]
pub fn words(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..end]);
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}
