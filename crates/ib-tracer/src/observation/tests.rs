//! Tests of the weight of silence.

use super::{Tally, likelihood_of_loss};

fn tally(sent: u32, answered: u32) -> Tally {
    Tally { sent, answered }
}

#[test]
fn silence_beside_answers_excludes_loss() {
    assert!(likelihood_of_loss(tally(12, 0), tally(12, 12)) < 1e-6);
    assert!(likelihood_of_loss(tally(4, 0), tally(4, 4)) > 1e-3);
}

#[test]
fn silence_beside_a_lossy_control_needs_more_probes() {
    let few = likelihood_of_loss(tally(12, 0), tally(12, 6));
    let many = likelihood_of_loss(tally(48, 0), tally(48, 24));
    assert!(few > 1e-6 && many < 1e-6, "{few} {many}");
}

#[test]
fn silence_without_a_control_proves_nothing() {
    assert!(likelihood_of_loss(tally(1000, 0), tally(0, 0)) >= 1.0);
    assert!(likelihood_of_loss(tally(1000, 0), tally(1000, 0)) >= 1.0);
}
