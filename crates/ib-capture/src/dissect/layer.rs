//! Messages of protocols above the transport.

use std::fmt;

use super::fields::Fields;

/// A message of a protocol above the transport. The dissected packet carries the whole message, or
/// its last part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Name of the protocol.
    pub protocol: &'static str,
    /// Name of the message.
    pub message: String,
    /// One-line summary.
    pub about: String,
    /// All fields of the message.
    pub fields: Fields,
    /// The message of another protocol that this message carries.
    pub inner: Option<Box<Layer>>,
}

impl Layer {
    /// Creates a layer that has no fields.
    #[must_use]
    pub fn new(protocol: &'static str, message: impl Into<String>) -> Self {
        let (message, about, fields) = (message.into(), String::new(), Fields::new());
        Self { protocol, message, about, fields, inner: None }
    }

    /// Sets the one-line summary.
    #[must_use]
    pub fn about(mut self, about: impl Into<String>) -> Self {
        self.about = about.into();
        self
    }

    /// Sets the message of another protocol that this message carries.
    #[must_use]
    pub fn carries(mut self, inner: Option<Self>) -> Self {
        self.inner = inner.map(Box::new);
        self
    }

    /// Returns the protocol, the message name and all fields as one group. If this message carries
    /// another message, the fields of the other message are a nested group with the name of its
    /// protocol.
    #[must_use]
    pub fn to_fields(&self) -> Fields {
        let mut fields = Fields::new();
        fields.text("protocol", self.protocol);
        fields.text("message", &self.message);
        fields.extend(&self.fields);
        if let Some(inner) = &self.inner {
            fields.group(inner.protocol, inner.to_fields());
        }
        fields
    }
}

impl fmt::Display for Layer {
    /// Writes the protocol, message name and summary of this message, then of the carried message, in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.protocol.to_uppercase(), self.message)?;
        if !self.about.is_empty() {
            write!(f, " {}", self.about)?;
        }
        match &self.inner {
            Some(inner) => write!(f, " | {inner}"),
            None => Ok(()),
        }
    }
}
