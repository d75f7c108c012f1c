use super::*;

#[test]
fn the_default_group_has_its_known_gid() {
    let gid = group_gid(PKey(0x7fff), 0, RateCode::GBPS_10, MtuCode::MTU_2048);
    assert_eq!(gid.to_string(), "ff15:4001:ffff:3:400::");
}

#[test]
fn fields_stand_behind_the_header() {
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
    // More GIDs than fit are not read.
    assert_eq!(message.groups().len(), 6);
    assert_eq!(message.to_bytes(), bytes);
}
