use super::*;

#[test]
fn sequence_matches_the_reference_implementation() {
    let mut rng = Rng::new(1_234_567);
    let expected = [
        6_457_827_717_110_365_317,
        3_203_168_211_198_807_973,
        9_817_491_932_198_370_423,
        4_593_380_528_125_082_431,
        16_408_922_859_458_223_821,
    ];
    assert_eq!(expected.map(|_| rng.next_u64()), expected);
    assert_eq!(Rng::new(0).next_u64(), 0xe220_a839_7b1d_cdaf);
}

#[test]
fn bounded_numbers_are_uniform_and_in_range() {
    let mut rng = Rng::new(7);
    let mut seen = [0; 6];
    for _ in 0..6_000 {
        seen[rng.below(6)] += 1;
    }
    assert!(seen.iter().all(|&count| (850..1_150).contains(&count)), "{seen:?}");
    assert_eq!(rng.below(1), 0);
}

#[test]
fn larger_draw_starts_with_the_smaller_one() {
    let draw = |count| {
        let mut items: Vec<u32> = (0..100).collect();
        Rng::new(3).draw(&mut items, count).to_vec()
    };
    assert_eq!(draw(40)[..10], draw(10));
    let mut all = draw(1_000);
    all.sort_unstable();
    assert_eq!(all, (0..100).collect::<Vec<_>>());
}

#[test]
fn streams_of_one_seed_differ() {
    let first = |stream| Rng::stream(5, stream).next_u64();
    assert_ne!(first(0), first(1));
    assert_ne!(first(0), Rng::stream(6, 0).next_u64());
}
