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
