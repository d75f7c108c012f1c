//! The summary of a capture file.

use std::collections::BTreeMap;

use ib_capture::FrameError;
use ib_pcap::Statistics;

use super::Found;
use crate::failure::note;

/// A capture interface: the number of the pcapng section, and the number of the interface within the section.
type Interface = (u32, u32);

/// The counters of a capture file.
#[derive(Debug, Default)]
pub(super) struct Summary {
    frames: u64,
    packets: u64,
    wrong: u64,
    ports: Vec<u16>,
    /// Number of non-RDMA frames per UDP port; frames without a UDP port are not counted here.
    others: BTreeMap<u16, u64>,
    lost: BTreeMap<Interface, u64>,
    /// The name of each interface, and the contents of its last statistics block in the file.
    interfaces: BTreeMap<Interface, (Option<String>, Statistics)>,
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
            // The size of the map is bounded: it has at most one entry per UDP port.
            Err(FrameError::Port(port)) => *self.others.entry(*port).or_default() += 1,
            Err(_) => {}
        }
    }

    pub(super) fn lost(&mut self, interface: Interface, count: u64) {
        if count > 0 {
            let lost = self.lost.entry(interface).or_default();
            *lost = lost.saturating_add(count);
        }
    }

    pub(super) fn statistics(&mut self, section: u32, of: &Statistics, name: Option<String>) {
        self.interfaces.insert((section, of.interface), (name, of.clone()));
    }

    /// Prints the summary on standard error.
    pub(super) fn say(&self, file: &str) {
        let Self { frames, packets, .. } = self;
        let foreign = frames - packets;
        note!(
            "{file}: {frames} frames, {packets} packets, {foreign} non-RDMA; {} missing in the capture",
            self.lost_in_all()
        );
        if self.wrong > 0 {
            note!("{file}: {} packets with a wrong ICRC", self.wrong);
        }
        for (interface, (name, statistics)) in &self.interfaces {
            let name = name.clone().unwrap_or_else(|| format!("interface {}", interface.1));
            // If another program wrote the capture, `received` counts all frames that the interface has seen,
            // including those that the capture filter rejected.
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
            note!("{name}: {}", parts.join(", "));
        }
        if self.packets == 0
            && let Some((port, count)) = self.others.iter().max_by_key(|(_, count)| **count)
        {
            let known = [&[4791], &self.ports[..]].concat();
            let known: Vec<String> = known.iter().map(ToString::to_string).collect();
            note!(
                "found no RoCEv2 at UDP port {}, but {count} frames to port {port}: expected --udp-port {port} if these are RoCEv2",
                known.join(", ")
            );
        }
    }

    /// Returns the total number of lost frames, summed over the interfaces. The file records the same losses twice: as
    /// drop counts of frames, and in the interface statistics. For each interface, the larger of these counts is used.
    fn lost_in_all(&self) -> u64 {
        let mut lost = self.lost.clone();
        for (interface, (_, statistics)) in &self.interfaces {
            let counted =
                statistics.dropped.unwrap_or(0).saturating_add(statistics.os_dropped.unwrap_or(0));
            let entry = lost.entry(*interface).or_default();
            *entry = (*entry).max(counted);
        }
        lost.values().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// Returns whether ibfabric wrote the statistics. In captures by ibfabric, each queue pair has one interface,
/// whose statistics count sent and received packets.
fn is_ours(statistics: &Statistics) -> bool {
    statistics.comments.iter().any(|comment| comment.contains(" packets noted in both directions"))
}
