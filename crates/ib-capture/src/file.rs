//! Capture files as RDMA packets: those of RoCEv2 and of InfiniBand, whoever wrote them.

use std::io::Read;

use ib_link::Direction;
use ib_pcap::erf::{ErfError, ErfHeader};
use ib_pcap::{Event, Interface, LinkType, PacketFlags, ReadError, Reader, Statistics};
use ib_wire::packet::header::{ICRC, VCRC};
use ib_wire::packet::roce::RoceNetwork;
use ib_wire::packet::{Packet, PacketError};

/// The longest packet that is looked into, in bytes on its link: what an IP packet can have, and Ethernet.
const LONGEST: usize = 65_535 + 32;

const ETHERNET: usize = 14;
const VLAN_TAGS: [u16; 2] = [0x8100, 0x88a8];
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// Why there is no RDMA packet in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Foreign {
    /// Nothing is known of links of this type.
    #[error("link type {0}: expected Ethernet (1), IP (101), ERF (197) or InfiniBand (247)")]
    LinkType(u16),
    /// Something else than IP.
    #[error("an Ethernet frame of type {0:#06x}")]
    EtherType(u16),
    /// Another protocol of IP, or another port of UDP.
    #[error("no RoCEv2: {0}")]
    Network(PacketError),
    /// Another port of UDP.
    #[error("UDP port {0}")]
    Port(u16),
    /// The record is none of InfiniBand.
    #[error("{0}")]
    Erf(ErfError),
    /// It is no packet.
    #[error("no packet: {0}")]
    Packet(PacketError),
    /// So much was not captured that its headers are not there.
    #[error("{kept} bytes were captured: its headers have {headers}")]
    Cut {
        /// What was captured.
        kept: usize,
        /// What would be needed.
        headers: usize,
    },
    /// It is longer than packets can be.
    #[error("{0} bytes: no packet is so long")]
    Long(usize),
}

/// A frame of a capture file.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    /// Which frame it is, from 1 on, as Wireshark counts them.
    pub number: u64,
    /// Where in the file its block ends, in bytes.
    pub offset: u64,
    /// When it was captured, in nanoseconds since 1970.
    pub time: Option<u64>,
    /// The interface within its section; its description is [`CaptureFile::interface`].
    pub interface: u32,
    /// The name of the interface, if it has one.
    pub interface_name: Option<&'a str>,
    /// Which way it went, where the file says so.
    pub direction: Option<Direction>,
    /// How many frames of the interface were lost just before it, as far as the file says.
    pub lost: u64,
    /// Remarks.
    pub comments: Vec<String>,
    /// How many bytes it had on the link.
    pub length: usize,
    /// How many of them were captured.
    pub captured: usize,
    /// What is in it.
    pub content: Result<Content<'a>, Foreign>,
}

/// An RDMA packet in a frame.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    /// IP and UDP, for RoCEv2; InfiniBand has an LRH instead.
    pub network: Option<RoceNetwork>,
    /// The packet. Where not all of it was captured, zeros stand in the place of what is missing.
    pub packet: Packet<'a>,
    /// How many bytes of the payload were captured.
    pub kept: usize,
    /// Whether everything was captured, up to the checksums.
    pub is_whole: bool,
}

impl<'a> Content<'a> {
    /// Returns the part of the payload that was captured.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.packet.payload()[..self.kept]
    }
}

/// Something in a capture file.
#[derive(Debug)]
pub enum Item<'a> {
    /// A frame.
    Frame(Box<Frame<'a>>),
    /// What an interface counted.
    Statistics(Statistics),
}

/// Reads the RDMA packets of a pcapng or pcap file.
pub struct CaptureFile<R: Read> {
    reader: Reader<R>,
    ports: Vec<u16>,
    number: u64,
    sections: u32,
    bytes: Vec<u8>,
}

impl<R: Read> CaptureFile<R> {
    /// Starts to read; RoCEv2 is what goes to UDP port 4791 or from or to one of those given.
    ///
    /// # Errors
    /// Fails when the stream does, or is no capture file.
    pub fn new(stream: R, ports: &[u16]) -> Result<Self, ReadError> {
        let ports = ports.iter().copied().chain([RoceNetwork::PORT]).collect();
        let reader = Reader::new(stream)?;
        Ok(Self { reader, ports, number: 0, sections: 0, bytes: Vec::new() })
    }

    /// Returns what the file says of an interface of the section that is read.
    #[must_use]
    pub fn interface(&self, number: u32) -> Option<&Interface> {
        self.reader.interfaces().get(number as usize)
    }

    /// Returns how many sections have begun; each has interfaces of its own.
    #[must_use]
    pub const fn sections(&self) -> u32 {
        self.sections
    }

    /// Returns how many bytes were read.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.reader.offset()
    }

    /// Returns the next item; `None` at the end.
    ///
    /// # Errors
    /// Fails when the stream does, and where the file contradicts itself or is cut off; the error tells the
    /// byte. Nothing can be read after that.
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>, ReadError> {
        let (kept, mut frame) = loop {
            match self.reader.next_event()? {
                None => return Ok(None),
                Some(Event::Section(_)) => self.sections += 1,
                Some(Event::Interface(_)) => {}
                Some(Event::Statistics(statistics)) => {
                    return Ok(Some(Item::Statistics(statistics)));
                }
                Some(Event::Packet(packet)) => {
                    self.number += 1;
                    self.bytes.clear();
                    self.bytes.extend(packet.data);
                    let direction = packet.flags.and_then(|flags| match PacketFlags(flags.0 & 3) {
                        PacketFlags::INBOUND => Some(Direction::Receive),
                        PacketFlags::OUTBOUND => Some(Direction::Send),
                        _ => None,
                    });
                    let frame = Frame {
                        number: self.number,
                        offset: 0,
                        time: packet.time,
                        interface: packet.interface,
                        interface_name: None,
                        direction,
                        lost: packet.dropped.unwrap_or(0),
                        comments: packet.comments.iter().map(ToString::to_string).collect(),
                        length: packet.original_length as usize,
                        captured: packet.data.len(),
                        content: Err(Foreign::LinkType(0)),
                    };
                    break (packet.data.len(), frame);
                }
            }
        };
        frame.offset = self.reader.offset();
        let link = self.interface(frame.interface).map(|interface| interface.link_type);
        if frame.length <= LONGEST {
            // Zeros for what is missing, so that all lengths fit.
            self.bytes.resize(frame.length.max(kept), 0);
        }
        frame.interface_name =
            self.interface(frame.interface).and_then(|interface| interface.name.as_deref());
        if link == Some(LinkType::ERF) {
            // The record's header was not on the link.
            let header =
                ErfHeader::parse(&self.bytes).map_or(0, |(_, packet)| start(&self.bytes, packet));
            frame.length = frame.length.saturating_sub(header);
            frame.captured = kept.saturating_sub(header);
        }
        frame.content = if frame.length > LONGEST {
            Err(Foreign::Long(frame.length))
        } else {
            content(link.unwrap_or(LinkType(0)), &self.bytes, kept, &self.ports)
        };
        Ok(Some(Item::Frame(Box::new(frame))))
    }
}

/// Finds the packet in a frame of which so many bytes were captured.
fn content<'a>(
    link: LinkType,
    bytes: &'a [u8],
    kept: usize,
    ports: &[u16],
) -> Result<Content<'a>, Foreign> {
    match link {
        LinkType::ETHERNET => {
            let mut at = ETHERNET - 2;
            let two =
                |at: usize| bytes.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]]));
            let mut kind = two(at).ok_or(Foreign::Cut { kept, headers: ETHERNET })?;
            while VLAN_TAGS.contains(&kind) {
                at += 4;
                kind = two(at).ok_or(Foreign::Cut { kept, headers: at + 2 })?;
            }
            if kind != IPV4 && kind != IPV6 {
                return Err(Foreign::EtherType(kind));
            }
            roce(bytes, at + 2, kept, ports)
        }
        LinkType::RAW_IP => roce(bytes, 0, kept, ports),
        LinkType::ERF => {
            let (header, packet) = ErfHeader::parse(bytes).map_err(Foreign::Erf)?;
            let start = start(bytes, packet);
            // Some writers count the record's header into the length on the wire.
            let wire = usize::from(header.wire_length).min(packet.len());
            native(&packet[..wire], kept.saturating_sub(start))
        }
        LinkType::INFINIBAND => native(bytes, kept),
        LinkType(other) => Err(Foreign::LinkType(other)),
    }
}

/// Returns where in a record its packet starts.
fn start(record: &[u8], packet: &[u8]) -> usize {
    packet.as_ptr().addr() - record.as_ptr().addr()
}

/// Finds the packet behind IP and UDP.
fn roce<'a>(
    bytes: &'a [u8],
    ip: usize,
    kept: usize,
    ports: &[u16],
) -> Result<Content<'a>, Foreign> {
    let (network, datagram) = RoceNetwork::parse(&bytes[ip..]).map_err(Foreign::Network)?;
    if !ports.contains(&network.destination_port) {
        return Err(Foreign::Port(network.destination_port));
    }
    let packet = Packet::parse_roce(datagram).map_err(Foreign::Packet)?;
    with(packet, Some(network), kept.saturating_sub(ip + network.length()), ICRC)
}

/// Finds the packet of InfiniBand.
fn native(bytes: &[u8], kept: usize) -> Result<Content<'_>, Foreign> {
    let packet = Packet::parse(bytes).map_err(Foreign::Packet)?;
    with(packet, None, kept, ICRC + VCRC)
}

/// Returns what is known of a packet of which so many bytes were captured.
fn with(
    packet: Packet<'_>,
    network: Option<RoceNetwork>,
    kept: usize,
    checksums: usize,
) -> Result<Content<'_>, Foreign> {
    let headers = packet.payload_offset();
    if kept < headers {
        return Err(Foreign::Cut { kept, headers });
    }
    let payload = packet.payload().len();
    let is_whole = kept >= headers + payload + packet.pad_count() + checksums;
    Ok(Content { network, packet, kept: payload.min(kept - headers), is_whole })
}

#[cfg(test)]
mod tests;
