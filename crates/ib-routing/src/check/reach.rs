//! Reachability: the LIDs that each switch does not reach, and the causes.

use std::collections::BTreeSet;

use ib_types::ServiceLevel;

use super::tree::{Fate, Tree};
use super::wiring::{Hop, Wiring};
use crate::lft::{NO_PATH, UnknownEntries};
use crate::subnet::{EndPortId, Subnet, SwitchId};

/// Reachability of every LID from every switch.
///
/// A pair consists of a switch and a LID. If LMC > 0, a port has several LIDs and so several pairs per switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reachability {
    /// Number of LIDs checked: all LIDs of the subnet.
    pub lids: usize,
    /// Number of failing pairs; 0 if the tables are valid.
    ///
    /// A failing pair is one of:
    ///
    /// * a switch with a channel adapter (CA) or router, and a LID of a CA or router that this switch does not reach,
    /// * a switch whose SL-to-VL table discards packets, and the destination LID of these packets,
    /// * a switch that has no LFT entry for its own LID, and that LID,
    /// * any switch and LID whose packets are forwarded and then lost.
    pub unreachable: u64,
    /// Number of pairs of a host port and a LID of another host whose packets do not arrive. A host is a port of a CA
    /// or router. If an SL-to-VL table discards some of the packets to a LID that a switch receives from a neighbour or
    /// from its own hosts, the pairs of all these packets are counted.
    pub unreachable_host_pairs: u64,
    /// Examples of pairs in `unreachable`, ordered by LID and then by switch.
    pub first: Vec<Unreachable>,
    /// Switches that drop packets of failing pairs or forward them in a loop, in ascending order.
    pub faulty: BTreeSet<SwitchId>,
    /// Number of pairs whose switch has no LFT entry for the LID, and which are not counted in `unreachable`. In each
    /// of these pairs, the LID belongs to port 0 of another switch, or the switch has no hosts.
    ///
    /// Pairs that are counted here are not faults. Up/Down does not route between switches inside spine systems. If
    /// links are missing, Up/Down also does not route between a spine switch and leaves that are not below this switch.
    /// Switches without such routes can be managed by directed routes, but not by LID-routed performance queries.
    pub unreachable_switch_pairs: u64,
    /// Examples of pairs in `unreachable_switch_pairs`, ordered by LID and then by switch.
    pub first_switch_pairs: Vec<Unreachable>,
    /// Number of pairs of a switch and a LID whose result is unknown, because packets from the switch to the LID reach
    /// an unknown LFT entry.
    pub unknown: u64,
    /// Examples of pairs in `unknown`, ordered by LID and then by switch.
    pub first_unknown: Vec<Unreachable>,
    /// Number of LIDs whose packets enter a forwarding loop from at least one switch.
    pub looping_lids: usize,
    /// Examples of different forwarding loops, ordered by LID.
    pub loops: Vec<ForwardingLoop>,
}

/// A switch and a LID that it cannot reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// The switch whose packets do not arrive.
    pub from: SwitchId,
    /// The destination LID.
    pub lid: u16,
    /// The cause.
    pub cause: Cause,
}

/// The cause of a lost packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A switch has no LFT entry for the LID.
    NoEntry {
        /// The switch that drops the packet.
        at: SwitchId,
    },
    /// The LFT entry of a switch for the LID is unknown.
    Unknown {
        /// The switch whose LFT entry is unknown.
        at: SwitchId,
    },
    /// The port in the LFT entry is above the highest port number of the switch.
    NoSuchPort {
        /// The switch that drops the packet.
        at: SwitchId,
        /// The output port in the LFT entry.
        port: u8,
    },
    /// The port in the LFT entry has no link.
    Unlinked {
        /// The switch that drops the packet.
        at: SwitchId,
        /// The output port in the LFT entry.
        port: u8,
    },
    /// The LFT entry leads to an end port that does not have the destination LID.
    WrongEndPort {
        /// The last switch on the path.
        at: SwitchId,
        /// The port in the LFT entry; 0 is the switch itself.
        port: u8,
        /// The end port that receives the packet.
        arrives_at: EndPortId,
    },
    /// The SL-to-VL table of a switch maps the packet to VL 15, on which packets are discarded.
    Discarded {
        /// The switch that drops the packet.
        at: SwitchId,
        /// The ports at which the packet enters and would leave this switch.
        ports: (u8, u8),
        /// The service level of the packet.
        level: ServiceLevel,
    },
    /// The packet enters a forwarding loop.
    Loop {
        /// A switch in the loop.
        at: SwitchId,
    },
}

/// Options of the reachability check.
pub(super) struct Judge<'a> {
    pub(super) wiring: &'a Wiring,
    /// The LFT entries that are unknown, for example because a file of tables has gaps.
    pub(super) unknown: Option<&'a UnknownEntries>,
    /// Maximum number of examples of each kind.
    pub(super) samples: usize,
}

/// The location of the port that has a LID.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    /// Port 0 of a switch.
    Switch(SwitchId),
    /// A host port linked to a switch.
    HostAt(SwitchId),
}

/// A forwarding loop: the switches in it forward packets to a LID in a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardingLoop {
    /// The lowest LID whose packets enter this loop.
    pub lid: u16,
    /// The switches in the loop with their output ports, from the lowest switch on.
    pub steps: Vec<(SwitchId, u8)>,
}

impl Cause {
    /// Returns the switch that drops the packet, or a switch in the forwarding loop.
    #[must_use]
    pub const fn at(self) -> SwitchId {
        match self {
            Self::NoEntry { at }
            | Self::Unknown { at }
            | Self::NoSuchPort { at, .. }
            | Self::Unlinked { at, .. }
            | Self::WrongEndPort { at, .. }
            | Self::Discarded { at, .. }
            | Self::Loop { at } => at,
        }
    }
}

impl Unreachable {
    /// Describes the pair and the cause in one line.
    #[must_use]
    pub fn describe(&self, subnet: &Subnet<'_>) -> String {
        let name = |switch| super::switch_name(subnet, switch);
        let owner = subnet
            .lid_owner(self.lid)
            .map_or("", |owner| subnet.end_port_node(owner).description.as_str());
        let cause = match self.cause {
            Cause::NoEntry { at } => format!("{} has no entry", name(at)),
            Cause::Unknown { at } => format!("the entry of {} is not known", name(at)),
            Cause::NoSuchPort { at, port } => format!(
                "{} sends to port {port}: expected at most {}",
                name(at),
                subnet.switch(at).ports
            ),
            Cause::Unlinked { at, port } => {
                format!("{} sends to port {port}, which has no link", name(at))
            }
            Cause::WrongEndPort { at, port, arrives_at } => {
                let end = subnet.end_port(arrives_at);
                format!(
                    "{} sends to port {port}, where LID {} is ('{}')",
                    name(at),
                    end.base_lid,
                    subnet.end_port_node(arrives_at).description
                )
            }
            Cause::Discarded { at, ports: (from, out), level } => {
                format!("{} discards SL {} from port {from} to port {out}", name(at), level.get())
            }
            Cause::Loop { at } => format!("packets loop through {}", name(at)),
        };
        format!("{} to LID {} ('{owner}'): {cause}", name(self.from), self.lid)
    }
}

impl ForwardingLoop {
    /// Describes the loop in one line.
    #[must_use]
    pub fn describe(&self, subnet: &Subnet<'_>) -> String {
        let steps: Vec<_> = self
            .steps
            .iter()
            .map(|&(switch, port)| format!("{} port {port}", super::switch_name(subnet, switch)))
            .collect();
        format!("LID {} loops: {} -> ...", self.lid, steps.join(" -> "))
    }
}

impl Reachability {
    /// Counts the switches that cannot reach a LID, by the kind of the failure.
    pub(super) fn add_failures(
        &mut self,
        judge: &Judge<'_>,
        tree: &Tree,
        entries: &[u8],
        lid: u16,
        target: Target,
        hosts: &[u32],
    ) {
        let samples = judge.samples;
        for (switch, &hosts) in hosts.iter().enumerate() {
            let Some(cause) = cause(judge.wiring, tree, entries, switch) else { continue };
            let from = SwitchId(switch as u16);
            if let Cause::NoEntry { at } = cause
                && judge.unknown.is_some_and(|unknown| unknown.contains(at, lid))
            {
                self.unknown += 1;
                if self.first_unknown.len() < samples {
                    self.first_unknown.push(Unreachable {
                        from,
                        lid,
                        cause: Cause::Unknown { at },
                    });
                }
                continue;
            }
            let managed_only = match target {
                // A switch must have an LFT entry for its own LID.
                Target::Switch(own) => own != from,
                Target::HostAt(leaf) => {
                    self.unreachable_host_pairs += u64::from(hosts - u32::from(leaf == from));
                    hosts == 0
                }
            };
            let tolerated = managed_only && cause == (Cause::NoEntry { at: from });
            if !tolerated {
                self.faulty.insert(cause.at());
            }
            let (count, first) = if tolerated {
                (&mut self.unreachable_switch_pairs, &mut self.first_switch_pairs)
            } else {
                (&mut self.unreachable, &mut self.first)
            };
            *count += 1;
            if first.len() < samples {
                first.push(Unreachable { from, lid, cause });
            }
        }
    }

    /// Returns the counts `unreachable`, `unreachable_switch_pairs` and `looping_lids`. Incremental checks always check
    /// the LIDs that increase one of these counts.
    pub(super) const fn faults(&self) -> (u64, u64, usize) {
        (self.unreachable, self.unreachable_switch_pairs, self.looping_lids)
    }

    /// Adds a failing pair whose packets the SL-to-VL table of a switch discards.
    pub(super) fn add_lost(
        &mut self,
        from: SwitchId,
        host_pairs: u32,
        lid: u16,
        cause: Cause,
        samples: usize,
    ) {
        self.unreachable += 1;
        self.unreachable_host_pairs += u64::from(host_pairs);
        self.faulty.insert(cause.at());
        if self.first.len() < samples {
            self.first.push(Unreachable { from, lid, cause });
        }
    }

    /// Adds a forwarding loop to the examples; `switches` are in forwarding order.
    pub(super) fn add_loop(&mut self, lid: u16, switches: &[u16], entries: &[u8], samples: usize) {
        if self.loops.len() >= samples {
            return;
        }
        let lowest = switches.iter().enumerate().min_by_key(|&(_, &switch)| switch);
        let (start, _) = lowest.expect("a loop has a switch");
        let steps: Vec<_> = switches[start..]
            .iter()
            .chain(&switches[..start])
            .map(|&switch| (SwitchId(switch), entries[usize::from(switch)]))
            .collect();
        if self.loops.iter().all(|known| known.steps != steps) {
            self.loops.push(ForwardingLoop { lid, steps });
        }
    }

    /// Adds the results `later`, which another part of the check found for higher LIDs.
    pub(super) fn merge(&mut self, later: Self, samples: usize) {
        self.lids += later.lids;
        self.unreachable += later.unreachable;
        self.unreachable_host_pairs += later.unreachable_host_pairs;
        self.unreachable_switch_pairs += later.unreachable_switch_pairs;
        self.unknown += later.unknown;
        self.first_unknown.extend(later.first_unknown);
        self.first_unknown.truncate(samples);
        self.looping_lids += later.looping_lids;
        self.faulty.extend(later.faulty);
        self.first.extend(later.first);
        self.first.truncate(samples);
        self.first_switch_pairs.extend(later.first_switch_pairs);
        self.first_switch_pairs.truncate(samples);
        for new in later.loops {
            if self.loops.len() < samples && self.loops.iter().all(|known| known.steps != new.steps)
            {
                self.loops.push(new);
            }
        }
    }
}

fn cause(wiring: &Wiring, tree: &Tree, entries: &[u8], switch: usize) -> Option<Cause> {
    let root = match tree.fate(switch) {
        Fate::Arrives(_) => return None,
        Fate::Loops(at) => return Some(Cause::Loop { at: SwitchId(at) }),
        Fate::Drops(root) => root,
    };
    let (at, port) = (SwitchId(root), entries[usize::from(root)]);
    Some(match wiring.hop(wiring.channel(at.index(), port)) {
        Hop::EndPort(arrives_at) => Cause::WrongEndPort { at, port, arrives_at },
        Hop::Switch(..) => unreachable!("a switch that drops packets passes them to no switch"),
        Hop::Nothing if port == NO_PATH => Cause::NoEntry { at },
        Hop::Nothing if wiring.has_port(at, port) => Cause::Unlinked { at, port },
        Hop::Nothing => Cause::NoSuchPort { at, port },
    })
}
