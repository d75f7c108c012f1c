//! Cycles of the channel dependency graph.

use super::dependency::{Graph, Node};

/// Returns the strongly connected components that have a cycle, in the order of their lowest nodes. The nodes of a
/// component are in ascending order.
///
/// Implements Tarjan, "Depth-First Search and Linear Graph Algorithms", SIAM Journal on Computing 1, 1972, with an
/// explicit stack instead of recursion.
pub(super) fn cyclic_components(graph: &Graph) -> Vec<Vec<Node>> {
    let mut search = Search {
        graph,
        index: vec![NOT_YET; graph.nodes()],
        low: vec![0; graph.nodes()],
        next_index: 0,
        open: Vec::new(),
        found: Vec::new(),
    };
    for root in 0..graph.nodes() as Node {
        if search.index[root as usize] == NOT_YET && !graph.targets(root).is_empty() {
            search.visit(root);
        }
    }
    search.found.sort_unstable_by_key(|component| component[0]);
    search.found
}

const NOT_YET: u32 = u32::MAX;
/// Value of `Search::index` for a node whose component is already known. It is greater than any low link.
const CLOSED: u32 = u32::MAX - 1;

struct Search<'a> {
    graph: &'a Graph,
    index: Vec<u32>,
    low: Vec<u32>,
    next_index: u32,
    /// Tarjan's stack: the visited nodes whose component is not known yet.
    open: Vec<Node>,
    found: Vec<Vec<Node>>,
}

impl Search<'_> {
    fn visit(&mut self, root: Node) {
        self.enter(root);
        // Nodes on the current path, each with the number of its edges that were followed.
        let mut path = vec![(root, 0)];
        while let Some((node, done)) = path.last_mut() {
            let node = *node;
            if let Some(&target) = self.graph.targets(node).get(*done) {
                *done += 1;
                match self.index[target as usize] {
                    NOT_YET => {
                        self.enter(target);
                        path.push((target, 0));
                    }
                    CLOSED => {}
                    index => self.lower(node, index),
                }
                continue;
            }
            path.pop();
            let low = self.low[node as usize];
            if low == self.index[node as usize] {
                self.close(node);
            }
            if let Some(&(parent, _)) = path.last() {
                self.lower(parent, low);
            }
        }
    }

    fn enter(&mut self, node: Node) {
        self.index[node as usize] = self.next_index;
        self.low[node as usize] = self.next_index;
        self.next_index += 1;
        self.open.push(node);
    }

    fn lower(&mut self, node: Node, low: u32) {
        let slot = &mut self.low[node as usize];
        *slot = low.min(*slot);
    }

    fn close(&mut self, node: Node) {
        let start =
            self.open.iter().rposition(|&open| open == node).expect("the node is on the stack");
        for &member in &self.open[start..] {
            self.index[member as usize] = CLOSED;
        }
        if self.open.len() - start > 1 || self.graph.targets(node).contains(&node) {
            let mut component = self.open[start..].to_vec();
            component.sort_unstable();
            self.found.push(component);
        }
        self.open.truncate(start);
    }
}

/// If the search for a shortest cycle has visited this many edges, it returns the best cycle so far.
const PATIENCE: usize = 4_000_000;

/// Returns a shortest cycle of a strongly connected component. The component must have a cycle.
///
/// In components that are too large for a complete search, the cycle is the shortest one through the nodes with the
/// lowest numbers.
pub(super) fn shortest_cycle(graph: &Graph, component: &[Node]) -> Vec<Node> {
    let mut best: Vec<Node> = Vec::new();
    let mut seen = 0;
    // For each node of `component`: the start node of the last search that visited the node, and the predecessor of the
    // node in that search. Start node and predecessor are given as positions in `component`.
    let mut parents = vec![(NOT_YET, 0); component.len()];
    let mut queue: Vec<(Node, usize)> = Vec::new();
    for (start, &node) in component.iter().enumerate() {
        if !best.is_empty() && (seen > PATIENCE || best.len() == 1) {
            break;
        }
        queue.clear();
        queue.push((start as Node, 1));
        let mut head = 0;
        'search: while let Some(&(at, length)) = queue.get(head) {
            head += 1;
            if !best.is_empty() && length >= best.len() {
                break;
            }
            for &target in graph.targets(component[at as usize]) {
                seen += 1;
                if target == node {
                    best = backtrack(component, &parents, start as Node, at);
                    break 'search;
                }
                let Ok(position) = component.binary_search(&target) else { continue };
                if parents[position].0 != start as Node {
                    parents[position] = (start as Node, at);
                    queue.push((position as Node, length + 1));
                }
            }
        }
    }
    best
}

fn backtrack(component: &[Node], parents: &[(Node, Node)], start: Node, last: Node) -> Vec<Node> {
    let mut cycle = vec![component[last as usize]];
    let mut at = last;
    while at != start {
        at = parents[at as usize].1;
        cycle.push(component[at as usize]);
    }
    cycle.reverse();
    cycle
}

#[cfg(test)]
mod tests;
