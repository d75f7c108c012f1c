use super::*;

#[test]
fn records_have_no_order_and_lose_nothing() {
    let one = "exit status 0\nLinkRecord dump:\n\t\tFromLID..2\nLinkRecord dump:\n\t\tFromLID..1\n";
    let other = "exit status 0\nLinkRecord dump:\n\t\tFromLID..1\nLinkRecord dump:\n\t\tFromLID..2\n";
    assert_eq!(sorted(one), sorted(other));
    assert_eq!(sorted(one).lines().count(), 5);
    assert_ne!(sorted(one), sorted(&other.replace("FromLID..2", "FromLID..3")));
    let failed = "exit status 5\nstderr: ERROR: no\n";
    assert_eq!(sorted(failed), failed.trim_end());
}
