//! Generates random faults as steps of a script.

use std::collections::BTreeSet;
use std::time::Duration;

use ib_topology::{Fabric, PortId};
use ib_types::rng::Rng;

use crate::command::{Command, Fault, Ignored, Target};
use crate::script::Step;

/// Returns steps that cause random faults at random times from zero to `time`, and remove them at `time`.
///
/// Links fail and recover or flap; nodes lose power; packets are lost, delayed, duplicated or
/// damaged; M_Keys change; switches deviate from their LFTs. In addition, two cables can be swapped
/// from time zero to `time`.
///
/// The same seed gives the same faults for the same fabric. The first host and its cables have no
/// faults, so that a client can observe the fabric from there. But a switch at the other end of such a
/// cable can lose its power, and have M_Key and LFT faults.
///
/// After the faults are removed, M_Keys are zero, as at unconfigured ports, and switches follow their
/// LFTs. LFT writes that were ignored are not repeated.
#[must_use]
pub fn random_faults(fabric: &Fabric, seed: u64, time: Duration, count: usize) -> Vec<Step> {
    let mut rng = Rng::stream(seed, 0xfa_17);
    let first = fabric.nodes().find(|(_, node)| !node.kind.is_switch()).map(|(id, _)| id);
    let spared = |port: PortId| Some(fabric.port(port).node) == first;
    let links: Vec<_> = fabric
        .links()
        .filter(|&(one, other)| !spared(one) && !spared(other))
        .map(|(port, _)| port)
        .collect();
    let switches: Vec<_> = fabric.nodes().filter(|(_, node)| node.kind.is_switch()).collect();
    let target = |port: PortId| {
        let port = fabric.port(port);
        Target { node: fabric.node(port.node).name.clone(), port: Some(port.number) }
    };
    let node_target = |name: &str| Target { node: name.to_owned(), port: None };
    let (mut steps, mut swap) = (Vec::new(), None);
    if links.is_empty() {
        return steps;
    }
    let mut pulled = BTreeSet::new();
    let nanos = time.as_nanos().max(1) as usize;
    for _ in 0..count {
        let at = Duration::from_nanos(rng.below(nanos) as u64);
        let port = links[rng.below(links.len())];
        let link = target(port);
        let probability = (rng.below(50) + 1) as f64 / 100.0;
        let short = Duration::from_nanos(rng.below(nanos / 10 + 1) as u64);
        let others = !switches.is_empty();
        let (command, removal) = match rng.below(if others { 11 } else { 8 }) {
            // A cable is pulled at most once. If its port is chosen again, packets are randomly lost
            // at this port instead.
            0 if !pulled.insert(port) => {
                let fault = vec![Fault::Loss(probability)];
                (Command::Fault(link.clone(), fault), Some(Command::Fault(link, Vec::new())))
            }
            0 => (Command::Unlink(link.clone()), Some(Command::Relink(link))),
            1 => {
                // The pauses are so short that the link goes down and up three times before all
                // faults are removed.
                let pause = short.min((time - at) / 6);
                (Command::Flap(link, pause, pause, 3), None)
            }
            2 => {
                let node = node_target(&fabric.node(fabric.port(port).node).name);
                (Command::Power(node.clone(), false), Some(Command::Power(node, true)))
            }
            kind @ 3..=6 => {
                let fault = match kind {
                    3 => vec![Fault::Loss(probability)],
                    4 => vec![Fault::Corruption(probability)],
                    5 => vec![Fault::Duplication(probability)],
                    _ => vec![
                        Fault::Reordering(probability),
                        Fault::HeldBack(short),
                        Fault::Delay(short),
                    ],
                };
                (Command::Fault(link.clone(), fault), Some(Command::Fault(link, Vec::new())))
            }
            7 => {
                // A swap fails if one of the two cables is pulled. So it is done at time zero, before cables are
                // pulled, and undone after all pulled cables are plugged in again.
                let other = links[rng.below(links.len())];
                if swap.is_none() && other != port {
                    swap = Some(Command::Swap(link, target(other)));
                }
                continue;
            }
            kind => {
                let (_, switch) = &switches[rng.below(switches.len())];
                let node = node_target(&switch.name);
                let ports = usize::from(switch.ports);
                match kind {
                    8 => {
                        let (key, protect) = (rng.next_u64() | 1, rng.below(4) as u8);
                        let set = Command::MKey(node.clone(), key, protect);
                        (set, Some(Command::MKey(node, 0, 0)))
                    }
                    9 => {
                        if ports < 2 {
                            continue;
                        }
                        // `to` is a random port that differs from `from`.
                        let from = rng.below(ports);
                        let to = (from + 1 + rng.below(ports - 1)) % ports;
                        let pair = (from as u8 + 1, to as u8 + 1);
                        let lie = Command::Misroute(node.clone(), Some(pair));
                        (lie, Some(Command::Misroute(node, None)))
                    }
                    _ => {
                        let lie = Command::IgnoreLft(node.clone(), Ignored::Blocks(vec![0]));
                        (lie, Some(Command::IgnoreLft(node, Ignored::None)))
                    }
                }
            }
        };
        steps.push(Step { at, command, line: None });
        steps.extend(removal.map(|command| Step { at: time, command, line: None }));
    }
    if let Some(command) = swap {
        steps.insert(0, Step { at: Duration::ZERO, command: command.clone(), line: None });
        steps.push(Step { at: time, command, line: None });
    }
    steps
}
