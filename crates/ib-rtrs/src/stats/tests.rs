use super::*;

#[test]
fn latency_counts_in_the_lowest_range_that_fits() {
    let mut latencies = Latencies::default();
    for (micros, range) in
        [(0, 0), (1, 0), (1_000, 0), (1_001, 1), (2_000, 1), (4_000, 2), (65_536_000, 16)]
    {
        let before = latencies.counts[range][1];
        latencies.count(Direction::Write, Duration::from_micros(micros));
        assert_eq!(latencies.counts[range][1], before + 1, "{micros} us");
    }
    latencies.count(Direction::Read, Duration::from_secs(100));
    assert_eq!(latencies.counts[17], [1, 0]);
    assert_eq!(latencies.histograms.each_ref().map(LatencyHistogram::requests), [1, 7]);
    assert_eq!(latencies.longest, [Duration::from_secs(100), Duration::from_millis(65_536)]);
    assert_eq!(latencies.total, [Duration::from_secs(100), Duration::from_micros(65_544_002)]);
}

#[test]
fn statistics_by_processor_are_reset_separately() {
    let mut stats = ClientPathStats::new(2);
    stats.count_sg_entries(1, 1);
    stats.count_sg_entries(1, 40);
    stats.count_sg_entries(1, 0);
    stats.count_sg_entries(7, 2);
    assert_eq!(
        (stats.sg_entries[1][0], stats.sg_entries[1][15], stats.sg_entries[1][1]),
        (1, 1, 1)
    );
    stats.count_migration(0, 0);
    stats.count_migration(0, 1);
    assert_eq!((&stats.migrated_from[..], &stats.migrated_to[..]), (&[1, 0][..], &[0, 1][..]));
    stats.reset(ClientStat::SgEntries);
    assert_eq!(stats.sg_entries, ClientPathStats::new(2).sg_entries);
    assert_eq!(stats.migrated_from, [1, 0]);
    stats.reset(ClientStat::All);
    assert_eq!(stats, ClientPathStats::new(2));
}

#[test]
fn mean_of_no_completions_is_zero() {
    let mut completions = Completions::default();
    assert_eq!(completions.average(), 0);
    completions.count(4);
    completions.count(2);
    assert_eq!((completions.average(), completions.most, completions.calls), (3, 4, 2));
}
