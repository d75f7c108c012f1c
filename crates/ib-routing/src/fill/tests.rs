use super::scan_order;
use super::scatter::LibcRandom;

#[test]
fn scattering_uses_the_random_numbers_of_libc() {
    let first = |seed| {
        let mut random = LibcRandom::new(seed);
        [random.next(), random.next(), random.next(), random.next()]
    };
    assert_eq!(first(1), [1_804_289_383, 846_930_886, 1_681_692_777, 1_714_636_915]);
    assert_eq!(first(42), [71_876_166, 708_592_740, 1_483_128_881, 907_283_241]);
    assert_eq!(first(0x8000_0001), [1_081_815_585, 5_219_348, 1_080_917_272, 1_083_470_877]);
}

#[test]
fn scan_order_is_completed_or_refused() {
    assert_eq!(scan_order(&[3, 1], 4), Some(vec![0, 3, 1, 2, 4]));
    assert_eq!(scan_order(&[3, 3], 4), None);
    assert_eq!(scan_order(&[5], 4), None);
    assert_eq!(scan_order(&[0], 4), None);
}
