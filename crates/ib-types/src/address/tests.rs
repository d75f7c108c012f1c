use super::*;

#[test]
fn guid_parses_its_own_and_other_tools_output() {
    let guid = Guid(0x0002_c903_00a1_b2c3);
    assert_eq!(guid.to_string().parse(), Ok(guid));
    assert_eq!("2c90300a1b2c3".parse(), Ok(guid));
    assert_eq!("0X0002C90300A1B2C3".parse(), Ok(guid));
}

#[test]
fn guid_rejects_signs_spaces_and_too_many_digits() {
    for text in ["", "0x", "+1", "-1", " 1", "0x12345678901234567", "xyz", "0x1 "] {
        assert!(text.parse::<Guid>().is_err(), "{text:?} was accepted");
    }
}

#[test]
fn wire_order_is_the_byte_swapped_guid() {
    let mut guids = [Guid(0x20_0001), Guid(0x20_0100), Guid(0x20_0000), Guid(0x20_0200)];
    guids.sort_by_key(|guid| guid.wire_order());
    assert_eq!(guids.map(|guid| guid.0), [0x20_0000, 0x20_0100, 0x20_0200, 0x20_0001]);
}

#[test]
fn lid_and_lmc_reject_numbers_out_of_range() {
    assert!(Lid::unicast(0).is_err());
    assert_eq!(Lid::unicast(0xbfff).map(Lid::get), Ok(0xbfff));
    assert_eq!(Lid::unicast(0xc000), Err(NotUnicastLid { value: 0xc000 }));
    assert!(Lid::unicast(65_537).is_err());
    assert_eq!(Lmc::new(7).map(Lmc::lids), Ok(128));
    assert!(Lmc::new(8).is_err());
    assert!("8".parse::<Lmc>().is_err());
}

#[test]
fn gid_is_a_prefix_and_a_guid() {
    let gid = Gid::new(Gid::DEFAULT_PREFIX, Guid(0x0002_c903_00a1_b2c3));
    assert_eq!(gid.to_string(), "fe80::2:c903:a1:b2c3");
    assert_eq!(gid.to_string().parse(), Ok(gid));
    assert_eq!((gid.prefix(), gid.guid()), (0xfe80 << 48, Guid(0x0002_c903_00a1_b2c3)));
    assert_eq!(gid.to_bytes()[..2], [0xfe, 0x80]);
    assert_eq!(Gid::from_bytes(gid.to_bytes()), gid);
    assert!(!gid.is_multicast());
    assert!("ff12:401b::1".parse::<Gid>().unwrap().is_multicast());
    let error = "fe80".parse::<Gid>().unwrap_err().to_string();
    assert!(error.starts_with("`fe80` is not a GID"), "{error}");
}

#[test]
fn ipv4_address_converts_to_a_rocev2_gid() {
    let address = Ipv4Addr::new(192, 168, 77, 1);
    let gid = Gid::from(address);
    assert_eq!(gid.to_string(), "::ffff:192.168.77.1");
    assert_eq!(gid.to_ipv4(), Some(address));
    assert_eq!(Gid::ZERO.to_ipv4(), None);
}
