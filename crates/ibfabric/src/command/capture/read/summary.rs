//! What there was in a capture file in all.

use std::collections::BTreeMap;

use ib_capture::Foreign;
use ib_pcap::Statistics;

use super::Found;
use crate::failure::say;

/// An interface: its section, and its number there.
type Place = (u32, u32);

/// What was counted.
#[derive(Debug, Default)]
pub(super) struct Summary {
    frames: u64,
    packets: u64,
    wrong: u64,
    ports: Vec<u16>,
    /// Foreign frames by UDP port, where they have one.
    others: BTreeMap<u16, u64>,
    lost: BTreeMap<Place, u64>,
    /// What interfaces say of themselves at the end, with their names.
    interfaces: BTreeMap<Place, (Option<String>, Statistics)>,
}

impl Summary {
    pub(super) fn new(ports: Vec<u16>) -> Self {
        Self { ports, ..Self::default() }
    }

    pub(super) fn frame(&mut self, found: &Found<'_>) {
        self.frames += 1;
        match found {
            Ok(packet) => {
                self.packets += 1;
                self.wrong += u64::from(packet.icrc_ok == Some(false));
            }
            // There are no more ports than that.
            Err(Foreign::Port(port)) => *self.others.entry(*port).or_default() += 1,
            Err(_) => {}
        }
    }

    pub(super) fn lost(&mut self, interface: Place, count: u64) {
        if count > 0 {
            let lost = self.lost.entry(interface).or_default();
            *lost = lost.saturating_add(count);
        }
    }

    pub(super) fn statistics(&mut self, section: u32, of: &Statistics, name: Option<String>) {
        self.interfaces.insert((section, of.interface), (name, of.clone()));
    }

    /// Prints it on standard error.
    pub(super) fn say(&self, file: &str) {
        let Self { frames, packets, .. } = self;
        let foreign = frames - packets;
        say!(
            "{file}: {frames} frames, {packets} packets, {foreign} foreign; {} missing in the capture",
            self.lost_in_all()
        );
        if self.wrong > 0 {
            say!("{file}: {} packets with a wrong ICRC", self.wrong);
        }
        for (place, (name, statistics)) in &self.interfaces {
            let name = name.clone().unwrap_or_else(|| format!("interface {}", place.1));
            // What others count as received can be anything that their capture has come to.
            let words = match is_ours(statistics) {
                true => ["packets of the queue pair", "accepted", "captured", "overwritten", ""],
                false => ["seen", "accepted", "captured", "missed", "missed by the system"],
            };
            let counts = [
                statistics.received,
                statistics.accepted,
                statistics.delivered,
                statistics.dropped,
                statistics.os_dropped,
            ];
            let parts: Vec<String> = words
                .iter()
                .zip(counts)
                .filter_map(|(what, count)| count.map(|count| format!("{count} {what}")))
                .collect();
            say!("{name}: {}", parts.join(", "));
        }
        if self.packets == 0
            && let Some((port, count)) = self.others.iter().max_by_key(|(_, count)| **count)
        {
            let known = [&[4791], &self.ports[..]].concat();
            let known: Vec<String> = known.iter().map(ToString::to_string).collect();
            say!(
                "RoCEv2 was looked for at UDP port {}; {count} frames go to port {port}: --udp-port {port}",
                known.join(", ")
            );
        }
    }

    /// Returns how many frames are missing: what is told before frames, or what interfaces have counted, whichever
    /// is more, as both tell the same.
    fn lost_in_all(&self) -> u64 {
        let mut lost = self.lost.clone();
        for (place, (_, statistics)) in &self.interfaces {
            let counted =
                statistics.dropped.unwrap_or(0).saturating_add(statistics.os_dropped.unwrap_or(0));
            let told = lost.entry(*place).or_default();
            *told = (*told).max(counted);
        }
        lost.values().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// Returns whether a capture of ours has counted: all packets of a queue pair and a direction.
fn is_ours(statistics: &Statistics) -> bool {
    statistics.comments.iter().any(|comment| comment.contains(" packets noted in both directions"))
}
