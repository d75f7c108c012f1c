use super::super::tests::net::{Net, subnet, two_leaves, whole};
use super::super::{Groups, Ranks, RoutingOptions, adapters, indexing};
use super::*;
use ib_topology::Fabric;

fn validated(fabric: &Fabric) -> Result<(), String> {
    let subnet = subnet(fabric);
    let options = RoutingOptions::default();
    let ports = adapters::collect(&subnet, &options, &mut Vec::new()).unwrap();
    let ranks = Ranks::new(&subnet, &ports, &options, &mut Vec::new()).unwrap();
    let mut groups = Groups::new(&subnet, &ranks);
    indexing::index(&subnet, &ranks, &ports, &mut groups, false).unwrap();
    validate(&subnet, &ranks, &groups).map_err(|error| error.to_string())
}

const EXPECTED: &str =
    "; expected the same of both, as in any pure fat tree, or a list of root GUIDs";

#[test]
fn pure_trees_pass() {
    for words in ["4,4 1,4", "3,2,4 1,2,3 1,2,3", "4,3 2,3"] {
        let words: Vec<&str> = words.split(' ').collect();
        assert_eq!(validated(&whole(&words)), Ok(()));
    }
}

#[test]
fn leaves_may_miss_hosts() {
    let mut net = two_leaves();
    net.hosts(&["h4"]).link("leaf0", &["h4"]);
    assert_eq!(validated(&net.build()), Ok(()));
}

#[test]
fn neighbours_above_must_be_as_many() {
    let mut net = two_leaves();
    net.switches(&["root2"]).link("leaf1", &["root2"]);
    assert_eq!(
        validated(&net.build()).unwrap_err(),
        format!(
            "ftree: switch `leaf1` (0x0000000000000203) of rank 1 has 3 neighbours above, and \
             switch `leaf0` (0x0000000000000202) of the same rank has 2 neighbours above{EXPECTED}"
        )
    );
}

#[test]
fn neighbours_below_must_be_as_many() {
    let mut net = two_leaves();
    net.switches(&["root2", "leaf2"]).hosts(&["h4"]);
    net.link("leaf2", &["root0", "root2", "h4"]);
    net.link("leaf0", &["root2"]).link("leaf1", &["root2"]).link("leaf2", &["root2"]);
    let error = validated(&net.build()).unwrap_err();
    assert_eq!(
        error,
        format!(
            "ftree: switch `root1` (0x0000000000000201) of rank 0 has 2 neighbours below, and \
             switch `root0` (0x0000000000000200) of the same rank has 3 neighbours below{EXPECTED}"
        )
    );
}

#[test]
fn links_to_each_neighbour_above_must_be_as_many() {
    let mut net = Net::default();
    net.switches(&["leaf0", "leaf1", "root0"]).hosts(&["h0", "h1"]);
    net.link("leaf0", &["h0", "root0", "root0"]).link("leaf1", &["h1", "root0"]);
    assert_eq!(
        validated(&net.build()).unwrap_err(),
        format!(
            "ftree: switch `leaf1` (0x0000000000000201) of rank 1 has 1 link to a neighbour \
             above, and switch `leaf0` (0x0000000000000200) of the same rank has 2 links to a \
             neighbour above{EXPECTED}"
        )
    );
}

#[test]
fn links_to_the_first_neighbour_below_must_be_as_many() {
    let mut net = two_leaves();
    net.link("leaf0", &["root1"]);
    assert_eq!(
        validated(&net.build()).unwrap_err(),
        format!(
            "ftree: switch `root1` (0x0000000000000201) of rank 0 has 2 links to a neighbour \
             below, and switch `root0` (0x0000000000000200) of the same rank has 1 link to a \
             neighbour below{EXPECTED}"
        )
    );
}
