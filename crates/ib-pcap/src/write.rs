//! Writes pcapng.

use std::io::Write;

use crate::erf::ErfHeader;
use crate::error::WriteError;
use crate::format::{MAGIC, MAX_BLOCK, NANOSECONDS, block, option};
use crate::model::{ByteOrder, Interface, Packet, PacketFlags, Section, Statistics};

/// Writes a pcapng section block by block.
///
/// Each block is written with one `write_all`, so a process that reads the growing file rarely
/// finds an incomplete block. Use a `BufWriter` for throughput, and [`Writer::flush_every_packet`]
/// for live captures. All times are in nanoseconds.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    order: ByteOrder,
    /// Snap length of each interface.
    interfaces: Vec<u32>,
    flush: bool,
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Starts a section.
    ///
    /// # Errors
    /// Fails if the stream fails, or if the options are too long for a block.
    pub fn new(out: W, section: &Section) -> Result<Self, WriteError> {
        let order = section.byte_order;
        let mut writer =
            Self { out, order, interfaces: Vec::new(), flush: false, block: Vec::new() };
        writer.begin(block::SECTION);
        order.put_u32(&mut writer.block, MAGIC);
        order.put_u16(&mut writer.block, 1);
        order.put_u16(&mut writer.block, 0);
        // All ones: the size of the section is not specified.
        order.put_u64(&mut writer.block, u64::MAX);
        writer.texts(option::COMMENT, section.comments.iter())?;
        writer.texts(option::SECTION_HARDWARE, section.hardware.iter())?;
        writer.texts(option::SECTION_OS, section.os.iter())?;
        writer.texts(option::SECTION_APPLICATION, section.application.iter())?;
        writer.end()?;
        Ok(writer)
    }

    /// Enables or disables a flush after every packet.
    pub fn flush_every_packet(&mut self, flush: bool) {
        self.flush = flush;
    }

    /// Adds an interface. Returns its number, which the interface's packets and statistics contain.
    ///
    /// # Errors
    /// Fails if the stream fails, or if the options are too long for a block.
    pub fn interface(&mut self, interface: &Interface) -> Result<u32, WriteError> {
        let order = self.order;
        self.begin(block::INTERFACE);
        order.put_u16(&mut self.block, interface.link_type.0);
        order.put_u16(&mut self.block, 0);
        order.put_u32(&mut self.block, interface.snap_length);
        self.texts(option::COMMENT, interface.comments.iter())?;
        self.texts(option::INTERFACE_NAME, interface.name.iter())?;
        self.texts(option::INTERFACE_DESCRIPTION, interface.description.iter())?;
        if let Some(speed) = interface.speed {
            self.option_u64(option::INTERFACE_SPEED, speed);
        }
        self.option(option::INTERFACE_RESOLUTION, &[NANOSECONDS])?;
        self.end()?;
        let number = self.interfaces.len() as u32;
        self.interfaces.push(interface.snap_length);
        Ok(number)
    }

    /// Adds a packet, and truncates it to the snap length of its interface. If the packet has no
    /// time, writes time 0.
    ///
    /// # Errors
    /// Fails if the stream fails. Also fails, without writing, if the interface does not exist or
    /// a size of the packet is invalid.
    pub fn packet(&mut self, packet: &Packet<'_>) -> Result<(), WriteError> {
        self.record(&[], packet)
    }

    /// Adds a native InfiniBand packet, from the LRH to the VCRC, with an ERF header before it. The
    /// link type of its interface must be [`LinkType::ERF`](crate::LinkType::ERF).
    ///
    /// `port` is the port of the capture card, 0 to 3. The snap length of the interface includes
    /// the ERF header. The sizes in `packet` do not include it.
    ///
    /// # Errors
    /// Fails as [`Writer::packet`] does, and if the packet is longer than 65,535 bytes.
    pub fn infiniband(&mut self, packet: &Packet<'_>, port: u8) -> Result<(), WriteError> {
        let wire_length = u16::try_from(packet.original_length).map_err(|_| {
            let (found, limit) = (packet.original_length as usize, u16::MAX.into());
            WriteError::TooLong { what: "the InfiniBand packet", found, limit }
        })?;
        let room = match *self.snap_length(packet.interface)? as usize {
            0 => usize::MAX,
            limit => limit.saturating_sub(ErfHeader::LENGTH),
        };
        let kept = packet.data.len().min(room);
        let flags = packet.flags.unwrap_or_default().0;
        let header = ErfHeader {
            time: packet.time.unwrap_or(0),
            kind: ErfHeader::INFINIBAND,
            port,
            truncated: kept < usize::from(wire_length),
            receive_error: flags & PacketFlags::CRC_ERROR.0 != 0,
            lost: packet.dropped.map_or(0, |count| count.try_into().unwrap_or(u16::MAX)),
            wire_length,
        };
        self.record(&header.to_bytes(kept), packet)
    }

    /// Adds a packet block whose data is `header`, followed by the packet. The captured and the
    /// original size in the block include `header`.
    fn record(&mut self, header: &[u8], packet: &Packet<'_>) -> Result<(), WriteError> {
        let snap_length = *self.snap_length(packet.interface)? as usize;
        let (captured, original) = (packet.data.len(), packet.original_length);
        if captured > original as usize {
            return Err(WriteError::CapturedTooLong { captured, original });
        }
        let whole = header.len() + captured;
        let kept = if snap_length == 0 { whole } else { whole.min(snap_length) };
        if kept > MAX_BLOCK - MARGIN {
            let (what, limit) = ("the packet", MAX_BLOCK - MARGIN);
            return Err(WriteError::TooLong { what, found: kept, limit });
        }
        let order = self.order;
        self.begin(block::ENHANCED_PACKET);
        order.put_u32(&mut self.block, packet.interface);
        order.put_words(&mut self.block, packet.time.unwrap_or(0));
        order.put_u32(&mut self.block, kept as u32);
        order.put_u32(&mut self.block, original.saturating_add(header.len() as u32));
        let of_header = kept.min(header.len());
        self.block.extend(&header[..of_header]);
        self.block.extend(&packet.data[..kept - of_header]);
        self.pad();
        self.texts(option::COMMENT, packet.comments.iter())?;
        if let Some(flags) = packet.flags {
            self.option_head(option::PACKET_FLAGS, 4);
            order.put_u32(&mut self.block, flags.0);
        }
        if let Some(dropped) = packet.dropped {
            self.option_u64(option::PACKET_DROPPED, dropped);
        }
        self.end()?;
        if self.flush {
            self.out.flush()?;
        }
        Ok(())
    }

    /// Adds statistics of an interface.
    ///
    /// # Errors
    /// Fails if the stream fails, or if the interface does not exist.
    pub fn statistics(&mut self, statistics: &Statistics) -> Result<(), WriteError> {
        self.snap_length(statistics.interface)?;
        let order = self.order;
        self.begin(block::STATISTICS);
        order.put_u32(&mut self.block, statistics.interface);
        order.put_words(&mut self.block, statistics.time);
        self.texts(option::COMMENT, statistics.comments.iter())?;
        let times = [
            (option::STATISTICS_START, statistics.start),
            (option::STATISTICS_END, statistics.end),
        ];
        for (code, time) in times {
            if let Some(time) = time {
                self.option_head(code, 8);
                order.put_words(&mut self.block, time);
            }
        }
        let counts = [
            (option::STATISTICS_RECEIVED, statistics.received),
            (option::STATISTICS_DROPPED, statistics.dropped),
            (option::STATISTICS_ACCEPTED, statistics.accepted),
            (option::STATISTICS_OS_DROPPED, statistics.os_dropped),
            (option::STATISTICS_DELIVERED, statistics.delivered),
        ];
        for (code, count) in counts {
            if let Some(count) = count {
                self.option_u64(code, count);
            }
        }
        self.end()
    }

    /// Returns the stream.
    pub const fn get_ref(&self) -> &W {
        &self.out
    }

    /// Returns the stream. Only complete blocks were written to it.
    pub const fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Flushes the stream.
    ///
    /// # Errors
    /// Fails if the stream fails.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        Ok(self.out.flush()?)
    }

    /// Flushes the stream and returns it.
    ///
    /// # Errors
    /// Fails if the stream fails.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn snap_length(&self, interface: u32) -> Result<&u32, WriteError> {
        self.interfaces.get(interface as usize).ok_or(WriteError::NoSuchInterface {
            found: interface,
            count: self.interfaces.len() as u32,
        })
    }

    /// Starts a block. `end` fills in its size.
    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.order.put_u32(&mut self.block, kind);
        self.order.put_u32(&mut self.block, 0);
    }

    /// Completes the block, and writes it to the stream.
    fn end(&mut self) -> Result<(), WriteError> {
        self.order.put_u32(&mut self.block, u32::from(option::END));
        let length = self.block.len() + 4;
        if length > MAX_BLOCK {
            return Err(WriteError::TooLong { what: "the block", found: length, limit: MAX_BLOCK });
        }
        self.order.put_u32(&mut self.block, length as u32);
        // The size is both at the start and at the end of a block.
        let end = self.block.len();
        self.block.copy_within(end - 4..end, 4);
        Ok(self.out.write_all(&self.block)?)
    }

    fn texts<T: AsRef<str>>(
        &mut self,
        code: u16,
        texts: impl Iterator<Item = T>,
    ) -> Result<(), WriteError> {
        for text in texts {
            self.option(code, text.as_ref().as_bytes())?;
        }
        Ok(())
    }

    fn option(&mut self, code: u16, value: &[u8]) -> Result<(), WriteError> {
        let limit = usize::from(u16::MAX);
        if value.len() > limit {
            return Err(WriteError::TooLong { what: "an option", found: value.len(), limit });
        }
        self.option_head(code, value.len() as u16);
        self.block.extend(value);
        self.pad();
        Ok(())
    }

    fn option_u64(&mut self, code: u16, value: u64) {
        self.option_head(code, 8);
        self.order.put_u64(&mut self.block, value);
    }

    fn option_head(&mut self, code: u16, length: u16) {
        self.order.put_u16(&mut self.block, code);
        self.order.put_u16(&mut self.block, length);
    }

    /// Pads the block to a multiple of four bytes.
    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }
}

/// Maximum size in bytes of a packet block without packet data and options, rounded up.
const MARGIN: usize = 64;

#[cfg(test)]
mod tests;
