use super::*;

#[test]
fn records_are_sorted_completely() {
    let one = "exit status 0\nLinkRecord dump:\n\t\tFromLID..2\nLinkRecord dump:\n\t\tFromLID..1\n";
    let other =
        "exit status 0\nLinkRecord dump:\n\t\tFromLID..1\nLinkRecord dump:\n\t\tFromLID..2\n";
    assert_eq!(without_order(one), without_order(other));
    assert_eq!(without_order(one).lines().count(), 5);
    assert_ne!(without_order(one), without_order(&other.replace("FromLID..2", "FromLID..3")));
    let failed = "exit status 5\nstderr: ERROR: no\n";
    assert_eq!(without_order(failed), failed.trim_end());
}

#[test]
fn only_states_of_down_ports_are_compared() {
    let record = |state: &str, width: &str, lid: u8| {
        format!(
            "PortInfoRecord dump:\n\tRID\n\t\tEndPortLid..{lid}\n\tPortInfo dump:\n\t\tLinkWidthActive:..{width}\n\t\tLinkState:.......{state}\n"
        )
    };
    let same = |a: String, b: String| without_order(&a) == without_order(&b);
    assert!(same(record("Down", "4X", 1), record("Down", "undefined (0)", 1)));
    assert!(!same(record("Down", "4X", 1), record("Down", "4X", 2)));
    assert!(!same(record("Down", "4X", 1), record("Active", "4X", 1)));
    assert!(!same(record("Active", "4X", 1), record("Active", "1X", 1)));
}
