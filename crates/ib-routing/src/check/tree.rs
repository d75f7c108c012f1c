//! The forwarding tree of a LID, which the LFT entries of all switches form.
//!
//! Each switch has one entry for a LID, so the entries form a functional graph. It consists of trees, whose roots
//! deliver or drop packets, and of loops with trees that lead into them.

use super::wiring::{Hop, NO_SWITCH, Wiring};
use crate::subnet::EndPortId;

/// The fate of a packet that a switch forwards to the LID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The packet reaches the end port that has the LID, over this number of links between switches.
    Arrives(u16),
    /// The switch with this index drops the packet, or forwards it to a wrong end port.
    Drops(u16),
    /// The packet enters a forwarding loop that contains the switch with this index.
    Loops(u16),
}

/// The next switches for a LID and the fates of its packets. The memory is reused for every LID.
pub(super) struct Tree {
    /// By switch: the next switch to which it forwards packets to the LID; `NO_SWITCH` if it delivers or drops them.
    next: Vec<u16>,
    /// By switch: the fate of its packets as a number, see [`DROPS`].
    fates: Vec<u32>,
    /// All switches whose packets do not enter a loop. Each switch comes after the switch to which it forwards packets.
    order: Vec<u16>,
    path: Vec<u16>,
}

// Numbers that stand for fates. Numbers below `DROPS` stand for `Arrives`, with this number of hops. In other numbers,
// the upper 16 bits are the kind of the fate, and the lower 16 bits are the index of a switch.
const DROPS: u32 = 1 << 16;
const LOOPS: u32 = 2 << 16;
const ON_PATH: u32 = 3 << 16;
const UNSEEN: u32 = 4 << 16;

impl Tree {
    pub(super) fn new(wiring: &Wiring) -> Self {
        let switches = wiring.switches();
        Self {
            next: vec![NO_SWITCH; switches],
            fates: vec![UNSEEN; switches],
            order: Vec::with_capacity(switches),
            path: Vec::with_capacity(switches),
        }
    }

    /// Builds the tree for a LID of `owner` from the LFT entry of each switch. Calls `found_loop` with the switches of
    /// every loop.
    pub(super) fn grow(
        &mut self,
        wiring: &Wiring,
        entries: &[u8],
        owner: EndPortId,
        mut found_loop: impl FnMut(&[u16]),
    ) {
        for (switch, (next, &entry)) in self.next.iter_mut().zip(entries).enumerate() {
            *next = wiring.next(wiring.channel(switch, entry));
        }
        self.fates.fill(UNSEEN);
        self.order.clear();
        let arrives = |switch: u16| {
            let switch = usize::from(switch);
            wiring.hop(wiring.channel(switch, entries[switch])) == Hop::EndPort(owner)
        };
        for start in 0..self.next.len() as u16 {
            if self.fates[usize::from(start)] == UNSEEN && !self.follows(start) {
                self.walk(start, arrives, &mut found_loop);
            }
        }
    }

    /// If the fate of the next switch is known, sets the fate of `switch` and returns true.
    fn follows(&mut self, switch: u16) -> bool {
        let next = usize::from(self.next[usize::from(switch)]);
        match self.fates.get(next) {
            Some(&known) if known < LOOPS => {
                self.fates[usize::from(switch)] = one_before(known);
                self.order.push(switch);
                true
            }
            _ => false,
        }
    }

    /// Follows the LFT entries from a switch until a fate is known, and sets this fate for all switches on the path.
    fn walk(
        &mut self,
        start: u16,
        arrives: impl Fn(u16) -> bool,
        found_loop: &mut impl FnMut(&[u16]),
    ) {
        let mut switch = start;
        let mut fate = loop {
            self.fates[usize::from(switch)] = ON_PATH;
            self.path.push(switch);
            let next = self.next[usize::from(switch)];
            if next == NO_SWITCH {
                break if arrives(switch) { 0 } else { DROPS | u32::from(switch) };
            }
            match self.fates[usize::from(next)] {
                UNSEEN => switch = next,
                ON_PATH => {
                    let first = self.path.iter().position(|&on_path| on_path == next);
                    found_loop(&self.path[first.expect("the next switch is on the path")..]);
                    break LOOPS | u32::from(next);
                }
                known => break one_before(known),
            }
        };
        while let Some(switch) = self.path.pop() {
            self.fates[usize::from(switch)] = fate;
            if fate < LOOPS {
                self.order.push(switch);
            }
            fate = one_before(fate);
        }
    }

    /// Returns the switches whose packets do not enter a loop. Each switch comes before the switch to which it forwards
    /// packets.
    pub(super) fn towards_roots(&self) -> impl Iterator<Item = usize> {
        self.order.iter().rev().map(|&switch| usize::from(switch))
    }

    /// Returns the next switch on the path from a switch, if any.
    pub(super) fn next(&self, switch: usize) -> Option<u16> {
        Some(self.next[switch]).filter(|&next| next != NO_SWITCH)
    }

    pub(super) fn arrives(&self, switch: usize) -> bool {
        self.fates[switch] < DROPS
    }

    pub(super) fn fate(&self, switch: usize) -> Fate {
        let fate = self.fates[switch];
        match fate >> 16 {
            0 => Fate::Arrives(fate as u16),
            1 => Fate::Drops(fate as u16),
            _ => Fate::Loops(fate as u16),
        }
    }
}

/// Returns the fate of a switch, given the fate of its next switch.
fn one_before(fate: u32) -> u32 {
    if fate < DROPS { fate + 1 } else { fate }
}
