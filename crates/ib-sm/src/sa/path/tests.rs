use super::*;

/// Returns the value that `select` chooses for each requested code; 0xff if it chooses none. The expected values are
/// what OpenSM 3.3.23 responded for a path with MTU 2048, 40 Gbit/s and lifetime 18.
fn of(select: impl Fn(u8) -> Option<u8>, codes: std::ops::RangeInclusive<u8>) -> Vec<u8> {
    codes.map(|code| select(code).unwrap_or(0xff)).collect()
}

const BEST: Selector = Selector(3);
const NONE: u8 = 0xff;

#[test]
fn mtus_are_chosen_as_opensm_does() {
    let by = |by| of(|code| Some(mtu_within(by, MtuCode(code), MtuCode(4))?.0), 1..=5);
    assert_eq!(by(Selector::GREATER), [4, 4, 4, NONE, NONE]);
    assert_eq!(by(Selector::LESS), [NONE, 1, 2, 3, 4]);
    assert_eq!(by(Selector::EXACTLY), [1, 2, 3, 4, NONE]);
    assert_eq!(by(BEST), [4; 5]);
}

#[test]
fn rates_are_chosen_as_opensm_does() {
    let by = |by| of(|code| Some(rate_within(by, RateCode(code), RateCode(7))?.0), 2..=14);
    let none = NONE;
    assert_eq!(by(Selector::GREATER), [7, 7, 7, 7, 7, none, none, none, none, 7, none, none, none]);
    // This SA compares rates by speed. OpenSM orders 30 Gbit/s below 25 Gbit/s, so its results for LESS than 30 and 40
    // Gbit/s differ.
    assert_eq!(by(Selector::LESS), [none, 5, 19, 2, 11, 4, 7, 7, 7, 3, 7, 7, 7]);
    let mut only = [none; 13];
    only[5] = 7;
    assert_eq!(by(Selector::EXACTLY), only);
    assert_eq!(by(BEST), [7; 13]);
}

#[test]
fn life_times_are_chosen_as_opensm_does() {
    let by = |by, offered| {
        of(|code| Some(life_time_within(by, LifeTimeCode(code), LifeTimeCode(offered))?.0), 0..=63)
    };
    for code in 0..=63_u8 {
        let at = usize::from(code);
        assert_eq!(by(Selector::GREATER, 18)[at], if code < 18 { 18 } else { NONE });
        let less = if code < 2 { NONE } else { (code - 1).min(18) };
        assert_eq!(by(Selector::LESS, 18)[at], less);
        assert_eq!(by(Selector::EXACTLY, 18)[at], if code <= 18 { code } else { NONE });
        assert_eq!(by(BEST, 18)[at], 18);
        // The path from a port to itself has lifetime 0.
        assert_eq!(by(Selector::LESS, 0)[at], if code == 0 { NONE } else { 0 });
        assert_eq!(by(Selector::EXACTLY, 0)[at], if code == 0 { 0 } else { NONE });
    }
}
