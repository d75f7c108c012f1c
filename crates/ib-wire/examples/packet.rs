//! Builds and parses a RoCEv2 packet with an RDMA WRITE, then flips a bit and checks the ICRC again.
//!
//! ```text
//! $ cargo run -p ib-wire --example packet
//! 56 bytes: RC RDMA WRITE only to qp 0x12, psn 77, 22 bytes for 0x1000
//! its ICRC is right
//! with another bit: ICRC at byte 52 is 0xb30cff47: expected 0x7368d750
//! ```

use std::io::Write;

use ib_types::{Psn, Qpn};
use ib_wire::packet::{Bth, Builder, Opcode, Packet, Reth, RoceAddresses, RoceNetwork};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    let addresses =
        RoceAddresses::V6 { source: "fd00::1".parse()?, destination: "fd00::2".parse()? };
    let network = RoceNetwork { addresses, source_port: 4791, destination_port: RoceNetwork::PORT };
    let bth = Bth {
        opcode: Opcode::RC_WRITE_ONLY,
        destination: Qpn::truncated(0x12),
        psn: Psn::truncated(77),
        ..Bth::default()
    };
    let reth = Reth { virtual_address: 0x1000, r_key: 0x99, dma_length: 22 };
    let builder = Builder::new(bth).reth(reth).payload(b"twenty-two bytes of it");
    let mut bytes = vec![0; 256];
    let length = builder.emit_roce(&network, &mut bytes)?;
    bytes.truncate(length);

    let packet = Packet::parse_roce(&bytes)?;
    let (bth, reth) = (packet.bth(), packet.reth().ok_or("the packet has no RETH")?);
    let (opcode, to, psn) = (bth.opcode, bth.destination.get(), bth.psn.get());
    let (length, address) = (reth.dma_length, reth.virtual_address);
    writeln!(
        out,
        "{} bytes: {opcode} to qp {to:#x}, psn {psn}, {length} bytes for {address:#x}",
        bytes.len()
    )?;
    packet.check_roce_icrc(&network)?;
    writeln!(out, "its ICRC is right")?;

    bytes[30] ^= 1;
    match Packet::parse_roce(&bytes)?.check_roce_icrc(&network) {
        Ok(()) => Err("a changed packet passes".into()),
        Err(error) => Ok(writeln!(out, "with another bit: {error}")?),
    }
}
