use super::*;

#[test]
fn forgotten_tables_make_clients_reregister() {
    let mut subnet = ManagedSubnet::new();
    subnet.is_fresh = false;
    subnet.tables.entry(Guid(1)).or_default().set(0, &[1; 64]);
    subnet.context(&SmConfig::default()).written.entry((Guid(1), 2)).or_default();
    subnet.forget_tables();
    assert!(subnet.tables.is_empty() && subnet.written().is_empty() && subnet.is_fresh);
}

#[test]
fn adopting_a_subnet_drops_tables_of_removed_nodes() {
    let mut subnet = ManagedSubnet::new();
    subnet.tables.entry(Guid(1)).or_default().set(0, &[1; 64]);
    subnet.context(&SmConfig::default()).written.entry((Guid(1), 2)).or_default();
    subnet.adopt(DiscoveredSubnet::default(), &BTreeSet::new());
    assert!(subnet.tables.is_empty() && subnet.written().is_empty());
}

#[test]
fn group_changes_are_pending_until_written() {
    let mut subnet = ManagedSubnet::new();
    assert!(!subnet.has_new_groups());
    subnet.set_groups(BTreeMap::from([(0xc000, vec![Guid(1)])]));
    assert!(subnet.has_new_groups());
    subnet.start_grouping();
    assert!(!subnet.has_new_groups());
}
