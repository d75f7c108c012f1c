use super::*;

#[test]
fn decoded_syndromes_encode_to_the_same_byte() {
    for byte in 0..=255 {
        assert_eq!(Syndrome::new(Syndrome(byte).decode()), Syndrome(byte & 0x7f));
    }
    assert_eq!(Syndrome::ACK.decode(), Acknowledgement::Ack(Credits::UNLIMITED));
    assert_eq!(Syndrome(0x62).decode(), Acknowledgement::Nak(NakCode::REMOTE_ACCESS));
}

#[test]
fn credit_counts_match_the_specification() {
    let counts = [
        0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
        2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
    ];
    for (code, &count) in counts.iter().enumerate() {
        assert_eq!(Credits(code as u8).count(), Some(count), "code {code}");
    }
    assert_eq!(Credits::UNLIMITED.count(), None);
    assert_eq!(Credits::new(32), None);
}

#[test]
fn rnr_timers_match_the_specification() {
    let hundredths = [
        65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
        1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
    ];
    for (code, &time) in hundredths.iter().enumerate() {
        assert_eq!(RnrTimer(code as u8).nanoseconds(), time * 10_000, "code {code}");
    }
}

#[test]
fn syndromes_are_displayed_in_words() {
    let text = |byte| Syndrome(byte).decode().to_string();
    assert_eq!(text(0x1f), "ACK");
    assert_eq!(text(0x05), "ACK with 6 credits");
    assert_eq!(text(0x20), "RNR NAK, 655.36 ms");
    assert_eq!(text(0x21), "RNR NAK, 0.01 ms");
    assert_eq!(text(0x41), "reserved syndrome 0x41");
    assert_eq!(text(0x60), "NAK, PSN sequence error");
    assert_eq!(text(0x7f), "NAK, code 31");
}
