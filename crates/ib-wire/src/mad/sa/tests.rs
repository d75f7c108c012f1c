use ib_types::{LinkSpeed, LinkWidth};
use proptest::prelude::*;

use super::*;

#[test]
fn rate_codes_convert_to_rates_and_back() {
    for (code, rate) in RateCode::RATES {
        assert_eq!(code.megabits_per_second(), Some(rate));
        assert_eq!(RateCode::from_megabits_per_second(rate), Some(code));
    }
    assert!(RateCode::RATES.is_sorted_by_key(|&(_, rate)| rate));
    assert_eq!(RateCode::of_link(LinkSpeed::Fdr, LinkWidth::X2), Some(RateCode::GBPS_28));
    assert_eq!(RateCode::of_link(LinkSpeed::Ndr, LinkWidth::X4), Some(RateCode::GBPS_400));
    assert_eq!(RateCode::of_link(LinkSpeed::Xdr, LinkWidth::X12), None);
    assert_eq!(RateCode(1).megabits_per_second(), None);
}

#[test]
fn selectors_compare_offered_with_requested_values() {
    for (selector, below, same, above) in [
        (Selector::GREATER, false, false, true),
        (Selector::LESS, true, false, false),
        (Selector::EXACTLY, false, true, false),
        (Selector::BEST, true, true, true),
    ] {
        assert_eq!([4, 5, 6].map(|offered| selector.admits(&5, &offered)), [below, same, above]);
    }
}

#[test]
fn attribute_offset_splits_a_table() {
    let one = LinkRecord { from_lid: 1, from_port: 2, to_port: 3, to_lid: 4 };
    let two = LinkRecord { to_lid: 9, ..one };
    let table = [one.to_record(), two.to_record()].concat();
    assert_eq!(records::<LinkRecord>(&table, 1).collect::<Vec<_>>(), [one, two]);
    // The padding of the last record can be missing. If the attribute offset is smaller than the
    // record length, `records` returns no records.
    assert_eq!(records::<LinkRecord>(&table[..14], 1).count(), 2);
    assert_eq!(records::<LinkRecord>(&table[..13], 1).count(), 1);
    assert_eq!(records::<LinkRecord>(&table, 0).count(), 0);
    assert_eq!(records::<NodeRecord>(&table, 1).count(), 0);
}

#[test]
fn gids_of_a_multipath_request_follow_its_header() {
    let mut data = [0; 200];
    let record = MultiPathRecord { sgid_count: 1, dgid_count: 2, ..MultiPathRecord::zeroed() };
    record.write(&mut data);
    for (index, byte) in [39, 55, 71].into_iter().enumerate() {
        data[byte] = index as u8 + 1;
    }
    let (sources, destinations) = record.gids(&data).unwrap();
    assert_eq!(sources.iter().map(|gid| gid.0).collect::<Vec<_>>(), [1]);
    assert_eq!(destinations.iter().map(|gid| gid.0).collect::<Vec<_>>(), [2, 3]);
    let many = MultiPathRecord { sgid_count: 11, ..record };
    assert_eq!(many.gids(&data), None);
    for (_, name) in MultiPathRecord::COMPONENTS {
        assert!(layout::find_field(MultiPathRecord::FIELDS, name).byte < 24);
    }
}

/// Checks that the components of a record are in the order of their bits in the component mask, and
/// that they do not overlap in the record.
fn check_components<R: Record>() {
    let mut last = 0;
    let mut bits: Option<u8> = None;
    for component in R::COMPONENTS {
        let start = component.at.byte * 8 + component.at.bit;
        assert!(start >= last, "{}: {component:?} starts before the previous ends", R::ID);
        assert!(
            bits.is_none_or(|bit| bit < component.bit),
            "{}: {component:?} is not in the order of the mask bits",
            R::ID
        );
        last = start + component.at.width;
        bits = Some(component.bit);
    }
    assert!(last <= R::LENGTH * 8);
}

/// Compares the result of `matches` with a bitwise comparison of all components in the mask.
fn check_matching<R: Record>(left: &[u8], right: &[u8], mask: u64) -> Result<(), TestCaseError> {
    let expected = R::COMPONENTS.iter().filter(|component| mask >> component.bit & 1 == 1).all(
        |&Component { at, .. }| {
            (0..at.width).all(|index| {
                let bit =
                    Bits { byte: at.byte, bit: at.bit, width: at.width }.part(index, at.width);
                layout::get(left, bit) == layout::get(right, bit)
            })
        },
    );
    let found = matches(ComponentMask(mask), R::COMPONENTS, left, right);
    prop_assert_eq!(found, expected, "{}", R::ID);
    Ok(())
}

macro_rules! for_records {
    ($check:ident $arguments:tt) => {
        for_records!(@ $check $arguments GuidInfoRecord InformInfoRecord LinearForwardingRecord
            LinkRecord MCMemberRecord MulticastForwardingRecord NodeRecord PKeyTableRecord PathRecord
            PortInfoRecord ServiceRecord SlToVlRecord SmInfoRecord SwitchInfoRecord
            VlArbitrationRecord)
    };
    (@ $check:ident $arguments:tt $($record:ident)+) => {
        vec![$($check::<$record> $arguments),+]
    };
}

#[test]
fn components_are_ordered_and_do_not_overlap() {
    for_records!(check_components());
}

proptest! {
    #[test]
    fn records_match_if_all_masked_components_are_equal(
        left in prop::collection::vec(any::<u8>(), 200),
        flips in prop::collection::vec((0usize..1600, any::<bool>()), 0..4),
        mask in any::<u64>(),
    ) {
        let mut right = left.clone();
        for (bit, _) in flips {
            right[bit / 8] ^= 0x80 >> (bit % 8);
        }
        for result in for_records!(check_matching(&left, &right, mask)) {
            result?;
        }
        prop_assert!(matches(ComponentMask(u64::MAX), PathRecord::COMPONENTS, &left, &left));
    }
}
