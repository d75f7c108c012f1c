//! Dissects arbitrary bytes, both as a capture file and as packets of an RTRS connection.
//!
//! The packets that establish the RTRS connection come first, so that later packets are dissected as
//! RTRS and RNBD messages.
#![no_main]

use std::net::Ipv4Addr;

use ib_capture::dissect::{Fields, Value};
use ib_capture::{CaptureFile, Content, Dissector, Item};
use ib_fuzz::Input;
use ib_types::{Psn, QKey, Qpn};
use ib_wire::mad::cm::{Rep, Req};
use ib_wire::mad::{Attribute, Mad, Method, MgmtClass, TransactionId};
use ib_wire::packet::{
    Bth, Builder, Deth, Header, ImmDt, Opcode, Packet, Reth, RoceAddresses, RoceNetwork,
};
use ib_wire::rtrs::{ConnectRequest, ConnectResponse, MAGIC, VERSION};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    file(bytes);
    let mut world = World { dissector: Dissector::new(), next: [Psn::default(); 2] };
    world.connect();
    let mut input = Input(bytes);
    while !input.0.is_empty() {
        world.packet(&mut input);
    }
});

/// Reads a capture file to its end or to the first error.
fn file(bytes: &[u8]) {
    let Ok(mut file) = CaptureFile::new(bytes, &[4792]) else { return };
    let mut dissector = Dissector::new();
    while let Ok(Some(item)) = file.next_item() {
        let Item::Frame(frame) = item else { continue };
        match &frame.content {
            Ok(content) => look(&mut dissector, content),
            Err(why) => assert!(!why.to_string().is_empty()),
        }
    }
    assert!(file.offset() <= bytes.len() as u64);
}

/// Dissects a packet.
fn look(dissector: &mut Dissector, content: &Content<'_>) {
    let found = dissector.dissect(content);
    assert!(found.kept <= found.packet.payload().len());
    assert_eq!(found.icrc_ok.is_some(), content.is_whole);
    let line = format!("{:?} {:?}", found.upper.as_ref().map(ToString::to_string), found.mad);
    assert!(!line.is_empty());
    check(&found.to_fields());
}

/// Checks that field names are unique.
fn check(fields: &Fields) {
    let mut names: Vec<&str> = fields.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    for (_, value) in fields.iter() {
        if let Value::Group(group) = value {
            check(group);
        }
    }
}

/// A client with queue pair 17 and a server with queue pair 18.
struct World {
    dissector: Dissector,
    /// The next PSNs of packets to the client and to the server.
    next: [Psn; 2],
}

impl World {
    fn see(&mut self, to_server: bool, builder: Builder<'_>, kept: usize) {
        let [client, server] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
        let (source, destination) = if to_server { (client, server) } else { (server, client) };
        let (identification, fragment) = (0, 0x4000);
        let network = RoceNetwork {
            addresses: RoceAddresses::V4 { source, destination, identification, fragment },
            source_port: 0xc000,
            destination_port: 4791,
        };
        let mut bytes = [0; 1024];
        let length = builder.emit_roce(&network, &mut bytes).expect("the buffer is large enough");
        let packet = Packet::parse_roce(&bytes[..length]).expect("a built packet is valid");
        let whole = packet.payload().len();
        let content = Content {
            network: Some(network),
            packet,
            kept: kept.min(whole),
            is_whole: kept >= whole,
        };
        look(&mut self.dissector, &content);
    }

    fn mad(&mut self, to_server: bool, attribute: &impl Attribute) {
        let mut mad = Mad::new(MgmtClass::COMMUNICATION, Method::SEND, TransactionId(1));
        mad.set_attribute(attribute);
        let bth = Bth { opcode: Opcode::UD_SEND_ONLY, destination: Qpn::GSI, ..Bth::default() };
        let builder = Builder::new(bth).deth(Deth { q_key: QKey::GSI, source: Qpn::GSI });
        self.see(to_server, builder.payload(&mad.0), 256);
    }

    fn connect(&mut self) {
        let (magic, version) = (MAGIC, VERSION);
        let request = ConnectRequest { magic, version, ..ConnectRequest::zeroed() };
        let mut req = Req { local_qpn: Qpn::truncated(17), ..Req::zeroed() };
        req.private_data[1] = 0x40;
        req.private_data[36..].copy_from_slice(&request.to_bytes());
        self.mad(true, &req);
        let response = ConnectResponse { queue_depth: 512, ..ConnectResponse::zeroed() };
        let response = ConnectResponse { magic, version, ..response };
        let mut rep = Rep { local_qpn: Qpn::truncated(18), ..Rep::zeroed() };
        rep.private_data[..56].copy_from_slice(&response.to_bytes());
        self.mad(false, &rep);
    }

    /// Builds the packet that the input describes, and dissects it.
    fn packet(&mut self, input: &mut Input<'_>) {
        let (how, opcode) = (input.byte(), Opcode(input.byte()));
        let to_server = how & 1 != 0;
        let next = &mut self.next[usize::from(to_server)];
        // Most packets have the PSN after that of the previous packet in this direction.
        let psn = if how & 0x0e == 0x0e { Psn::truncated(input.byte().into()) } else { *next };
        *next = psn.wrapping_add(1);
        let qpn = if how & 0x30 == 0x30 { 1 } else { 17 + u32::from(to_server) };
        let destination = Qpn::truncated(qpn);
        let mut builder = Builder::new(Bth { opcode, destination, psn, ..Bth::default() });
        let length = input.below(256) + usize::from(how >> 7);
        for header in opcode.headers().unwrap_or_default().iter() {
            builder = match header {
                Header::Reth => {
                    let virtual_address = u64::from(input.byte());
                    let dma_length = u32::from(input.short());
                    builder.reth(Reth { virtual_address, r_key: 1, dma_length })
                }
                Header::ImmDt => {
                    let data = u32::from(input.short()) << 16 | u32::from(input.short());
                    builder.immdt(ImmDt { data })
                }
                Header::Deth => builder.deth(Deth { q_key: QKey(1), source: Qpn::GSI }),
                // This target builds no packets with other headers.
                _ => return,
            };
        }
        let mut payload = [0; 256];
        let taken = length.min(input.0.len());
        payload[..taken].copy_from_slice(&input.0[..taken]);
        input.0 = &input.0[taken..];
        let kept = if how & 0x40 == 0 { usize::MAX } else { input.byte().into() };
        self.see(to_server, builder.payload(&payload[..length]), kept);
    }
}
