use std::collections::BTreeSet;

use petgraph::algo::{dijkstra, tarjan_scc};
use petgraph::graphmap::DiGraphMap;
use proptest::prelude::*;

use super::*;

fn graph(edges: &[(Node, Node)]) -> Graph {
    Graph::of_edges(8, &edges.iter().copied().collect())
}

#[test]
fn graph_without_cycles_has_no_components() {
    assert!(cyclic_components(&graph(&[(0, 1), (0, 2), (1, 3), (2, 3)])).is_empty());
}

#[test]
fn components_are_sorted_by_their_lowest_nodes() {
    let graph = graph(&[(6, 5), (5, 6), (6, 1), (1, 2), (2, 3), (3, 1), (2, 1), (7, 7)]);
    let components = cyclic_components(&graph);
    assert_eq!(components, [vec![1, 2, 3], vec![5, 6], vec![7]]);
    assert_eq!(shortest_cycle(&graph, &components[0]), [1, 2]);
    assert_eq!(shortest_cycle(&graph, &components[2]), [7]);
}

#[test]
fn long_chain_does_not_exhaust_the_stack() {
    let edges: BTreeSet<_> = (0..100_000).map(|node| (node, (node + 1) % 100_000)).collect();
    let chain = Graph::of_edges(100_000, &edges);
    assert_eq!(cyclic_components(&chain)[0].len(), 100_000);
}

proptest! {
    #[test]
    fn components_match_those_of_petgraph(
        nodes in 1u32..14,
        edges in prop::collection::btree_set((0u32..14, 0u32..14), 0..40),
    ) {
        let edges: BTreeSet<_> =
            edges.into_iter().filter(|&(from, to)| from < nodes && to < nodes).collect();
        let ours = Graph::of_edges(nodes as usize, &edges);
        let theirs: DiGraphMap<Node, ()> =
            edges.iter().map(|&(from, to)| (from, to, ())).collect();
        let mut expected: Vec<Vec<Node>> = tarjan_scc(&theirs)
            .into_iter()
            .filter(|nodes| nodes.len() > 1 || theirs.contains_edge(nodes[0], nodes[0]))
            .collect();
        expected.iter_mut().for_each(|component| component.sort_unstable());
        expected.sort_unstable();
        let found = cyclic_components(&ours);
        prop_assert_eq!(&found, &expected);

        for component in &found {
            let round = |&start: &Node| {
                let steps = |next| dijkstra(&theirs, next, Some(start), |_| 1).remove(&start);
                theirs.neighbors(start).filter_map(steps).min().map(|steps: usize| steps + 1)
            };
            let cycle = shortest_cycle(&ours, component);
            prop_assert_eq!(Some(cycle.len()), component.iter().filter_map(round).min());
            for (index, &node) in cycle.iter().enumerate() {
                prop_assert!(edges.contains(&(node, cycle[(index + 1) % cycle.len()])));
            }
        }
    }
}
