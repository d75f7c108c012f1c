use std::net::{Ipv4Addr, Ipv6Addr};

use ib_types::{Gid, PKey, Psn, QKey, ServiceLevel};
use ib_wire::mad::cm::{CmaHeader, Rej, RejectReason, Rep, Req};
use ib_wire::mad::sm::PortInfo;
use ib_wire::mad::{Attribute, AttributeId, Mad, Method, TransactionId, smp};
use ib_wire::packet::{Aeth, Bth, Builder, Deth, Grh, Ieth, ImmDt, Lrh, Reth, Syndrome};
use ib_wire::rnbd::{self, AccessMode};
use ib_wire::rtrs::message::ReadFlags;
use ib_wire::rtrs::{
    ConnectFlags, ConnectRequest, ConnectResponse, Descriptor, Immediate, ImmediateKind,
    InfoRequest, MAGIC, Message, MessageType, ReadHeader, RkeyResponse, VERSION, WriteHeader,
};

use super::*;

/// Address and queue pair of the client, and of the server.
const CLIENT: (Ipv4Addr, u32) = (Ipv4Addr::new(192, 0, 2, 1), 0x11);
const SERVER: (Ipv4Addr, u32) = (Ipv4Addr::new(192, 0, 2, 2), 0x22);

/// Dissects packets between client and server.
#[derive(Default)]
struct Session {
    dissector: Dissector,
    psn: [u32; 2],
}

impl Session {
    /// Dissects a packet of whose payload only `kept` bytes were captured.
    fn see(&mut self, to_server: bool, builder: Builder<'_>, kept: usize) -> Dissected {
        let (from, to) = if to_server { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
        let network = RoceNetwork {
            addresses: RoceAddresses::V4 {
                source: from.0,
                destination: to.0,
                identification: 7,
                fragment: 0x4000,
            },
            source_port: 0xc123,
            destination_port: 4791,
        };
        let mut bytes = vec![0; 4096 + 64];
        let length = builder.emit_roce(&network, &mut bytes).unwrap();
        let packet = Packet::parse_roce(&bytes[..length]).unwrap();
        let whole = packet.payload().len();
        let content = Content {
            network: Some(network),
            packet,
            kept: kept.min(whole),
            is_whole: kept >= whole,
        };
        let found = self.dissector.dissect(&content);
        Dissected {
            source_qpn: found.source_qpn.map(Qpn::get),
            icrc_ok: found.icrc_ok,
            line: found.upper.as_ref().map(ToString::to_string),
            fields: found.to_fields(),
        }
    }

    /// Returns the BTH of a packet to the server or to the client. Its PSN is one more than that of the previous
    /// packet in this direction.
    fn bth(&mut self, to_server: bool, opcode: u8) -> Bth {
        let psn = &mut self.psn[usize::from(to_server)];
        *psn += 1;
        Bth {
            opcode: Opcode(opcode),
            destination: Qpn::truncated(if to_server { SERVER.1 } else { CLIENT.1 }),
            psn: Psn::truncated(*psn),
            ..Bth::default()
        }
    }

    fn mad(&mut self, to_server: bool, mad: &Mad) -> Dissected {
        let bth = Bth { opcode: Opcode::UD_SEND_ONLY, destination: Qpn::GSI, ..Bth::default() };
        let builder = Builder::new(bth).deth(Deth { q_key: QKey::GSI, source: Qpn::GSI });
        self.see(to_server, builder.payload(&mad.0), 256)
    }

    /// Dissects the REQ and the REP of a connection. They carry `asks` and `answers` as private
    /// data.
    fn connect(&mut self, asks: &[u8], answers: &[u8]) -> [Dissected; 2] {
        let source = (CLIENT.0, 0x1234).into();
        let cma = CmaHeader { source, destination: SERVER.0.into() };
        let mut req = Req::zeroed();
        req.local_comm_id = 5;
        req.local_qpn = Qpn::truncated(CLIENT.1);
        req.service_id = 0x0106_04d2;
        req.private_data[..36].copy_from_slice(&cma.to_bytes().unwrap());
        req.private_data[36..][..asks.len()].copy_from_slice(asks);
        let mut rep = Rep::zeroed();
        (rep.local_comm_id, rep.remote_comm_id) = (6, 5);
        rep.local_qpn = Qpn::truncated(SERVER.1);
        rep.private_data[..answers.len()].copy_from_slice(answers);
        [self.mad(true, &message(&req)), self.mad(false, &message(&rep))]
    }

    /// Returns a session whose connection has negotiated RTRS.
    fn rtrs() -> Self {
        let mut world = Self::default();
        world.connect(&asks(), &answers());
        world
    }

    fn write(
        &mut self,
        to_server: bool,
        va: u64,
        immediate: Option<Immediate>,
        data: &[u8],
    ) -> Dissected {
        let opcode = if immediate.is_some() { 0x0b } else { 0x0a };
        let reth = Reth { virtual_address: va, r_key: 9, dma_length: data.len() as u32 };
        let mut builder = Builder::new(self.bth(to_server, opcode)).reth(reth).payload(data);
        if let Some(Immediate(data)) = immediate {
            builder = builder.immdt(ImmDt { data });
        }
        self.see(to_server, builder, data.len())
    }
}

/// The result of a dissection.
struct Dissected {
    source_qpn: Option<u32>,
    icrc_ok: Option<bool>,
    line: Option<String>,
    fields: Fields,
}

impl Dissected {
    fn line(&self) -> &str {
        self.line.as_deref().unwrap_or("nothing")
    }

    /// Returns the field at a path of names, separated by slashes.
    fn at(&self, path: &str) -> &Value {
        let (mut fields, mut found) = (&self.fields, &Value::Missing);
        for part in path.split('/') {
            found = fields.get(part).unwrap_or(&Value::Missing);
            if let Value::Group(group) = found {
                fields = group;
            }
        }
        found
    }
}

fn message<A: Attribute>(attribute: &A) -> Mad {
    let mut mad = Mad::new(MgmtClass::COMMUNICATION, Method::SEND, TransactionId(3));
    mad.set_attribute(attribute);
    mad
}

fn asks() -> [u8; 56] {
    let (magic, version) = (MAGIC, VERSION);
    let request = ConnectRequest { magic, version, connections: 3, ..ConnectRequest::zeroed() };
    request.to_bytes()
}

fn answers() -> [u8; 56] {
    let response = ConnectResponse {
        magic: MAGIC,
        version: VERSION,
        queue_depth: 512,
        flags: ConnectFlags::NEW_KEYS,
        ..ConnectResponse::zeroed()
    };
    response.to_bytes()
}

/// Returns the bytes of the user header `user`, followed by an RTRS read request.
fn read(user: &[u8], to: u64, length: u32) -> Vec<u8> {
    let mut bytes = user.to_vec();
    let header = ReadHeader {
        message_type: MessageType::READ,
        user_length: user.len() as u16,
        flags: ReadFlags::NEED_INVALIDATION,
        count: 1,
    };
    bytes.extend(header.to_bytes());
    bytes.extend(Descriptor { address: to, r_key: 0x77, length }.to_bytes());
    bytes
}

#[test]
fn cm_messages_are_dissected_and_remembered() {
    let mut world = Session::default();
    let before = world.bth(true, 0x04);
    assert_eq!(world.see(true, Builder::new(before), 0).source_qpn, None);
    let [req, rep] = world.connect(b"hello", b"");
    assert_eq!(
        req.line(),
        "CM REQ service 0x00000000010604d2 192.0.2.1:4660 → 192.0.2.2 qp 0x11 psn 0 id 0x5"
    );
    assert_eq!(*req.at("upper/cma/source_port"), Value::Number(0x1234));
    assert_eq!(*req.at("upper/private_data"), Value::Text("68656c6c6f".to_owned()));
    assert_eq!(*req.at("mad/attribute_name"), Value::Text("ConnectRequest".to_owned()));
    assert_eq!(rep.line(), "CM REP qp 0x22 psn 0 id 0x6 to 0x5");
    for (to_server, from) in [(true, CLIENT.1), (false, SERVER.1)] {
        let bth = world.bth(to_server, 0x04);
        let seen = world.see(to_server, Builder::new(bth).payload(b"data"), 4);
        // The connection has not negotiated RTRS, so no message is decoded.
        assert_eq!((seen.source_qpn, seen.line), (Some(from), None));
    }
}

#[test]
fn rej_shows_its_reason() {
    let mut world = Session::default();
    let mut rej = Rej { reason: RejectReason::CONSUMER, ..Rej::zeroed() };
    let response =
        ConnectResponse { magic: MAGIC, version: VERSION, error: -17, ..ConnectResponse::zeroed() };
    rej.private_data[..56].copy_from_slice(&response.to_bytes());
    let seen = world.mad(false, &message(&rej));
    assert_eq!(
        seen.line(),
        "CM REJ REQ refused: consumer reject | RTRS connect_response error -17"
    );
    assert_eq!(*seen.at("upper/reason"), Value::Number(28));
}

#[test]
fn rtrs_is_recognized_by_its_connection_data() {
    let mut world = Session::default();
    let [req, rep] = world.connect(&asks(), &answers());
    assert!(req.line().ends_with("| RTRS connect_request connection 0 of 3"), "{}", req.line());
    assert!(rep.line().ends_with("| RTRS connect_response 512 chunks"), "{}", rep.line());
    let bth = world.bth(true, 0x04);
    let name = InfoRequest::new("lab").to_bytes();
    let seen = world.see(true, Builder::new(bth).payload(&name), 272);
    assert_eq!(seen.line(), "RTRS info_request \"lab\"");
    // Retransmissions of REQ and REP do not change the connection.
    world.connect(&asks(), &answers());
    let heartbeat = world.write(false, 0, Some(Immediate::HEARTBEAT), &[]);
    assert_eq!(heartbeat.line(), "RTRS heartbeat");
}

#[test]
fn rnbd_open_read_and_close_are_dissected() {
    let mut world = Session::rtrs();
    let mut open = rnbd::Open { message_type: rnbd::MessageType::OPEN, ..rnbd::Open::zeroed() };
    open.access_mode = AccessMode::READ_WRITE;
    open.name[..4].copy_from_slice(b"ram0");
    let request = read(&open.to_bytes(), 0x8000, 56);
    let asked = Immediate::request(512, 3, 56 + 264);
    let seen = world.write(true, 0x3_0038, Some(asked), &request);
    assert_eq!(seen.line(), "RTRS read chunk 3, 56 bytes | RNBD open \"ram0\" rw");
    assert_eq!(*seen.at("upper/descriptor/va"), Value::Wide(0x8000));
    let opened = rnbd::OpenResponse {
        message_type: rnbd::MessageType::OPEN_RESPONSE,
        device_id: 4,
        sectors: 2048,
        ..rnbd::OpenResponse::zeroed()
    };
    let seen = world.write(false, 0x8000, None, &opened.to_bytes());
    assert_eq!(seen.line(), "RTRS data 56 bytes | RNBD open_rsp device 4, 2048 sectors");
    let bth = world.bth(false, 0x17);
    let seen = world.see(false, Builder::new(bth).ieth(Ieth { r_key: 0x77 }), 0);
    assert_eq!(seen.line(), "RTRS invalidate");
    let Immediate(data) =
        Immediate::new(ImmediateKind::Response { has_invalidated: true, error: 0, chunk: 3 });
    let rkey = RkeyResponse { message_type: MessageType::RKEY_RESPONSE, chunk: 3, r_key: 0x321 };
    let bth = world.bth(false, 0x05);
    let builder = Builder::new(bth).immdt(ImmDt { data });
    let seen = world.see(false, builder.payload(&rkey.to_bytes()), 8);
    assert_eq!(seen.line(), "RTRS response chunk 3");
    assert_eq!(*seen.at("upper/rkey"), Value::Number(0x321));
    // The open response was already written to this address, so a later WRITE to it is not decoded
    // as a response.
    let seen = world.write(false, 0x8000, None, &opened.to_bytes());
    assert_eq!(seen.line(), "RTRS data 56 bytes");
    let close = rnbd::Close { message_type: rnbd::MessageType::CLOSE, device_id: 4 };
    let mut request = close.to_bytes().to_vec();
    request.extend(WriteHeader { message_type: MessageType::WRITE, user_length: 8 }.to_bytes());
    let seen = world.write(true, 0x3_0000, Some(Immediate::request(512, 3, 8)), &request);
    assert_eq!(seen.line(), "RTRS write chunk 3, 0 bytes | RNBD close device 4");
}

/// Dissects a write of 600 bytes in three packets. The RNBD message is split between two of them.
fn long_write(world: &mut Session, missing: Option<usize>, kept: usize) -> Dissected {
    let io = rnbd::Io {
        message_type: rnbd::MessageType::IO,
        device_id: 4,
        sector: 8,
        rw: rnbd::IoFlags(0x101),
        length: 600,
        ..rnbd::Io::zeroed()
    };
    let mut all = vec![0xaa; 600];
    all.extend(io.to_bytes());
    all.extend(WriteHeader { message_type: MessageType::WRITE, user_length: 32 }.to_bytes());
    let Immediate(data) = Immediate::request(512, 1, 632);
    let mut last = None;
    for (index, (part, opcode)) in all.chunks(308).zip([0x06, 0x07, 0x09]).enumerate() {
        let bth = world.bth(true, opcode);
        let mut builder = Builder::new(bth).payload(part);
        if index == 0 {
            let dma_length = all.len() as u32;
            builder = builder.reth(Reth { virtual_address: 0, r_key: 9, dma_length });
        }
        if index == 2 {
            builder = builder.immdt(ImmDt { data });
        }
        if missing != Some(index) {
            let seen = world.see(true, builder, kept);
            assert!(index == 2 || seen.line.is_none());
            last = Some(seen);
        }
    }
    last.unwrap()
}

#[test]
fn message_of_several_packets_is_reassembled() {
    let mut world = Session::rtrs();
    let seen = long_write(&mut world, None, usize::MAX);
    let whole = "RTRS write chunk 1, 600 bytes | RNBD io write device 4, sector 8, 600 bytes";
    assert_eq!(seen.line(), whole);
    // If a packet is missing, the message is not decoded.
    for missing in [0, 1] {
        let seen = long_write(&mut world, Some(missing), usize::MAX);
        assert_eq!(seen.line(), "RTRS request chunk 1", "without packet {missing}");
    }
    let seen = long_write(&mut world, None, 16);
    assert_eq!(seen.line(), "RTRS request chunk 1");
    assert_eq!(seen.icrc_ok, None);
    // The next message is complete, and is decoded.
    assert_eq!(long_write(&mut world, None, usize::MAX).line(), whole);
}

#[test]
fn corrupted_packets_do_not_change_the_state() {
    let mut world = Session::default();
    let bth = Bth { opcode: Opcode::UD_SEND_ONLY, destination: Qpn::GSI, ..Bth::default() };
    let mad = Mad::new(MgmtClass::COMMUNICATION, Method::SEND, TransactionId(3));
    let builder = Builder::new(bth).deth(Deth { q_key: QKey::GSI, source: Qpn::GSI });
    let lrh = Lrh { slid: 1, dlid: 2, ..Lrh::default() };
    let mut bytes = vec![0; 512];
    let length = builder.lrh(lrh).payload(&mad.0).emit(&mut bytes).unwrap();
    bytes[100] ^= 1;
    let packet = Packet::parse(&bytes[..length]).unwrap();
    let content = Content { network: None, packet, kept: 256, is_whole: true };
    let found = world.dissector.dissect(&content);
    assert_eq!((found.icrc_ok, found.vcrc_ok), (Some(false), Some(false)));
    assert!(found.mad.is_none());
}

#[test]
fn smp_is_dissected() {
    let info = PortInfo { lid: 17, ..PortInfo::zeroed() };
    let what = (AttributeId::PORT_INFO, 1);
    let mut mad = smp::directed_request(Method::SET, TransactionId(9), what, &[1, 4]);
    mad.set_attribute(&info);
    let bth = Bth { opcode: Opcode::UD_SEND_ONLY, destination: Qpn::SMI, ..Bth::default() };
    let grh = Grh { source: Gid::from_bytes([1; 16]), ..Grh::default() };
    let lrh =
        Lrh { slid: 0xffff, dlid: 0xffff, sl: ServiceLevel::new(3).unwrap(), ..Lrh::default() };
    let builder = Builder::new(Bth { p_key: PKey(0x8001), ..bth })
        .deth(Deth { q_key: QKey(0), source: Qpn::SMI })
        .lrh(lrh)
        .grh(grh)
        .payload(&mad.0);
    let mut bytes = vec![0; 512];
    let length = builder.emit(&mut bytes).unwrap();
    let packet = Packet::parse(&bytes[..length]).unwrap();
    for kept in [256, 30, 10] {
        let content = Content { network: None, packet, kept, is_whole: kept == 256 };
        let found = Dissector::new().dissect(&content);
        assert_eq!(found.destination, Address::Lid(0xffff));
        let icrc_ok = (kept == 256).then_some(true);
        assert_eq!((found.icrc_ok, found.vcrc_ok), (icrc_ok, icrc_ok));
        let seen = Dissected { source_qpn: None, icrc_ok, line: None, fields: found.to_fields() };
        assert_eq!(*seen.at("lrh/sl"), Value::Number(3));
        assert_eq!(*seen.at("p_key"), Value::Number(0x8001));
        assert_eq!(found.mad.is_some(), kept >= 24);
        assert_eq!(seen.fields.get("mad").is_some(), kept >= 24);
        if kept == 256 {
            assert_eq!(*seen.at("mad/attribute/lid"), Value::Number(17));
            assert_eq!(*seen.at("mad/initial_path"), Value::List(vec![1u8.into(), 4u8.into()]));
        }
    }
}

#[test]
fn acm_request_is_dissected() {
    let mut message = AcmMessage::zeroed();
    (message.base_version, message.class, message.class_version) = (1, MgmtClass::ACM, 1);
    message.method = Method::GET;
    message.destination_type = ib_wire::mad::acm::AddressType::IPV6;
    message.destination[..16].copy_from_slice(&Ipv6Addr::LOCALHOST.octets());
    message.source_type = ib_wire::mad::acm::AddressType::NAME;
    message.source[..4].copy_from_slice(b"ho\ns");
    let mut world = Session::default();
    let bth = world.bth(true, 0x64);
    let deth = Deth { q_key: QKey(1), source: Qpn::truncated(0x99) };
    let seen = world.see(true, Builder::new(bth).deth(deth).payload(&message.to_bytes()), 256);
    assert_eq!(seen.line(), "ACM question ho\u{fffd}s for ::1");
    assert_eq!(seen.source_qpn, Some(0x99));
}

#[test]
fn acks_show_syndrome_and_msn() {
    let mut world = Session::rtrs();
    let bth = world.bth(false, 0x11);
    let aeth = Aeth { syndrome: Syndrome(0x62), msn: 7 };
    let seen = world.see(false, Builder::new(bth).aeth(aeth), 0);
    assert_eq!(*seen.at("aeth/meaning"), Value::Text("NAK, remote access error".to_owned()));
    assert_eq!((seen.icrc_ok, seen.line), (Some(true), None));
}

#[test]
fn oldest_connections_are_evicted() {
    let mut world = Session::default();
    for number in 0..5000u32 {
        let qpn = |base| Qpn::truncated(base + number);
        let req = Req { local_comm_id: number, local_qpn: qpn(0x1_0000), ..Req::zeroed() };
        let (local_comm_id, remote_comm_id) = (number, number);
        let rep = Rep { local_comm_id, remote_comm_id, local_qpn: qpn(0x2_0000), ..Rep::zeroed() };
        world.mad(true, &message(&req));
        world.mad(false, &message(&rep));
    }
    let mut peer = |number: u32| {
        let bth = Bth { destination: Qpn::truncated(0x2_0000 + number), ..Bth::default() };
        world.see(true, Builder::new(bth), 0).source_qpn
    };
    assert_eq!((peer(0), peer(4999)), (None, Some(0x1_0000 + 4999)));
}

#[test]
fn unknown_rtrs_messages_are_accepted() {
    let mut world = Session::rtrs();
    let bth = world.bth(false, 0x04);
    let mut unknown = Vec::new();
    Message::Other(MessageType(77), &[1; 20]).emit(&mut unknown);
    let seen = world.see(false, Builder::new(bth).payload(&unknown), 22);
    assert_eq!(seen.line(), "RTRS 0x4d");
    let seen = world.write(true, 0, Some(Immediate(0x5000_0001)), &[]);
    assert_eq!(seen.line(), "RTRS type_5");
}
