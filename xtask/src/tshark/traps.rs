//! tshark reads the traps of a simulated fabric.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use ib_link::{Datagram, Incoming, Remote};
use ib_pcap::{Interface, LinkType, Packet as Captured, Section, Writer};
use ib_sim::{ClientId, ClientOptions, Options, Sim};
use ib_topology::{Fabric, LinkRate, NodeSpec};
use ib_types::{Guid, NodeKind, PKey, QKey, ServiceLevel};
use ib_wire::crc;
use ib_wire::mad::sm::notice::KeyDetails;
use ib_wire::mad::sm::{
    LinearForwardingBlock, Notice, NoticeDetails, PhysState, PortInfo, PortState, SwitchInfo,
    TrapNumber,
};
use ib_wire::mad::{Attribute, Mad, Method, MgmtClass, TransactionId, smp};
use ib_wire::packet::Packet;

use super::captured::described;
use super::{Outcome, compare, fields, read};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// The traps that must be among the packets.
const TRAPS: [TrapNumber; 6] = [
    TrapNumber::LINK_STATE_CHANGE,
    TrapNumber::LOCAL_CHANGES,
    TrapNumber::BAD_M_KEY,
    TrapNumber::BAD_P_KEY,
    TrapNumber::BAD_Q_KEY,
    TrapNumber::SWITCH_BAD_P_KEY,
];

/// Writes the packets of all tested traps to a file. Compares the fields that tshark reads with the expected fields.
pub(super) fn run(file: &Path) -> Fallible<Outcome> {
    let mut sim = fabric_with_traps()?;
    let section = Section::default();
    let mut writer = Writer::new(BufWriter::new(File::create(file)?), &section)?;
    let interface = writer.interface(&Interface::new(LinkType::ERF).named("fabric"))?;
    let (mut expected, mut seen) = (Vec::new(), Vec::new());
    let mut packets: Vec<Vec<u8>> =
        sim.take_packets().into_iter().map(|tapped| tapped.bytes).collect();
    let of_q_keys: Vec<Vec<u8>> = packets.iter().filter_map(|bytes| with_q_key(bytes)).collect();
    packets.extend(of_q_keys);
    for (bytes, time) in packets.iter().zip(1..) {
        let packet = Packet::parse(bytes)?;
        let Some((_, notice)) = trap(&packet) else { continue };
        seen.push(notice.trap);
        writer.infiniband(&Captured::new(interface, time, bytes), 0)?;
        expected.push(described(&packet)?);
    }
    writer.finish()?;
    let names = fields(&expected);
    let mut outcome = compare(&expected, &read(file, &names)?, &names, |seen| {
        seen.contains_key("_ws.malformed")
    })?;
    for trap in TRAPS {
        if !seen.contains(&trap) {
            outcome.faults.push(format!("the fabric has not sent trap {}", trap.0));
        }
    }
    Ok(outcome)
}

/// Returns the MAD and the notice of a packet if it contains a trap.
fn trap(packet: &Packet<'_>) -> Option<(Mad, Notice)> {
    let mad = packet.payload().first_chunk().map(|bytes| Mad(*bytes))?;
    let notice = mad.attribute().filter(|_| mad.method() == Method::TRAP)?;
    Some((mad, notice))
}

/// Converts a packet with trap 257 to a packet with trap 258, which has the same layout. The simulator does not send
/// trap 258, because the queue pairs of HCAs check the Q_Key.
fn with_q_key(bytes: &[u8]) -> Option<Vec<u8>> {
    const CHECKSUMS: usize = 6;
    let (mut mad, mut notice) = trap(&Packet::parse(bytes).ok()?)?;
    let NoticeDetails::Key(details) = notice.details() else { return None };
    notice.trap = TrapNumber::BAD_Q_KEY;
    notice.set_details(&NoticeDetails::Key(KeyDetails { key: QKey(0x8765_4321), ..details }));
    mad.set_attribute(&notice);
    let mut bytes = bytes[..bytes.len() - CHECKSUMS - mad.0.len()].to_vec();
    bytes.extend(mad.0);
    bytes.extend(crc::icrc_native(&bytes).to_be_bytes());
    bytes.extend(crc::vcrc(&bytes).to_be_bytes());
    Some(bytes)
}

/// Returns a simulation of three hosts at a switch, in which the tested traps were already sent to the SM on the first
/// host.
fn fabric_with_traps() -> Fallible<Sim> {
    let mut sim = Sim::new(&fabric()?, Options { tap: true, ..Options::default() });
    let port = sim.first_end_port().ok_or("the fabric has no host")?;
    let options = ClientOptions { is_sm: true, ..ClientOptions::default() };
    let manager = sim.attach(port, options)?;
    for (path, number, lid) in
        [(&[][..], 1, 1), (&[1], 0, 4), (&[1], 1, 0), (&[1], 2, 0), (&[1, 2], 1, 2)]
    {
        bring_up(&mut sim, manager, (path, number), lid)?;
    }
    let info = SwitchInfo { linear_fdb_top: 4, ..get(&mut sim, manager, (&[1], 0))? };
    set(&mut sim, manager, (&[1], 0), &info)?;
    let mut block = LinearForwardingBlock { ports: [0xff; 64] };
    block.ports[1..=4].copy_from_slice(&[1, 2, 3, 0]);
    set(&mut sim, manager, (&[1], 0), &block)?;
    let mut command = |text: &str| -> Fallible<()> {
        sim.run(&text.parse()?)?;
        sim.settle(sim.now());
        Ok(())
    };
    command("Unlink s1[3]")?;
    command("MKey h2 0x1122334455667788 2")?;
    let what = (PortInfo::ID, 1);
    let mut mad = smp::directed_request(Method::GET, TransactionId(1), what, &[1, 2]);
    mad.set_m_key(0x99aa_bbcc_ddee_ff00);
    sim.submit(manager, &Datagram::new(Remote::directed(), mad));
    let stranger = Remote { p_key: PKey(0x8777), ..Remote::gsi(2) };
    let mad = Mad::new(MgmtClass::PERFORMANCE, Method::GET, TransactionId(2));
    sim.submit(manager, &Datagram::new(stranger, mad));
    sim.settle(sim.now());
    // Port 1 of the switch now enforces partitions on inbound packets. The next packet has a GRH, so the trap of the
    // switch contains GIDs.
    let target = (&[1][..], 1);
    let info = PortInfo {
        partition_enforcement_inbound: true,
        phys_state: PhysState::NO_CHANGE,
        port_state: PortState::NO_CHANGE,
        ..get(&mut sim, manager, target)?
    };
    set(&mut sim, manager, target, &info)?;
    let level = ServiceLevel::new(5).ok_or("SL 5 is not valid")?;
    let stranger = Remote { sl: level, grh: Some(super::grh()), ..stranger };
    sim.submit(manager, &Datagram::new(stranger, mad));
    sim.settle(sim.now());
    let end =
        sim.find_node("h2").and_then(|node| sim.end_port(node)).ok_or("host h2 is missing")?;
    sim.attach(end, options)?;
    sim.settle(sim.now());
    Ok(sim)
}

fn fabric() -> Fallible<Fabric> {
    let mut fabric = Fabric::new();
    let guid = |number: u64| Guid(0x0002_c903_0000_0000 + number * 16);
    let switch = fabric.add_node(NodeSpec::new(NodeKind::Switch, "s1", guid(9), 4))?;
    for number in 1..=3u8 {
        let own = guid(number.into());
        let spec = NodeSpec::new(NodeKind::ChannelAdapter, format!("h{number}"), own, 1);
        let host = fabric.add_node(spec)?;
        fabric.set_port_guid(host, 1, Guid(own.0 + 1))?;
        fabric.connect((host, 1), (switch, number), LinkRate::DEFAULT)?;
    }
    Ok(fabric)
}

/// The directed route to the destination of a request, and the attribute modifier.
type RequestTarget<'a> = (&'a [u8], u32);

/// Sets a port's LID, and activates the port if it has a link.
fn bring_up(sim: &mut Sim, manager: ClientId, target: RequestTarget<'_>, lid: u16) -> Fallible<()> {
    let info: PortInfo = get(sim, manager, target)?;
    let info = PortInfo {
        lid,
        master_sm_lid: u16::from(lid > 0),
        phys_state: PhysState::NO_CHANGE,
        port_state: PortState::NO_CHANGE,
        ..info
    };
    set(sim, manager, target, &info)?;
    if target.0 != [1] || target.1 > 0 {
        for port_state in [PortState::ARMED, PortState::ACTIVE] {
            set(sim, manager, target, &PortInfo { port_state, ..info })?;
        }
    }
    Ok(())
}

fn get<A: Attribute>(sim: &mut Sim, manager: ClientId, target: RequestTarget<'_>) -> Fallible<A> {
    let (path, modifier) = target;
    let mad = smp::directed_request(Method::GET, TransactionId(3), (A::ID, modifier), path);
    query(sim, manager, mad)?
        .attribute()
        .ok_or_else(|| "the response's attribute differs from the request's".into())
}

fn set<A: Attribute>(
    sim: &mut Sim,
    manager: ClientId,
    target: RequestTarget<'_>,
    to: &A,
) -> Fallible<()> {
    let (path, modifier) = target;
    let mut mad = smp::directed_request(Method::SET, TransactionId(4), (A::ID, modifier), path);
    mad.set_attribute(to);
    query(sim, manager, mad).map(drop)
}

fn query(sim: &mut Sim, manager: ClientId, mad: Mad) -> Fallible<Mad> {
    sim.submit(manager, &Datagram::new(Remote::directed(), mad));
    sim.settle(sim.now());
    while let Some(incoming) = sim.receive(manager) {
        if let Incoming::Received(datagram) = incoming
            && datagram.mad.method() == Method::GET_RESP
        {
            let status = datagram.mad.status();
            let failed = || format!("the response to {mad} has status {status}").into();
            return if status.0 == 0 { Ok(datagram.mad) } else { Err(failed()) };
        }
    }
    Err(format!("no response to {mad}").into())
}
