//! The traps of a simulated fabric, read by tshark.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use ib_link::{Datagram, Incoming, Remote};
use ib_pcap::{Interface, LinkType, Packet as Captured, Section, Writer};
use ib_sim::{ClientId, ClientOptions, Options, Sim};
use ib_topology::{Fabric, LinkRate, NodeSpec};
use ib_types::{Guid, NodeKind, PKey};
use ib_wire::mad::sm::{
    LinearForwardingBlock, Notice, PhysState, PortInfo, PortState, SwitchInfo, TrapNumber,
};
use ib_wire::mad::{Attribute, Mad, Method, MgmtClass, TransactionId, smp};
use ib_wire::packet::Packet;

use super::captured::described;
use super::{Outcome, compare, fields, read};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// The traps that must be among the packets.
const TRAPS: [TrapNumber; 4] = [
    TrapNumber::LINK_STATE_CHANGE,
    TrapNumber::LOCAL_CHANGES,
    TrapNumber::BAD_M_KEY,
    TrapNumber::BAD_P_KEY,
];

/// Has a fabric send each of the traps, and compares what tshark reads in them.
pub(super) fn run(file: &Path) -> Fallible<Outcome> {
    let mut sim = provoked()?;
    let section = Section::default();
    let mut writer = Writer::new(BufWriter::new(File::create(file)?), &section)?;
    let interface = writer.interface(&Interface::new(LinkType::ERF).named("fabric"))?;
    let (mut expected, mut seen) = (Vec::new(), Vec::new());
    for tapped in sim.take_packets() {
        let packet = Packet::parse(&tapped.bytes)?;
        let Some(mad) = packet.payload().first_chunk().map(|bytes| Mad(*bytes)) else { continue };
        let Some(notice) = mad.attribute::<Notice>().filter(|_| mad.method() == Method::TRAP)
        else {
            continue;
        };
        seen.push(notice.trap);
        writer.infiniband(&Captured::new(interface, tapped.at.as_nanos(), &tapped.bytes), 0)?;
        expected.push(described(&packet)?);
    }
    writer.finish()?;
    let names = fields(&expected);
    let mut outcome = compare(&expected, &read(file, &names)?, &names, |_| true)?;
    for trap in TRAPS {
        if !seen.contains(&trap) {
            outcome.faults.push(format!("the fabric has sent no trap {}", trap.0));
        }
    }
    Ok(outcome)
}

/// Returns a fabric of three hosts at a switch that has sent the traps to the manager at the first.
fn provoked() -> Fallible<Sim> {
    let mut sim = Sim::new(&fabric()?, Options { tap: true, ..Options::default() });
    let port = sim.first_end_port().ok_or("a fabric has a host")?;
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
    let mut tell = |text: &str| -> Fallible<()> {
        sim.run(&text.parse()?)?;
        sim.settle(sim.now());
        Ok(())
    };
    tell("Unlink s1[3]")?;
    tell("MKey h2 0x1122334455667788 2")?;
    let what = (PortInfo::ID, 1);
    let mut mad = smp::directed_request(Method::GET, TransactionId(1), what, &[1, 2]);
    mad.set_m_key(0x99aa_bbcc_ddee_ff00);
    sim.submit(manager, &Datagram::new(Remote::directed(), mad));
    let stranger = Remote { p_key: PKey(0x8777), ..Remote::gsi(2) };
    let mad = Mad::new(MgmtClass::PERFORMANCE, Method::GET, TransactionId(2));
    sim.submit(manager, &Datagram::new(stranger, mad));
    let end = sim.find_node("h2").and_then(|node| sim.end_port(node)).ok_or("h2 is there")?;
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

/// Where a request goes, and what it is about there.
type Place<'a> = (&'a [u8], u32);

/// Gives a port a LID, if it has one, and makes it active, if it has a link.
fn bring_up(sim: &mut Sim, manager: ClientId, place: Place<'_>, lid: u16) -> Fallible<()> {
    let info: PortInfo = get(sim, manager, place)?;
    let info = PortInfo {
        lid,
        master_sm_lid: u16::from(lid > 0),
        phys_state: PhysState::NO_CHANGE,
        port_state: PortState::NO_CHANGE,
        ..info
    };
    set(sim, manager, place, &info)?;
    if place.0 != [1] || place.1 > 0 {
        for port_state in [PortState::ARMED, PortState::ACTIVE] {
            set(sim, manager, place, &PortInfo { port_state, ..info })?;
        }
    }
    Ok(())
}

fn get<A: Attribute>(sim: &mut Sim, manager: ClientId, place: Place<'_>) -> Fallible<A> {
    let (path, modifier) = place;
    let mad = smp::directed_request(Method::GET, TransactionId(3), (A::ID, modifier), path);
    ask(sim, manager, mad)?.attribute().ok_or_else(|| "another attribute came".into())
}

fn set<A: Attribute>(sim: &mut Sim, manager: ClientId, place: Place<'_>, to: &A) -> Fallible<()> {
    let (path, modifier) = place;
    let mut mad = smp::directed_request(Method::SET, TransactionId(4), (A::ID, modifier), path);
    mad.set_attribute(to);
    ask(sim, manager, mad).map(drop)
}

fn ask(sim: &mut Sim, manager: ClientId, mad: Mad) -> Fallible<Mad> {
    sim.submit(manager, &Datagram::new(Remote::directed(), mad));
    sim.settle(sim.now());
    while let Some(incoming) = sim.receive(manager) {
        if let Incoming::Received(datagram) = incoming
            && datagram.mad.method() == Method::GET_RESP
        {
            let status = datagram.mad.status();
            let failed = || format!("{mad} is answered with {status}").into();
            return if status.0 == 0 { Ok(datagram.mad) } else { Err(failed()) };
        }
    }
    Err(format!("{mad} is not answered").into())
}
