//! A received request or response: one MAD, or a reassembled RMPP message.

use ib_link::{Datagram, Remote};
use ib_wire::mad::sa::{self, Record};
use ib_wire::mad::{Mad, MadStatus};

/// A completely received request or response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    datagram: Datagram,
    whole: Option<Vec<u8>>,
}

impl Message {
    /// Creates a message of one MAD, not sent by RMPP.
    pub(crate) const fn plain(datagram: Datagram) -> Self {
        Self { datagram, whole: None }
    }

    /// Creates a message from the first segment and the data of all segments.
    pub(crate) const fn reassembled(first: Datagram, data: Vec<u8>) -> Self {
        Self { datagram: first, whole: Some(data) }
    }

    /// Returns the datagram; for an RMPP message, its first segment.
    #[must_use]
    pub const fn datagram(&self) -> &Datagram {
        &self.datagram
    }

    /// Returns the MAD of [`Message::datagram`].
    #[must_use]
    pub const fn mad(&self) -> &Mad {
        &self.datagram.mad
    }

    /// Returns the address of the sender.
    #[must_use]
    pub const fn remote(&self) -> &Remote {
        &self.datagram.remote
    }

    /// Returns the status in the MAD header.
    #[must_use]
    pub const fn status(&self) -> MadStatus {
        self.datagram.mad.status()
    }

    /// Returns true if the message was sent by RMPP.
    #[must_use]
    pub const fn is_reassembled(&self) -> bool {
        self.whole.is_some()
    }

    /// Returns how many bytes the reassembled data takes; 0 for a message of one MAD.
    pub(crate) fn held(&self) -> usize {
        self.whole.as_ref().map_or(0, Vec::len)
    }

    /// Returns the data that follows the headers of the management class.
    ///
    /// The data of an RMPP message contains no padding. The data of a single MAD ends at [`Datagram::length`]. It
    /// includes padding if the link does not report how long a received MAD is.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        if let Some(whole) = &self.whole {
            return whole;
        }
        let (mad, class) = (&self.datagram.mad, self.datagram.mad.class());
        let end = usize::from(self.datagram.length).min(class.data_end());
        mad.0.get(class.data_offset()..end).unwrap_or_default()
    }

    /// Returns the record size in bytes that the SA header states; 0 if the response has no records. Meaningful only
    /// for SA responses.
    #[must_use]
    pub fn stride(&self) -> usize {
        usize::from(self.datagram.mad.sa().attribute_offset) * 8
    }

    /// Parses the records of an SA response.
    ///
    /// Returns no records if the status is an error, or if the record size in the SA header is too
    /// small.
    pub fn records<R: Record>(&self) -> impl Iterator<Item = R> {
        let data = if self.status().is_ok() { self.data() } else { &[] };
        sa::records(data, self.datagram.mad.sa().attribute_offset)
    }
}

#[cfg(test)]
mod tests;
