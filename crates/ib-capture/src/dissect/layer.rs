//! A protocol above the transport.

use std::fmt;

use super::fields::Fields;

/// What a packet, or the message that ends with it, is in a protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// The protocol.
    pub protocol: &'static str,
    /// Which of its messages it is.
    pub message: String,
    /// What is worth a place in a line: words and numbers.
    pub about: String,
    /// Everything that it says.
    pub fields: Fields,
    /// The protocol above it.
    pub inner: Option<Box<Layer>>,
}

impl Layer {
    /// Makes one that says nothing yet.
    #[must_use]
    pub fn new(protocol: &'static str, message: impl Into<String>) -> Self {
        let (message, about, fields) = (message.into(), String::new(), Fields::new());
        Self { protocol, message, about, fields, inner: None }
    }

    /// Sets what is worth a place in a line.
    #[must_use]
    pub fn about(mut self, about: impl Into<String>) -> Self {
        self.about = about.into();
        self
    }

    /// Sets the protocol above it.
    #[must_use]
    pub fn carries(mut self, inner: Option<Self>) -> Self {
        self.inner = inner.map(Box::new);
        self
    }

    /// Returns everything as one group: protocol and message first, the protocol above by its name.
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
    /// Writes it as a part of a line.
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
