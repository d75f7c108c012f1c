//! Reads blocks of pcapng.

use std::io::Read;

use super::options::Options;
use super::{Clock, Format, Reader, bounded, wrong};
use crate::error::ReadError;
use crate::format::{MAGIC, block, option};
use crate::model::{
    ByteOrder, Event, Interface, LinkType, Packet, PacketFlags, Section, Statistics,
};

impl<R: Read> Reader<R> {
    /// Returns the next block whose type is known.
    pub(super) fn next_block(&mut self) -> Result<Option<Event<'_>>, ReadError> {
        let (kind, order) = loop {
            let Some((kind, order)) = self.read_block()? else { return Ok(None) };
            match kind {
                block::SECTION
                | block::INTERFACE
                | block::SIMPLE_PACKET
                | block::STATISTICS
                | block::ENHANCED_PACKET => break (kind, order),
                _ => self.skipped += 1,
            }
        };
        let body = Body { order, bytes: &self.input.bytes, offset: self.input.start };
        Ok(Some(match kind {
            block::SECTION => {
                self.interfaces.clear();
                self.clocks.clear();
                Event::Section(body.section()?)
            }
            block::INTERFACE => {
                let (interface, clock) = body.interface()?;
                self.interfaces.push(interface.clone());
                self.clocks.push(clock);
                Event::Interface(interface)
            }
            block::SIMPLE_PACKET => Event::Packet(body.simple_packet(&self.interfaces)?),
            block::STATISTICS => Event::Statistics(body.statistics(&self.clocks)?),
            _ => Event::Packet(body.packet(&self.clocks)?),
        }))
    }

    /// Reads the body of the next block into `input.bytes`. Returns the block's type and byte
    /// order; `None` at the end of the file.
    fn read_block(&mut self) -> Result<Option<(u32, ByteOrder)>, ReadError> {
        let Format::Pcapng { started, order } = self.format else { return Ok(None) };
        let input = &mut self.input;
        // The type of the first block was already read, as the magic number of the file.
        if started && !input.fill_or_end("the type of a block", 4)? {
            return Ok(None);
        }
        let start = input.start;
        let kind = order.u32(&input.bytes);
        let at = start + 4;
        let mut order = order;
        input.fill("the length of a block", 4)?;
        let mut length = [0; 4];
        length.copy_from_slice(&input.bytes);
        // The byte-order magic states the byte order of a section header. So it is read before the length is decoded.
        let mut head = 8;
        if kind == block::SECTION {
            input.fill("the byte-order magic", 4)?;
            order = match ByteOrder::Little.u32(&input.bytes) {
                MAGIC => ByteOrder::Little,
                other if other.swap_bytes() == MAGIC => ByteOrder::Big,
                other => {
                    let found = format!("0x{other:08x}");
                    let expected = format!("0x{MAGIC:08x} in either order");
                    return Err(wrong("the byte-order magic", start + 8, expected, found));
                }
            };
            head = 12;
        }
        self.format = Format::Pcapng { started: true, order };
        let length = bounded("the length of a block", at, order.u32(&length))?;
        if length < head + 4 || !length.is_multiple_of(4) {
            let expected = format!("a multiple of 4 from {} on", head + 4);
            return Err(wrong("the length of a block", at, expected, length));
        }
        input.fill("a block", length - head)?;
        let body = length - head - 4;
        let trailer = order.u32(&input.bytes[body..]);
        if trailer as usize != length {
            let offset = start + length as u64 - 4;
            return Err(wrong("the length at the end of a block", offset, length, trailer));
        }
        input.bytes.truncate(body);
        Ok(Some((kind, order)))
    }
}

/// Body of a block. For a section header, the body begins after the byte-order magic.
#[derive(Clone, Copy)]
struct Body<'a> {
    order: ByteOrder,
    bytes: &'a [u8],
    /// Offset of the body in the file.
    offset: u64,
}

impl<'a> Body<'a> {
    fn section(self) -> Result<Section, ReadError> {
        self.needs("a section header", 12)?;
        let major = self.order.u16(self.bytes);
        if major != 1 {
            return Err(wrong("the major version of pcapng", self.offset, 1, major));
        }
        let mut section = Section { byte_order: self.order, ..Section::default() };
        let mut options = self.options(12);
        while let Some(field) = options.next()? {
            match field.code {
                option::COMMENT => section.comments.push(field.text()?.to_owned()),
                option::SECTION_HARDWARE => section.hardware = Some(field.text()?.to_owned()),
                option::SECTION_OS => section.os = Some(field.text()?.to_owned()),
                option::SECTION_APPLICATION => {
                    section.application = Some(field.text()?.to_owned());
                }
                _ => {}
            }
        }
        Ok(section)
    }

    fn interface(self) -> Result<(Interface, Clock), ReadError> {
        self.needs("an interface description", 8)?;
        let link_type = LinkType(self.order.u16(self.bytes));
        let mut interface = Interface::new(link_type).snap_length(self.order.u32(&self.bytes[4..]));
        // By default, times are in microseconds.
        let mut clock = Clock { resolution: 6, offset: 0 };
        let mut options = self.options(8);
        while let Some(field) = options.next()? {
            match field.code {
                option::COMMENT => interface.comments.push(field.text()?.to_owned()),
                option::INTERFACE_NAME => interface.name = Some(field.text()?.to_owned()),
                option::INTERFACE_DESCRIPTION => {
                    interface.description = Some(field.text()?.to_owned());
                }
                option::INTERFACE_SPEED => interface.speed = Some(field.u64()?),
                option::INTERFACE_RESOLUTION => clock.resolution = field.u8()?,
                option::INTERFACE_OFFSET => clock.offset = field.u64()? as i64,
                _ => {}
            }
        }
        Ok((interface, clock))
    }

    fn packet(self, clocks: &[Clock]) -> Result<Packet<'a>, ReadError> {
        self.needs("an enhanced packet", 20)?;
        let (order, bytes) = (self.order, self.bytes);
        let (interface, clock) = self.interface_and_clock(clocks)?;
        let time = clock.nanoseconds(order.words(&bytes[4..]), self.offset + 4)?;
        let [captured, original_length] = [12, 16].map(|at| order.u32(&bytes[at..]));
        if captured > original_length {
            let expected = format!("at most the original length, {original_length}");
            return Err(wrong("the captured length", self.offset + 12, expected, captured));
        }
        let data = self.data(20, captured as usize, 12)?;
        let mut packet = Packet::new(interface, time, data);
        packet.original_length = original_length;
        let mut options = self.options(20 + data.len().next_multiple_of(4));
        while let Some(field) = options.next()? {
            match field.code {
                option::COMMENT => packet.comments.push(field.text()?),
                option::PACKET_FLAGS => packet.flags = Some(PacketFlags(field.u32()?)),
                option::PACKET_DROPPED => packet.dropped = Some(field.u64()?),
                _ => {}
            }
        }
        Ok(packet)
    }

    /// Reads a simple packet block, which belongs to the first interface and has neither time nor options.
    fn simple_packet(self, interfaces: &[Interface]) -> Result<Packet<'a>, ReadError> {
        self.needs("a simple packet", 4)?;
        let Some(interface) = interfaces.first() else {
            let what = "the number of interfaces before a simple packet";
            return Err(wrong(what, self.offset, "at least 1", 0));
        };
        let original_length = self.order.u32(self.bytes);
        let limit = match interface.snap_length {
            0 => u32::MAX,
            limit => limit,
        };
        let data = self.data(4, original_length.min(limit) as usize, 0)?;
        let mut packet = Packet::new(0, 0, data);
        packet.time = None;
        packet.original_length = original_length;
        Ok(packet)
    }

    fn statistics(self, clocks: &[Clock]) -> Result<Statistics, ReadError> {
        self.needs("interface statistics", 12)?;
        let (interface, clock) = self.interface_and_clock(clocks)?;
        let time = clock.nanoseconds(self.order.words(&self.bytes[4..]), self.offset + 4)?;
        let mut statistics = Statistics { interface, time, ..Statistics::default() };
        let mut options = self.options(12);
        while let Some(field) = options.next()? {
            let time = || clock.nanoseconds(field.words()?, field.offset() + 4);
            match field.code {
                option::COMMENT => statistics.comments.push(field.text()?.to_owned()),
                option::STATISTICS_START => statistics.start = Some(time()?),
                option::STATISTICS_END => statistics.end = Some(time()?),
                option::STATISTICS_RECEIVED => statistics.received = Some(field.u64()?),
                option::STATISTICS_DROPPED => statistics.dropped = Some(field.u64()?),
                option::STATISTICS_ACCEPTED => statistics.accepted = Some(field.u64()?),
                option::STATISTICS_OS_DROPPED => statistics.os_dropped = Some(field.u64()?),
                option::STATISTICS_DELIVERED => statistics.delivered = Some(field.u64()?),
                _ => {}
            }
        }
        Ok(statistics)
    }

    /// Returns the interface number at the start of the block, and the clock of this interface.
    fn interface_and_clock(self, clocks: &[Clock]) -> Result<(u32, Clock), ReadError> {
        let interface = self.order.u32(self.bytes);
        clocks.get(interface as usize).map(|&clock| (interface, clock)).ok_or_else(|| {
            let expected = format!("less than {}, the interfaces before", clocks.len());
            wrong("the interface of a block", self.offset, expected, interface)
        })
    }

    fn needs(self, what: &'static str, length: usize) -> Result<(), ReadError> {
        if self.bytes.len() >= length {
            return Ok(());
        }
        let (offset, found) = (self.offset, self.bytes.len() as u64);
        Err(ReadError::Truncated { what, offset, expected: length as u64, found })
    }

    /// Returns `length` bytes of packet data at offset `at`. Fails if the data or its padding
    /// exceeds the block.
    fn data(self, at: usize, length: usize, length_at: u64) -> Result<&'a [u8], ReadError> {
        let rest = &self.bytes[at..];
        // The size of `rest` is a multiple of four. So if the packet fits, its padding fits too.
        rest.get(..length).ok_or_else(|| {
            let expected = format!("at most {}, the rest of the block", rest.len());
            wrong("the captured length", self.offset + length_at, expected, length)
        })
    }

    fn options(self, at: usize) -> Options<'a> {
        Options::new(self.order, &self.bytes[at..], self.offset + at as u64)
    }
}

impl Clock {
    /// Converts a time in this clock's unit to nanoseconds since 1970.
    fn nanoseconds(self, time: u64, offset: u64) -> Result<u64, ReadError> {
        const BILLION: i128 = 1_000_000_000;
        let billionths = i128::from(time) * BILLION;
        let exponent = u32::from(self.resolution & 0x7f);
        let whole = if self.resolution & 0x80 != 0 {
            billionths >> exponent
        } else {
            10i128.checked_pow(exponent).map_or(0, |units| billionths / units)
        };
        let sum = whole + i128::from(self.offset) * BILLION;
        u64::try_from(sum).map_err(|_| {
            let expected = "a number of nanoseconds since 1970 that fits 64 bits";
            wrong("a time", offset, expected, sum)
        })
    }
}
