use super::*;

#[test]
fn networks_contain_addresses() {
    let contains = |network: &str, address: &str| {
        let network: Network = network.parse().expect("the network is valid");
        network.contains(address.parse().expect("the address is valid"))
    };
    assert!(contains("10.0.0.0/8", "10.255.3.4"));
    assert!(contains("10.0.0.0/8", "::ffff:10.1.2.3"));
    assert!(!contains("10.0.0.0/8", "11.0.0.0"));
    assert!(contains("192.0.2.7", "192.0.2.7"));
    assert!(!contains("192.0.2.7", "192.0.2.6"));
    assert!(contains("0.0.0.0/0", "1.2.3.4") && !contains("0.0.0.0/0", "::1"));
    assert!(contains("fd00::/16", "fd00:1::2") && contains("::/0", "::1"));
    for text in ["10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/x", ""] {
        assert!(text.parse::<Network>().is_err(), "{text}");
    }
}

#[test]
fn paths_are_read() {
    let path = |text: &str| text.parse::<RequestedPath>();
    let ip = |text: &str| Endpoint::Ip(text.parse().expect("the address is valid"));
    let server = ip("127.0.0.1");
    let source = Some(ip("127.0.0.2"));
    assert_eq!(path("127.0.0.1"), Ok(RequestedPath { source: None, server: server.clone() }));
    let both = RequestedPath { source, server };
    assert_eq!(path("127.0.0.2@127.0.0.1"), Ok(both.clone()));
    assert_eq!(path("ip:127.0.0.2,ip:127.0.0.1"), Ok(both));
    let gid = Endpoint::Gid(Gid(0xfe80_0000_0000_0000_0002_c903_0000_0001));
    let name = Endpoint::Name("storage:2".to_owned());
    let mixed = RequestedPath { source: Some(name), server: gid };
    assert_eq!(path("storage:2@gid:fe80::2:c903:0:1"), Ok(mixed));
    for text in ["::1@127.0.0.1", "", "@127.0.0.1", "ip:here", "gid:10.0.0.1", "gid:x"] {
        assert!(path(text).is_err(), "{text}");
    }
}

#[test]
fn iwarp_endpoints_are_refused() {
    for text in
        ["iwarp:10.0.0.1", "iw:10.0.0.1", "siw0", "siw_eth0", "iwp3s0", "iw_cxgb4", "cxgb4_0"]
    {
        let why = text.parse::<RequestedPath>().expect_err("the endpoint belongs to iWARP");
        assert!(
            why.contains(text) && why.contains("belongs to iWARP, which is not supported"),
            "{why}"
        );
    }
    for text in ["siwan", "iwata", "cxgb"] {
        assert_eq!(text.parse(), Ok(Endpoint::Name(text.to_owned())));
    }
}
