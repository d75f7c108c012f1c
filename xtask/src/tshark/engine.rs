//! tshark reads the packets and CM messages of two software HCAs over RoCEv2.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use ib_cm::{AcceptParams, Cm, CmConfig, CmEvent, CmaHeader, ConnectParams, PortSpace, ServiceId};
use ib_hca::{
    AccessFlags, AhId, CqId, Data, Hca, HcaConfig, MAX_PACKET, Memory, PdId, QpAttr, QpCap, QpId,
    QpInitAttr, QpState, QpType, RecvWr, Registration, RemoteAddress, SendFlags, SendOp, SendWr,
    Sge, UdDestination, WcStatus,
};
use ib_link::Route;
use ib_pcap::{Interface, LinkType, Packet as Captured, Section, Writer};
use ib_types::{Gid, Guid, Instant, Mtu, PKey, Psn, QKey, Qpn};
use ib_wire::mad::cm::RejectReason;
use ib_wire::mad::cm::{Drep, Dreq, Rej, Rep, Req, Rtu};
use ib_wire::mad::{AttributeId, MAD_LENGTH, Mad};
use ib_wire::packet::roce::RoceHop;
use ib_wire::packet::{Opcode, Operation, Packet, RoceAddresses, RoceNetwork, Transport};

use super::{Expected, Outcome, compare, fields, read, seen};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// The CM messages that must be among the packets.
const MESSAGES: [AttributeId; 6] = [
    AttributeId::CM_REQ,
    AttributeId::CM_REP,
    AttributeId::CM_RTU,
    AttributeId::CM_REJ,
    AttributeId::CM_DREQ,
    AttributeId::CM_DREP,
];

/// Performs all operations between two HCAs over IPv4 and IPv6. Compares the fields that tshark reads with the expected
/// fields.
pub(super) fn run(file: &Path) -> Fallible<Outcome> {
    let mut writer = Writer::new(BufWriter::new(File::create(file)?), &Section::default())?;
    let interface = writer.interface(&Interface::new(LinkType::ETHERNET).named("eth0"))?;
    let (mut expected, mut codes, mut messages) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for gids in [[gid4(1), gid4(2)], [gid6(1), gid6(2)]] {
        let mut world = World::new(gids)?;
        world.manage()?;
        world.reliable()?;
        world.unreliable()?;
        for (from, bytes) in &world.packets {
            let frame = framed(gids[*from], gids[1 - from], bytes);
            let packet = Packet::parse_roce(&frame[frame.len() - bytes.len() - 4..])?;
            let time = 1_700_000_000_000_000_000 + expected.len() as u64;
            writer.packet(&Captured::new(interface, time, &frame))?;
            codes.insert(packet.bth().opcode);
            let mut seen = described(&packet, &mut messages);
            seen.insert("frame.len", frame.len().to_string());
            expected.push(seen);
        }
    }
    writer.finish()?;
    let names = fields(&expected);
    let mut outcome = compare(&expected, &read(file, &names)?, &names, |_| true)?;
    for opcode in (0..=u8::MAX).map(Opcode).filter(|code| code.is_known()) {
        let is_ours = matches!(opcode.transport(), Transport::Rc | Transport::Uc | Transport::Ud)
            && opcode.operation() != Some(Operation::Resync);
        if is_ours && !codes.contains(&opcode) {
            outcome.faults.push(format!("expected an HCA to send {opcode}"));
        }
    }
    for message in MESSAGES {
        if !messages.contains(&message) {
            outcome.faults.push(format!("expected a connection manager to send {message}"));
        }
    }
    Ok(outcome)
}

fn gid4(host: u8) -> Gid {
    Gid::from_bytes([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, host])
}

fn gid6(host: u8) -> Gid {
    Gid::from_bytes([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host])
}

/// Adds Ethernet, IP and UDP headers and the ICRC to a packet.
fn framed(from: Gid, to: Gid, bytes: &[u8]) -> Vec<u8> {
    const ETHERNET: usize = 14;
    let [source, destination] = [from, to].map(|gid| std::net::Ipv6Addr::from(gid.to_bytes()));
    let addresses = match (source.to_ipv4_mapped(), destination.to_ipv4_mapped()) {
        (Some(source), Some(destination)) => {
            RoceAddresses::V4 { source, destination, identification: 0, fragment: 0x4000 }
        }
        _ => RoceAddresses::V6 { source, destination },
    };
    let destination_port = RoceNetwork::PORT;
    let network = RoceNetwork { addresses, source_port: 0xc123, destination_port };
    let mut frame = b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0".to_vec();
    if let RoceAddresses::V6 { .. } = addresses {
        frame[12..].copy_from_slice(&[0x86, 0xdd]);
    }
    frame.resize(ETHERNET + network.length(), 0);
    network.emit(RoceHop::default(), bytes.len() + 4, &mut frame[ETHERNET..]);
    frame.extend(bytes);
    frame.extend(network.icrc(bytes).to_be_bytes());
    frame
}

/// Returns the expected fields of a packet, including those of the CM message in it.
fn described(packet: &Packet<'_>, messages: &mut BTreeSet<AttributeId>) -> Expected {
    let mut expected = seen(packet);
    expected.insert("_ws.malformed", String::new());
    let mad = packet.payload().try_into().map(|bytes: &[u8; MAD_LENGTH]| Mad(*bytes));
    let Ok(mad) = mad else { return expected };
    if packet.bth().destination != Qpn::GSI {
        return expected;
    }
    messages.insert(mad.attribute_id());
    let mut number = |name, value: u64| {
        expected.insert(name, value.to_string());
    };
    number("infiniband.mad.mgmtclass", mad.class().0.into());
    number("infiniband.mad.method", mad.method().0.into());
    number("infiniband.mad.transactionid", mad.transaction_id().0);
    number("infiniband.mad.attributeid", mad.attribute_id().0.into());
    if let Some(req) = mad.attribute::<Req>() {
        number("infiniband.cm.req", req.local_comm_id.into());
        number("infiniband.cm.req.serviceid", req.service_id);
        number("infiniband.cm.req.localcaguid", req.local_ca_guid.0);
        number("infiniband.cm.req.localqpn", req.local_qpn.get().into());
        number("infiniband.cm.req.responderres", req.responder_resources.into());
        number("infiniband.cm.req.initdepth", req.initiator_depth.into());
        number("infiniband.cm.req.remoteresptout", req.remote_cm_response_timeout.into());
        number("infiniband.cm.req.transpsvctype", req.transport.0.into());
        number("infiniband.cm.req.startpsn", req.starting_psn.get().into());
        number("infiniband.cm.req.localresptout", req.local_cm_response_timeout.into());
        number("infiniband.cm.req.retrcount", req.retry_count.into());
        number("infiniband.cm.req.pkey", req.p_key.0.into());
        number("infiniband.cm.req.pppmtu", req.path_mtu.0.into());
        number("infiniband.cm.req.rnrretrcount", req.rnr_retry_count.into());
        number("infiniband.cm.req.maxcmretr", req.max_cm_retries.into());
        number("infiniband.cm.req.srq", req.srq.into());
        let path = &req.primary_path;
        number("infiniband.cm.req.prim_locallid", path.local_lid.into());
        number("infiniband.cm.req.prim_remotelid", path.remote_lid.into());
        number("infiniband.cm.req.prim_hoplim", path.hop_limit.into());
        number("infiniband.cm.req.prim_localacktout", path.local_ack_timeout.into());
        number("infiniband.cm.req.ip_cm.sport", 0x1234);
    }
    if let Some(rep) = mad.attribute::<Rep>() {
        number("infiniband.cm.rep", rep.local_comm_id.into());
        number("infiniband.cm.rep.remotecommid", rep.remote_comm_id.into());
        number("infiniband.cm.rep.localqpn", rep.local_qpn.get().into());
        number("infiniband.cm.rep.startpsn", rep.starting_psn.get().into());
        number("infiniband.cm.rep.respres", rep.responder_resources.into());
        number("infiniband.cm.rep.initdepth", rep.initiator_depth.into());
        number("infiniband.cm.rep.tgtackdelay", rep.target_ack_delay.into());
        number("infiniband.cm.rep.rnrretrcount", rep.rnr_retry_count.into());
        number("infiniband.cm.rep.localcaguid", rep.local_ca_guid.0);
    }
    if let Some(rtu) = mad.attribute::<Rtu>() {
        number("infiniband.cm.rtu.localcommid", rtu.local_comm_id.into());
        number("infiniband.cm.rtu.remotecommid", rtu.remote_comm_id.into());
    }
    if let Some(rej) = mad.attribute::<Rej>() {
        number("infiniband.cm.rej.localcommid", rej.local_comm_id.into());
        number("infiniband.cm.rej.remotecommid", rej.remote_comm_id.into());
        number("infiniband.cm.rej.reason", rej.reason.0.into());
    }
    if let Some(dreq) = mad.attribute::<Dreq>() {
        number("infiniband.cm.dreq.localcommid", dreq.local_comm_id.into());
        number("infiniband.cm.dreq.remotecommid", dreq.remote_comm_id.into());
        number("infiniband.cm.req.remoteqpneecn", dreq.remote_qpn.get().into());
    }
    if let Some(drep) = mad.attribute::<Drep>() {
        number("infiniband.cm.drsp.localcommid", drep.local_comm_id.into());
        number("infiniband.cm.drsp.remotecommid", drep.remote_comm_id.into());
    }
    expected
}

#[path = "engine/world.rs"]
mod world;
use world::World;
