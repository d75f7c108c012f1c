use std::net::SocketAddr;

use super::*;

const TCP: PortSpace = PortSpace::TCP;

fn address(text: &str) -> Address {
    Address::Ip(text.parse::<SocketAddr>().unwrap())
}

/// Adds an ID, and binds it to an address.
fn bound(ids: &mut Ids, text: &str, change: impl FnOnce(&mut CmId)) -> Result<u32, Errno> {
    let number = ids.insert(CmId::new(1, 1, TCP, QpKind::Rc, Psn::truncated(0))).unwrap();
    change(ids.get_mut(number).unwrap());
    let own = address(text);
    let Address::Ip(socket) = own else { panic!("the text is an IP address") };
    let port = ids.bind(number, &own, (TCP, socket.port()))?;
    ids.get_mut(number).unwrap().source = Some(own.with_port(TCP, port));
    Ok(number)
}

const IN_USE: Result<u32, Errno> = Err(Errno(libc::EADDRINUSE));
const NOT_AVAILABLE: Result<u32, Errno> = Err(Errno(libc::EADDRNOTAVAIL));

#[test]
fn numbers_belong_to_a_channel_and_are_not_reused_at_once() {
    let mut ids = Ids::default();
    let new = || CmId::new(1, 1, TCP, QpKind::Rc, Psn::truncated(0));
    assert_eq!(ids.insert(new()), Ok(1));
    assert_eq!(ids.insert(new()), Ok(2));
    assert!(ids.remove(2).is_some());
    assert_eq!(ids.insert(new()), Ok(3));
    assert_eq!(ids.of(1, 2).map(|_| ()), Err(Errno::NO_ENTRY));
    assert_eq!(ids.of(2, 3).map(|_| ()), Err(Errno::INVALID));
    assert!(ids.of(1, 3).is_ok());
}

#[test]
fn every_number_is_used_before_the_table_is_full() {
    let mut ids = Ids::default();
    let new = || CmId::new(1, 1, TCP, QpKind::Rc, Psn::truncated(0));
    for expected in 1..=MOST {
        assert_eq!(ids.insert(new()), Ok(expected));
    }
    assert_eq!(ids.insert(new()), Err(Errno::NO_MEMORY));
    ids.remove(17);
    assert_eq!(ids.insert(new()), Ok(17));
}

#[test]
fn port_has_one_user_per_address() {
    let mut ids = Ids::default();
    let first = bound(&mut ids, "10.0.0.1:7", |_| {}).unwrap();
    assert_eq!(bound(&mut ids, "10.0.0.1:7", |_| {}), IN_USE);
    assert_eq!(bound(&mut ids, "0.0.0.0:7", |_| {}), NOT_AVAILABLE);
    assert!(bound(&mut ids, "10.0.0.1:8", |_| {}).is_ok());
    assert!(bound(&mut ids, "[fd00::1]:7", |_| {}).is_ok());
    ids.remove(first);
    assert!(bound(&mut ids, "10.0.0.1:7", |_| {}).is_ok());
}

#[test]
fn ids_that_reuse_addresses_share_a_port_until_one_listens() {
    let mut ids = Ids::default();
    let reuse = |id: &mut CmId| id.reuses_address = true;
    let first = bound(&mut ids, "10.0.0.1:7", reuse).unwrap();
    let second = bound(&mut ids, "10.0.0.1:7", reuse).unwrap();
    assert_eq!(bound(&mut ids, "10.0.0.1:7", |_| {}), IN_USE);
    let own = address("10.0.0.1:7");
    let in_use = Err(Errno(libc::EADDRINUSE));
    assert_eq!(ids.check(second, &own, (TCP, 7), true), in_use);
    ids.get_mut(first).unwrap().state = State::Listening;
    assert_eq!(bound(&mut ids, "10.0.0.1:7", reuse), IN_USE);
}

#[test]
fn family_only_ids_share_a_port_across_families() {
    let only = |id: &mut CmId| id.is_family_only = true;
    let mut ids = Ids::default();
    bound(&mut ids, "0.0.0.0:7", only).unwrap();
    assert!(bound(&mut ids, "[::]:7", only).is_ok());
    let mut ids = Ids::default();
    bound(&mut ids, "0.0.0.0:7", |_| {}).unwrap();
    assert_eq!(bound(&mut ids, "[::]:7", only), NOT_AVAILABLE);
}

#[test]
fn ephemeral_ports_are_unique_until_none_is_free() {
    let mut ids = Ids::default();
    let mut seen = BTreeSet::new();
    for _ in EPHEMERAL {
        let number = bound(&mut ids, "10.0.0.1:0", |_| {}).unwrap();
        let Some(Address::Ip(own)) = ids.get(number).unwrap().source else { panic!("bound") };
        assert!(EPHEMERAL.contains(&own.port()) && seen.insert(own.port()));
    }
    assert_eq!(bound(&mut ids, "10.0.0.1:0", |_| {}), NOT_AVAILABLE);
}
