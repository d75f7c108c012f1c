use ib_types::{Gid, Guid, Psn, Qpn};
use proptest::prelude::*;

use super::*;
use crate::packet::{Opcode, RoceAddresses, Syndrome};

const NETWORK: RoceNetwork = RoceNetwork {
    addresses: RoceAddresses::V4 {
        source: std::net::Ipv4Addr::new(192, 0, 2, 1),
        destination: std::net::Ipv4Addr::new(192, 0, 2, 2),
        identification: 1,
        fragment: 0x4000,
    },
    source_port: 0xc000,
    destination_port: RoceNetwork::PORT,
};

/// Adds the headers that the opcode requires.
fn complete(mut builder: Builder<'_>, opcode: Opcode) -> Builder<'_> {
    for header in opcode.headers().unwrap_or_default().iter() {
        builder = match header {
            Header::Rdeth => builder.rdeth(Rdeth { ee_context: 0x1_0203 }),
            Header::Deth => builder.deth(Deth { q_key: ib_types::QKey::GSI, source: Qpn::GSI }),
            Header::XrcEth => builder.xrceth(XrcEth { receive_queue: 0x4_0506 }),
            Header::Reth => builder.reth(Reth {
                virtual_address: 0x1122_3344_5566_7788,
                r_key: 0xabcd,
                dma_length: 99,
            }),
            Header::AtomicEth => builder.atomic_eth(AtomicEth {
                virtual_address: 8,
                r_key: 9,
                swap_or_add: u64::MAX,
                compare: 10,
            }),
            Header::Aeth => builder.aeth(Aeth { syndrome: Syndrome::ACK, msn: 77 }),
            Header::AtomicAckEth => builder.atomic_ack_eth(AtomicAckEth { original: 1 << 63 }),
            Header::ImmDt => builder.immdt(ImmDt { data: 0xdead_beef }),
            Header::Ieth => builder.ieth(Ieth { r_key: 0x1234 }),
        };
    }
    builder
}

/// Builds a packet without a GRH and a packet with a GRH. tshark 4.0.17 decodes both to the fields
/// set here.
#[test]
fn packets_have_the_bytes_of_the_layouts() {
    let bth = Bth {
        opcode: Opcode::RC_ACKNOWLEDGE,
        destination: Qpn::truncated(0x00_0406),
        psn: Psn::truncated(0x5a_5b5c),
        ..Bth::default()
    };
    let lrh = Lrh { slid: 1, dlid: 4, ..Lrh::default() };
    let mut bytes = [0xee; 32];
    let local = Builder::new(bth).lrh(lrh).aeth(Aeth { syndrome: Syndrome::ACK, msn: 2 });
    assert_eq!((local.length(), local.emit(&mut bytes)), (30, Ok(30)));
    #[rustfmt::skip]
    let expected = [
        0x00, 0x02, 0x00, 0x04, 0x00, 0x07, 0x00, 0x01,
        0x11, 0x00, 0xff, 0xff, 0x00, 0x00, 0x04, 0x06, 0x00, 0x5a, 0x5b, 0x5c,
        0x1f, 0x00, 0x00, 0x02, 0x6d, 0xfa, 0x54, 0x87, 0xc8, 0xb4,
        0xee, 0xee,
    ];
    assert_eq!(bytes, expected, "bytes after the packet are unchanged");

    let bth = Bth { opcode: Opcode::RC_SEND_ONLY, becn: true, ack_request: true, ..bth };
    let grh = Grh {
        traffic_class: 0x12,
        flow_label: 0x3_4567,
        source: Gid::new(Gid::DEFAULT_PREFIX, Guid(1)),
        destination: Gid::new(Gid::DEFAULT_PREFIX, Guid(4)),
        ..Grh::default()
    };
    let mut bytes = [0; 72];
    let global = Builder::new(bth).lrh(lrh).grh(grh).payload(b"abc");
    assert_eq!(global.emit(&mut bytes), Ok(70));
    #[rustfmt::skip]
    let expected = [
        0x00, 0x03, 0x00, 0x04, 0x00, 0x11, 0x00, 0x01,
        0x61, 0x23, 0x45, 0x67, 0x00, 0x14, 0x1b, 0x40,
        0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
        0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4,
        0x04, 0x10, 0xff, 0xff, 0x40, 0x00, 0x04, 0x06, 0x80, 0x5a, 0x5b, 0x5c,
        b'a', b'b', b'c', 0, 0xeb, 0x2c, 0x60, 0xdf, 0x2d, 0x66,
    ];
    assert_eq!(bytes[..70], expected);
}

#[test]
fn builder_rejects_wrong_headers_and_lengths() {
    let error_of = |builder: Builder<'_>| {
        let mut buffer = [0xee; 100];
        let error = builder.emit(&mut buffer).unwrap_err().to_string();
        assert_eq!(buffer, [0xee; 100], "{error}");
        error
    };
    let native = |opcode| Builder::new(Bth { opcode, ..Bth::default() }).lrh(Lrh::default());
    assert_eq!(
        error_of(native(Opcode::RC_WRITE_ONLY)),
        "RC RDMA WRITE only needs the header RETH, which was not given"
    );
    assert_eq!(
        error_of(native(Opcode::RC_SEND_ONLY).immdt(ImmDt { data: 0 })),
        "RC SEND only has no header ImmDt, but one was given"
    );
    assert_eq!(
        error_of(Builder::new(Bth::default())),
        "no LRH was given: expected one for a native packet"
    );
    assert_eq!(
        error_of(native(Opcode::RC_SEND_ONLY).payload(&[0; 75])),
        "the buffer has 100 bytes: expected at least 102"
    );
    let long = vec![0; 9000];
    assert_eq!(
        error_of(native(Opcode::RC_SEND_ONLY).payload(&long)),
        "the packet has 9026 bytes: expected at most 8190"
    );
    let roce = native(Opcode::RC_SEND_ONLY).emit_roce(&NETWORK, &mut [0; 100]);
    assert_eq!(
        roce.unwrap_err().to_string(),
        "an LRH or a GRH was given: expected none for a RoCEv2 packet"
    );
}

proptest! {
    #[test]
    fn built_packets_parse_to_the_same_fields(
        code in any::<u8>(),
        psn in any::<u32>(),
        flags in any::<[bool; 6]>(),
        payload in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let [global, solicited_event, migration, fecn, becn, ack_request] = flags;
        let opcode = Opcode(code);
        let psn = Psn::truncated(psn);
        let bth = Bth {
            opcode, psn, solicited_event, migration, fecn, becn, ack_request,
            pad_count: (payload.len().wrapping_neg() & 3) as u8,
            ..Bth::default()
        };
        let bare = complete(Builder::new(bth).payload(&payload), opcode);
        let mut native = bare.lrh(Lrh { slid: 3, dlid: 0xffff, ..Lrh::default() });
        if global {
            native = native.grh(Grh { flow_label: 0xf_fff0, ..Grh::default() });
        }
        let mut buffer = [0; 600];
        let length = native.emit(&mut buffer).unwrap();
        prop_assert_eq!(length, native.length());
        let packet = Packet::parse(&buffer[..length]).unwrap();
        prop_assert_eq!(packet.bth(), bth);
        prop_assert_eq!(packet.payload(), &payload[..]);
        prop_assert_eq!(packet.grh().is_some(), global);
        prop_assert_eq!((packet.check_icrc(), packet.check_vcrc()), (Ok(()), Ok(())));
        let mut again = [0; 600];
        prop_assert_eq!(Builder::from_packet(&packet).emit(&mut again), Ok(length));
        prop_assert_eq!(&again[..length], &buffer[..length]);

        let length = bare.emit_roce(&NETWORK, &mut buffer).unwrap();
        prop_assert_eq!(length, bare.length());
        let packet = Packet::parse_roce(&buffer[..length]).unwrap();
        prop_assert_eq!((packet.bth(), packet.payload()), (bth, &payload[..]));
        prop_assert_eq!(packet.check_roce_icrc(&NETWORK), Ok(()));
        let again_length = Builder::from_packet(&packet).emit_roce(&NETWORK, &mut again);
        prop_assert_eq!(again_length, Ok(length));
        prop_assert_eq!(&again[..length], &buffer[..length]);
    }
}
