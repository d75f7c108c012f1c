use super::*;
use crate::lab;
use crate::sim::Options;

fn sim() -> Sim {
    let fabric =
        lab::fabric(&[("h1", 2), ("h2", 1), ("s1", 4)], &["h1.1 s1.1", "h1.2 s1.2", "h2.1 s1.3"]);
    Sim::new(&fabric, Options::default())
}

#[test]
fn adapter_ports_have_addresses_of_their_own_that_stay() {
    let sim = sim();
    let addresses = Addresses::derive(&sim);
    assert_eq!(addresses, Addresses::derive(&sim));
    let all: Vec<_> = addresses.iter().collect();
    assert_eq!(all.len(), 3, "no switch");
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
    // These are part of what users write down.
    assert_eq!(hash(0x0002_c903_00a1_b2c1), 6_237);
}

#[test]
fn addresses_that_would_be_the_same_are_not() {
    // Two GUIDs of the same address: found by trying.
    let mut seen = BTreeMap::new();
    let mut rng = ib_topology::rng::Rng::new(1);
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
    assert_eq!(v4(h2), hash(one), "the smaller GUID has its own");
    assert_eq!(v4(h1), next(hash(one)));
    assert_eq!(next(0xff_fffe), 1);
}

#[test]
fn a_file_gives_other_addresses() {
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
    assert_eq!(addresses.find(taken), None, "the derived one is gone");
}

#[test]
fn a_wrong_file_changes_nothing_and_is_told_where() {
    let sim = sim();
    let mut addresses = Addresses::derive(&sim);
    let before = addresses.clone();
    let taken = addresses.of(lab::port(&sim, "h1.2"))[0];
    for (line, place) in [
        ("0x9999 1.2.3.4", "1: found \"0x9999\""),
        ("  nobody[1] 1.2.3.4", "3: found \"nobody[1]\""),
        ("s1[1] 1.2.3.4", "1: found \"s1[1]\""),
        ("h1 1.2.3.4", "1: found \"h1\""),
        ("h1[1]", "6: found the end of the line"),
        ("h1[1] 1.2.3", "7: found \"1.2.3\""),
        ("\"h2\"[1] 1.2.3.4 1.2.3.4", "17: found \"1.2.3.4\""),
        (&format!("h1[1] {taken}"), &format!("7: found \"{taken}\"")),
        ("\"h1", "1: found \"\\\"h1\""),
    ] {
        let text = format!("h1[2] 5.6.7.8\n{line}");
        // The first line frees the address of h1[2] unless it is the one that is asked for.
        let text = if line.contains(&taken.to_string()) { format!("\n{line}") } else { text };
        let error = addresses.override_from(&sim, "f", &text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("f:2:{place}")), "{line}: {error}");
        assert_eq!(addresses, before);
    }
}

#[test]
fn addresses_follow_a_new_guid_but_for_those_that_were_given() {
    let mut sim = sim();
    let mut addresses = Addresses::derive(&sim);
    addresses.override_from(&sim, "file", "\"h2\"[1] 192.168.7.1\n").unwrap();
    let [h1, h2] = ["h1.1", "h2.1"].map(|name| lab::port(&sim, name));
    let before = addresses.of(h1).to_vec();
    (sim.port_mut(h1).guid, sim.port_mut(h2).guid) = (Guid(0x77), Guid(0x78));
    addresses.update(&sim);
    assert_ne!(addresses.of(h1), before);
    assert_eq!(addresses.find(before[1]), None, "nobody has the old one");
    assert_eq!(addresses.of(h1)[1], "fd69:6266:6162::77".parse::<IpAddr>().unwrap());
    assert_eq!(addresses.of(h2), ["192.168.7.1".parse::<IpAddr>().unwrap()]);
    addresses.update(&sim);
    assert_eq!(addresses.of(h2), ["192.168.7.1".parse::<IpAddr>().unwrap()]);
}
