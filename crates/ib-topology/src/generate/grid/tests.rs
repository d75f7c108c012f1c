use proptest::prelude::*;

use crate::generate::tests::{across, connected, counts, degrees, diameter, make, switches};

#[test]
fn tori_and_meshes_have_documented_sizes_and_diameters() {
    for (words, expected, hops) in [
        ("torus 8x8x8 hosts=2", (512, 1_024, 1_536 + 1_024), 12),
        ("torus 5x4", (20, 20, 40 + 20), 4),
        ("torus 2x2", (4, 4, 8 + 4), 2),
        ("torus 6", (6, 6, 6 + 6), 3),
        ("torus 4x1x3", (12, 12, 24 + 12), 3),
        ("torus 1", (1, 1, 1), 0),
        ("mesh 4x4", (16, 16, 24 + 16), 6),
        ("mesh 2x2 hosts=3", (4, 12, 4 + 12), 2),
        ("mesh 3x3x3x3", (81, 81, 4 * 2 * 27 + 81), 8),
    ] {
        let fabric = make(words).expect("valid parameters");
        assert_eq!(counts(&fabric), expected, "{words}");
        assert!(connected(&fabric), "{words}");
        assert_eq!(diameter(&fabric), hops, "{words}");
    }
}

#[test]
fn dimension_uses_the_same_ports_on_all_switches() {
    let fabric = make("torus 3x4x2 hosts=2").expect("valid parameters");
    let at = |name: &str, port| across(&fabric, name, port).expect("the port is linked");
    assert_eq!(at("sw-x0y0z0", 1), ("sw-x1y0z0".to_owned(), 2));
    assert_eq!(at("sw-x2y0z0", 1), ("sw-x0y0z0".to_owned(), 2));
    assert_eq!(at("sw-x0y3z1", 3), ("sw-x0y0z1".to_owned(), 4));
    assert_eq!(at("sw-x1y1z0", 5), ("sw-x1y1z1".to_owned(), 6));
    assert_eq!(at("sw-x1y1z0", 6), ("sw-x1y1z1".to_owned(), 5));
    assert_eq!(at("sw-x1y0z0", 7), ("host-02".to_owned(), 1));
    assert_eq!(at("sw-x1y0z0", 8), ("host-03".to_owned(), 1));
}

#[test]
fn outer_ports_of_a_mesh_stay_unlinked() {
    let fabric = make("mesh 4x4").expect("valid parameters");
    assert_eq!(across(&fabric, "sw-x0y0", 2), None);
    assert_eq!(across(&fabric, "sw-x3y0", 1), None);
    assert_eq!(across(&fabric, "sw-x3y0", 3), Some(("sw-x3y1".to_owned(), 4)));
    assert_eq!(across(&fabric, "sw-x3y0", 5), Some(("host-03".to_owned(), 1)));
}

#[test]
fn switches_of_four_dimensions_are_named_by_numbers() {
    let fabric = make("mesh 2x2x3x2").expect("valid parameters");
    assert_eq!(across(&fabric, "sw-1-0-1-0", 5), Some(("sw-1-0-2-0".to_owned(), 6)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_switch_has_the_degree_of_its_coordinates(
        sides in prop::collection::vec(1_usize..6, 1..5), hosts in 1_usize..4, wrap in any::<bool>(),
    ) {
        let text = sides.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
        let name = if wrap { "torus" } else { "mesh" };
        let fabric = make(&format!("{name} {text} hosts={hosts}")).expect("valid parameters");
        prop_assert!(connected(&fabric));
        for (index, &switch) in switches(&fabric).iter().enumerate() {
            let mut location = index;
            let mut expected = 0;
            for &side in &sides {
                let coordinate = location % side;
                location /= side;
                expected += match (wrap, side) {
                    (_, 1) => 0,
                    (true, _) => 2,
                    (false, _) => 2 - usize::from(coordinate == 0) - usize::from(coordinate + 1 == side),
                };
            }
            prop_assert_eq!(degrees(&fabric, switch), (expected, hosts));
        }
    }
}
