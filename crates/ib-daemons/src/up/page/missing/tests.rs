use std::time::Duration;

use ib_types::Instant;

use super::*;
use crate::up::lab::{Lab, fabric, model};

#[test]
fn nodes_behind_cut_links_are_missing_since_the_last_cut() {
    let fabric = fabric("fat-tree", &["4", "2"]);
    let (mut lab, model) = (Lab::new(&fabric), model(fabric));
    let own = lab.sim.place(lab.sim.first_end_port().expect("the fabric has a host")).0;
    assert_eq!(missing(&lab.sim, &model, own), []);
    let at = |lab: &mut Lab, seconds| {
        let time = Instant::ZERO + Duration::from_secs(seconds);
        lab.sim.run_until(time);
        time
    };
    // The last leaf switch has two hosts and two uplinks.
    let leaf = lab.sim.find_node("leaf-3").expect("the fabric has the switch leaf-3");
    at(&mut lab, 10);
    lab.run("Unlink \"leaf-3\"[3]");
    assert_eq!(missing(&lab.sim, &model, own), [], "the other uplink is active");
    let cut = at(&mut lab, 20);
    lab.run("Unlink \"leaf-3\"[4]");
    let found = missing(&lab.sim, &model, own);
    let expected = lab.sim.node_ids().filter(|&node| {
        node == leaf
            || cables(&model, node)
                .any(|(_, peer)| model.fabric.port(peer).node == leaf && !lab.sim.is_switch(node))
    });
    let expected: Vec<_> = expected.map(|node| (node.0, cut)).collect();
    assert_eq!(expected.len(), 3);
    assert_eq!(found, expected);
    lab.run("ReLink \"leaf-3\"[4]");
    lab.manage();
    assert_eq!(missing(&lab.sim, &model, own), []);
}
