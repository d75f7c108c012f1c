use proptest::prelude::*;

use super::*;

/// Returns the ring element of a send request with the given SGEs.
fn element(opcode: u32, flags: u32, sges: &[Sge]) -> Vec<u8> {
    let mut bytes = vec![0; SEND_WQE + 64];
    bytes[..8].copy_from_slice(&77_u64.to_ne_bytes());
    bytes[12..16].copy_from_slice(&opcode.to_ne_bytes());
    bytes[16..20].copy_from_slice(&flags.to_ne_bytes());
    bytes[20..24].copy_from_slice(&0x0102_0304_u32.to_be_bytes());
    bytes[SEND_DMA + 12..SEND_DMA + 16].copy_from_slice(&(sges.len() as u32).to_ne_bytes());
    for (place, sge) in bytes[SEND_WQE..].chunks_exact_mut(SGE).zip(sges) {
        place[..8].copy_from_slice(&sge.addr.to_ne_bytes());
        place[8..12].copy_from_slice(&sge.length.to_ne_bytes());
        place[12..].copy_from_slice(&sge.lkey.to_ne_bytes());
    }
    bytes
}

#[test]
fn send_requests_carry_sges_and_immediate_data() {
    let sge = Sge { addr: 0x1000, length: 5, lkey: 9 };
    let bytes = element(opcode::SEND_WITH_IMM, flag::SIGNALED | flag::FENCE, &[sge]);
    let element = SendElement::decode(&bytes, false).expect("the element is valid");
    assert_eq!((element.wr_id, element.data), (77, Data::One(sge)));
    assert!(element.flags.signaled && element.flags.fence && !element.flags.solicited);
    let Operation::Connected(SendOp::Send { imm }) = element.operation else {
        panic!("the operation is not a SEND")
    };
    assert_eq!(imm, Some(0x0102_0304));
}

#[test]
fn datagrams_name_an_address_handle() {
    let mut bytes = element(opcode::SEND, 0, &[]);
    for (offset, value) in [(0, 0x1234_u32), (4, 0x1111_1111), (12, 6)] {
        bytes[UNION + offset..UNION + offset + 4].copy_from_slice(&value.to_ne_bytes());
    }
    let element = SendElement::decode(&bytes, true).expect("the element is valid");
    let Operation::Datagram { ah, remote_qpn, remote_qkey, imm } = element.operation else {
        panic!("the operation is not a datagram")
    };
    assert_eq!((ah, remote_qpn.get(), remote_qkey.0, imm), (6, 0x1234, 0x1111_1111, None));
    // UD queue pairs do not support RDMA.
    let write = self::element(opcode::RDMA_WRITE, 0, &[]);
    assert_eq!(SendElement::decode(&write, true).err(), Some((77, WcStatus::LocQpOpErr)));
}

#[test]
fn elements_hold_no_more_than_their_size() {
    let mut bytes = element(opcode::SEND, flag::INLINE, &[]);
    bytes[SEND_DMA..SEND_DMA + 4].copy_from_slice(&65_u32.to_ne_bytes());
    assert_eq!(SendElement::decode(&bytes, false).err(), Some((77, WcStatus::LocLenErr)));
    bytes[SEND_DMA..SEND_DMA + 4].copy_from_slice(&64_u32.to_ne_bytes());
    let element = SendElement::decode(&bytes, false).expect("the element is valid");
    assert_eq!(element.data.length(), 64);
    let mut bytes = self::element(opcode::SEND, 0, &[]);
    bytes[SEND_DMA + 12..SEND_DMA + 16].copy_from_slice(&u32::MAX.to_ne_bytes());
    assert_eq!(SendElement::decode(&bytes, false).err(), Some((77, WcStatus::LocLenErr)));
}

#[test]
fn completions_have_the_layout_of_libibverbs() {
    let wc = Wc {
        wr_id: 5,
        status: WcStatus::Success,
        opcode: WcOpcode::Recv,
        byte_len: 40,
        qp_num: Qpn::truncated(0x77),
        src_qp: Qpn::truncated(0x66),
        imm_data: Some(0x0102_0304),
        invalidated_rkey: None,
        grh: true,
        slid: 3,
        sl: 1,
    };
    let bytes = encode_completion(&wc);
    assert_eq!(bytes.len(), 48);
    let number = |at: usize| {
        u32::from_ne_bytes(*bytes[at..].first_chunk().expect("the completion has 48 bytes"))
    };
    assert_eq!(
        [number(8), number(12), number(20), number(28), number(32)],
        [0, 128, 40, 0x77, 0x66]
    );
    assert_eq!(bytes[24..28], [1, 2, 3, 4]);
    assert_eq!(number(36), wc_flag::GRH | wc_flag::WITH_IMM);
}

proptest! {
    #[test]
    fn no_element_panics(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        opcode in 0_u32..20,
        is_datagram in any::<bool>(),
    ) {
        let mut bytes = bytes;
        let _ = SendElement::decode(&bytes, is_datagram);
        let _ = decode_receive(&bytes);
        if let Some(place) = bytes.get_mut(12..16) {
            place.copy_from_slice(&opcode.to_ne_bytes());
            let _ = SendElement::decode(&bytes, is_datagram);
        }
    }
}
