//! Memory windows, re-registration of regions, and resizing of queues.

use ib_hca::{
    AccessFlags, CreateError, Data, DestroyError, HcaConfig, HcaEvent, KeyError, Memory, MwId,
    MwType, PostError, QpId, RegionError, RemoteAddress, Reregistration, ResizeError, SendFlags,
    SendOp, SendWr, WcOpcode, WcStatus, WindowBinding,
};

use crate::ALL;
use crate::pair::{Pair, Region, Wiring};

const BINDABLE: AccessFlags = AccessFlags(AccessFlags::ALL.0 | AccessFlags::MW_BIND.0);

fn window(pair: &mut Pair, mw_type: MwType) -> (MwId, u32) {
    let side = &mut pair.sides[1];
    let mw = side.hca.alloc_mw(side.pd, mw_type).expect("the HCA has room");
    (mw, side.hca.window_key(mw).expect("the window exists"))
}

/// Returns a binding of bytes 100 to 199 of a region.
fn binding(rkey: u32, region: &Region, access: AccessFlags) -> WindowBinding {
    let key = (rkey as u8).wrapping_add(1);
    WindowBinding { rkey, key, lkey: region.key, addr: region.addr + 100, length: 100, access }
}

/// Executes a binding by side 1. Returns the status and the new key.
fn bind(pair: &mut Pair, qp: QpId, binding: WindowBinding) -> (WcStatus, u32) {
    pair.send(1, qp, 50, SendOp::BindWindow(Box::new(binding)), Data::None);
    pair.run();
    let done = pair.done(1);
    assert_eq!((done.len(), done[0].wr_id), (1, 50));
    (done[0].status, binding.rkey & !0xff | u32::from(binding.key))
}

/// Writes 8 bytes by side 0 and returns the status.
fn write(pair: &mut Pair, qp: QpId, near: &Region, addr: u64, rkey: u32) -> WcStatus {
    let to = RemoteAddress { addr, rkey };
    pair.send(0, qp, 1, SendOp::Write { to, imm: None }, near.data(0, 8));
    pair.run();
    pair.done(0).last().expect("the request completes").status
}

/// Two connected sides, a region of each, and a bound window of side 1.
fn bound(mw_type: MwType, access: AccessFlags) -> (Pair, [QpId; 2], [Region; 2], MwId, u32) {
    let mut pair = Pair::new(3);
    let qps = pair.connect(&Wiring::default());
    let regions = [pair.region(0, 1000, ALL), pair.region(1, 1000, BINDABLE)];
    regions[0].memory.fill(0, 8, 0xab).expect("in range");
    let (mw, rkey) = window(&mut pair, mw_type);
    let (status, rkey) = bind(&mut pair, qps[1], binding(rkey, &regions[1], access));
    assert_eq!(status, WcStatus::Success);
    assert_eq!(pair.sides[1].hca.window_key(mw), Some(rkey));
    (pair, qps, regions, mw, rkey)
}

#[test]
fn window_gives_access_to_its_part_only() {
    for (offset, expected) in [
        (100, WcStatus::Success),
        (192, WcStatus::Success),
        (99, WcStatus::RemAccessErr),
        (193, WcStatus::RemAccessErr),
    ] {
        for mw_type in [MwType::One, MwType::Two] {
            let (mut pair, qps, [near, far], _, rkey) = bound(mw_type, AccessFlags::REMOTE_WRITE);
            let found = write(&mut pair, qps[0], &near, far.addr + offset, rkey);
            assert_eq!(found, expected, "offset {offset}, window type {mw_type:?}");
            let byte = if expected == WcStatus::Success { 0xab } else { 0 };
            assert_eq!(far.bytes(offset as usize, 8), [byte; 8]);
        }
    }
}

#[test]
fn zero_based_window_begins_at_address_0() {
    let access = AccessFlags::REMOTE_WRITE | AccessFlags::ZERO_BASED;
    let (mut pair, qps, [near, far], _, rkey) = bound(MwType::Two, access);
    assert_eq!(write(&mut pair, qps[0], &near, 92, rkey), WcStatus::Success);
    assert_eq!(far.bytes(192, 8), [0xab; 8]);
    assert_eq!(write(&mut pair, qps[0], &near, 93, rkey), WcStatus::RemAccessErr);
}

#[test]
fn reads_and_atomics_need_the_flags_of_the_window() {
    let (read, atomic) = (AccessFlags::REMOTE_READ, AccessFlags::REMOTE_ATOMIC);
    for access in [read, atomic, AccessFlags::REMOTE_WRITE] {
        let (_, _, [_, far], _, _) = bound(MwType::One, access);
        let at = |rkey| RemoteAddress { addr: far.addr + 104, rkey };
        for needed in [read, atomic] {
            let (mut pair, qps, [near, _], _, rkey) = bound(MwType::One, access);
            let op = if needed == read {
                SendOp::Read { from: at(rkey) }
            } else {
                SendOp::FetchAdd { at: at(rkey), add: 1 }
            };
            pair.send(0, qps[0], 1, op, near.data(0, 8));
            pair.run();
            let status = pair.done(0)[0].status;
            assert_eq!(
                status == WcStatus::Success,
                access == needed,
                "the window has {access:?}, the request needs {needed:?}"
            );
        }
    }
}

#[test]
fn invalid_bindings_fail_with_mw_bind_err() {
    type Change = fn(&mut WindowBinding);
    let changes: [(MwType, Change); 8] = [
        (MwType::One, |it| it.rkey ^= 1),
        (MwType::One, |it| it.key = it.rkey as u8),
        (MwType::One, |it| it.lkey ^= 1),
        (MwType::One, |it| it.length = 901),
        (MwType::One, |it| it.addr -= 101),
        (MwType::One, |it| it.access = AccessFlags::ZERO_BASED),
        (MwType::Two, |it| it.length = 0),
        (MwType::Two, |it| it.access = AccessFlags(1 << 8)),
    ];
    for (number, (mw_type, change)) in changes.into_iter().enumerate() {
        let mut pair = Pair::new(9);
        let qps = pair.connect(&Wiring::default());
        let far = pair.region(1, 1000, BINDABLE);
        let (mw, rkey) = window(&mut pair, mw_type);
        let mut request = binding(rkey, &far, AccessFlags::REMOTE_READ);
        change(&mut request);
        assert_eq!(bind(&mut pair, qps[1], request).0, WcStatus::MwBindErr, "case {number}");
        assert_eq!(pair.sides[1].hca.window_key(mw), Some(rkey));
    }
}

#[test]
fn binding_needs_the_flags_of_the_region() {
    let read_only = AccessFlags::REMOTE_READ | AccessFlags::MW_BIND;
    for (region, access, expected) in [
        (ALL, AccessFlags::REMOTE_READ, WcStatus::MwBindErr),
        (read_only, AccessFlags::REMOTE_WRITE, WcStatus::MwBindErr),
        (read_only, AccessFlags::REMOTE_ATOMIC, WcStatus::MwBindErr),
        (read_only, AccessFlags::REMOTE_READ, WcStatus::Success),
    ] {
        let mut pair = Pair::new(9);
        let qps = pair.connect(&Wiring::default());
        let far = pair.region(1, 1000, region);
        let (_, rkey) = window(&mut pair, MwType::One);
        assert_eq!(bind(&mut pair, qps[1], binding(rkey, &far, access)).0, expected);
    }
}

#[test]
fn type_2_window_belongs_to_its_queue_pair() {
    for (mw_type, expected) in
        [(MwType::One, WcStatus::Success), (MwType::Two, WcStatus::RemAccessErr)]
    {
        let (mut pair, _, [near, far], _, rkey) = bound(mw_type, AccessFlags::REMOTE_WRITE);
        let others = pair.connect(&Wiring::default());
        let found = write(&mut pair, others[0], &near, far.addr + 100, rkey);
        assert_eq!(found, expected, "{mw_type:?}");
    }
}

#[test]
fn type_2_window_is_bound_again_after_invalidation() {
    let (mut pair, qps, [near, far], _, rkey) = bound(MwType::Two, AccessFlags::REMOTE_WRITE);
    pair.send(1, qps[1], 2, SendOp::LocalInvalidate { rkey }, Data::None);
    pair.run();
    let wc = pair.done(1)[0];
    assert_eq!((wc.status, wc.opcode), (WcStatus::Success, WcOpcode::LocalInv));
    let (status, rkey) = bind(&mut pair, qps[1], binding(rkey, &far, AccessFlags::REMOTE_WRITE));
    assert_eq!(status, WcStatus::Success);
    assert_eq!(write(&mut pair, qps[0], &near, far.addr + 100, rkey), WcStatus::Success);
    let second = binding(rkey, &far, AccessFlags::REMOTE_WRITE);
    assert_eq!(bind(&mut pair, qps[1], second).0, WcStatus::MwBindErr, "it is still bound");
}

#[test]
fn peer_invalidates_type_2_window_but_not_type_1() {
    for (mw_type, expected) in
        [(MwType::Two, WcStatus::Success), (MwType::One, WcStatus::RetryExcErr)]
    {
        let (mut pair, qps, [near, far], mw, rkey) = bound(mw_type, AccessFlags::REMOTE_WRITE);
        pair.receive(1, qps[1], 7, far.data(0, 8));
        pair.send(0, qps[0], 1, SendOp::SendInvalidate { rkey }, near.data(0, 8));
        pair.run();
        assert_eq!(pair.done(0)[0].status, expected);
        let received = pair.done(1)[0];
        if mw_type == MwType::Two {
            assert_eq!(received.invalidated_rkey, Some(rkey));
            let found = write(&mut pair, qps[0], &near, far.addr + 100, rkey);
            assert_eq!(found, WcStatus::RemAccessErr);
            assert_eq!(pair.sides[1].hca.dereg_mr(far.mr), Ok(()));
        } else {
            // The peer gets no NAK (IBTA volume 1, 9.9.6.3, class J).
            assert_eq!(received.status, WcStatus::LocProtErr);
            assert_eq!(pair.sides[1].hca.dereg_mr(far.mr), Err(RegionError::InUse(1)));
        }
        assert_eq!(pair.sides[1].hca.dealloc_mw(mw), Ok(()));
    }
}

#[test]
fn region_with_bound_windows_stays_registered() {
    for mw_type in [MwType::One, MwType::Two] {
        let (mut pair, qps, [_, far], mw, rkey) = bound(mw_type, AccessFlags::REMOTE_READ);
        let hca = &mut pair.sides[1].hca;
        assert_eq!(hca.dereg_mr(far.mr), Err(RegionError::InUse(1)));
        let change = Reregistration { access: Some(ALL), ..Reregistration::default() };
        assert_eq!(hca.rereg_mr(far.mr, &change), Err(RegionError::InUse(1)));
        if mw_type == MwType::One {
            let unbinding =
                WindowBinding { length: 0, ..binding(rkey, &far, AccessFlags::default()) };
            assert_eq!(bind(&mut pair, qps[1], unbinding).0, WcStatus::Success);
        } else {
            assert_eq!(hca.destroy_qp(qps[1]), Ok(()));
        }
        let side = &mut pair.sides[1];
        assert_eq!(side.hca.dereg_mr(far.mr), Ok(()));
        let pd = DestroyError::InUse("protection domain");
        assert_eq!(side.hca.dealloc_pd(side.pd), Err(pd));
        assert_eq!(side.hca.dealloc_mw(mw), Ok(()));
        assert_eq!(side.hca.dealloc_mw(mw), Err(DestroyError::NoSuch("memory window")));
    }
}

#[test]
fn window_count_is_limited() {
    let config = HcaConfig { max_mr: 1, ..HcaConfig::new(ib_types::Guid(1), vec![]) };
    let mut hca = ib_hca::Hca::new(config, [1; 32]);
    let pd = hca.alloc_pd().expect("room");
    hca.alloc_mw(pd, MwType::One).expect("room");
    let full = CreateError::Full { objects: "memory windows", most: 1 };
    assert_eq!(hca.alloc_mw(pd, MwType::Two), Err(full));
}

#[test]
fn window_key_is_no_local_key() {
    let (mut pair, qps, _, _, rkey) = bound(MwType::One, AccessFlags::REMOTE_READ);
    let sge = ib_hca::Sge { addr: 0x1000_0000 + 100, length: 8, lkey: rkey };
    let wr = SendWr {
        wr_id: 1,
        op: SendOp::Send { imm: None },
        data: Data::One(sge),
        flags: SendFlags::default(),
    };
    let side = &mut pair.sides[1];
    let refused = side.hca.post_send(pair.now, qps[1], wr);
    let why = KeyError::Unknown(rkey);
    assert_eq!(refused, Err(PostError::Sge { index: 0, why }));
}

#[test]
fn fenced_binding_waits_for_reads() {
    let mut pair = Pair::new(4);
    let qps = pair.connect(&Wiring::default());
    let (far, near) = (pair.region(0, 9000, ALL), pair.region(1, 9000, BINDABLE));
    let (mw, rkey) = window(&mut pair, MwType::One);
    let flags = SendFlags { signaled: true, fence: true, ..SendFlags::default() };
    pair.send(1, qps[1], 1, SendOp::Read { from: far.remote(0) }, near.data(0, 9000));
    let op = SendOp::BindWindow(Box::new(binding(rkey, &near, AccessFlags::REMOTE_READ)));
    pair.post(1, qps[1], SendWr { wr_id: 2, op, data: Data::None, flags });
    let mut done = Vec::new();
    while pair.step() {
        let new = pair.done(1);
        if done.is_empty() && new.is_empty() {
            let key = pair.sides[1].hca.window_key(mw);
            assert_eq!(key, Some(rkey), "the window is bound before the READ has completed");
        }
        done.extend(new.iter().map(|wc| (wc.wr_id, wc.status)));
    }
    assert_eq!(done, [(1, WcStatus::Success), (2, WcStatus::Success)]);
    assert_ne!(pair.sides[1].hca.window_key(mw), Some(rkey));
}

#[test]
fn reregistered_region_keeps_its_key() {
    let mut pair = Pair::new(6);
    let qps = pair.connect(&Wiring::default());
    let (near, far) = (pair.region(0, 100, ALL), pair.region(1, 100, ALL));
    near.memory.fill(0, 8, 0xab).expect("in range");
    let memory = Memory::zeroed(300).expect("memory");
    let hca = &mut pair.sides[1].hca;
    let range = Some((&memory, 200, 100, 0x5000));
    hca.rereg_mr(far.mr, &Reregistration { range, ..Reregistration::default() }).expect("valid");
    assert_eq!(hca.key(far.mr), Some(far.key));
    assert_eq!(write(&mut pair, qps[0], &near, 0x5000, far.key), WcStatus::Success);
    assert_eq!(memory.to_vec(200, 8).expect("in range"), [0xab; 8]);
    assert_eq!(far.bytes(0, 100), [0; 100]);
    let access = Some(AccessFlags::REMOTE_READ);
    let hca = &mut pair.sides[1].hca;
    hca.rereg_mr(far.mr, &Reregistration { access, ..Reregistration::default() }).expect("valid");
    assert_eq!(write(&mut pair, qps[0], &near, 0x5000, far.key), WcStatus::RemAccessErr);
}

#[test]
fn invalid_reregistration_changes_nothing() {
    let mut pair = Pair::new(6);
    let qps = pair.connect(&Wiring::default());
    let (near, far) = (pair.region(0, 100, ALL), pair.region(1, 100, ALL));
    let hca = &mut pair.sides[1].hca;
    let range = Some((&far.memory, 50, 51, 0));
    let access = Some(AccessFlags::REMOTE_WRITE);
    let none = Reregistration::default();
    assert_eq!(
        hca.rereg_mr(far.mr, &Reregistration { range, ..none }),
        Err(RegionError::Range { offset: 50, length: 51, size: 100 })
    );
    assert_eq!(
        hca.rereg_mr(far.mr, &Reregistration { access, ..none }),
        Err(RegionError::Access(AccessFlags::REMOTE_WRITE))
    );
    let pd = hca.alloc_pd().expect("room");
    let fast = hca.alloc_mr(pd).expect("room");
    assert_eq!(hca.rereg_mr(fast, &none), Err(RegionError::Fast));
    assert_eq!(write(&mut pair, qps[0], &near, far.addr, far.key), WcStatus::Success);
    let hca = &mut pair.sides[1].hca;
    hca.rereg_mr(far.mr, &Reregistration { pd: Some(pd), ..none }).expect("valid");
    let found = write(&mut pair, qps[0], &near, far.addr, far.key);
    assert_eq!(found, WcStatus::RemAccessErr, "the queue pair has the other PD");
}

#[test]
fn resized_cq_keeps_completions_and_arming() {
    let mut pair = Pair::new(2);
    let qps = pair.connect(&Wiring::default());
    let region = pair.region(0, 100, ALL);
    let (cq, most) = (pair.sides[0].cq, pair.sides[0].hca.config().max_cqe);
    let value = |found, least| Err(ResizeError::Value { attribute: "cqe", found, least, most });
    let far = pair.region(1, 100, ALL);
    let hca = &mut pair.sides[0].hca;
    assert_eq!(hca.resize_cq(cq, 0), value(0, 1));
    assert_eq!(hca.resize_cq(cq, most + 1), value(most + 1, 1));
    hca.req_notify_cq(cq, false);
    assert_eq!(hca.resize_cq(cq, 2), Ok(()));
    let write = SendOp::Write { to: far.remote(0), imm: None };
    for wr_id in 0..2 {
        pair.send(0, qps[0], wr_id, write.clone(), region.data(0, 8));
    }
    pair.run();
    let done = pair.done(0);
    assert_eq!(done.iter().map(|wc| wc.wr_id).collect::<Vec<_>>(), [0, 1]);
    let is_event = |event: &HcaEvent| matches!(event, HcaEvent::Completion(id) if *id == cq);
    assert_eq!(pair.sides[0].events.iter().filter(|event| is_event(event)).count(), 1);
}

#[test]
fn resized_srq_keeps_receives_and_limit() {
    let mut pair = Pair::new(2);
    let region = pair.region(0, 100, ALL);
    let side = &mut pair.sides[0];
    let srq = side.hca.create_srq(side.pd, 4, 1).expect("valid");
    let most = side.hca.config().max_qp_wr;
    let receive = || ib_hca::RecvWr { wr_id: 1, data: region.data(0, 10) };
    for _ in 0..4 {
        side.hca.post_srq_recv(srq, receive()).expect("room");
    }
    assert_eq!(side.hca.post_srq_recv(srq, receive()), Err(PostError::Full(4)));
    let value = |found, least| Err(ResizeError::Value { attribute: "max_wr", found, least, most });
    assert_eq!(side.hca.resize_srq(srq, 3), value(3, 4));
    assert_eq!(side.hca.resize_srq(srq, most + 1), value(most + 1, 1));
    assert_eq!(side.hca.resize_srq(srq, 6), Ok(()));
    assert!(side.hca.arm_srq(srq, 6));
    assert_eq!(side.hca.resize_srq(srq, 5), value(5, 6));
    assert_eq!(side.hca.srq_len(srq), Some(4));
    side.hca.post_srq_recv(srq, receive()).expect("room");
}
