//! A capture file in memory with a packet of RoCEv2, a write of 22 bytes, and what is found in it.
//!
//! ```text
//! $ cargo run -p ib-capture --example look
//! frame 1: 10.0.0.1 to 10.0.0.2, RC RDMA WRITE only to qp 0x12, psn 77, 22 bytes, ICRC right: true
//! ```

use std::io::Write;

use ib_capture::{CaptureFile, Dissector, Item};
use ib_pcap::{Interface, LinkType, Packet, Section, Writer};
use ib_types::{Psn, Qpn};
use ib_wire::packet::roce::RoceHop;
use ib_wire::packet::{Bth, Builder, Opcode, Reth, RoceAddresses, RoceNetwork};

/// Returns an IP packet with the write.
fn frame() -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let (source, destination) = ("10.0.0.1".parse()?, "10.0.0.2".parse()?);
    let addresses = RoceAddresses::V4 { source, destination, identification: 0, fragment: 0x4000 };
    let network = RoceNetwork { addresses, source_port: 4791, destination_port: RoceNetwork::PORT };
    let bth = Bth {
        opcode: Opcode::RC_WRITE_ONLY,
        destination: Qpn::truncated(0x12),
        psn: Psn::truncated(77),
        ..Bth::default()
    };
    let reth = Reth { virtual_address: 0x1000, r_key: 0x99, dma_length: 22 };
    let builder = Builder::new(bth).reth(reth).payload(b"twenty-two bytes of it");
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
