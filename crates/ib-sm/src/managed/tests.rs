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
fn adopting_a_subnet_forgets_nodes_that_are_gone() {
    let mut subnet = ManagedSubnet::new();
    subnet.tables.entry(Guid(1)).or_default().set(0, &[1; 64]);
    subnet.context(&SmConfig::default()).written.entry((Guid(1), 2)).or_default();
    subnet.adopt(Found::default(), &BTreeSet::new());
    assert!(subnet.tables.is_empty() && subnet.written().is_empty());
}

#[test]
fn groups_are_new_until_they_are_written() {
    let mut subnet = ManagedSubnet::new();
    assert!(!subnet.has_new_groups());
    subnet.set_groups(BTreeMap::from([(0xc000, vec![Guid(1)])]));
    assert!(subnet.has_new_groups());
    subnet.start_grouping();
    assert!(!subnet.has_new_groups());
}
