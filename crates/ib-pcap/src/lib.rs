//! Reads and writes capture files of InfiniBand and Ethernet packets: pcapng, and classic pcap
//! (read only).
//!
//! | module | contents |
//! |---|---|
//! | [`mod@write`] | [`Writer`]: writes interfaces, packets and statistics as pcapng blocks |
//! | [`read`] | [`Reader`]: reads interfaces, packets and statistics from pcapng or pcap |
//! | [`model`] | types of the reader and the writer: [`Section`], [`Interface`], [`Packet`], [`Statistics`] |
//! | [`erf`] | ERF records, which carry native InfiniBand packets |
//!
//! Packets are streamed: a file of any size takes only the memory of one block. Times are
//! nanoseconds since 1970; no function reads a clock.
//!
//! ```
//! use ib_pcap::{Event, Interface, LinkType, Packet, Reader, Section, Writer};
//!
//! let mut file = Vec::new();
//! let mut writer = Writer::new(&mut file, &Section::default())?;
//! let port = writer.interface(&Interface::new(LinkType::ETHERNET).named("eth0"))?;
//! writer.packet(&Packet::new(port, 1_700_000_000_000_000_000, b"a frame").comment("the first"))?;
//!
//! let mut reader = Reader::new(&file[..])?;
//! while let Some(event) = reader.next_event()? {
//!     if let Event::Packet(packet) = event {
//!         assert_eq!(packet.data, b"a frame");
//!         assert_eq!(packet.comments, ["the first"]);
//!     }
//! }
//! assert_eq!(reader.interfaces()[0].name.as_deref(), Some("eth0"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod erf;
mod error;
mod format;
pub mod model;
pub mod read;
pub mod write;

pub use error::{ReadError, WriteError};
pub use model::{ByteOrder, Event, Interface, LinkType, Packet, PacketFlags, Section, Statistics};
pub use read::Reader;
pub use write::Writer;
