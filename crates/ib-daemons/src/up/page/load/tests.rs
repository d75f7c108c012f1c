use serde_json::{Value, json as object};

use super::*;
use crate::up::lab::{Lab, fabric, model};

fn told(answer: Answer) -> Value {
    let json = match answer {
        Answer::Json(json) => json,
        Answer::Later(compute) => compute().expect("it can be computed"),
        Answer::Refused(why) => panic!("{why:?}"),
    };
    serde_json::from_slice(&json).expect("JSON")
}

/// Counts by following every pair of hosts.
fn counted(sim: &Sim, model: &Model) -> Vec<[u32; 2]> {
    let mut load = vec![[0; 2]; model.links.len()];
    let hosts = model.fabric.nodes().filter(|(_, node)| !node.kind.is_switch());
    let lids: Vec<u16> = hosts
        .filter_map(|(id, _)| model.end_port(id))
        .map(|port| sim.port_info(port).lid)
        .collect();
    for &from in &lids {
        for &to in lids.iter().filter(|&&to| to != from) {
            let Ok((steps, None)) = sim.route(from, to) else { continue };
            for port in steps.chunks(2).map(|pair| pair[0]) {
                add(model, port, 1, &mut load);
            }
        }
    }
    load
}

#[test]
fn the_load_is_that_of_all_pairs_whatever_is_cut() {
    for (kind, words) in [("fat-tree", &["4", "2"][..]), ("mesh", &["3x2", "hosts=2"])] {
        let fabric = fabric(kind, words);
        let mut lab = Lab::new(&fabric);
        let model = Arc::new(model(fabric));
        let loads = Loads::default();
        let compare = |lab: &Lab| {
            let told = told(loads.answer(&lab.sim, &model, "minhop"));
            let expected = counted(&lab.sim, &model);
            let max = expected.iter().flatten().max();
            assert_eq!((&told["load"], &told["max"]), (&object!(expected), &object!(max)));
            assert_eq!(
                (&told["engine"], &told["routes"]),
                (&object!("minhop"), &object!(lab.sim.route_changes()))
            );
            // Nothing is computed twice.
            assert!(matches!(loads.answer(&lab.sim, &model, "minhop"), Answer::Json(_)));
            max.copied()
        };
        assert!(compare(&lab) > Some(1));
        let is_inner = |&&(one, other): &&(PortId, PortId)| {
            [one, other].into_iter().all(|end| lab.sim.is_switch(lab.sim.place(end).0))
        };
        let &(one, _) = model.links.iter().find(is_inner).expect("there are switches");
        let (node, number) = lab.sim.place(one);
        let name = lab.sim.node_name(node).to_owned();
        lab.run(&format!("Unlink \"{name}\"[{number}]"));
        compare(&lab);
        lab.manage();
        compare(&lab);
        // A part of the fabric that the manager does not reach.
        let last = lab.sim.node_name(model.fabric.nodes().last().expect("a node").0).to_owned();
        lab.run(&format!("Unlink \"{last}\""));
        compare(&lab);
        let switch = lab.sim.node_name(ib_topology::NodeId(0)).to_owned();
        lab.run(&format!("Power \"{switch}\" off"));
        compare(&lab);
    }
}

#[test]
fn two_hosts_on_a_cable_are_a_pair_each_way() {
    let mut fabric = Fabric::new();
    for number in [1, 2] {
        let guid = ib_types::Guid(number * 16);
        let kind = ib_types::NodeKind::ChannelAdapter;
        let spec = ib_topology::NodeSpec::new(kind, format!("h{number}"), guid, 1);
        let node = fabric.add_node(spec).expect("a node");
        fabric.set_port_guid(node, 1, ib_types::Guid(guid.0 + 1)).expect("a port");
    }
    let [one, other] = [0, 1].map(ib_topology::NodeId);
    fabric.connect((one, 1), (other, 1), ib_topology::LinkRate::DEFAULT).expect("they are free");
    let lab = Lab::new(&fabric);
    let told = told(Loads::default().answer(&lab.sim, &Arc::new(model(fabric)), "minhop"));
    assert_eq!((&told["load"], &told["max"]), (&object!([[1, 1]]), &object!(1)));
}
