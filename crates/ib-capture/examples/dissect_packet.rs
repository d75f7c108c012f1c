//! Writes a capture file with one RoCEv2 packet to memory, and dissects it.
//!
//! ```text
//! $ cargo run -p ib-capture --example dissect_packet
//! frame 1: 10.0.0.1 to 10.0.0.2, UD SEND only to qp 0x101, psn 5, 4 bytes, ICRC right: true
//! ```

use std::io::Write;

use ib_capture::{CaptureFile, Dissector, Item};
use ib_pcap::{Interface, LinkType, Packet, Section, Writer};
use ib_types::{Psn, QKey, Qpn};
use ib_wire::packet::roce::RoceHop;
use ib_wire::packet::{Bth, Builder, Deth, Opcode, RoceAddresses, RoceNetwork};

/// Returns an IP packet that carries a UD message.
fn frame() -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let (source, destination) = ("10.0.0.1".parse()?, "10.0.0.2".parse()?);
    let addresses = RoceAddresses::V4 { source, destination, identification: 0, fragment: 0x4000 };
    let network = RoceNetwork { addresses, source_port: 4791, destination_port: RoceNetwork::PORT };
    let to =
        Bth { opcode: Opcode::UD_SEND_ONLY, destination: Qpn::truncated(0x101), ..Bth::default() };
    let from = Deth { q_key: QKey(0x1234), source: Qpn::truncated(0x202) };
    let builder = Builder::new(Bth { psn: Psn::truncated(5), ..to }).deth(from).payload(b"word");
    let mut frame = vec![0; 256];
    let headers = network.length();
    let length = builder.emit_roce(&network, &mut frame[headers..])?;
    network.emit(RoceHop::default(), length, &mut frame);
    frame.truncate(headers + length);
    Ok(frame)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, &Section::default())?;
    let port = writer.interface(&Interface::new(LinkType::RAW_IP).named("loopback"))?;
    writer.packet(&Packet::new(port, 1_700_000_000_000_000_000, &frame()?))?;

    let mut out = std::io::stdout().lock();
    let mut dissector = Dissector::new();
    let mut capture = CaptureFile::new(&file[..], &[])?;
    while let Some(item) = capture.next_item()? {
        let Item::Frame(frame) = item else { continue };
        let found = dissector.dissect(&frame.content?);
        let (from, to, bth) = (found.source, found.destination, found.packet.bth());
        let (opcode, qpn, psn) = (bth.opcode, bth.destination.get(), bth.psn.get());
        let (length, good) = (found.packet.payload().len(), found.icrc_ok == Some(true));
        let number = frame.number;
        writeln!(
            out,
            "frame {number}: {from} to {to}, {opcode} to qp {qpn:#x}, psn {psn}, {length} bytes, ICRC right: {good}"
        )?;
    }
    Ok(())
}
