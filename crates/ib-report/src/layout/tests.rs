use ib_routing::SubnetOptions;
use ib_topology::generate::{Kind, Options, generate};
use ib_topology::{Fabric, LinkRate, NodeSpec};
use ib_types::{Guid, NodeKind};

use super::*;

fn made(kind: &str, args: &[&str], options: &Options) -> Fabric {
    generate(&Kind::parse(kind, args).unwrap(), options).unwrap()
}

fn laid_out(fabric: &Fabric) -> (Subnet<'_>, Layout) {
    let subnet = Subnet::discover(fabric, &SubnetOptions::default()).unwrap();
    let layout = Layout::new(&subnet, &[]);
    (subnet, layout)
}

/// Returns the names of the switches of a rank from left to right.
fn row<'f>(subnet: &Subnet<'f>, layout: &Layout, rank: usize) -> Vec<&'f str> {
    let mut row: Vec<_> =
        subnet.switch_ids().filter(|id| layout.ranks[id.index()] == rank).collect();
    row.sort_by(|a, b| layout.places[a.index()].0.total_cmp(&layout.places[b.index()].0));
    row.into_iter().map(|id| subnet.switch_node(id).description.as_str()).collect()
}

#[test]
fn leaves_of_a_tree_are_ordered_by_name() {
    let fabric = made("fat-tree", &["8", "3"], &Options::default());
    let (subnet, layout) = laid_out(&fabric);
    assert_eq!(layout.shape, Shape::Rows);
    let sizes: Vec<_> = layout.rows().into_iter().map(|(_, rank, count)| (rank, count)).collect();
    assert_eq!(sizes, [(2, 16), (1, 32), (0, 32)]);
    let leaves = row(&subnet, &layout, 0);
    let mut sorted = leaves.clone();
    sorted.sort_unstable();
    assert_eq!(leaves, sorted);
    assert!(layout.places.iter().all(|place| place.0 >= 0.0));
}

#[test]
fn switches_of_a_pod_are_adjacent() {
    let fabric = made("fat-tree", &["8", "3"], &Options::default());
    let (subnet, layout) = laid_out(&fabric);
    let pods = subnet.switch_ids().filter(|id| layout.ranks[id.index()] == 1);
    for spine in pods {
        let at = layout.places[spine.index()].0;
        for (_, leaf, _) in
            subnet.switch_links(spine).filter(|link| layout.ranks[link.1.index()] == 0)
        {
            assert!((layout.places[leaf.index()].0 - at).abs() < 4.0 * PITCH);
        }
    }
}

#[test]
fn pods_are_found_independently_of_names() {
    // Leaves with even numbers are linked to one spine, the others to the other spine. Leaf 0 is linked to both.
    let mut fabric = Fabric::new();
    let switch = |fabric: &mut Fabric, name: &str, guid: u64| {
        fabric.add_node(NodeSpec::new(NodeKind::Switch, name, Guid(guid), 12)).unwrap()
    };
    let spines = [switch(&mut fabric, "even", 1), switch(&mut fabric, "odd", 2)];
    for number in 0..10_u8 {
        let leaf = switch(&mut fabric, &format!("leaf {number}"), 0x10 + u64::from(number));
        let guid = 0x100 * (u64::from(number) + 1);
        let spec = NodeSpec::new(NodeKind::ChannelAdapter, format!("h{number}"), Guid(guid), 1);
        let host = fabric.add_node(spec).unwrap();
        fabric.set_port_guid(host, 1, Guid(guid + 1)).unwrap();
        fabric.connect((host, 1), (leaf, 1), LinkRate::DEFAULT).unwrap();
        let spine = spines[usize::from(number % 2)];
        fabric.connect((leaf, 2), (spine, number + 1), LinkRate::DEFAULT).unwrap();
        if number == 0 {
            fabric.connect((leaf, 3), (spines[1], 12), LinkRate::DEFAULT).unwrap();
        }
    }
    let (subnet, layout) = laid_out(&fabric);
    let leaves = row(&subnet, &layout, 0);
    let odd = |name: &&str| name.ends_with(['1', '3', '5', '7', '9']);
    let first = odd(&leaves[0]);
    assert!(leaves.iter().skip_while(|name| odd(name) == first).all(|name| odd(name) != first));
}

#[test]
fn names_are_in_natural_order() {
    let fabric = made("fat-tree", &["36"], &Options::default());
    let mut renamed = fabric.clone();
    let names = fabric
        .nodes()
        .filter(|(_, node)| node.kind.is_switch())
        .map(|(id, node)| (node.guid, format!("switch {}", 2000 - id.0)))
        .collect();
    renamed.rename(&names);
    let (subnet, layout) = laid_out(&renamed);
    let numbers: Vec<u32> = row(&subnet, &layout, 0)
        .iter()
        .map(|name| name.strip_prefix("switch ").unwrap().parse().unwrap())
        .collect();
    assert!(numbers.is_sorted());
}

#[test]
fn management_node_does_not_turn_a_spine_into_a_leaf() {
    let mut fabric = made("fat-tree", &["16", "leaves=8"], &Options::default());
    let spec = NodeSpec::new(NodeKind::ChannelAdapter, "manager", Guid(0xabc0), 1);
    let manager = fabric.add_node(spec).unwrap();
    fabric.set_port_guid(manager, 1, Guid(0xabc1)).unwrap();
    let (spine, port) = fabric
        .nodes()
        .filter(|(_, node)| node.description.starts_with("spine"))
        .find_map(|(id, _)| {
            let free = fabric.ports_of(id).find(|(_, port)| port.number > 0 && port.peer.is_none());
            free.map(|(_, port)| (id, port.number))
        })
        .expect("a spine has a free port");
    fabric.connect((manager, 1), (spine, port), LinkRate::DEFAULT).unwrap();
    let (subnet, layout) = laid_out(&fabric);
    let spine = subnet.switch_of(spine).unwrap();
    assert_eq!((layout.shape, layout.ranks[spine.index()]), (Shape::Rows, 1));
}

#[test]
fn tori_and_meshes_become_grids() {
    for kind in ["torus", "mesh"] {
        let fabric = made(kind, &["5x4"], &Options::default());
        let (subnet, layout) = laid_out(&fabric);
        assert_eq!(layout.shape, Shape::Grid);
        for (id, &(x, y)) in subnet.switch_ids().zip(&layout.places) {
            let name = format!("sw-x{}y{}", x / PITCH, y / PITCH);
            assert_eq!(subnet.switch_node(id).description, name);
        }
    }
}

#[test]
fn missing_switches_leave_gaps_in_a_grid() {
    let options = Options { drop_links: 0.1, drop_switches: 0.06, seed: 1, ..Options::default() };
    let fabric = made("torus", &["6x6"], &options);
    let (subnet, layout) = laid_out(&fabric);
    assert_eq!(layout.shape, Shape::Grid);
    assert!(subnet.switches().len() < 36);
    assert!(layout.extent().0 <= 5.0 * PITCH && layout.extent().1 <= 5.0 * PITCH);
}

#[test]
fn hypercubes_are_grids_of_slices() {
    let fabric = made("hypercube", &["5"], &Options::default());
    let (_, layout) = laid_out(&fabric);
    assert_eq!(layout.shape, Shape::Grid);
    // The layout has eight columns and four rows of switches, with gaps of one switch between the slices.
    assert_eq!(layout.extent(), (10.0 * PITCH, 4.0 * PITCH));
}

#[test]
fn ring_is_a_circle_in_order() {
    let fabric = made("torus", &["9"], &Options::default());
    let (subnet, layout) = laid_out(&fabric);
    assert_eq!(layout.shape, Shape::Circle);
    let step = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).hypot(a.1 - b.1);
    for id in subnet.switch_ids() {
        for (_, peer, _) in subnet.switch_links(id) {
            let length = step(layout.places[id.index()], layout.places[peer.index()]);
            assert!((0.5 * PITCH..1.1 * PITCH).contains(&length), "{length}");
        }
    }
}

#[test]
fn groups_of_a_dragonfly_are_contiguous() {
    let fabric = made("dragonfly", &["a=6", "p=3", "h=3", "g=10"], &Options::default());
    let (subnet, layout) = laid_out(&fabric);
    assert_eq!(layout.shape, Shape::Circle);
    let angle = |id: SwitchId| {
        let (x, y) = layout.places[id.index()];
        x.atan2(-y).rem_euclid(std::f64::consts::TAU)
    };
    let mut around: Vec<_> = subnet.switch_ids().collect();
    around.sort_by(|&a, &b| angle(a).total_cmp(&angle(b)));
    let names: Vec<&str> =
        around.iter().map(|&id| subnet.switch_node(id).description.as_str()).collect();
    for group in names.chunks(6) {
        let prefix = group[0].strip_suffix('0').expect("the first switch of a group has number 0");
        assert!(group.iter().all(|name| name.starts_with(prefix)), "{group:?}");
        assert!(group.is_sorted(), "{group:?}");
    }
}

#[test]
fn roots_determine_ranks_if_all_switches_have_hosts() {
    let mut fabric = Fabric::new();
    let switches: Vec<_> = (0..5_u64)
        .map(|number| {
            let spec = NodeSpec::new(NodeKind::Switch, format!("s{number}"), Guid(number + 1), 36);
            let switch = fabric.add_node(spec).unwrap();
            let guid = Guid(0x100 * (number + 1));
            let spec = NodeSpec::new(NodeKind::ChannelAdapter, format!("h{number}"), guid, 1);
            let host = fabric.add_node(spec).unwrap();
            fabric.set_port_guid(host, 1, Guid(guid.0 + 1)).unwrap();
            fabric.connect((host, 1), (switch, 20 + number as u8), LinkRate::DEFAULT).unwrap();
            switch
        })
        .collect();
    for leaf in 1..5_u8 {
        let ends = ((switches[0], leaf), (switches[usize::from(leaf)], 10 + leaf));
        fabric.connect(ends.0, ends.1, LinkRate::DEFAULT).unwrap();
    }
    let subnet = Subnet::discover(&fabric, &SubnetOptions::default()).unwrap();
    assert_eq!(Layout::new(&subnet, &[]).shape, Shape::Circle);
    let root = subnet.switch_of(switches[0]).unwrap();
    let layout = Layout::new(&subnet, &[root]);
    assert_eq!((layout.shape, layout.ranks[root.index()]), (Shape::Rows, 1));
}
