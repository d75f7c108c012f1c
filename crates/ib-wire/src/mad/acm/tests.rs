use super::*;

#[test]
fn gid_of_the_default_group_is_known() {
    let gid = group_gid(PKey(0x7fff), 0, RateCode::GBPS_10, MtuCode::MTU_2048);
    assert_eq!(gid.to_string(), "ff15:4001:ffff:3:400::");
}

#[test]
fn message_is_parsed_and_encoded() {
    let mut bytes = [0; 256];
    bytes[..24].copy_from_slice(&[
        1, 0x2c, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 2, 64, 1, 64, 7, 0, 0, 0,
    ]);
    bytes[24..28].copy_from_slice(&[10, 0, 0, 1]);
    bytes[88] = b'a';
    bytes[152] = 0xff;
    let message = AcmMessage::parse(&bytes);
    assert_eq!((message.class, message.control), (MgmtClass::ACM, AcmMessage::RESOLVE));
    assert_eq!(message.destination_type, AddressType::IPV4);
    assert_eq!(message.source_type, AddressType::NAME);
    assert_eq!((message.destination[0], message.source[0]), (10, b'a'));
    // `gid_count` is 7, but the message has room for only six GIDs.
    assert_eq!(message.groups().len(), 6);
    assert_eq!(message.to_bytes(), bytes);
}
