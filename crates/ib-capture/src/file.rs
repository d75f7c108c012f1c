//! Reads the RDMA packets (RoCEv2 and InfiniBand) of capture files that any program wrote.

use std::io::Read;

use ib_link::Direction;
use ib_pcap::erf::{ErfError, ErfHeader};
use ib_pcap::{Event, Interface, LinkType, PacketFlags, ReadError, Reader, Statistics};
use ib_wire::packet::header::{ICRC, VCRC};
use ib_wire::packet::roce::RoceNetwork;
use ib_wire::packet::{Packet, PacketError};

/// Maximum length of a frame in bytes: the largest IP packet, plus Ethernet header and VLAN tags.
const LONGEST: usize = 65_535 + 32;

const ETHERNET: usize = 14;
const VLAN_TAGS: [u16; 2] = [0x8100, 0x88a8];
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// The reason why a frame has no RDMA packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The link type is unknown. Holds the type.
    #[error("link type {0}: expected Ethernet (1), IP (101), ERF (197) or InfiniBand (247)")]
    LinkType(u16),
    /// The frame is not an IP packet. Holds the EtherType.
    #[error("EtherType {0:#06x}: expected IPv4 or IPv6")]
    EtherType(u16),
    /// The packet is not a UDP datagram, or its IP or UDP header is invalid.
    #[error("not RoCEv2: {0}")]
    Network(PacketError),
    /// The UDP destination port is not a port of RoCEv2. Holds this port.
    #[error("UDP port {0}: expected 4791 or a port given by --udp-port")]
    Port(u16),
    /// The ERF record does not contain an InfiniBand packet.
    #[error("{0}")]
    Erf(ErfError),
    /// Invalid RDMA packet.
    #[error("invalid packet: {0}")]
    Packet(PacketError),
    /// The captured part of the frame ends within the headers.
    #[error("{kept} bytes were captured: expected at least {headers} for the headers")]
    Cut {
        /// Number of bytes captured from the start of the headers on.
        kept: usize,
        /// Length of the headers in bytes: of the Ethernet header, or of the RDMA packet's headers.
        headers: usize,
    },
    /// The frame is longer than any packet can be. Holds its length.
    #[error("frame of {0} bytes: expected at most {LONGEST}")]
    Long(usize),
}

/// A frame of a capture file.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    /// Number of the frame, counted from 1 as in Wireshark.
    pub number: u64,
    /// Offset in the file at which the frame's block ends, in bytes.
    pub offset: u64,
    /// Time at which the frame was captured, in nanoseconds since 1970.
    pub time: Option<u64>,
    /// Interface number within the section; [`CaptureFile::interface`] describes it.
    pub interface: u32,
    /// Name of the interface, if it has one.
    pub interface_name: Option<&'a str>,
    /// Direction of the frame, if the file reports it.
    pub direction: Option<Direction>,
    /// Number of frames that the interface lost between the previous frame and this one, as
    /// reported by the file.
    pub lost: u64,
    /// Comments on the frame.
    pub comments: Vec<String>,
    /// Length of the frame on the link, in bytes.
    pub length: usize,
    /// Number of captured bytes of the frame.
    pub captured: usize,
    /// The RDMA packet, or the reason why there is none.
    pub content: Result<Content<'a>, FrameError>,
}

/// An RDMA packet in a frame.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    /// IP and UDP headers of RoCEv2; `None` for InfiniBand, which has an LRH.
    pub network: Option<RoceNetwork>,
    /// The packet. Bytes that were not captured are zero.
    pub packet: Packet<'a>,
    /// Number of payload bytes that were captured.
    pub kept: usize,
    /// True if the whole packet was captured, including checksums.
    pub is_whole: bool,
}

impl<'a> Content<'a> {
    /// Returns the captured part of the payload.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.packet.payload()[..self.kept]
    }
}

/// A frame or a statistics block of a capture file.
#[derive(Debug)]
pub enum Item<'a> {
    /// A frame.
    Frame(Box<Frame<'a>>),
    /// The statistics of an interface.
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
    /// Creates a reader. UDP packets are RoCEv2 packets if their destination port is 4791 or one of `ports`.
    ///
    /// # Errors
    /// Fails if `stream` cannot be read, or is not a capture file.
    pub fn new(stream: R, ports: &[u16]) -> Result<Self, ReadError> {
        let ports = ports.iter().copied().chain([RoceNetwork::PORT]).collect();
        let reader = Reader::new(stream)?;
        Ok(Self { reader, ports, number: 0, sections: 0, bytes: Vec::new() })
    }

    /// Returns the description of an interface of the current section.
    #[must_use]
    pub fn interface(&self, number: u32) -> Option<&Interface> {
        self.reader.interfaces().get(number as usize)
    }

    /// Returns the number of sections read so far. Interface numbers start from 0 in each section.
    #[must_use]
    pub const fn sections(&self) -> u32 {
        self.sections
    }

    /// Returns how many bytes of the file were read so far.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.reader.offset()
    }

    /// Returns the next item; `None` at the end of the file.
    ///
    /// # Errors
    /// Fails if the stream cannot be read, or if the file is inconsistent or truncated. The error
    /// contains the offset in bytes. After an error, no further items can be read.
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
                        content: Err(FrameError::LinkType(0)),
                    };
                    break (packet.data.len(), frame);
                }
            }
        };
        frame.offset = self.reader.offset();
        let link = self.interface(frame.interface).map(|interface| interface.link_type);
        if frame.length <= LONGEST {
            // Zeros replace the bytes that were not captured, so that the frame has its original
            // length.
            self.bytes.resize(frame.length.max(kept), 0);
        }
        frame.interface_name =
            self.interface(frame.interface).and_then(|interface| interface.name.as_deref());
        if link == Some(LinkType::ERF) {
            // The header of the ERF record is not part of the frame on the link.
            let header =
                ErfHeader::parse(&self.bytes).map_or(0, |(_, packet)| start(&self.bytes, packet));
            frame.length = frame.length.saturating_sub(header);
            frame.captured = kept.saturating_sub(header);
        }
        frame.content = if frame.length > LONGEST {
            Err(FrameError::Long(frame.length))
        } else {
            content(link.unwrap_or(LinkType(0)), &self.bytes, kept, &self.ports)
        };
        Ok(Some(Item::Frame(Box::new(frame))))
    }
}

/// Returns the packet in a frame of which `kept` bytes were captured.
fn content<'a>(
    link: LinkType,
    bytes: &'a [u8],
    kept: usize,
    ports: &[u16],
) -> Result<Content<'a>, FrameError> {
    match link {
        LinkType::ETHERNET => {
            let mut at = ETHERNET - 2;
            let two =
                |at: usize| bytes.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]]));
            let mut kind = two(at).ok_or(FrameError::Cut { kept, headers: ETHERNET })?;
            while VLAN_TAGS.contains(&kind) {
                at += 4;
                kind = two(at).ok_or(FrameError::Cut { kept, headers: at + 2 })?;
            }
            if kind != IPV4 && kind != IPV6 {
                return Err(FrameError::EtherType(kind));
            }
            roce(bytes, at + 2, kept, ports)
        }
        LinkType::RAW_IP => roce(bytes, 0, kept, ports),
        LinkType::ERF => {
            let (header, packet) = ErfHeader::parse(bytes).map_err(FrameError::Erf)?;
            let start = start(bytes, packet);
            // Some programs include the header of the ERF record in the wire length, so this length can exceed the
            // packet.
            let wire = usize::from(header.wire_length).min(packet.len());
            native(&packet[..wire], kept.saturating_sub(start))
        }
        LinkType::INFINIBAND => native(bytes, kept),
        LinkType(other) => Err(FrameError::LinkType(other)),
    }
}

/// Returns the offset of a packet in its ERF record.
fn start(record: &[u8], packet: &[u8]) -> usize {
    packet.as_ptr().addr() - record.as_ptr().addr()
}

/// Returns the RoCEv2 packet in an IP packet that begins at offset `ip`.
fn roce<'a>(
    bytes: &'a [u8],
    ip: usize,
    kept: usize,
    ports: &[u16],
) -> Result<Content<'a>, FrameError> {
    let (network, datagram) = RoceNetwork::parse(&bytes[ip..]).map_err(FrameError::Network)?;
    if !ports.contains(&network.destination_port) {
        return Err(FrameError::Port(network.destination_port));
    }
    let packet = Packet::parse_roce(datagram).map_err(FrameError::Packet)?;
    with(packet, Some(network), kept.saturating_sub(ip + network.length()), ICRC)
}

/// Returns the InfiniBand packet in a frame.
fn native(bytes: &[u8], kept: usize) -> Result<Content<'_>, FrameError> {
    let packet = Packet::parse(bytes).map_err(FrameError::Packet)?;
    with(packet, None, kept, ICRC + VCRC)
}

/// Returns the content of a packet of which `kept` bytes were captured.
fn with(
    packet: Packet<'_>,
    network: Option<RoceNetwork>,
    kept: usize,
    checksums: usize,
) -> Result<Content<'_>, FrameError> {
    let headers = packet.payload_offset();
    if kept < headers {
        return Err(FrameError::Cut { kept, headers });
    }
    let payload = packet.payload().len();
    let is_whole = kept >= headers + payload + packet.pad_count() + checksums;
    Ok(Content { network, packet, kept: payload.min(kept - headers), is_whole })
}

#[cfg(test)]
mod tests;
