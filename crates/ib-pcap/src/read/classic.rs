//! Reads classic pcap.
//!
//! Source: the IETF draft "PCAP Capture File Format".

use std::io::Read;

use super::{Clock, Format, Reader, bounded, wrong};
use crate::error::ReadError;
use crate::format::NANOSECONDS;
use crate::model::{ByteOrder, Event, Interface, LinkType, Packet, Section};

/// Returns the byte order and time unit that a magic number indicates. `magic` was read as
/// little-endian.
pub(super) fn format(magic: u32) -> Option<Format> {
    const MICROSECONDS: u32 = 0xa1b2_c3d4;
    const NANOSECONDS: u32 = 0xa1b2_3c4d;
    let (order, unit) = if magic == MICROSECONDS {
        (ByteOrder::Little, 1_000)
    } else if magic == NANOSECONDS {
        (ByteOrder::Little, 1)
    } else if magic.swap_bytes() == MICROSECONDS {
        (ByteOrder::Big, 1_000)
    } else if magic.swap_bytes() == NANOSECONDS {
        (ByteOrder::Big, 1)
    } else {
        return None;
    };
    Some(Format::Classic { started: 0, order, unit })
}

impl<R: Read> Reader<R> {
    /// Returns the next item: a section and an interface, both from the file header, then the
    /// packets.
    pub(super) fn next_record(
        &mut self,
        started: u8,
        order: ByteOrder,
        unit: u32,
    ) -> Result<Option<Event<'_>>, ReadError> {
        self.format = Format::Classic { started: started.saturating_add(1).min(2), order, unit };
        match started {
            0 => {
                self.input.fill("the file header", 20)?;
                let header = &self.input.bytes;
                let version = (order.u16(header), order.u16(&header[2..]));
                if version != (2, 4) {
                    let found = format!("{}.{}", version.0, version.1);
                    return Err(wrong("the version", 4, "2.4", found));
                }
                // The upper 16 bits of the link type field describe the FCS and are ignored.
                let link_type = LinkType(order.u32(&header[16..]) as u16);
                let interface = Interface::new(link_type).snap_length(order.u32(&header[12..]));
                self.interfaces.push(interface);
                self.clocks.push(Clock { resolution: NANOSECONDS, offset: 0 });
                Ok(Some(Event::Section(Section { byte_order: order, ..Section::default() })))
            }
            1 => Ok(Some(Event::Interface(self.interfaces[0].clone()))),
            _ => self.next_classic_packet(order, unit),
        }
    }

    fn next_classic_packet(
        &mut self,
        order: ByteOrder,
        unit: u32,
    ) -> Result<Option<Event<'_>>, ReadError> {
        if !self.input.fill_or_end("a record header", 16)? {
            return Ok(None);
        }
        let (offset, header) = (self.input.start, &self.input.bytes);
        let [seconds, fraction, captured, original_length] =
            [0, 4, 8, 12].map(|at| order.u32(&header[at..]));
        let units = 1_000_000_000 / unit;
        if fraction >= units {
            let expected = format!("less than {units}");
            return Err(wrong("the fraction of a second", offset + 4, expected, fraction));
        }
        let length = bounded("the captured length", offset + 8, captured)?;
        if captured > original_length {
            let expected = format!("at most the original length, {original_length}");
            return Err(wrong("the captured length", offset + 8, expected, captured));
        }
        self.input.bytes.clear();
        let start = self.input.offset;
        self.input.extend("a packet", length)?;
        if self.input.bytes.len() != length {
            let (what, expected) = ("a packet", length as u64);
            return Err(ReadError::Truncated { what, offset: start, expected, found: 0 });
        }
        let time = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * u64::from(unit);
        let mut packet = Packet::new(0, time, &self.input.bytes);
        packet.original_length = original_length;
        Ok(Some(Event::Packet(packet)))
    }
}
