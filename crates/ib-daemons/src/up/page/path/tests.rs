use serde_json::{Value, json as object};

use super::*;
use crate::up::lab::{Lab, fabric, model};

fn response(lab: &Lab, model: &Model, ends: [NodeId; 2]) -> Value {
    let json = path((&lab.sim, model, None), ends).expect("both nodes have a port");
    serde_json::from_slice(&json).expect("the text is JSON")
}

/// Returns a fat-tree with an SM, and two hosts at different leaf switches.
fn scene() -> (Lab, Model, [NodeId; 2]) {
    let fabric = fabric("fat-tree", &["4", "2"]);
    let lab = Lab::new(&fabric);
    let hosts: Vec<NodeId> = lab.sim.node_ids().filter(|&node| !lab.sim.is_switch(node)).collect();
    let ends = [hosts[0], hosts[hosts.len() - 1]];
    (lab, model(fabric), ends)
}

#[test]
fn path_lists_every_node_with_its_link() {
    let (lab, model, ends) = scene();
    let response = response(&lab, &model, ends);
    let keys: Vec<&String> = response.as_object().expect("the value is an object").keys().collect();
    assert_eq!(keys, ["dlid", "error", "hops", "routes", "sl", "slid"]);
    assert_eq!((&response["error"], &response["sl"]), (&Value::Null, &object!(0)));
    let lids =
        ends.map(|node| lab.sim.port_info(model.end_port(node).expect("the node has a port")).lid);
    assert_eq!([&response["slid"], &response["dlid"]], [&object!(lids[0]), &object!(lids[1])]);
    let hops = response["hops"].as_array().expect("the value is a list");
    assert_eq!(hops.len(), 5, "host, leaf, spine, leaf, host");
    assert_eq!([&hops[0]["node"], &hops[4]["node"]], [&object!(ends[0].0), &object!(ends[1].0)]);
    assert_eq!((&hops[0]["in"], &hops[4]["out"]), (&object!(0), &object!(0)));
    assert_eq!((&hops[4]["link"], &hops[4]["vl"]), (&Value::Null, &Value::Null));
    for pair in hops.windows(2) {
        // The link of a hop connects its output port to the input port of the next hop.
        let number = pair[0]["link"].as_u64().expect("the value is a number");
        let (one, other) = model.link(number as u32).expect("the link exists");
        let end = |port: PortId| {
            object!([model.fabric.port(port).node.0, model.fabric.port(port).number])
        };
        let mut found =
            [object!([pair[0]["node"], pair[0]["out"]]), object!([pair[1]["node"], pair[1]["in"]])];
        let mut expected = [end(one), end(other)];
        found.sort_by_key(Value::to_string);
        expected.sort_by_key(Value::to_string);
        assert_eq!(found, expected);
        assert_eq!(pair[0]["vl"], 0);
    }
}

#[test]
fn paths_of_switches_and_to_the_node_itself_are_listed() {
    let (lab, model, ends) = scene();
    let switch = NodeId(0);
    assert!(lab.sim.is_switch(switch));
    let there = response(&lab, &model, [switch, ends[1]]);
    assert_eq!((&there["error"], &there["hops"][0]["in"]), (&Value::Null, &object!(0)));
    assert!(there["hops"][0]["link"].is_u64());
    let back = response(&lab, &model, [ends[1], switch]);
    let last = back["hops"].as_array().and_then(|hops| hops.last()).expect("the path has a hop");
    assert_eq!((&last["node"], &last["out"]), (&object!(0), &object!(0)));
    for node in [switch, ends[0]] {
        let own = response(&lab, &model, [node, node]);
        let hop = object!({"node": node.0, "in": 0, "out": 0, "link": null, "vl": null});
        assert_eq!((&own["hops"], &own["error"]), (&object!([hop]), &Value::Null));
    }
}

#[test]
fn interrupted_path_has_an_error_until_the_sm_reroutes() {
    let (mut lab, model, ends) = scene();
    let before = response(&lab, &model, ends);
    let link = before["hops"][1]["link"].as_u64().expect("the value is a number");
    let (port, _) = model.link(link as u32).expect("the link exists");
    let (node, number) = lab.sim.place(port);
    lab.run(&format!("Unlink \"{}\"[{number}]", lab.sim.node_name(node).to_owned()));
    let cut = response(&lab, &model, ends);
    assert_eq!(cut["hops"].as_array().map(Vec::len), Some(2));
    assert_eq!(cut["hops"][1]["link"], link);
    assert!(cut["error"].as_str().is_some_and(|why| why.contains("down")), "{cut}");
    assert_ne!(cut["routes"], before["routes"]);
    lab.manage();
    let after = response(&lab, &model, ends);
    assert_eq!(after["error"], Value::Null);
    assert_ne!((&after["routes"], &after["hops"][1]["link"]), (&cut["routes"], &object!(link)));
    // In a new simulation the nodes have no LIDs.
    lab.sim = Sim::new(&model.fabric, ib_sim::Options::default());
    let none = response(&lab, &model, ends);
    assert!(none["error"].as_str().is_some_and(|why| why.contains("no LID")), "{none}");
}
