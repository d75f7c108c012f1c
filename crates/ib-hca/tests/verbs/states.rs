//! All state transitions of all queue pair types, and which requests can be posted in each state.

use ib_hca::{
    Data, ModifyError, PostError, QpAttr, QpState, QpType, RecvWr, SendFlags, SendOp, SendWr,
};
use ib_types::{Mtu, PKey, Psn, QKey, Qpn};

use crate::pair::{Pair, Wiring};

use QpState as S;
use QpType as T;

/// Returns true for the state transitions that verbs allow. All others must be refused.
fn is_legal(from: S, to: S) -> bool {
    matches!(
        (from, to),
        (_, S::Reset | S::Err)
            | (S::Reset | S::Init, S::Init)
            | (S::Init, S::Rtr)
            | (S::Rtr | S::Rts | S::Sqd, S::Rts)
            | (S::Rts | S::Sqd, S::Sqd)
    )
}

/// Returns a change from state `from` to state `to`, with all attributes that the transition requires.
fn required(pair: &Pair, qp_type: T, from: S, to: S) -> QpAttr {
    let (connected, reliable) = (qp_type != T::Ud, qp_type == T::Rc);
    let none = QpAttr { qp_state: Some(to), ..QpAttr::default() };
    match (from, to) {
        (S::Reset, S::Init) => QpAttr {
            pkey: Some(PKey::DEFAULT),
            qkey: (!connected).then_some(QKey(1)),
            qp_access_flags: connected.then_some(ib_hca::AccessFlags::ALL),
            ..none
        },
        (S::Init, S::Rtr) => QpAttr {
            route: connected.then_some(pair.route(0)),
            path_mtu: connected.then_some(Mtu::B1024),
            dest_qp_num: connected.then_some(Qpn::truncated(77)),
            rq_psn: connected.then_some(Psn::truncated(1)),
            max_dest_rd_atomic: reliable.then_some(1),
            min_rnr_timer: reliable.then_some(1),
            ..none
        },
        (S::Rtr, S::Rts) => QpAttr {
            sq_psn: Some(Psn::truncated(1)),
            timeout: reliable.then_some(14),
            retry_cnt: reliable.then_some(7),
            rnr_retry: reliable.then_some(7),
            max_rd_atomic: reliable.then_some(1),
            ..none
        },
        _ => none,
    }
}

/// Creates a queue pair and changes it to the given state.
fn qp_in_state(pair: &mut Pair, qp_type: T, state: S) -> ib_hca::QpId {
    let qp = pair.create(0, &Wiring { qp_type, ..Wiring::default() });
    let states: &[S] = match state {
        S::Reset => &[],
        S::Init => &[S::Init],
        S::Rtr => &[S::Init, S::Rtr],
        S::Rts | S::Sqe => &[S::Init, S::Rtr, S::Rts],
        S::Sqd => &[S::Init, S::Rtr, S::Rts, S::Sqd],
        S::Err => &[S::Err],
    };
    let mut from = S::Reset;
    for &to in states {
        let attr = required(pair, qp_type, from, to);
        pair.modify(0, qp, &attr);
        from = to;
    }
    qp
}

#[test]
fn only_the_transitions_of_verbs_are_allowed() {
    for qp_type in [T::Rc, T::Uc, T::Ud] {
        for from in S::ALL.into_iter().filter(|&from| from != S::Sqe) {
            for to in S::ALL {
                let mut pair = Pair::new(1);
                let qp = qp_in_state(&mut pair, qp_type, from);
                let attr = required(&pair, qp_type, from, to);
                let now = pair.now;
                let made = pair.sides[0].hca.modify_qp(now, qp, &attr);
                if is_legal(from, to) {
                    assert_eq!(made, Ok(()), "{qp_type:?} from {from:?} to {to:?}");
                    assert_eq!(pair.state_of(0, qp), to);
                } else {
                    let refused = ModifyError::Transition { qp_type, from, to };
                    assert_eq!(made, Err(refused));
                    assert_eq!(pair.state_of(0, qp), from);
                }
            }
        }
    }
}

#[test]
fn missing_and_forbidden_attributes_are_named() {
    for qp_type in [T::Rc, T::Uc, T::Ud] {
        for (from, to) in [(S::Reset, S::Init), (S::Init, S::Rtr), (S::Rtr, S::Rts)] {
            let mut pair = Pair::new(1);
            let qp = qp_in_state(&mut pair, qp_type, from);
            let attr = QpAttr { qp_state: Some(to), ..QpAttr::default() };
            let now = pair.now;
            let made = pair.sides[0].hca.modify_qp(now, qp, &attr);
            let is_empty = attr == required(&pair, qp_type, from, to);
            match made {
                Ok(()) => assert!(is_empty, "{qp_type:?} from {from:?} to {to:?}"),
                Err(error) => assert!(
                    matches!(error, ModifyError::Missing { from: f, to: t, .. } if (f, t) == (from, to)),
                    "{error}"
                ),
            }
        }
    }
    let mut pair = Pair::new(1);
    let qp = qp_in_state(&mut pair, T::Rc, S::Rts);
    let now = pair.now;
    let mut modify = |attr: QpAttr| pair.sides[0].hca.modify_qp(now, qp, &attr);
    let error = modify(QpAttr { sq_psn: Some(Psn::truncated(3)), ..QpAttr::default() });
    assert!(matches!(error, Err(ModifyError::Forbidden { .. })), "{error:?}");
    modify(QpAttr { qp_state: Some(S::Sqd), ..QpAttr::default() })
        .expect("the transition is valid");
    let error = modify(QpAttr { timeout: Some(32), ..QpAttr::default() });
    assert!(matches!(error, Err(ModifyError::Value { found: 32, most: 31, .. })), "{error:?}");
    let elsewhere = ib_link::Route { is_global: true, ..ib_link::Route::default() };
    let error = modify(QpAttr { route: Some(elsewhere), ..QpAttr::default() });
    assert!(matches!(error, Err(ModifyError::Source(_))), "{error:?}");
}

#[test]
fn requests_can_be_posted_in_the_states_of_verbs() {
    for qp_type in [T::Rc, T::Uc, T::Ud] {
        for state in S::ALL.into_iter().filter(|&state| state != S::Sqe) {
            let mut pair = Pair::new(1);
            let qp = qp_in_state(&mut pair, qp_type, state);
            let route = pair.route(0);
            let side = &mut pair.sides[0];
            let ah = side.hca.create_ah(side.pd, route).expect("the route starts at the port");
            let to =
                ib_hca::UdDestination { ah, remote_qpn: Qpn::truncated(77), remote_qkey: QKey(1) };
            let op = match qp_type {
                T::Ud => SendOp::SendDatagram { to, imm: None },
                _ => SendOp::Send { imm: None },
            };
            let flags = SendFlags::default();
            let wr = SendWr { wr_id: 1, op, data: Data::None, flags };
            let sent = side.hca.post_send(pair.now, qp, wr);
            let sends = matches!(state, S::Rts | S::Sqd | S::Err);
            assert_eq!(sent.is_ok(), sends, "{qp_type:?} in {state:?}: {sent:?}");
            if let Err(error) = sent {
                assert!(matches!(error, PostError::State { found, .. } if found == state));
            }
            let received = side.hca.post_recv(pair.now, qp, RecvWr { wr_id: 2, data: Data::None });
            assert_eq!(received.is_ok(), state != S::Reset, "{qp_type:?} in {state:?}");
            pair.step();
            // Requests posted in the error state are flushed immediately.
            let flushed = usize::from(state == S::Err) * 2;
            let ended = pair.done(0).iter().filter(|wc| wc.status == FLUSHED).count();
            assert_eq!(ended, flushed, "{qp_type:?} in {state:?}");
        }
    }
}

const FLUSHED: ib_hca::WcStatus = ib_hca::WcStatus::WrFlushErr;

#[test]
fn invalid_requests_are_refused_with_a_reason() {
    let mut pair = Pair::new(1);
    let cap = ib_hca::QpCap {
        max_send_wr: 2,
        max_recv_wr: 1,
        max_send_sge: 2,
        max_recv_sge: 1,
        max_inline_data: 8,
    };
    let qps = pair.connect(&Wiring { cap, reads: 0, ..Wiring::default() });
    let region = pair.region(0, 100, ib_hca::AccessFlags::REMOTE_READ);
    let now = pair.now;
    let hca = &mut pair.sides[0].hca;
    let send = |op: SendOp, data: Data| SendWr { wr_id: 1, op, data, flags: SendFlags::default() };
    let plain = || SendOp::Send { imm: None };
    let mut refused =
        |wr: SendWr| hca.post_send(now, qps[0], wr).expect_err("the request is invalid");
    let beyond = refused(send(plain(), region.data(90, 11)));
    let (key, address) = (region.key, region.addr + 90);
    let why = ib_hca::KeyError::Range { key, address, length: 11 };
    assert_eq!(beyond, PostError::Sge { index: 0, why });
    let wrong = ib_hca::Sge { lkey: region.key ^ 0x1000, ..region.sge(0, 1) };
    let error = refused(send(plain(), Data::One(wrong)));
    assert!(matches!(error, PostError::Sge { index: 0, .. }), "{error}");
    let error = refused(send(plain(), Data::Many(vec![region.sge(0, 1); 3].into())));
    assert_eq!(error, PostError::TooManySges { found: 3, most: 2 });
    let error = refused(send(plain(), Data::Inline(vec![0; 9].into())));
    assert_eq!(error, PostError::TooMuchInline { found: 9, most: 8 });
    let error = refused(send(SendOp::Read { from: region.remote(0) }, region.data(0, 4)));
    assert_eq!(error, PostError::NoReads);
    let at = region.remote(0);
    let error = refused(send(SendOp::FetchAdd { at, add: 1 }, region.data(0, 9)));
    assert_eq!(error, PostError::AtomicLength(9));
    let recv = |data: Data| RecvWr { wr_id: 1, data };
    let error = hca
        .post_recv(now, qps[0], recv(Data::Many(vec![region.sge(0, 1); 3].into())))
        .expect_err("the receive has too many SGEs");
    assert!(matches!(error, PostError::TooManySges { found: 3, .. }), "{error}");
    hca.post_recv(now, qps[0], recv(Data::None)).expect("the receive queue has room");
    let full = hca.post_recv(now, qps[0], recv(Data::None));
    assert_eq!(full, Err(PostError::Full(1)));
    for _ in 0..2 {
        hca.post_send(now, qps[0], send(plain(), region.data(0, 4)))
            .expect("the send queue has room");
    }
    let full = hca.post_send(now, qps[0], send(plain(), Data::None));
    assert_eq!(full, Err(PostError::Full(2)));
    // A destroyed queue pair no longer exists for any function.
    let mut pair = Pair::new(1);
    let qp = pair.create(0, &Wiring::default());
    let now = pair.now;
    let hca = &mut pair.sides[0].hca;
    assert_eq!(hca.destroy_qp(qp), Ok(()));
    assert!(hca.destroy_qp(qp).is_err() && hca.query_qp(qp).is_none());
    assert_eq!(hca.post_send(now, qp, send(plain(), Data::None)), Err(PostError::NoSuchQueue));
    assert_eq!(hca.modify_qp(now, qp, &QpAttr::default()), Err(ModifyError::NoSuchQp));
}
