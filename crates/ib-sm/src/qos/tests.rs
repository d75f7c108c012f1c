use super::*;

fn turn(vl: u8, weight: u8) -> VlArbitrationEntry {
    VlArbitrationEntry { lane: VirtualLane::new(vl).unwrap(), weight }
}

#[test]
fn turns_are_vls_and_weights() {
    assert_eq!(PortQos::turns("0:4, 14:255,3:0"), Ok(vec![turn(0, 4), turn(14, 255), turn(3, 0)]));
    for bad in ["", "15:1", "0", "0:256", "x:1", "0:4,"] {
        let word = bad.rsplit(',').next().unwrap().to_owned();
        assert_eq!(PortQos::turns(bad), Err(QosError::Turn(word)), "{bad:?}");
    }
    let text = |turns: usize| vec!["1:1"; turns].join(",");
    assert_eq!(PortQos::turns(&text(64)).map(|turns| turns.len()), Ok(64));
    assert_eq!(PortQos::turns(&text(65)), Err(QosError::TooManyTurns(65)));
}

#[test]
fn every_level_has_a_vl() {
    let vls = PortQos::lanes("0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15").unwrap();
    assert_eq!(vls.map(VirtualLane::get), std::array::from_fn(|at| at as u8));
    assert_eq!(PortQos::lanes("0,1"), Err(QosError::VlCount(2)));
    assert_eq!(PortQos::lanes("0,16"), Err(QosError::Vl("16".to_owned())));
}

#[test]
fn vls_that_a_port_does_not_use_share_the_others() {
    let qos = PortQos::default();
    let vls = |cap| qos.sl_to_vl(cap).lanes.map(VirtualLane::get);
    assert_eq!(vls(VlCap::VL0_14), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 7]);
    assert_eq!(vls(VlCap::VL0_3), [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
    assert_eq!(vls(VlCap::VL0), [0; 16]);
    let drops = PortQos { sl2vl: [VirtualLane::new(15).unwrap(); 16], ..qos };
    assert_eq!(drops.sl_to_vl(VlCap::VL0_1).lanes.map(VirtualLane::get), [15; 16]);
}

#[test]
fn a_port_gets_as_many_turns_as_it_has_room_for() {
    let qos = PortQos { vlarb_low: vec![turn(9, 1); 40], ..PortQos::default() };
    let blocks = qos.arbitration(VlCap::VL0_7, 36, 8);
    let numbers: Vec<u8> = blocks.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(blocks[0].1.entries, [turn(1, 1); 32], "VL 9 is VL 1 of eight");
    let second = blocks[1].1.entries;
    assert_eq!((second[3], second[4]), (turn(1, 1), turn(0, 0)), "36 turns in all");
    let high = blocks[2].1.entries;
    assert_eq!((high[0], high[7], high[8]), (turn(0, 4), turn(7, 0), turn(0, 0)));
    assert_eq!(qos.arbitration(VlCap::VL0_7, 0, 0), []);
}

#[test]
fn as_many_vls_as_a_port_may_use() {
    let cap = |max_vls| PortQos { max_vls, ..PortQos::default() }.vl_cap();
    let wanted = [(15, VlCap::VL0_14), (14, VlCap::VL0_7), (8, VlCap::VL0_7), (3, VlCap::VL0_1)];
    for (vls, code) in wanted.into_iter().chain([(1, VlCap::VL0), (0, VlCap::VL0)]) {
        assert_eq!(cap(vls), code, "{vls}");
    }
}
