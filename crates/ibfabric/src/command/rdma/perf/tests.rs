use super::*;

#[test]
fn latency_memory_is_independent_of_iterations() {
    let mut latencies = Latencies::new();
    let buckets = latencies.0.distinct_values();
    for nanoseconds in (2_000..=2_000_000).step_by(2) {
        latencies.record(Duration::from_nanos(nanoseconds));
    }
    // Round trips can take zero time by the clock, or hours if the process is stopped by SIGSTOP.
    latencies.record(Duration::ZERO);
    latencies.record(Duration::from_secs(100_000));
    assert_eq!(latencies.0.distinct_values(), buckets);
    let found = latencies.summary(2.0);
    for (found, expected) in [(found.p50, 500.5), (found.p99, 990.0)] {
        assert!((found / expected - 1.0).abs() < 0.002, "found {found}, expected {expected}");
    }
    assert!(found.min < 0.01 && found.max > 50e6, "{} to {}", found.min, found.max);
}
