use super::*;

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
