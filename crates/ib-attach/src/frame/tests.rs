use ib_types::Gid;
use ib_wire::mad::{Method, MgmtClass, TransactionId};
use proptest::prelude::*;

use super::*;

fn grh() -> impl Strategy<Value = Option<Grh>> {
    let header = (any::<u128>(), any::<u128>(), any::<u8>(), 0..1_u32 << 20);
    let header = header.prop_map(|(source, destination, traffic_class, flow_label)| Grh {
        source: Gid(source),
        destination: Gid(destination),
        traffic_class,
        flow_label,
        ..Grh::default()
    });
    proptest::option::of(header)
}

fn sl() -> impl Strategy<Value = ServiceLevel> {
    (0..16_u8).prop_map(|level| ServiceLevel::new(level).expect("the SL is below 16"))
}

fn frame() -> impl Strategy<Value = (Frame, usize)> {
    let packet = (any::<u16>(), any::<u16>(), sl(), grh(), 0..=MAX_PAYLOAD, any::<bool>());
    let packet = packet.prop_map(|(slid, dlid, sl, grh, length, is_lost)| match is_lost {
        false => (Frame::Packet { slid, dlid, sl, grh }, length),
        true => (Frame::Lost { slid, dlid, sl, grh }, length),
    });
    let remote = (any::<u16>(), any::<u32>(), any::<u32>(), sl(), any::<u16>(), any::<u8>(), grh());
    let datagram = (remote, any::<u32>(), 0..=256_u16);
    let datagram =
        datagram.prop_map(|((lid, qpn, q_key, sl, p_key, path_bits, grh), own, length)| {
            let (qpn, local_qpn) = (Qpn::truncated(qpn), Qpn::truncated(own));
            let (q_key, p_key) = (QKey(q_key), PKey(p_key));
            let remote = Remote { lid, qpn, q_key, sl, p_key, path_bits, grh };
            (Frame::Datagram { remote, local_qpn, length }, MAD_LENGTH)
        });
    let numbers = (any::<u8>(), any::<u32>(), any::<u8>(), any::<u16>(), any::<bool>());
    let ethernet = (any::<u128>(), any::<u128>(), numbers, 0..=MAX_PAYLOAD);
    let ethernet = ethernet.prop_map(|(source, destination, numbers, length)| {
        let (traffic_class, flow_label, hop_limit, source_port, is_weak) = numbers;
        let route = Route {
            source: Gid(source),
            destination: Gid(destination),
            is_global: true,
            traffic_class,
            flow_label,
            hop_limit,
            source_port,
            is_weak,
            ..Route::default()
        };
        (Frame::Ethernet { route }, length)
    });
    prop_oneof![packet, datagram, ethernet]
}

proptest! {
    #[test]
    fn frames_equal_what_was_written((frame, length) in frame()) {
        prop_assert_eq!(Frame::parse(&frame.to_bytes(length)), Some((frame, length)));
    }

    #[test]
    fn any_bytes_parse_as_a_frame_or_are_rejected(bytes in any::<[u8; 32]>(), sane in any::<bool>()) {
        let mut header = [0; HEADER];
        header[..32].copy_from_slice(&bytes);
        if sane {
            header[2..8].copy_from_slice(&[0, 0, bytes[4] % 5, bytes[5] % 2, bytes[6] % 16, bytes[7]]);
        }
        if let Some((_, length)) = Frame::parse(&header) {
            prop_assert!(length <= MAX_PAYLOAD);
        }
    }
}

#[test]
fn datagram_is_a_frame_and_payload() {
    let mad = Mad::new(MgmtClass::SUBN_ADM, Method::GET, TransactionId(7));
    let datagram = Datagram::new(Remote::gsi(9), mad);
    let frame = Frame::from_datagram(&datagram);
    assert_eq!(frame.datagram(&mad.0), Some(datagram));
    assert_eq!(frame.datagram(&mad.0[..255]), None);
    let packet = Frame::Packet { slid: 1, dlid: 2, sl: ServiceLevel::default(), grh: None };
    assert_eq!(packet.datagram(&mad.0), None);
}

#[test]
fn loss_report_has_reason_and_start_of_the_packet() {
    let packet = [7; 2000];
    let news = Frame::loss_report("at s1[3]: the link is down", &packet, 4108);
    let expected = Some(("at s1[3]: the link is down", &packet[..512], 4108));
    assert_eq!(Frame::parse_loss_report(&news), expected);
    let long = "ä".repeat(600);
    let news = Frame::loss_report(&long, &packet[..5], 5);
    assert_eq!(Frame::parse_loss_report(&news), Some(("ä".repeat(256).as_str(), &packet[..5], 5)));
    for length in 0..news.len() {
        if let Some((why, rest, _)) = Frame::parse_loss_report(&news[..length]) {
            assert_eq!(why.len() + rest.len() + 4, length);
        }
    }
    assert_eq!(Frame::parse_loss_report(&[1, 0, 0, 0, 0xff]), None, "invalid UTF-8");
}
