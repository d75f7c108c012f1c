//! Compares the result of every message, call and timer in every state with `transitions.txt`.

use std::fmt::Write as _;

use ib_wire::mad::cm::{
    Apr, Drep, Dreq, Lap, Mra, ReferencedMessage, Rej, RejectReason, Rep, Req, Rtu, SidrRep,
};

use super::*;
use crate::connection::message;

/// The peer's communication ID.
const PEER: u32 = 0x77;
const PEER_GUID: Guid = Guid(9);

/// The initial state of a connection, and how the connection has come into this state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Nothing,
    ReqSent,
    RepReceived,
    EstablishedActive,
    ReqReceived,
    RepSent,
    EstablishedPassive,
    DreqSent,
    DreqSentPassive,
    /// Time-wait after a received DREQ.
    Ended,
    EndedPassive,
    /// Time-wait after a sent REJ.
    Refused,
    /// Time-wait after a received REJ.
    Rejected,
    /// Time-wait after the consumer closed the connection in the state `ReqSent`.
    GivenUp,
}

const STARTS: [Start; 14] = [
    Start::Nothing,
    Start::ReqSent,
    Start::RepReceived,
    Start::EstablishedActive,
    Start::ReqReceived,
    Start::RepSent,
    Start::EstablishedPassive,
    Start::DreqSent,
    Start::DreqSentPassive,
    Start::Ended,
    Start::EndedPassive,
    Start::Refused,
    Start::Rejected,
    Start::GivenUp,
];

/// Messages of the peer, calls of the consumer, and the expiration of a timer.
///
/// * "other": the field differs from that of the connection.
/// * "by HCA": the REJ contains the GUID of the peer's HCA instead of the local communication ID.
/// * "last": no retransmission is left.
const STIMULI: [&str; 32] = [
    "REQ",
    "REQ, other PSN",
    "REQ, other id",
    "REP",
    "REP, other id",
    "RTU",
    "REJ of REQ, id 0",
    "REJ of REQ",
    "REJ of REP",
    "REJ by HCA",
    "MRA of REQ",
    "MRA of REP",
    "DREQ",
    "DREQ, other QPN",
    "DREQ, other id",
    "DREP",
    "LAP",
    "LAP, other QPN",
    "APR",
    "SIDR_REP",
    "established",
    "accept",
    "reject",
    "mra",
    "message_received",
    "disconnect",
    "close",
    "timer",
    "timer, last",
    "connect",
    "unlisten, REQ",
    "bad version",
];

fn apply_message(cm: &mut Cm, mad: &Mad) {
    assert!(cm.handle(NOW, &route(1, 9), mad));
}

fn req(comm_id: u32, starting_psn: u32) -> Mad {
    let path = ib_wire::mad::cm::ConnectPath {
        local_ack_timeout: 19,
        ..ib_wire::mad::cm::ConnectPath::zeroed()
    };
    let req = Req {
        local_comm_id: comm_id,
        service_id: SERVICE.0,
        local_ca_guid: PEER_GUID,
        local_qpn: qpn(0x99),
        starting_psn: psn(starting_psn),
        local_cm_response_timeout: 16,
        max_cm_retries: 3,
        path_mtu: ib_wire::mad::sm::MtuCode::MTU_1024,
        primary_path: path,
        ..Req::zeroed()
    };
    message(TransactionId(5), &req)
}

fn rep(own: u32, comm_id: u32) -> Mad {
    let rep = Rep {
        local_comm_id: comm_id,
        remote_comm_id: own,
        local_qpn: qpn(0x99),
        local_ca_guid: PEER_GUID,
        ..Rep::zeroed()
    };
    message(TransactionId(5), &rep)
}

fn rej(own: u32, comm_id: u32, what: ReferencedMessage) -> Mad {
    let reason = RejectReason::CONSUMER;
    let (local_comm_id, remote_comm_id) = (comm_id, own);
    let rej = Rej { local_comm_id, remote_comm_id, message: what, reason, ..Rej::zeroed() };
    message(TransactionId(5), &rej)
}

fn mra(own: u32, what: ReferencedMessage) -> Mad {
    let mra = Mra {
        local_comm_id: PEER,
        remote_comm_id: own,
        message: what,
        service_timeout: 20,
        ..Mra::zeroed()
    };
    message(TransactionId(5), &mra)
}

fn dreq(own: u32, comm_id: u32, number: u32) -> Mad {
    let dreq = Dreq {
        local_comm_id: comm_id,
        remote_comm_id: own,
        remote_qpn: qpn(number),
        ..Dreq::zeroed()
    };
    message(TransactionId(6), &dreq)
}

/// Returns a CM with a connection in the given state, and the connection ID.
fn start(start: Start) -> (Cm, ConnectionId) {
    let mut cm = manager(1);
    cm.listen(SERVICE).unwrap();
    let is_passive = matches!(
        start,
        Start::ReqReceived
            | Start::RepSent
            | Start::EstablishedPassive
            | Start::DreqSentPassive
            | Start::EndedPassive
            | Start::Refused
    );
    let id = if start == Start::Nothing {
        ConnectionId(0x55)
    } else if is_passive {
        apply_message(&mut cm, &req(PEER, 7));
        requested(&mut cm).id
    } else {
        cm.connect(NOW, &ConnectParams { route: route(1, 9), ..request(0x10) }).unwrap()
    };
    match start {
        Start::Nothing | Start::ReqSent | Start::ReqReceived => {}
        Start::RepReceived => apply_message(&mut cm, &rep(id.0, PEER)),
        Start::EstablishedActive | Start::DreqSent | Start::Ended => {
            apply_message(&mut cm, &rep(id.0, PEER));
            cm.established(id, b"").unwrap();
            if start == Start::DreqSent {
                cm.disconnect(NOW, id, b"").unwrap();
            } else if start == Start::Ended {
                apply_message(&mut cm, &dreq(id.0, PEER, 0x10));
            }
        }
        Start::RepSent => cm.accept(NOW, id, &acceptance(0x10)).unwrap(),
        Start::EstablishedPassive | Start::DreqSentPassive | Start::EndedPassive => {
            cm.accept(NOW, id, &acceptance(0x10)).unwrap();
            cm.message_received(id).unwrap();
            if start == Start::DreqSentPassive {
                cm.disconnect(NOW, id, b"").unwrap();
            } else if start == Start::EndedPassive {
                apply_message(&mut cm, &dreq(id.0, PEER, 0x10));
            }
        }
        Start::Rejected => apply_message(&mut cm, &rej(id.0, 0, ReferencedMessage::REQ)),
        Start::Refused => cm.reject(NOW, id, RejectReason::CONSUMER, b"no").unwrap(),
        Start::GivenUp => cm.close(NOW, id).unwrap(),
    }
    sent(&mut cm);
    events(&mut cm);
    (cm, id)
}

/// Delivers the message, makes the call or runs the timer that a stimulus names. Returns the result of a call.
fn apply(cm: &mut Cm, id: ConnectionId, stimulus: &str) -> Result<(), CmError> {
    let own = id.0;
    let ids = (PEER, own);
    let mad = match stimulus {
        "REQ" => req(PEER, 7),
        "REQ, other PSN" => req(PEER, 8),
        "REQ, other id" => req(PEER + 1, 7),
        "REP" => rep(own, PEER),
        "REP, other id" => rep(own, PEER + 1),
        "RTU" => {
            let (local_comm_id, remote_comm_id) = ids;
            let rtu = Rtu { local_comm_id, remote_comm_id, ..Rtu::zeroed() };
            message(TransactionId(5), &rtu)
        }
        "REJ of REQ, id 0" => rej(own, 0, ReferencedMessage::REQ),
        "REJ of REQ" => rej(own, PEER, ReferencedMessage::REQ),
        "REJ of REP" => rej(own, PEER, ReferencedMessage::REP),
        "REJ by HCA" => {
            let mut rej = Rej {
                local_comm_id: PEER,
                info_length: 8,
                reason: RejectReason::TIMEOUT,
                ..Rej::zeroed()
            };
            rej.info[7] = 9;
            message(TransactionId(5), &rej)
        }
        "MRA of REQ" => mra(own, ReferencedMessage::REQ),
        "MRA of REP" => mra(own, ReferencedMessage::REP),
        "DREQ" => dreq(own, PEER, 0x10),
        "DREQ, other QPN" => dreq(own, PEER, 0x11),
        "DREQ, other id" => dreq(own, PEER + 1, 0x10),
        "DREP" => {
            let (local_comm_id, remote_comm_id) = ids;
            let drep = Drep { local_comm_id, remote_comm_id, ..Drep::zeroed() };
            message(TransactionId(5), &drep)
        }
        "LAP" | "LAP, other QPN" => {
            let (local_comm_id, remote_comm_id) = ids;
            let remote_qpn = qpn(if stimulus == "LAP" { 0x10 } else { 0x11 });
            let lap = Lap { local_comm_id, remote_comm_id, remote_qpn, ..Lap::zeroed() };
            message(TransactionId(5), &lap)
        }
        "APR" => message(TransactionId(5), &Apr { remote_comm_id: own, ..Apr::zeroed() }),
        "SIDR_REP" => message(TransactionId(5), &SidrRep { request_id: own, ..SidrRep::zeroed() }),
        "bad version" => {
            let mut mad = req(PEER, 7);
            mad.0[2] = 1;
            mad
        }
        "unlisten, REQ" => {
            assert!(cm.unlisten(cm.listeners.get(SERVICE).unwrap().id));
            req(PEER + 1, 7)
        }
        "established" => return cm.established(id, b""),
        "accept" => return cm.accept(NOW, id, &acceptance(0x10)),
        "reject" => return cm.reject(NOW, id, RejectReason::CONSUMER, b""),
        "mra" => return cm.mra(NOW, id, 20, b""),
        "message_received" => return cm.message_received(id),
        "disconnect" => return cm.disconnect(NOW, id, b""),
        "close" => return cm.close(NOW, id),
        "connect" => return cm.connect(NOW, &request(0x12)).map(|_| ()),
        "timer" | "timer, last" => {
            if cm.connections.get(id).is_some()
                && let connection = cm.connections.get_mut(id)
                && stimulus == "timer, last"
            {
                connection.retries_left = 0;
            }
            if let Some(at) = cm.poll_timeout() {
                cm.handle_timeout(at);
            }
            return Ok(());
        }
        other => panic!("unknown stimulus {other}"),
    };
    apply_message(cm, &mad);
    Ok(())
}

fn kind(event: &CmEvent) -> String {
    match event {
        CmEvent::Requested(_) => "Requested".into(),
        CmEvent::Connected(_) => "Connected".into(),
        CmEvent::Established { .. } => "Established".into(),
        CmEvent::Rejected { reason, .. } => format!("Rejected({})", reason.0),
        CmEvent::Failed { why, .. } => format!("Failed({why:?})"),
        CmEvent::Disconnected { cause: Cause::Rejected(reason), .. } => {
            format!("Disconnected(Rejected({}))", reason.0)
        }
        CmEvent::Disconnected { cause, .. } => format!("Disconnected({cause:?})"),
        CmEvent::TimeWaitExited { .. } => "TimeWaitExited".into(),
        other => format!("{other:?}"),
    }
}

fn sent_names(cm: &mut Cm) -> String {
    let described = sent(cm).into_iter().map(|mad| match mad.attribute::<Rej>() {
        Some(rej) => format!("REJ({})", rej.reason.0),
        None => name(mad.attribute_id()).to_owned(),
    });
    join(&described.collect::<Vec<_>>())
}

fn join(parts: &[String]) -> String {
    if parts.is_empty() { "-".into() } else { parts.join(" ") }
}

#[test]
fn every_stimulus_in_every_state_has_its_result() {
    let mut table = String::new();
    for from in STARTS {
        for stimulus in STIMULI {
            let (mut cm, id) = start(from);
            let before = cm.state(id);
            let (counters, others) = (cm.counters(), cm.connections());
            let result = apply(&mut cm, id, stimulus);
            let after = cm.state(id).map_or("nothing", State::name);
            let (messages, events) = (sent_names(&mut cm), events(&mut cm));
            let found = join(&events.iter().map(kind).collect::<Vec<_>>());
            let now = cm.counters();
            let dropped = [
                (now.malformed - counters.malformed, "malformed"),
                (now.unsupported - counters.unsupported, "unsupported"),
                (now.unknown - counters.unknown, "unknown"),
                (now.duplicates - counters.duplicates, "duplicate"),
                (now.unexpected - counters.unexpected, "unexpected"),
                (now.wrong_qpn - counters.wrong_qpn, "wrong QPN"),
                (now.refused - counters.refused, "refused"),
                (now.stale - counters.stale, "stale"),
                (now.resent - counters.resent, "resent"),
            ];
            let counted = dropped.iter().filter(|(more, _)| *more > 0);
            let counted = join(&counted.map(|(_, name)| (*name).to_owned()).collect::<Vec<_>>());
            if let Err(error) = result {
                // If a call fails, it has no effect.
                assert_eq!((cm.state(id), &*messages, &*found), (before, "-", "-"));
                assert_eq!((now, cm.connections()), (counters, others));
                let kind = match error {
                    CmError::WrongState { state, .. } => {
                        assert_eq!(Some(state), before);
                        "wrong state"
                    }
                    CmError::UnknownConnection { .. } => "unknown connection",
                    other => panic!("{other}"),
                };
                writeln!(table, "{from:?} | {stimulus} | error: {kind}").unwrap();
            } else {
                writeln!(
                    table,
                    "{from:?} | {stimulus} | {after} | {messages} | {found} | {counted}"
                )
                .unwrap();
            }
        }
    }
    let expected = include_str!("transitions.txt");
    let rows = expected.lines().filter(|line| !line.starts_with('#'));
    for (row, expected) in table.lines().zip(rows.clone()) {
        assert_eq!(row, expected);
    }
    assert_eq!(rows.count(), STARTS.len() * STIMULI.len(), "{table}");
}
