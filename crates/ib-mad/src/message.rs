//! What was received: one datagram, or a message of several segments.

use ib_link::{Datagram, Remote};
use ib_wire::mad::sa::{self, Record};
use ib_wire::mad::{Mad, MadStatus};

/// A request or an answer that has arrived whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    datagram: Datagram,
    whole: Option<Vec<u8>>,
}

impl Message {
    /// Returns a message of one datagram without segments.
    pub(crate) const fn plain(datagram: Datagram) -> Self {
        Self { datagram, whole: None }
    }

    /// Returns a message of segments: the first one and the data of all.
    pub(crate) const fn reassembled(first: Datagram, data: Vec<u8>) -> Self {
        Self { datagram: first, whole: Some(data) }
    }

    /// Returns the datagram; of several segments the first one, whose headers hold for all.
    #[must_use]
    pub const fn datagram(&self) -> &Datagram {
        &self.datagram
    }

    /// Returns the content of [`Message::datagram`].
    #[must_use]
    pub const fn mad(&self) -> &Mad {
        &self.datagram.mad
    }

    /// Returns who sent it.
    #[must_use]
    pub const fn remote(&self) -> &Remote {
        &self.datagram.remote
    }

    /// Returns the status in the header.
    #[must_use]
    pub const fn status(&self) -> MadStatus {
        self.datagram.mad.status()
    }

    /// Returns true when it came in segments.
    #[must_use]
    pub const fn is_reassembled(&self) -> bool {
        self.whole.is_some()
    }

    /// Returns how many bytes it holds beside the datagram.
    pub(crate) fn held(&self) -> usize {
        self.whole.as_ref().map_or(0, Vec::len)
    }

    /// Returns the data behind the headers of the class.
    ///
    /// It is exact for what came in segments. Of a plain datagram it ends where the link says
    /// ([`Datagram::length`]); a link that cannot tell leaves the zeros at its end.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        if let Some(whole) = &self.whole {
            return whole;
        }
        let (mad, class) = (&self.datagram.mad, self.datagram.mad.class());
        let end = usize::from(self.datagram.length).min(class.data_end());
        mad.0.get(class.data_offset()..end).unwrap_or_default()
    }

    /// Returns the distance of records in bytes, as the header of subnet administration says; 0 when
    /// there are none. It means something in that class only.
    #[must_use]
    pub fn stride(&self) -> usize {
        usize::from(self.datagram.mad.sa().attribute_offset) * 8
    }

    /// Returns the records of an answer of subnet administration.
    ///
    /// A distance shorter than the record gives none, and so does an answer that bears an error.
    pub fn records<R: Record>(&self) -> impl Iterator<Item = R> {
        let data = if self.status().is_ok() { self.data() } else { &[] };
        sa::records(data, self.datagram.mad.sa().attribute_offset)
    }
}

#[cfg(test)]
mod tests;
