//! Writes two packets with a comment to a pcapng file in memory and reads them again.
//!
//! ```text
//! $ cargo run -p ib-pcap --example roundtrip
//! "port 1": 5 bytes at 1700000000.000000000 s
//! "port 1": 6 bytes at 1700000000.000001500 s, the second
//! … bytes of pcapng
//! ```

use std::io::Write;

use ib_pcap::{Event, Interface, LinkType, Packet, Reader, Section, Writer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, &Section::default())?;
    let port = writer.interface(&Interface::new(LinkType::ETHERNET).named("port 1"))?;
    let start = 1_700_000_000_000_000_000;
    writer.packet(&Packet::new(port, start, b"first"))?;
    writer.packet(&Packet::new(port, start + 1_500, b"second").comment("the second"))?;

    let mut out = std::io::stdout().lock();
    let mut reader = Reader::new(&file[..])?;
    let mut lines = Vec::new();
    while let Some(event) = reader.next_event()? {
        if let Event::Packet(packet) = event {
            let time = packet.time.ok_or("the packet has no time")?;
            let remark = packet.comments.iter().map(|it| format!(", {it}")).collect::<String>();
            let at = format!("{}.{:09} s", time / 1_000_000_000, time % 1_000_000_000);
            lines.push(format!("{} bytes at {at}{remark}", packet.data.len()));
        }
    }
    let name = reader.interfaces()[0].name.clone().ok_or("the interface has no name")?;
    for line in lines {
        writeln!(out, "{name:?}: {line}")?;
    }
    writeln!(out, "{} bytes of pcapng", file.len())?;
    Ok(())
}
