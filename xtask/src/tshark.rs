//! tshark reads ibfabric's capture files: all opcodes, traps of a fabric, packets of two software HCAs, and a run of
//! the simulator. `ibfabric capture read` reads the same files and more, and the fields are compared with tshark's.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use ib_pcap::{Interface, LinkType, Packet as Captured, PacketFlags, Section, Statistics, Writer};
use ib_types::{Gid, Guid, PKey, Psn, QKey, Qpn, ServiceLevel, VirtualLane};
use ib_wire::packet::{
    Aeth, AtomicAckEth, AtomicEth, Bth, Builder, Deth, Grh, Header, Ieth, ImmDt, Lrh, Opcode,
    Operation, Packet, Rdeth, Reth, RoceAddresses, RoceNetwork, Syndrome, Transport, XrcEth,
    roce::RoceHop,
};

use crate::{TaskResult, debug_binary, release_binary};

mod captured;
mod compare;
mod engine;
mod live;
mod reading;
mod traps;

use compare::{Outcome, compare, fields, read};
pub(crate) use reading::{Compared, is_installed};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Keeps the capture file with all opcodes at this path.
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Keeps the capture file of a run of `ibfabric sim` at this path.
    #[arg(long, value_name = "FILE")]
    keep_run: Option<PathBuf>,
    /// Skips the run of `ibfabric sim`, which needs a release build and OpenSM.
    #[arg(long, conflicts_with = "keep_run")]
    quick: bool,
    /// Also compares the fields that `capture read` and tshark read from this capture file. May be repeated.
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Tests this program instead of building ibfabric.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

/// The expected fields of a packet, by the names that tshark uses.
type Expected = BTreeMap<&'static str, String>;

pub(crate) fn run(args: &Args) -> TaskResult {
    let scratch = tempfile::tempdir()?;
    let file = args.keep.clone().unwrap_or_else(|| scratch.path().join("packets.pcapng"));
    let expected = write(&file)?;
    let names: Vec<&str> = fields(&expected);
    let rows = read(&file, &names)?;
    // tshark does not show checksums after some payloads that it cannot decode, so the comparison requires none.
    let mut outcome = compare(&expected, &rows, &names, |_| false)?;
    outcome.print("every operation code");
    if outcome.checksums <= outcome.hidden {
        outcome.faults.push("tshark shows fewer than half of the checksums".to_owned());
    }
    let of_traps = scratch.path().join("traps.pcapng");
    let traps = traps::run(&of_traps)?;
    traps.print("the traps of a fabric");
    let of_adapters = scratch.path().join("adapters.pcapng");
    let adapters = engine::run(&of_adapters)?;
    adapters.print("two software HCAs");
    let mut faults = [outcome.faults, traps.faults, adapters.faults].concat();
    let binary = match &args.binary {
        Some(path) => path.canonicalize()?,
        None if args.quick => debug_binary()?,
        None => release_binary()?,
    };
    let mut files = vec![file, of_traps, of_adapters];
    files.extend(args.file.iter().cloned());
    if !args.quick {
        let directory = scratch.path().join("run");
        let (run, file) = captured::run(&binary, &directory, args.keep_run.as_deref())?;
        run.print("a run of OpenSM on ibfabric sim");
        faults.extend(run.faults);
        files.push(file);
    }
    let mut compared = Compared::default();
    for file in files {
        compared.file(&binary, &file, &[])?;
    }
    let (files, port) = live::capture(&binary, &scratch.path().join("live"))?;
    for file in files {
        compared.file(&binary, &file, &[port])?;
    }
    compared.print();
    faults.extend(compared.faults);
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n").into()) }
}

/// Writes packets with all opcodes: native packets with and without GRH, and RoCEv2 packets over IPv4 and IPv6.
fn write(file: &Path) -> Result<Vec<Expected>, Box<dyn std::error::Error>> {
    let section = Section {
        application: Some("ibfabric".to_owned()),
        comments: vec!["every operation code".to_owned()],
        ..Section::default()
    };
    let mut writer = Writer::new(std::io::BufWriter::new(fs::File::create(file)?), &section)?;
    let link = |name: &str| Interface::new(LinkType::ERF).named(name).speed(100_000_000_000);
    let leaf = writer.interface(&link("leaf1:7"))?;
    let spine = writer.interface(&link("spine1:2"))?;
    let ethernet = writer.interface(&Interface::new(LinkType::ETHERNET).named("eth0"))?;
    let mut all = Vec::new();
    let mut buffer = [0; 512];
    for code in 0..=u8::MAX {
        let opcode = Opcode(code);
        if !opcode.is_known() {
            continue;
        }
        let payload = if carries_data(opcode) { &DATA[..usize::from(code % 18)] } else { &[] };
        let builder = transport(opcode).payload(payload);
        for global in [false, true] {
            let native = builder.lrh(lrh(code));
            let native = if global { native.grh(grh()) } else { native };
            let length = native.emit(&mut buffer)?;
            let (interface, name) = if global { (spine, "spine1:2") } else { (leaf, "leaf1:7") };
            let time = 1_700_000_000_000_000_000 + all.len() as u64;
            let comment = format!("{opcode} {}", if global { "global" } else { "local" });
            let captured = Captured::new(interface, time, &buffer[..length])
                .comment(&comment)
                .flags(PacketFlags::INBOUND);
            writer.infiniband(&captured, interface as u8)?;
            let packet = Packet::parse(&buffer[..length])?;
            let mut expected = seen(&packet);
            expected.insert("frame.comment", comment);
            expected.insert("frame.interface_name", name.to_owned());
            expected.insert("frame.time_epoch", decimal(time));
            expected.insert("frame.packet_flags", PacketFlags::INBOUND.0.to_string());
            expected.insert("erf.types.type", "21".to_owned());
            expected.insert("erf.flags.cap", interface.to_string());
            expected.insert("erf.wlen", length.to_string());
            all.push(expected);
        }
        for network in networks() {
            const ETHERNET: usize = 14;
            let headers = ETHERNET + network.length();
            let length = builder.emit_roce(&network, &mut buffer[headers..])?;
            network.emit(RoceHop::default(), length, &mut buffer[ETHERNET..]);
            let ethertype = if headers == ETHERNET + 28 { [0x08, 0x00] } else { [0x86, 0xdd] };
            buffer[..12].copy_from_slice(b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01");
            buffer[12..ETHERNET].copy_from_slice(&ethertype);
            let comment = format!("{opcode} RoCEv2");
            let time = 1_700_000_000_000_000_000 + all.len() as u64;
            let frame = &buffer[..headers + length];
            writer.packet(&Captured::new(ethernet, time, frame).comment(&comment))?;
            let packet = Packet::parse_roce(&frame[headers..])?;
            let mut expected = seen(&packet);
            expected.insert("frame.comment", comment);
            expected.insert("frame.interface_name", "eth0".to_owned());
            expected.insert("frame.time_epoch", decimal(time));
            expected.insert("udp.srcport", network.source_port.to_string());
            if ethertype == [0x08, 0x00] {
                expected.insert("ip.checksum.status", "1".to_owned());
            }
            all.push(expected);
        }
    }
    for interface in [leaf, spine, ethernet] {
        writer.statistics(&Statistics {
            interface,
            time: 1_700_000_001_000_000_000,
            received: Some(all.len() as u64),
            dropped: Some(0),
            ..Statistics::default()
        })?;
    }
    writer.finish()?;
    Ok(all)
}

const DATA: &[u8] = b"seventeen bytes !";

/// Returns true if packets with this opcode have a payload. Requests for READs and atomics, and acknowledgements, have
/// none.
fn carries_data(opcode: Opcode) -> bool {
    use Operation::{Acknowledge, AtomicAcknowledge, CompareSwap, FetchAdd, ReadRequest, Resync};
    !matches!(
        opcode.operation(),
        Some(Acknowledge | AtomicAcknowledge | CompareSwap | FetchAdd | ReadRequest | Resync)
    )
}

fn decimal(time: u64) -> String {
    format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000)
}

fn lrh(code: u8) -> Lrh {
    Lrh {
        vl: VirtualLane::new(code & 7).expect("a VL below 8 is valid"),
        sl: ServiceLevel::new(code >> 4).expect("an SL below 16 is valid"),
        dlid: 0x1234,
        slid: 0xabc,
        ..Lrh::default()
    }
}

fn grh() -> Grh {
    Grh {
        traffic_class: 0x21,
        flow_label: 0xa_bcde,
        hop_limit: 9,
        source: Gid::new(Gid::DEFAULT_PREFIX, Guid(0x0002_c903_0000_0001)),
        destination: Gid::new(Gid::DEFAULT_PREFIX, Guid(0x0002_c903_0000_0002)),
        ..Grh::default()
    }
}

fn networks() -> [RoceNetwork; 2] {
    let v4 = RoceAddresses::V4 {
        source: Ipv4Addr::new(192, 0, 2, 1),
        destination: Ipv4Addr::new(192, 0, 2, 2),
        identification: 0x4321,
        fragment: 0x4000,
    };
    let v6 = RoceAddresses::V6 {
        source: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
        destination: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
    };
    [v4, v6].map(|addresses| RoceNetwork {
        addresses,
        source_port: 0xc123,
        destination_port: RoceNetwork::PORT,
    })
}

/// Returns the BTH and the other headers of an opcode. Each field has a unique value.
fn transport(opcode: Opcode) -> Builder<'static> {
    let code = opcode.0;
    let mut builder = Builder::new(Bth {
        opcode,
        solicited_event: code & 1 != 0,
        migration: code & 2 != 0,
        p_key: PKey(0x8000 | u16::from(code)),
        destination: Qpn::truncated(0x1_0200 + u32::from(code)),
        ack_request: code & 4 != 0,
        psn: Psn::truncated(0xff_ff00 + u32::from(code)),
        ..Bth::default()
    });
    for header in opcode.headers().unwrap_or_default().iter() {
        builder = match header {
            Header::Rdeth => builder.rdeth(Rdeth { ee_context: 0x1_0203 }),
            Header::Deth => {
                builder.deth(Deth { q_key: QKey(0x8001_0203), source: Qpn::truncated(0x4_0506) })
            }
            Header::XrcEth => builder.xrceth(XrcEth { receive_queue: 0x7_0809 }),
            Header::Reth => builder.reth(Reth {
                virtual_address: 0x1122_3344_5566_7788,
                r_key: 0x99aa_bbcc,
                dma_length: 0x1_0000,
            }),
            Header::AtomicEth => builder.atomic_eth(AtomicEth {
                virtual_address: 0x1020_3040_5060_7080,
                r_key: 0x1a2b_3c4d,
                swap_or_add: 0x1111_2222_3333_4444,
                compare: 0x5555_6666_7777_8888,
            }),
            Header::Aeth => {
                builder.aeth(Aeth { syndrome: Syndrome(0x60 | code & 3), msn: 0x3_0405 })
            }
            Header::AtomicAckEth => builder.atomic_ack_eth(AtomicAckEth { original: 0x99 << 56 }),
            Header::ImmDt => builder.immdt(ImmDt { data: 0xdead_beef }),
            Header::Ieth => builder.ieth(Ieth { r_key: 0x0bad_cafe }),
        };
    }
    builder
}

/// Returns the headers and checksums that tshark is expected to show for a packet.
fn seen(packet: &Packet<'_>) -> Expected {
    let mut seen = Expected::new();
    let mut number = |name, value: u64| {
        seen.insert(name, value.to_string());
    };
    if let Some(lrh) = packet.lrh() {
        number("infiniband.lrh.vl", lrh.vl.get().into());
        number("infiniband.lrh.sl", lrh.sl.get().into());
        number("infiniband.lrh.lnh", lrh.next_header.0.into());
        number("infiniband.lrh.dlid", lrh.dlid.into());
        number("infiniband.lrh.slid", lrh.slid.into());
        number("infiniband.lrh.pktlen", lrh.length.into());
    }
    if let Some(grh) = packet.grh() {
        number("infiniband.grh.tclass", grh.traffic_class.into());
        number("infiniband.grh.flowlabel", grh.flow_label.into());
        number("infiniband.grh.paylen", grh.payload_length.into());
        number("infiniband.grh.hoplmt", grh.hop_limit.into());
    }
    let bth = packet.bth();
    number("infiniband.bth.opcode", bth.opcode.0.into());
    number("infiniband.bth.se", bth.solicited_event.into());
    number("infiniband.bth.m", bth.migration.into());
    number("infiniband.bth.padcnt", bth.pad_count.into());
    number("infiniband.bth.p_key", bth.p_key.0.into());
    number("infiniband.bth.destqp", bth.destination.get().into());
    number("infiniband.bth.a", bth.ack_request.into());
    number("infiniband.bth.psn", bth.psn.get().into());
    if let Some(grh) = packet.grh() {
        seen.insert("infiniband.grh.sgid", grh.source.to_string());
        seen.insert("infiniband.grh.dgid", grh.destination.to_string());
    }
    // In reliable datagrams (RD), tshark 4.0 expects the headers after the RDETH at offsets that are too large by eight
    // bytes. It does not know the XRCETH. Therefore the headers after the BTH of RD and XRC packets are not compared.
    if matches!(bth.opcode.transport(), Transport::Rd | Transport::Xrc) {
        return seen;
    }
    let mut number = |name, value: u64| {
        seen.insert(name, value.to_string());
    };
    if let Some(deth) = packet.deth() {
        number("infiniband.deth.q_key", deth.q_key.0.into());
        number("infiniband.deth.srcqp", deth.source.get().into());
    }
    if let Some(reth) = packet.reth() {
        number("infiniband.reth.va", reth.virtual_address);
        number("infiniband.reth.r_key", reth.r_key.into());
        number("infiniband.reth.dmalen", reth.dma_length.into());
    }
    if let Some(atomic) = packet.atomic_eth() {
        number("infiniband.atomiceth.swapdt", atomic.swap_or_add);
        number("infiniband.atomiceth.cmpdt", atomic.compare);
    }
    if let Some(aeth) = packet.aeth() {
        number("infiniband.aeth.syndrome", aeth.syndrome.0.into());
        number("infiniband.aeth.msn", aeth.msn.into());
    }
    if let Some(atomic) = packet.atomic_ack_eth() {
        number("infiniband.atomicacketh.origremdt", atomic.original);
    }
    number("infiniband.invariant.crc", packet.icrc().into());
    if let Some(vcrc) = packet.vcrc() {
        number("infiniband.variant.crc", vcrc.into());
    }
    // tshark shows immediate data and the invalidated R_Key as bytes.
    if let Some(immediate) = packet.immdt() {
        seen.insert("infiniband.immdt", format!("{:08x}", immediate.data));
    }
    if let Some(ieth) = packet.ieth() {
        seen.insert("infiniband.ieth", format!("{:08x}", ieth.r_key));
    }
    seen
}
