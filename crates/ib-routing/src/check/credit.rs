//! Credit loops: cycles of links that can wait for each other's buffers indefinitely.

use ib_types::VirtualLane;

use super::cycle::{cyclic_components, shortest_cycle};
use super::dependency::{Graph, Turns};
use super::wiring::Wiring;
use crate::subnet::{Subnet, SwitchId};

/// Credit loops: cycles of links in which the packets in each buffer can wait for space in the next buffer.
///
/// Routes that end in a forwarding loop are not considered, because the forwarding loop itself is reported. If a switch
/// drops packets, their route is considered up to that switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreditLoops {
    /// Number of strongly connected components of the channel dependency graph that have a cycle. Zero proves that the
    /// routes cannot deadlock.
    pub loops: usize,
    /// Number of channels in credit loops. A channel is a VL of a directed link.
    pub channels: usize,
    /// Examples of credit loops, ordered by their lowest switch.
    pub first: Vec<CreditLoop>,
}

/// A set of channels, each of which can wait for every other one. A channel is a VL of a directed link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreditLoop {
    /// The number of channels in the set.
    pub channels: usize,
    /// A shortest cycle in the set, which starts at its lowest switch. Packets in the buffers of each channel wait for
    /// the next channel, and packets of the last channel wait for the first.
    pub cycle: Vec<HeldChannel>,
}

/// A channel, i.e. a VL of a directed link between two switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeldChannel {
    /// The switch that sends packets over the link.
    pub switch: SwitchId,
    /// The port of this switch at which the link starts.
    pub port: u8,
    /// The VL.
    pub vl: VirtualLane,
}

impl CreditLoops {
    pub(super) fn find(wiring: &Wiring, turns: &Turns, samples: usize) -> Self {
        let graph = Graph::new(wiring, turns);
        let components = cyclic_components(&graph);
        let first = components.iter().take(samples).map(|component| {
            let mut cycle = shortest_cycle(&graph, component);
            let lowest = (0..cycle.len()).min_by_key(|&index| cycle[index]).unwrap_or(0);
            cycle.rotate_left(lowest);
            let held = cycle.iter().map(|&node| {
                let (channel, vl) = graph.channel_and_vl(node);
                let (switch, port) = wiring.port(channel);
                let vl = VirtualLane::new(vl).expect("the VL is below 16");
                HeldChannel { switch, port, vl }
            });
            CreditLoop { channels: component.len(), cycle: held.collect() }
        });
        let channels = components.iter().map(Vec::len).sum();
        Self { loops: components.len(), channels, first: first.collect() }
    }
}

impl CreditLoop {
    /// Describes each channel of the cycle in one line.
    #[must_use]
    pub fn describe(&self, subnet: &Subnet<'_>) -> Vec<String> {
        let line = |held: &HeldChannel| {
            let from = super::switch_name(subnet, held.switch);
            let to = super::peer_name(subnet, held.switch, held.port);
            format!("{from} port {} to {to} on {}", held.port, held.vl)
        };
        self.cycle.iter().map(line).collect()
    }
}
