use super::*;

#[test]
fn displayed_width_and_speed_parse_to_the_same_value() {
    for width in LinkWidth::ALL {
        assert_eq!(width.to_string().parse(), Ok(width));
    }
    for speed in LinkSpeed::ALL {
        assert_eq!(speed.to_string().parse(), Ok(speed));
        assert_eq!(speed.to_string().to_lowercase().parse(), Ok(speed));
    }
    assert!("3x".parse::<LinkWidth>().is_err());
    assert!("TDR".parse::<LinkSpeed>().is_err());
}

#[test]
fn rates_match_the_published_values() {
    assert_eq!(LinkSpeed::Sdr.megabits_per_second(LinkWidth::X4), 10_000);
    assert_eq!(LinkSpeed::Fdr.megabits_per_second(LinkWidth::X4), 56_250);
    assert_eq!(LinkSpeed::Edr.megabits_per_second(LinkWidth::X4), 103_125);
    assert_eq!(LinkSpeed::Hdr.megabits_per_second(LinkWidth::X4), 212_500);
    assert_eq!(LinkSpeed::Ndr.megabits_per_second(LinkWidth::X2), 212_500);
}
