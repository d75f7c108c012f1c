//! Packets that are kept in memory until a trigger.

use ib_link::{PacketCounts, PacketRecord, PacketSource};
use ib_types::Qpn;

/// The packets of a queue pair whose trace has a trigger: the last ones before the trigger, and those after it. If no
/// trigger occurs, no packets are returned.
pub(super) struct TriggeredSource<S> {
    source: S,
    keep: Option<u64>,
    /// Number of the first packet to return; `None` until the trace has ended.
    first: Option<u64>,
    passed: PacketCounts,
}

impl<S: PacketSource> TriggeredSource<S> {
    pub(super) fn new(source: S, keep: Option<u64>) -> Self {
        Self { source, keep, first: None, passed: PacketCounts::default() }
    }
}

impl<S: PacketSource> PacketSource for TriggeredSource<S> {
    fn qpn(&self) -> Qpn {
        self.source.qpn()
    }

    fn next_packet(&mut self, bytes: &mut Vec<u8>) -> Option<PacketRecord> {
        if !self.source.has_ended() {
            return None;
        }
        let (source, keep) = (&self.source, self.keep);
        let first = *self.first.get_or_insert_with(|| match source.triggered() {
            Some(at) => keep.map_or(0, |keep| at.saturating_sub(keep)),
            None => u64::MAX,
        });
        loop {
            let record = self.source.next_packet(bytes)?;
            if record.number >= first {
                return Some(record);
            }
            *self.passed.of(&record) += 1;
        }
    }

    fn remark(&self) -> &str {
        self.source.remark()
    }

    fn overwritten(&self) -> PacketCounts {
        self.source.overwritten()
    }

    fn skipped(&self) -> PacketCounts {
        self.passed
    }

    fn waiting(&self) -> (u64, u64) {
        // The number of unread bytes counts as 0, because the packets are read only after the trace has ended.
        (0, self.source.waiting().1)
    }

    fn noted(&self) -> PacketCounts {
        self.source.noted()
    }

    fn has_ended(&self) -> bool {
        self.source.has_ended()
    }

    fn prepare(&self) {
        self.source.prepare();
    }

    fn triggered(&self) -> Option<u64> {
        self.source.triggered()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet source whose trace has ended, with or without a trigger.
    struct Script {
        next: u64,
        end: u64,
        triggered: Option<u64>,
    }

    impl PacketSource for Script {
        fn qpn(&self) -> Qpn {
            Qpn::truncated(3)
        }

        fn next_packet(&mut self, _: &mut Vec<u8>) -> Option<PacketRecord> {
            let number = self.next;
            self.next += u64::from(number < self.end);
            (number < self.end).then(|| PacketRecord {
                number,
                direction: ib_link::Direction::Send,
                at: ib_types::Instant::from_nanos(number),
                posted: None,
                route: ib_link::Route::default(),
                length: 12,
                is_repeated: false,
                dropped: None,
                is_lost: false,
            })
        }

        fn overwritten(&self) -> PacketCounts {
            PacketCounts::default()
        }

        fn noted(&self) -> PacketCounts {
            PacketCounts { sent: self.end, ..PacketCounts::default() }
        }

        fn has_ended(&self) -> bool {
            true
        }

        fn triggered(&self) -> Option<u64> {
            self.triggered
        }
    }

    #[test]
    fn packets_around_the_trigger_are_returned() {
        let cases = [(Some(70), Some(10), 60), (Some(70), None, 0), (Some(5), Some(10), 0)];
        for (triggered, keep, first) in cases {
            let mut held = TriggeredSource::new(Script { next: 0, end: 75, triggered }, keep);
            let mut found = Vec::new();
            while let Some(record) = held.next_packet(&mut Vec::new()) {
                found.push(record.number);
            }
            assert_eq!(found, (first..75).collect::<Vec<_>>());
            assert_eq!((held.overwritten().all(), held.skipped().all()), (0, first));
        }
        let mut held = TriggeredSource::new(Script { next: 0, end: 75, triggered: None }, None);
        assert_eq!(held.next_packet(&mut Vec::new()), None);
        assert_eq!(held.skipped().all(), 75);
    }
}
