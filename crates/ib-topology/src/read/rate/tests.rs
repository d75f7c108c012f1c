use ib_types::{LinkSpeed, LinkWidth};

use super::Enabled;
use crate::LinkRate;

#[test]
fn link_runs_at_the_rate_in_both_comments() {
    for width in LinkWidth::ALL {
        for speed in LinkSpeed::ALL {
            let rate = LinkRate { width, speed };
            let mut enabled = Enabled::DEFAULT;
            enabled.set(rate);
            assert_eq!(enabled.common(enabled), Ok(rate));
        }
    }
}

#[test]
fn ports_without_common_rate_are_refused() {
    let narrow = Enabled { width: 1, ..Enabled::DEFAULT };
    let wide = Enabled { width: 2, ..Enabled::DEFAULT };
    assert!(narrow.common(wide).is_err());
    let slow = Enabled { speed: 1, extended: 7, ..Enabled::DEFAULT };
    let fast = Enabled { speed: 4, extended: 7, ..Enabled::DEFAULT };
    assert!(slow.common(fast).is_err());
}
