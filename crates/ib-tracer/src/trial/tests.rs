use super::chance;

#[test]
fn twelve_answered_controls_suffice_for_one_in_a_million() {
    assert!(chance(12, 12) <= 1e-6);
    assert!(chance(11, 11) > 1e-6);
}

#[test]
fn no_answered_control_proves_nothing() {
    assert!((chance(768, 0) - 1.0).abs() < f64::EPSILON);
}

#[test]
fn loss_needs_more_probes() {
    assert!(chance(24, 6) > 1e-6);
    assert!(chance(96, 24) <= 1e-6);
}
