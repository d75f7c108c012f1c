//! Captures of RDMA packets: collects packets from HCAs, dissects them, and correlates the captures of both ends of a
//! connection.
//!
//! [`Collector`] merges the packet traces of queue pairs into pcapng. [`CaptureFile`] and
//! [`Dissector`] read captures that any program wrote. [`Correlator`] compares captures of both ends of a connection.
//! The crate creates no threads, opens no files and reads no clock.
//!
//! | module | contents |
//! |---|---|
//! | [`collect`] | [`Collector`]: merges the packets of queue pairs into one pcapng stream, and counts missed packets |
//! | [`mod@file`] | [`CaptureFile`]: reads the RDMA packets of capture files |
//! | [`dissect`] | [`Dissector`]: dissects headers, MADs, RTRS and RNBD messages |
//! | [`mod@correlate`] | [`Correlator`]: finds lost packets, clock offset and latency parts in captures of both ends |
//! | [`frame`] | [`Link`]: adds the link headers to a packet for a capture file |
//!
//! # Example
//! Writes a RoCEv2 packet to a capture file in memory, and dissects it:
//!
//! ```
//! use ib_capture::{CaptureFile, Dissector, Item};
//! use ib_pcap::{Interface, LinkType, Packet, Section, Writer};
//! use ib_types::{Psn, QKey, Qpn};
//! use ib_wire::packet::roce::RoceHop;
//! use ib_wire::packet::{Bth, Builder, Deth, Opcode, RoceAddresses, RoceNetwork};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (source, destination) = ("10.0.0.1".parse()?, "10.0.0.2".parse()?);
//! let addresses = RoceAddresses::V4 { source, destination, identification: 0, fragment: 0x4000 };
//! let network = RoceNetwork { addresses, source_port: 4791, destination_port: RoceNetwork::PORT };
//! let bth = Bth {
//!     opcode: Opcode::UD_SEND_ONLY,
//!     destination: Qpn::truncated(0x101),
//!     psn: Psn::truncated(5),
//!     ..Bth::default()
//! };
//! let deth = Deth { q_key: QKey(0x1234), source: Qpn::truncated(0x202) };
//! let mut frame = vec![0; 256];
//! let headers = network.length();
//! let length = Builder::new(bth).deth(deth).payload(b"word").emit_roce(&network, &mut frame[headers..])?;
//! network.emit(RoceHop::default(), length, &mut frame);
//! frame.truncate(headers + length);
//!
//! let mut file = Vec::new();
//! let mut writer = Writer::new(&mut file, &Section::default())?;
//! let interface = writer.interface(&Interface::new(LinkType::RAW_IP))?;
//! writer.packet(&Packet::new(interface, 1_700_000_000_000_000_000, &frame))?;
//!
//! let mut capture = CaptureFile::new(&file[..], &[])?;
//! let Some(Item::Frame(frame)) = capture.next_item()? else { panic!("expected a frame") };
//! let dissection = Dissector::new().dissect(&frame.content?);
//! assert_eq!(dissection.packet.bth().destination.get(), 0x101);
//! assert_eq!(dissection.source_qpn, Some(Qpn::truncated(0x202)));
//! assert_eq!(dissection.icrc_ok, Some(true));
//! # Ok(())
//! # }
//! ```

pub mod collect;
pub mod correlate;
pub mod dissect;
pub mod file;
pub mod frame;

pub use collect::{Collector, Counted};
pub use correlate::{Correlation, Correlator};
pub use dissect::{Dissection, Dissector};
pub use file::{CaptureFile, Content, Frame, FrameError, Item};
pub use frame::Link;
