use super::*;
use crate::lab;
use crate::options::Options;
use ib_types::NodeKind;

fn sim() -> Sim {
    let fabric =
        lab::fabric(&[("h1", 2), ("h2", 1), ("s1", 4)], &["h1.1 s1.1", "h1.2 s1.2", "h2.1 s1.3"]);
    Sim::new(&fabric, Options::default())
}

#[test]
fn hca_ports_have_unique_stable_addresses() {
    let sim = sim();
    let addresses = Addresses::derive(&sim);
    assert_eq!(addresses, Addresses::derive(&sim));
    let all: Vec<_> = addresses.iter().collect();
    assert_eq!(all.len(), 3, "only HCA ports have addresses");
    for (port, list) in all {
        assert_eq!(list.len(), 2);
        assert!(matches!(list[0], IpAddr::V4(v4) if v4.octets()[0] == 10));
        let guid = sim.link_port(port).port_guid;
        let v6 = format!(
            "fd69:6266:6162:0:{:x}:{:x}:{:x}:{:x}",
            guid.0 >> 48,
            guid.0 >> 32 & 0xffff,
            guid.0 >> 16 & 0xffff,
            guid.0 & 0xffff
        );
        assert_eq!(list[1], v6.parse::<IpAddr>().unwrap());
        for &address in list {
            assert_eq!(addresses.find(address), Some(port));
        }
    }
    assert_eq!(addresses.find("10.0.0.0".parse().unwrap()), None);
    // Derived addresses must not change between versions, because users note them.
    assert_eq!(hash(0x0002_c903_00a1_b2c1), 6_237);
}

#[test]
fn colliding_addresses_are_resolved() {
    // Searches for two GUIDs with the same hash.
    let mut seen = BTreeMap::new();
    let mut rng = ib_types::rng::Rng::new(1);
    let (one, other) = std::iter::repeat_with(|| rng.next_u64() >> 1 | 1)
        .find_map(|guid| seen.insert(hash(guid), guid).map(|before| (before, guid)))
        .unwrap();
    let (one, other) = (one.min(other), one.max(other));
    let mut sim = sim();
    let [h1, h2] = ["h1.1", "h2.1"].map(|name| lab::port(&sim, name));
    (sim.port_mut(h1).guid, sim.port_mut(h2).guid) = (Guid(other), Guid(one));
    let addresses = Addresses::derive(&sim);
    let v4 = |port| match addresses.of(port)[0] {
        IpAddr::V4(v4) => u32::from(v4) & 0xff_ffff,
        IpAddr::V6(_) => unreachable!("the IPv4 address comes first"),
    };
    assert_eq!(v4(h2), hash(one), "the port with the smaller GUID gets the address first");
    assert_eq!(v4(h1), next(hash(one)));
    assert_eq!(next(0xff_fffe), 1);
}

#[test]
fn file_overrides_derived_addresses() {
    let sim = sim();
    let [one, two, other] = ["h1.1", "h1.2", "h2.1"].map(|name| lab::port(&sim, name));
    let mut addresses = Addresses::derive(&sim);
    let old = addresses.of(two)[0];
    let text = "\u{feff}# ports\n\n0x1001 192.168.7.1 fd00::7:1 # first\n \"h2\"[1]\t192.168.7.2\n";
    addresses.override_from(&sim, "f", text).unwrap();
    let list = |texts: &[&str]| texts.iter().map(|t| t.parse().unwrap()).collect::<Vec<IpAddr>>();
    assert_eq!(addresses.of(one), list(&["192.168.7.1", "fd00::7:1"]));
    assert_eq!(addresses.of(other), list(&["192.168.7.2"]));
    assert_eq!(addresses.of(two)[0], old);
    assert_eq!(addresses.find("fd00::7:1".parse().unwrap()), Some(one));
    let taken = Addresses::derive(&sim).of(one)[0];
    assert_eq!(addresses.find(taken), None, "the derived address is unused");
}

#[test]
fn malformed_file_changes_nothing() {
    let sim = sim();
    let mut addresses = Addresses::derive(&sim);
    let before = addresses.clone();
    for (line, place) in [
        ("0x9999 1.2.3.4", "1: found \"0x9999\""),
        ("  nobody[1] 1.2.3.4", "3: found \"nobody[1]\""),
        ("s1[1] 1.2.3.4", "1: found \"s1[1]\""),
        ("h1 1.2.3.4", "1: found \"h1\""),
        ("h1[1]", "6: found the end of the line"),
        ("h1[1] 1.2.3", "7: found \"1.2.3\""),
        ("\"h2\"[1] 1.2.3.4 1.2.3.4", "17: found \"1.2.3.4\""),
        ("h1[1] 5.6.7.8", "7: found \"5.6.7.8\", expected an unused address"),
        ("h1[1] 0.0.0.0", "7: found \"0.0.0.0\", expected an IPv4 or IPv6 address of a host"),
        ("h1[1] 0.1.2.3", "7: found"),
        ("h1[1] 127.0.0.1", "7: found"),
        ("h1[1] 224.0.0.1", "7: found"),
        ("h1[1] 1.2.3.4 255.255.255.255", "15: found"),
        ("h1[1] ::", "7: found"),
        ("h1[1] ::1", "7: found"),
        ("h1[1] ff02::1", "7: found"),
        ("h1[1] ::ffff:1.2.3.4", "7: found"),
        ("\"h1", "1: found \"\\\"h1\""),
    ] {
        let text = format!("h1[2] 5.6.7.8\n{line}");
        let error = addresses.override_from(&sim, "f", &text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("f:2:{place}")), "{line}: {error}");
        assert_eq!(addresses, before);
    }
}

#[test]
fn later_override_replaces_earlier_override() {
    let sim = sim();
    let mut addresses = Addresses::derive(&sim);
    let [h1, h2] = ["h1.1", "h2.1"].map(|name| lab::port(&sim, name));
    let [a, b] = ["192.168.7.1", "192.168.7.2"].map(|text| text.parse::<IpAddr>().unwrap());
    addresses.override_from(&sim, "file", &format!("h1[1] {a}\nh2[1] {b}\n")).unwrap();
    for (one, other) in [(b, a), (b, a), (a, b)] {
        let text = format!("h1[1] {one}\nh2[1] {other}\n");
        addresses.override_from(&sim, "file", &text).unwrap();
        assert_eq!((addresses.of(h1), addresses.of(h2)), (&[one][..], &[other][..]));
        check_unique(&addresses);
    }
}

#[test]
fn derived_addresses_follow_a_new_guid() {
    let mut sim = sim();
    let mut addresses = Addresses::derive(&sim);
    addresses.override_from(&sim, "file", "\"h2\"[1] 192.168.7.1\n").unwrap();
    let [h1, h2] = ["h1.1", "h2.1"].map(|name| lab::port(&sim, name));
    let before = addresses.of(h1).to_vec();
    lab::run(&mut sim, "guid h1[1] 0x77");
    lab::run(&mut sim, "guid h2[1] 0x78");
    addresses.update(&sim);
    assert_ne!(addresses.of(h1), before);
    assert_eq!(addresses.find(before[1]), None, "the old address is unused");
    assert_eq!(addresses.of(h1)[1], "fd69:6266:6162::77".parse::<IpAddr>().unwrap());
    assert_eq!(addresses.of(h2), ["192.168.7.1".parse::<IpAddr>().unwrap()]);
    addresses.update(&sim);
    assert_eq!(addresses.of(h2), ["192.168.7.1".parse::<IpAddr>().unwrap()]);
}

#[test]
fn guid_change_by_a_script_updates_addresses() {
    let mut sim = sim();
    let mut addresses = Addresses::derive(&sim);
    let h1 = lab::port(&sim, "h1.1");
    sim.load_script(&crate::read_script("f", "at 1ms guid h1[1] 0x77\n").unwrap()).unwrap();
    let before = addresses.clone();
    addresses.update(&sim);
    assert_eq!(addresses, before);
    sim.run_until(ib_types::Instant::from_nanos(2_000_000));
    addresses.update(&sim);
    assert_eq!(addresses.of(h1)[1], "fd69:6266:6162::77".parse::<IpAddr>().unwrap());
}

/// Checks that every HCA port has its addresses, and that no address belongs to two ports.
fn check_unique(addresses: &Addresses) {
    let mut seen = BTreeSet::new();
    for (port, list) in addresses.iter() {
        assert!(!list.is_empty());
        for &address in list {
            assert!(seen.insert(address), "{address} is assigned twice");
            assert_eq!(addresses.find(address), Some(port));
        }
    }
    assert_eq!(seen.len(), addresses.by_address.len());
}

#[test]
fn addresses_can_be_exchanged_and_stay_unique() {
    let mut sim = sim();
    let derived = Addresses::derive(&sim);
    let [one, two, other] = ["h1.1", "h1.2", "h2.1"].map(|name| lab::port(&sim, name));
    let text = |port: PortId| -> String {
        derived.of(port).iter().map(|address| format!(" {address}")).collect()
    };
    let mut exchanged = derived.clone();
    let lines = format!("h1[1]{}\nh1[2]{}\n", text(two), text(one));
    exchanged.override_from(&sim, "f", &lines).unwrap();
    assert_eq!((exchanged.of(one), exchanged.of(two)), (derived.of(two), derived.of(one)));
    assert_eq!(exchanged.of(other), derived.of(other));
    check_unique(&exchanged);
    // If a port's derived address is assigned to another port, the first port gets another derived
    // address.
    let mut moved = derived.clone();
    moved.override_from(&sim, "f", &format!("h1[1]{}\n", text(two))).unwrap();
    check_unique(&moved);
    let host = |address: IpAddr| match address {
        IpAddr::V4(v4) => u32::from(v4) & 0xff_ffff,
        IpAddr::V6(_) => unreachable!("the IPv4 address comes first"),
    };
    assert_eq!(host(moved.of(two)[0]), next(host(derived.of(two)[0])));
    // A port whose GUID changes does not get an address that a file has assigned to another port.
    let mut later = derived.clone();
    let wanted = format!("h2[1] {} {}\n", v4(hash(0x77)), v6(0x77));
    later.override_from(&sim, "f", &wanted).unwrap();
    lab::run(&mut sim, "guid h1[1] 0x77");
    later.update(&sim);
    check_unique(&later);
    assert_eq!(later.of(other).len(), 2);
}

#[test]
fn ports_with_the_same_guid_have_unique_addresses() {
    for guid in [0x77, u64::MAX] {
        let mut sim = sim();
        for name in ["h1[1]", "h1[2]", "h2[1]"] {
            lab::run(&mut sim, &format!("guid {name} {guid:#x}"));
        }
        let addresses = Addresses::derive(&sim);
        check_unique(&addresses);
        assert_eq!(addresses.iter().map(|(_, list)| list.len()).sum::<usize>(), 6);
    }
}

#[test]
fn quoted_names_are_read_as_the_console_writes_them() {
    use ib_topology::{Fabric, NodeSpec};
    let mut fabric = Fabric::new();
    let name = "the \"big\" one";
    let spec = NodeSpec::new(NodeKind::ChannelAdapter, name, Guid(0x1000), 1);
    fabric.add_node(spec).unwrap();
    let sim = Sim::new(&fabric, Options::default());
    let target = Target { node: name.to_owned(), port: Some(1) };
    let mut addresses = Addresses::derive(&sim);
    addresses.override_from(&sim, "file", &format!("{target} 192.168.7.1\n")).unwrap();
    let at = sim.target_port(&target).unwrap();
    assert_eq!(addresses.of(at), ["192.168.7.1".parse::<IpAddr>().unwrap()]);
}
