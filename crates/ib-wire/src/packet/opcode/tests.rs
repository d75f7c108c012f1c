use super::*;

#[test]
fn every_opcode_is_decoded_or_preserved() {
    let mut known = 0;
    for code in 0..=255 {
        let opcode = Opcode(code);
        if let Some(operation) = opcode.operation() {
            assert_eq!(Opcode::new(opcode.transport(), operation), Some(opcode));
        }
        assert_eq!(opcode.is_known(), opcode.headers().is_some());
        assert_eq!(opcode.is_known(), !opcode.to_string().starts_with("opcode"));
        known += usize::from(opcode.is_known());
    }
    // RC and XRC have 23 opcodes each, UC has 12, RD 22, and UD 2. The CNP is one more.
    assert_eq!(known, 2 * 23 + 12 + 22 + 2 + 1);
    assert_eq!(Opcode(0xc4).to_string(), "opcode 0xc4");
    assert_eq!(Opcode(0x15).headers(), None);
}

#[test]
fn headers_of_opcodes_match_the_specification() {
    use Header::{Aeth, AtomicAckEth, AtomicEth, Deth, Ieth, ImmDt, Rdeth, Reth, XrcEth};
    let cases: &[(u8, &str, &[Header])] = &[
        (0x00, "RC SEND first", &[]),
        (0x05, "RC SEND only with immediate", &[ImmDt]),
        (0x06, "RC RDMA WRITE first", &[Reth]),
        (0x07, "RC RDMA WRITE middle", &[]),
        (0x09, "RC RDMA WRITE last with immediate", &[ImmDt]),
        (0x0b, "RC RDMA WRITE only with immediate", &[Reth, ImmDt]),
        (0x0c, "RC RDMA READ request", &[Reth]),
        (0x0d, "RC RDMA READ response first", &[Aeth]),
        (0x0e, "RC RDMA READ response middle", &[]),
        (0x11, "RC acknowledge", &[Aeth]),
        (0x12, "RC atomic acknowledge", &[Aeth, AtomicAckEth]),
        (0x13, "RC compare and swap", &[AtomicEth]),
        (0x17, "RC SEND only with invalidate", &[Ieth]),
        (0x2a, "UC RDMA WRITE only", &[Reth]),
        (0x4b, "RD RDMA WRITE only with immediate", &[Rdeth, Deth, Reth, ImmDt]),
        (0x52, "RD atomic acknowledge", &[Rdeth, Aeth, AtomicAckEth]),
        (0x55, "RD RESYNC", &[Rdeth, Deth]),
        (0x65, "UD SEND only with immediate", &[Deth, ImmDt]),
        (0x81, "CNP", &[]),
        (0xab, "XRC RDMA WRITE only with immediate", &[XrcEth, Reth, ImmDt]),
        (0xb1, "XRC acknowledge", &[Aeth]),
    ];
    for &(code, name, headers) in cases {
        assert_eq!(Opcode(code).to_string(), name);
        let set = Opcode(code).headers().expect(name);
        assert_eq!(set.iter().collect::<Vec<_>>(), headers, "{name}");
        let mut at = 0;
        for &header in headers {
            assert_eq!(set.offset(header), Some(at), "{name}");
            at += header.length();
        }
        assert_eq!(set.length(), at, "{name}");
    }
}

#[test]
fn operations_have_positions_and_directions() {
    let counted = |position| {
        Operation::ALL.iter().filter(|operation| operation.position() == position).count()
    };
    assert_eq!(counted(Position::First), 3);
    assert_eq!(counted(Position::Middle), 3);
    assert_eq!(counted(Position::Last), 6);
    assert_eq!(counted(Position::Only), 12);
    assert_eq!(Operation::ALL.iter().filter(|operation| operation.is_response()).count(), 6);
}
