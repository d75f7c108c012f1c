use super::*;

const IDENTITY: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7];

fn plan(tables: &[[u8; 16]]) -> VlPlan {
    let tables = (1..).zip(tables).map(|(port, &table)| ((Guid(7), port), table));
    VlPlan { tables: tables.collect(), discarded_at_hosts: 0 }
}

#[test]
fn distinct_vls_on_all_links_need_no_map() {
    assert!(plan(&[IDENTITY; 3]).is_one_vl_per_level(0b1111));
    let reversed = [7, 6, 5, 4, 3, 2, 1, 0, 7, 6, 5, 4, 3, 2, 1, 0];
    assert!(plan(&[reversed; 3]).is_one_vl_per_level(0b1111_1111));
    assert!(plan(&[]).is_one_vl_per_level(0b11));
}

#[test]
fn shared_differing_and_discarding_vls_need_a_map() {
    // SL 0 and SL 8 use the same VL.
    assert!(!plan(&[IDENTITY]).is_one_vl_per_level(0b1_0000_0001));
    assert!(!plan(&[IDENTITY, [0; 16]]).is_one_vl_per_level(0b11));
    let mut discards_sl1 = IDENTITY;
    discards_sl1[1] = DISCARD;
    assert!(!plan(&[discards_sl1; 2]).is_one_vl_per_level(0b11));
}

#[test]
fn single_service_level_needs_a_map_only_for_discards() {
    let mut swapped = IDENTITY;
    swapped[0] = 3;
    assert!(plan(&[IDENTITY, swapped]).is_one_vl_per_level(0b1));
    swapped[0] = DISCARD;
    assert!(!plan(&[IDENTITY, swapped]).is_one_vl_per_level(0b1));
}
