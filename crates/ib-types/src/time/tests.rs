use super::*;

#[test]
fn addition_and_subtraction_saturate() {
    let start = Instant::from_nanos(5);
    assert_eq!(start + Duration::from_nanos(7), Instant::from_nanos(12));
    assert_eq!(start - Instant::from_nanos(9), Duration::ZERO);
    assert_eq!(Instant::NEVER + Duration::MAX, Instant::NEVER);
    assert_eq!(Instant::from_nanos(1_000_000_002).to_string(), "1.000000002");
}
