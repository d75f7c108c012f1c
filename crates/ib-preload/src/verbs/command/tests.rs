use proptest::prelude::*;

use super::super::abi::{Field, bytes_of};
use super::*;

/// Returns a legacy command with these fields and, if `has_response` is true, a response address.
fn legacy(number: u32, out_words: u16, fields: &[u8], has_response: bool) -> Vec<u8> {
    let mut bytes = vec![];
    number.write(&mut bytes);
    let size = 8 + if has_response { 8 } else { 0 } + fields.len();
    ((size / 4) as u16).write(&mut bytes);
    out_words.write(&mut bytes);
    if has_response {
        0x1000_u64.write(&mut bytes);
    }
    bytes.extend_from_slice(fields);
    bytes
}

#[test]
fn legacy_fields_follow_the_response_address() {
    let fields = bytes_of(&CreateCq { cqe: 7, comp_channel: -1, ..CreateCq::default() });
    let command = Command::decode(&legacy(18, 6, &fields, true)).expect("the command is valid");
    let Request::CreateCq(create) = command.request else { panic!("{command:?}") };
    assert_eq!((create.cqe, create.comp_channel), (7, -1));
    assert_eq!(command.response, ResponseBuffer { address: 0x1000, core: 24, driver: 0 });
    // Commands without a response contain no response address.
    let fields = bytes_of(&ModifyQp { qp_handle: 3, ..ModifyQp::default() });
    let command = Command::decode(&legacy(26, 0, &fields, false)).expect("the command is valid");
    let Request::ModifyQp(modify) = command.request else { panic!("{command:?}") };
    assert_eq!((modify.qp_handle, command.response.address), (3, 0));
}

#[test]
fn inconsistent_sizes_are_refused() {
    let fields = bytes_of(&CreateCq::default());
    let good = legacy(18, 6, &fields, true);
    assert_eq!(Command::decode(&good[..good.len() - 4]), Err(Errno::INVALID));
    assert_eq!(Command::decode(&legacy(18, 1, &fields, true)), Err(Errno::NO_SPACE));
    assert_eq!(Command::decode(&legacy(18, 6, &fields[..8], true)), Err(Errno::INVALID));
    assert_eq!(Command::decode(&legacy(77, 6, &fields, true)), Err(Errno::INVALID));
    assert_eq!(Command::decode(&[]), Err(Errno::INVALID));
}

#[test]
fn unsupported_commands_are_reported_as_such() {
    // These are the numbers of REREG_MR, ALLOC_MW, RESIZE_CQ and OPEN_XRCD.
    for number in [11, 14, 19, 37] {
        let bytes = legacy(number, 64, &[0; 64], true);
        assert_eq!(Command::decode(&bytes), Err(Errno::NOT_SUPPORTED), "{number}");
    }
    let xrc = CreateXsrq { srq_type: 1, ..CreateXsrq::default() };
    let bytes = legacy(39, 64, &bytes_of(&xrc), true);
    assert_eq!(Command::decode(&bytes), Err(Errno::NOT_SUPPORTED));
}

#[test]
fn extended_response_buffer_has_a_driver_part() {
    let fields = bytes_of(&CreateCqEx { cqe: 9, ..CreateCqEx::default() });
    let mut bytes = vec![];
    (EXTENDED | 18).write(&mut bytes);
    ((fields.len() / 8) as u16).write(&mut bytes);
    2_u16.write(&mut bytes);
    let header =
        ExtendedHeader { response: 0x2000, provider_out_words: 2, ..ExtendedHeader::default() };
    header.write(&mut bytes);
    bytes.extend_from_slice(&fields);
    let command = Command::decode(&bytes).expect("the command is valid");
    assert!(matches!(command.request, Request::CreateCqEx(create) if create.cqe == 9));
    assert_eq!(command.response, ResponseBuffer { address: 0x2000, core: 16, driver: 16 });
}

proptest! {
    #[test]
    fn no_command_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Command::decode(&bytes);
    }

    #[test]
    fn no_known_command_panics(
        number in 0_u32..64,
        extended in any::<bool>(),
        out_words in any::<u16>(),
        words in 0_usize..40,
        fill in any::<u8>(),
    ) {
        let mut bytes = legacy(number, out_words, &vec![fill; words * 8], true);
        let _ = Command::decode(&bytes);
        if extended {
            bytes[..4].copy_from_slice(&(EXTENDED | number).to_ne_bytes());
            bytes[4..6].copy_from_slice(&(words as u16).to_ne_bytes());
            let _ = Command::decode(&bytes);
        }
    }
}
