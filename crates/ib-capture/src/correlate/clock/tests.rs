use super::*;

/// A generator of pseudo-random numbers below a bound.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

const START: u64 = 1_700_000_000_000_000_000;

/// Estimates the clocks from packets in both directions. The second clock has the offset `offset`
/// and the drift `ppm`. Also returns the maximum error of the estimate.
fn estimated(seed: u64, seconds: f64, offset: i64, ppm: f64, jitter: u64) -> (Estimate, f64) {
    let mut dice = Random(seed);
    let end = START + (seconds * 1e9) as u64;
    let mut points = ClockPoints::new(START, end);
    let second = |time: u64| {
        let drift = (time - START) as f64 * ppm * 1e-6;
        time.wrapping_add_signed(offset + drift.round() as i64)
    };
    let packets = 5000;
    for number in 0..packets {
        let sent = START + (end - START) / packets * number;
        let arrived = sent + 6_000 + dice.below(jitter);
        points.forward(sent, second(arrived));
        let back = arrived + 500;
        points.backward(second(back), back + 9_000 + dice.below(jitter));
    }
    let Clocks::Estimated(estimate) = points.estimate() else {
        panic!("the clocks were not estimated")
    };
    // The error of the estimate at 101 times during the capture.
    let error = (0..=100).map(|step| {
        let time = START + (end - START) / 100 * step;
        let found = Clocks::Estimated(estimate).to_first_clock(second(time)).unwrap();
        found.wrapping_sub(time).cast_signed().unsigned_abs() as f64
    });
    (estimate, error.fold(0.0, f64::max))
}

#[test]
fn clock_error_is_within_the_bound() {
    for seed in 0..20 {
        for seconds in [0.001, 0.5, 20.0, 3600.0] {
            for offset in [0, 1, -123_456_789, 9_000_000_000_000] {
                for ppm in [0.0, 0.5, -20.0, 80.0] {
                    let (found, error) = estimated(seed, seconds, offset, ppm, 200_000);
                    let context =
                        format!("{seconds} s, {offset} ns, {ppm} ppm: {error}, {found:?}");
                    assert!(!found.is_contradictory, "{context}");
                    assert!(error <= found.uncertainty + 2.0, "{context}");
                    let drift = (found.drift_ppm - ppm).abs();
                    assert!(drift <= found.drift_uncertainty_ppm + 1e-3, "{context}");
                    if seconds > 10.0 {
                        assert!(found.drift_uncertainty_ppm < 5.0, "{context}");
                        assert!(found.uncertainty < 60_000.0, "{context}");
                    }
                }
            }
        }
    }
}

#[test]
fn uncertainty_of_short_captures_is_half_the_fastest_round_trip() {
    let (found, _) = estimated(1, 0.001, 77_000, 0.0, 1);
    assert!((found.round_trip - 15_000.0).abs() < 2.0, "{found:?}");
    assert!((found.uncertainty - 7_500.0).abs() < 60.0, "{found:?}");
    assert!((found.offset - 77_000.0).abs() <= found.uncertainty);
}

#[test]
fn one_direction_gives_no_clock_offset() {
    let mut points = ClockPoints::new(0, 100);
    assert_eq!(points.estimate(), Clocks::Unknown);
    points.forward(10, 30);
    assert_eq!(points.estimate(), Clocks::Unknown);
    assert_eq!(Clocks::Unknown.to_first_clock(7), None);
    assert_eq!(Clocks::Same.to_first_clock(7), Some(7));
}

#[test]
fn step_of_a_clock_is_detected() {
    let mut points = ClockPoints::new(0, 1_000_000_000);
    for number in 0..1000 {
        let sent = 1_000_000 * number;
        let step = if number < 500 { 0 } else { 50_000_000 };
        points.forward(sent, sent + 5_000 + step);
        points.backward(sent + 6_000 + step, sent + 11_000);
    }
    let Clocks::Estimated(found) = points.estimate() else {
        panic!("the clocks were not estimated")
    };
    assert!(found.is_contradictory, "{found:?}");
    assert!(found.uncertainty > 10_000_000.0, "{found:?}");
}
