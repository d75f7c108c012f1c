use serde_json::{Value, json as object};

use super::*;
use crate::up::lab::{Lab, fabric, model};

fn response(answer: Answer) -> Value {
    let json = match answer {
        Answer::Json(json) => json,
        Answer::Later(compute) => compute().expect("the load can be computed"),
        Answer::Refused(why) => panic!("{why:?}"),
    };
    serde_json::from_slice(&json).expect("the text is JSON")
}

/// Computes the load of each link by following the route of each pair of hosts.
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
fn load_is_that_of_all_host_pairs_on_any_topology() {
    for (kind, words) in [("fat-tree", &["4", "2"][..]), ("mesh", &["3x2", "hosts=2"])] {
        let fabric = fabric(kind, words);
        let mut lab = Lab::new(&fabric);
        let model = Arc::new(model(fabric));
        let loads = Loads::default();
        let compare = |lab: &Lab| {
            let response = response(loads.answer(&lab.sim, &model, "minhop"));
            let expected = counted(&lab.sim, &model);
            let max = expected.iter().flatten().max();
            assert_eq!((&response["load"], &response["max"]), (&object!(expected), &object!(max)));
            assert_eq!(
                (&response["engine"], &response["routes"]),
                (&object!("minhop"), &object!(lab.sim.route_changes()))
            );
            // The second request is answered from the cache.
            assert!(matches!(loads.answer(&lab.sim, &model, "minhop"), Answer::Json(_)));
            max.copied()
        };
        assert!(compare(&lab) > Some(1));
        let is_inner = |&&(one, other): &&(PortId, PortId)| {
            [one, other].into_iter().all(|end| lab.sim.is_switch(lab.sim.place(end).0))
        };
        let &(one, _) = model.links.iter().find(is_inner).expect("a link connects two switches");
        let (node, number) = lab.sim.place(one);
        let name = lab.sim.node_name(node).to_owned();
        lab.run(&format!("Unlink \"{name}\"[{number}]"));
        compare(&lab);
        lab.manage();
        compare(&lab);
        // A part of the fabric becomes unreachable from the SM.
        let last = lab
            .sim
            .node_name(model.fabric.nodes().last().expect("the fabric has nodes").0)
            .to_owned();
        lab.run(&format!("Unlink \"{last}\""));
        compare(&lab);
        let switch = lab.sim.node_name(ib_topology::NodeId(0)).to_owned();
        lab.run(&format!("Power \"{switch}\" off"));
        compare(&lab);
    }
}

#[test]
fn cable_between_two_hosts_has_load_in_both_directions() {
    let mut fabric = Fabric::new();
    for number in [1, 2] {
        let guid = ib_types::Guid(number * 16);
        let kind = ib_types::NodeKind::ChannelAdapter;
        let spec = ib_topology::NodeSpec::new(kind, format!("h{number}"), guid, 1);
        let node = fabric.add_node(spec).expect("the node is valid");
        fabric.set_port_guid(node, 1, ib_types::Guid(guid.0 + 1)).expect("the port exists");
    }
    let [one, other] = [0, 1].map(ib_topology::NodeId);
    fabric
        .connect((one, 1), (other, 1), ib_topology::LinkRate::DEFAULT)
        .expect("the ports are free");
    let lab = Lab::new(&fabric);
    let response = response(Loads::default().answer(&lab.sim, &Arc::new(model(fabric)), "minhop"));
    assert_eq!((&response["load"], &response["max"]), (&object!([[1, 1]]), &object!(1)));
}
