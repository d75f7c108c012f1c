use super::*;

/// An address of family `AF_IB` in the byte order of the ABI.
fn ib(service: u64, mask: u64) -> Vec<u8> {
    let gid = 0xfe80_0000_0000_0000_0002_c900_0000_0001_u128;
    [
        &AF_IB.to_ne_bytes()[..],
        &0x8001_u16.to_be_bytes(),
        &9_u32.to_be_bytes(),
        &gid.to_be_bytes(),
        &service.to_be_bytes(),
        &mask.to_be_bytes(),
        &3_u64.to_ne_bytes(),
    ]
    .concat()
}

#[test]
fn addresses_of_all_families_are_read_and_written() {
    let v4 = [&2_u16.to_ne_bytes()[..], &7174_u16.to_be_bytes(), &[127, 0, 0, 2], &[0; 8]].concat();
    let v6 = [
        &10_u16.to_ne_bytes()[..],
        &7174_u16.to_be_bytes(),
        &5_u32.to_be_bytes(),
        &0xfd00_u128.to_be_bytes(),
        &2_u32.to_ne_bytes(),
    ]
    .concat();
    let socket: SocketAddr = "127.0.0.2:7174".parse().unwrap();
    assert_eq!(Address::parse(&v4), Some(Address::Ip(socket)));
    let socket = SocketAddrV6::new(Ipv6Addr::from(0xfd00), 7174, 5, 2);
    assert_eq!(Address::parse(&v6), Some(Address::Ip(socket.into())));
    for bytes in [v4, v6, ib(0x0106_1c06, u64::MAX)] {
        let address = Address::parse(&bytes).unwrap();
        assert_eq!((address.to_bytes(), address.size()), (bytes.clone(), bytes.len()));
        let size = bytes.len() as u16;
        assert_eq!(Address::parse_sized(&bytes, size), Some(address));
        assert_eq!(Address::parse_sized(&bytes, size - 1), None);
        assert_eq!(Address::parse(&bytes[..bytes.len() - 1]), None);
    }
    assert_eq!(Address::parse(&[0; 128]), None);
}

#[test]
fn service_id_selects_port_space_and_port() {
    let address = |service, mask| match Address::parse(&ib(service, mask)) {
        Some(Address::Ib(address)) => address,
        other => panic!("found {other:?}, expected an InfiniBand address"),
    };
    let port = |service, mask, space| address(service, mask).port(space);
    let whole = u64::MAX;
    assert_eq!(port(0x0106_1c06, whole, PortSpace::IB), Some((PortSpace::TCP, 0x1c06)));
    assert_eq!(port(0x0106_1c06, whole, PortSpace::TCP), Some((PortSpace::TCP, 0x1c06)));
    assert_eq!(port(0x0106_1c06, whole, PortSpace::UDP), None);
    assert_eq!(port(0x0111_0000, !0xffff, PortSpace::IB), Some((PortSpace::UDP, 0)));
    // With mask 0, any port of the ID's own port space is selected.
    assert_eq!(port(0, 0, PortSpace::UDP), Some((PortSpace::UDP, 0)));
    assert_eq!(port(0x1234_5678_9abc, whole, PortSpace::IB), None);
    let bound = Address::Ib(address(0x0106_0000, !0xffff)).with_port(PortSpace::TCP, 40_000);
    let Address::Ib(bound) = bound else { panic!("the family does not change") };
    assert_eq!((bound.service, bound.mask), (0x0106_0000 | 40_000, whole));
}
