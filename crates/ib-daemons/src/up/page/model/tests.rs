use serde_json::{Value, json as object};

use super::*;
use crate::up::lab::fabric;

#[test]
fn response_has_all_nodes_and_links_with_their_numbers() {
    let model = Model::new(fabric("fat-tree", &["4", "2"]), "a tree", "minhop", "up");
    let response: Value = serde_json::from_slice(&model.json()).expect("the text is JSON");
    assert_eq!(
        (&response["name"], &response["engine"], &response["socket"]),
        (&object!("a tree"), &object!("minhop"), &object!("up"))
    );
    let nodes = response["nodes"].as_array().expect("the value is a list");
    let links = response["links"].as_array().expect("the value is a list");
    assert_eq!((nodes.len(), links.len()), (model.fabric.node_count(), model.fabric.link_count()));
    for (number, node) in nodes.iter().enumerate() {
        let keys: Vec<&String> = node.as_object().expect("the value is an object").keys().collect();
        assert_eq!(keys, ["description", "guid", "id", "kind", "name", "ports", "rank"]);
        assert_eq!(node["id"], number);
        assert_eq!(model.node(number as u32).map(|node| node.0), Ok(number as u32));
    }
    for (number, link) in (0..).zip(links) {
        let [one, other] = ["a", "b"].map(|end| {
            let node = NodeId(link[end][0].as_u64().expect("the value is a number") as u32);
            let port = link[end][1].as_u64().expect("the value is a number") as u8;
            model.fabric.port_id(node, port).expect("the port exists")
        });
        assert_eq!(model.link(number), Ok((one, other)));
        assert_eq!([one, other].map(|port| model.link_of(port)), [Some(number); 2]);
        assert_eq!(model.fabric.port(one).peer, Some(other));
        let rate = object!([link["width"], link["speed"], link["generation"], link["gbit"]]);
        assert_eq!(rate, object!(["4X", "106.25", "NDR", 400.0]));
    }
    assert!(model.node(nodes.len() as u32).is_err_and(|refusal| refusal.status() == 404));
    assert!(model.link(links.len() as u32).is_err_and(|refusal| refusal.status() == 404));
}

#[test]
fn ranks_are_distances_from_hosts() {
    let model = Model::new(fabric("fat-tree", &["4", "3"]), "", "", "");
    for (id, node) in model.fabric.nodes() {
        let expected = match &*node.description {
            name if name.starts_with("host") => 0,
            name if name.starts_with("leaf") => 1,
            name if name.starts_with("spine") => 2,
            _ => 3,
        };
        let found = model.rank(id);
        assert!(found == expected || found >= 2 && expected >= 2, "{}: {found}", node.description);
    }
    let most = model.fabric.nodes().map(|(id, _)| model.rank(id)).max();
    assert_eq!(most, Some(3));
    // The fabric has no hosts.
    let mut bare = Fabric::new();
    let spec = ib_topology::NodeSpec::new(NodeKind::Switch, "s", ib_types::Guid(1), 1);
    let switch = bare.add_node(spec).expect("the node is valid");
    assert_eq!(Model::new(bare, "", "", "").rank(switch), 1);
}

#[test]
fn rate_has_width_lane_speed_and_nominal_rate() {
    for (width, speed, expected) in [
        (LinkWidth::X4, ib_types::LinkSpeed::Edr, ("4X", "25.78125", 100.0)),
        (LinkWidth::X4, ib_types::LinkSpeed::Sdr, ("4X", "2.5", 10.0)),
        (LinkWidth::X1, ib_types::LinkSpeed::Fdr, ("1X", "14.0625", 14.0)),
        (LinkWidth::X12, ib_types::LinkSpeed::Qdr, ("12X", "10", 120.0)),
    ] {
        let rate = Rate::of(LinkRate { width, speed });
        assert_eq!((&*rate.width, &*rate.speed, rate.gbit), expected);
    }
}

#[test]
fn end_port_is_port_0_or_the_first_linked_port() {
    let model = Model::new(fabric("fat-tree", &["4", "2"]), "", "", "");
    for (id, node) in model.fabric.nodes() {
        let (found, number) = match model.end_port(id) {
            Some(port) => (model.fabric.port(port).node, model.fabric.port(port).number),
            None => panic!("{} has no end port", node.name),
        };
        assert_eq!((found, number), (id, u8::from(!node.kind.is_switch())));
    }
}
