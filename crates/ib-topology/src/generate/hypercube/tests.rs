use crate::generate::tests::{across, counts, degrees, diameter, make, switches};

#[test]
fn every_switch_has_a_link_per_dimension() {
    for dimensions in 1..=8 {
        let fabric = make(&format!("hypercube {dimensions} hosts=2")).expect("valid parameters");
        let count = 1 << dimensions;
        assert_eq!(counts(&fabric), (count, 2 * count, count * dimensions / 2 + 2 * count));
        assert!(switches(&fabric).iter().all(|&id| degrees(&fabric, id) == (dimensions, 2)));
        assert_eq!(diameter(&fabric), dimensions);
    }
}

#[test]
fn dimension_uses_the_same_port_at_both_ends() {
    let fabric = make("hypercube 4").expect("valid parameters");
    assert_eq!(across(&fabric, "sw-0101", 1), Some(("sw-0100".to_owned(), 1)));
    assert_eq!(across(&fabric, "sw-0101", 2), Some(("sw-0111".to_owned(), 2)));
    assert_eq!(across(&fabric, "sw-0101", 4), Some(("sw-1101".to_owned(), 4)));
    assert_eq!(across(&fabric, "sw-0101", 5), Some(("host-05".to_owned(), 1)));
}

#[test]
fn largest_hypercube_fits_into_the_subnet() {
    assert_eq!(counts(&make("hypercube 14").expect("valid parameters")).0, 16_384);
}
