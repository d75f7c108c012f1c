use super::*;

#[test]
fn addresses_of_paths_are_read_and_written() {
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
fn what_is_no_address_is_refused_by_name() {
    let refused = |text: &str| text.parse::<PathAddress>().unwrap_err().to_string();
    assert_eq!(refused("10.0.0.1"), "`10.0.0.1`: expected ip:ADDRESS or gid:GID");
    assert_eq!(refused("tcp:1"), "`tcp:1`: expected ip:ADDRESS or gid:GID");
    assert_eq!(refused("ip:x"), "`ip:x`: expected an address of IP after `ip:`");
    assert!(refused("gid:1.2.3.4").contains("a GID"));
    assert!(refused("iw:10.0.0.1").contains("iWARP"));
}
