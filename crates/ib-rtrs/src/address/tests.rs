use super::*;

#[test]
fn path_addresses_round_trip_as_text() {
    for text in ["ip:192.168.77.1", "ip:fd00::1", "gid:fe80::2:c903:0:1"] {
        assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
    }
    let both: PathAddress = "ip:10.0.0.1,ip:10.0.0.2\n".parse().unwrap();
    assert_eq!(both.to_string(), "ip:10.0.0.1@ip:10.0.0.2");
    assert_eq!(both.to_string().parse(), Ok(both));
    let one: PathAddress = "ip:10.0.0.2".parse().unwrap();
    assert_eq!((one.source, one.to_string().as_str()), (None, "ip:10.0.0.2"));
}

#[test]
fn invalid_addresses_are_refused_with_their_text() {
    let refused = |text: &str| text.parse::<PathAddress>().unwrap_err();
    for text in ["10.0.0.1", "tcp:1"] {
        assert_eq!(refused(text), AddressError::Kind(text.to_owned()));
    }
    for (text, wrong) in [("ip:x", "ip"), ("gid:1.2.3.4", "gid")] {
        assert!(matches!(refused(text), AddressError::Value { kind, .. } if kind == wrong));
    }
    assert_eq!(refused("iw:10.0.0.1"), AddressError::Iwarp("iw:10.0.0.1".to_owned()));
}
