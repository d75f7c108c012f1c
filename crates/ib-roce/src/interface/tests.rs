use std::net::Ipv4Addr;

use super::*;
use crate::udp::address_of;

#[test]
fn active_mtu_leaves_80_bytes_for_headers() {
    let cases = [(335, None), (336, Some(256)), (1500, Some(1024)), (2127, Some(1024))];
    let more = [(2128, Some(2048)), (4175, Some(2048)), (4176, Some(4096)), (65_536, Some(4096))];
    for (interface, expected) in cases.into_iter().chain(more) {
        assert_eq!(active_mtu(interface), expected, "{interface}");
    }
}

#[test]
fn guid_is_derived_from_the_mac_or_ip_address() {
    let mut interface = RoceInterface {
        name: "eth0".to_owned(),
        index: 2,
        mtu: 1500,
        mac: Some([0x02, 0x11, 0x22, 0x33, 0x44, 0x55]),
        addresses: vec![Ipv4Addr::new(192, 0, 2, 1).into()],
    };
    assert_eq!(interface.guid(), Guid(0x0011_22ff_fe33_4455));
    interface.mac = None;
    assert_eq!(interface.guid(), Guid(0x0000_ffff_c000_0201));
    interface.addresses.clear();
    assert_eq!(interface.guid(), Guid::ZERO);
}

#[test]
fn interface_is_found_by_its_address() {
    let address = Ipv4Addr::LOCALHOST.into();
    let interface = RoceInterface::holding(address).unwrap().expect("an interface has the address");
    assert_eq!(interface.mac, None);
    assert_eq!(interface.active_mtu(), active_mtu(interface.mtu));
    assert!(interface.gids().any(|gid| gid == gid_of(address)));
    assert_eq!(address_of(gid_of(address)), address);
    let nowhere = Ipv4Addr::new(192, 0, 2, 77).into();
    assert_eq!(RoceInterface::holding(nowhere).unwrap(), None);
}
