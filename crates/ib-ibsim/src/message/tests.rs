use proptest::prelude::*;

use super::*;

#[test]
fn malformed_messages_are_errors_with_reasons() {
    let error = Control::parse(&[0; 79]).expect_err("too short").to_string();
    assert_eq!(error, "the datagram has 79 bytes: expected 80");
    let error = Control::parse(&[0; 80]).expect_err("no magic").to_string();
    assert_eq!(error, "the magic number at byte 0 is 0x00000000: expected 0xdeadbeef");
    let long = Control { length: 65, ..Control::new(1, kind::GET_GID, &[]) };
    let error = Control::parse(&long.to_bytes()).expect_err("too long").to_string();
    assert_eq!(error, "the length at byte 12 is 65: expected at most 64");
    assert!(Request::parse(&[0; 287]).is_err());
    let mut bytes = [0; Request::LENGTH];
    bytes[24] = 1;
    assert!(Request::parse(&bytes).is_err(), "a MAD length of 2^56 is refused");
}

#[test]
fn connect_message_has_the_name_of_the_node() {
    let connect =
        Connect { id: 4711, queue_pair: 0, is_sm: true, node: "H-0002c90000100000".to_owned() };
    let control = Control::new(0, kind::CONNECT, &connect.to_bytes());
    let read = Control::parse(&control.to_bytes()).expect("the message is valid");
    assert_eq!(Connect::parse(&read.payload), connect);
    let long = Connect { node: "x".repeat(40), ..connect };
    assert_eq!(Connect::parse(&Control::new(0, 1, &long.to_bytes()).payload).node.len(), 31);
}

proptest! {
    #[test]
    fn requests_can_be_parsed_after_formatting(
        dlid: u16, slid: u16, destination_queue_pair: u32, source_queue_pair: u32, status: u32,
        length in 0u16..=256, mad in prop::collection::vec(any::<u8>(), 256),
    ) {
        let mad = mad.try_into().expect("the MAD has 256 bytes");
        let request = Request {
            dlid, slid, destination_queue_pair, source_queue_pair, status, length, mad,
        };
        prop_assert_eq!(Request::parse(&request.to_bytes()), Ok(request));
    }

    #[test]
    fn parsing_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        // Both functions may return errors, but must not panic.
        let _ = (Control::parse(&bytes), Request::parse(&bytes));
    }
}
