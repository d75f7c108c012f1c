use super::*;

fn entry(vl: u8, weight: u8) -> VlArbitrationEntry {
    VlArbitrationEntry { lane: VirtualLane::new(vl).unwrap(), weight }
}

#[test]
fn arbitration_entries_are_vls_and_weights() {
    assert_eq!(
        PortQos::parse_arbitration("0:4, 14:255,3:0"),
        Ok(vec![entry(0, 4), entry(14, 255), entry(3, 0)])
    );
    for bad in ["", "15:1", "0", "0:256", "x:1", "0:4,"] {
        let word = bad.rsplit(',').next().unwrap().to_owned();
        assert_eq!(PortQos::parse_arbitration(bad), Err(QosError::Entry(word)), "{bad:?}");
    }
    let text = |turns: usize| vec!["1:1"; turns].join(",");
    assert_eq!(PortQos::parse_arbitration(&text(64)).map(|turns| turns.len()), Ok(64));
    assert_eq!(PortQos::parse_arbitration(&text(65)), Err(QosError::TooManyEntries(65)));
}

#[test]
fn every_service_level_has_a_vl() {
    let vls = PortQos::parse_sl_to_vl("0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15").unwrap();
    assert_eq!(vls.map(VirtualLane::get), std::array::from_fn(|at| at as u8));
    assert_eq!(PortQos::parse_sl_to_vl("0,1"), Err(QosError::VlCount(2)));
    assert_eq!(PortQos::parse_sl_to_vl("0,16"), Err(QosError::Vl("16".to_owned())));
}

#[test]
fn unused_vls_are_mapped_to_used_ones() {
    let qos = PortQos::default();
    let vls = |cap| qos.sl_to_vl(cap).lanes.map(VirtualLane::get);
    assert_eq!(vls(VlCap::VL0_14), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 7]);
    assert_eq!(vls(VlCap::VL0_3), [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
    assert_eq!(vls(VlCap::VL0), [0; 16]);
    let drops = PortQos { sl2vl: [VirtualLane::new(15).unwrap(); 16], ..qos };
    assert_eq!(drops.sl_to_vl(VlCap::VL0_1).lanes.map(VirtualLane::get), [15; 16]);
}

#[test]
fn arbitration_entries_are_limited_by_the_port() {
    let qos = PortQos { vlarb_low: vec![entry(9, 1); 40], ..PortQos::default() };
    let blocks = qos.arbitration(VlCap::VL0_7, 36, 8);
    let numbers: Vec<u8> = blocks.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(blocks[0].1.entries, [entry(1, 1); 32], "with 8 VLs, VL 9 is mapped to VL 1");
    let second = blocks[1].1.entries;
    assert_eq!((second[3], second[4]), (entry(1, 1), entry(0, 0)), "only 36 entries fit");
    let high = blocks[2].1.entries;
    assert_eq!((high[0], high[7], high[8]), (entry(0, 4), entry(7, 0), entry(0, 0)));
    assert_eq!(qos.arbitration(VlCap::VL0_7, 0, 0), []);
}

#[test]
fn vl_cap_is_the_largest_code_within_max_vls() {
    let cap = |max_vls| PortQos { max_vls, ..PortQos::default() }.vl_cap();
    let wanted = [(15, VlCap::VL0_14), (14, VlCap::VL0_7), (8, VlCap::VL0_7), (3, VlCap::VL0_1)];
    for (vls, code) in wanted.into_iter().chain([(1, VlCap::VL0), (0, VlCap::VL0)]) {
        assert_eq!(cap(vls), code, "{vls}");
    }
}
