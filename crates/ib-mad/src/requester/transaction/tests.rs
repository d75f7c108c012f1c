use ib_link::Remote;
use ib_wire::mad::rmpp::{RmppFlags, RmppHeader, RmppType, VERSION};
use ib_wire::mad::{MadStatus, TransactionId};

use super::*;
use crate::rmpp::classify;

const STATES: [&str; 6] = ["Backlog", "Waiting", "Queued", "Sending", "Sent", "Receiving"];

/// The result of each event (row) in each of [`STATES`] (column). A result begins with the next state, or with the
/// completion if the request ends. `+` precedes the MAD that is sent, `@` the timer that is started. `!` means that
/// there is a MAD to send, `-` that the event is ignored.
const TABLE: &[(&str, [&str; 6])] = &[
    ("answer", ["-", "answered", "answered", "answered", "answered", "-"]),
    ("other method", ["-", "-", "-", "-", "-", "-"]),
    ("busy", ["-", "Waiting", "Queued", "Sending", "Sent", "-"]),
    (
        "only segment",
        [
            "-",
            "answered +ACK 1",
            "answered +ACK 1",
            "answered +ACK 1",
            "answered +ACK 1",
            "Receiving +ACK 1",
        ],
    ),
    (
        "busy segment",
        [
            "-",
            "Waiting +ACK 1",
            "Queued +ACK 1",
            "Sending +ACK 1",
            "Sent +ACK 1",
            "Receiving +ACK 1",
        ],
    ),
    (
        "segment 1",
        [
            "-",
            "Receiving +ACK 1 @Message",
            "Receiving +ACK 1 @Message",
            "Receiving +ACK 1 @Message",
            "Receiving +ACK 1 @Message",
            "Receiving +ACK 1",
        ],
    ),
    ("segment 2", ["-", "-", "-", "-", "-", "Receiving"]),
    ("segment 3", ["-", "-", "-", "-", "-", "Receiving"]),
    ("ACK 1 of 2", ["-", "-", "-", "Sending @Acknowledgement !", "-", "-"]),
    ("ACK 2 of 2", ["-", "-", "-", "aborted 123 +ABORT 123", "Sent +ACK 0", "-"]),
    ("ACKs 1 and 2 of 2", ["-", "-", "-", "Sent +ACK 0 @Answer", "Sent +ACK 0", "-"]),
    ("ACK of unsent", ["-", "-", "-", "aborted 123 +ABORT 123", "-", "-"]),
    ("STOP", ["-", "refused 1", "refused 1", "refused 1", "refused 1", "refused 1"]),
    (
        "bad ABORT",
        [
            "-",
            "aborted 124 +ABORT 124",
            "aborted 124 +ABORT 124",
            "aborted 124 +ABORT 124",
            "aborted 124 +ABORT 124",
            "aborted 124 +ABORT 124",
        ],
    ),
    ("lost", ["-", "lost", "-", "lost", "-", "-"]),
    ("lost, retry", ["-", "Queued !", "-", "Sending !", "-", "-"]),
    ("lost, no retry left", ["-", "lost", "-", "lost", "-", "-"]),
    ("answer timer", ["-", "Queued !", "-", "-", "Sent +ACK 0 @Answer", "-"]),
    ("answer timer, last", ["-", "timed out", "-", "-", "timed out", "-"]),
    ("segment timer", ["-", "-", "-", "Sending !", "-", "-"]),
    ("segment timer, last", ["-", "-", "-", "timed out +ABORT 126", "-", "-"]),
    ("message timer", ["-", "-", "-", "-", "-", "aborted 118 +ABORT 118"]),
];

fn timing(retries: u32) -> crate::Timing {
    crate::Timing { retries, ..crate::Timing::default() }
}

/// Creates a request and brings it into the given state.
fn transaction(state: &str, retries: u32) -> Transaction {
    let mad = Mad::new(MgmtClass::SUBN_ADM, Method::GET_MULTI, TransactionId(7));
    let request = Request::new(Remote::gsi(3), mad).with_timing(timing(retries));
    let sender = matches!(state, "Sending" | "Sent")
        .then(|| Sender::new(&mad, vec![0; 300], 1).expect("the SA class uses RMPP"));
    let mut transaction = Transaction::new(request, sender);
    if state == "Backlog" {
        return transaction;
    }
    transaction.admit();
    transaction.transmit(Instant::ZERO).expect("an admitted request has a MAD to send");
    let limits = ReceiveLimits::default();
    let feed = |transaction: &mut Transaction, datagram: &Datagram| {
        transaction.handle(datagram, classify(&datagram.mad), limits);
    };
    match state {
        "Queued" => transaction.state = State::Queued,
        "Sent" => {
            feed(&mut transaction, &control(RmppType::ACK, 0, (1, 2)));
            transaction.transmit(Instant::ZERO).expect("the window permits segment 2");
            feed(&mut transaction, &control(RmppType::ACK, 0, (2, 2)));
        }
        "Receiving" => feed(&mut transaction, &segment(1, 3)),
        _ => {}
    }
    assert_eq!(name(&transaction), state);
    transaction
}

fn name(transaction: &Transaction) -> &'static str {
    match (&transaction.state, &transaction.sender) {
        (State::Backlog, _) => "Backlog",
        (State::Queued, _) => "Queued",
        (State::Sending, _) => "Sending",
        (State::Waiting, Some(_)) => "Sent",
        (State::Waiting, None) => "Waiting",
        (State::Receiving(_), _) => "Receiving",
    }
}

fn answer(method: Method) -> Datagram {
    Datagram::new(Remote::gsi(3), Mad::new(MgmtClass::SUBN_ADM, method, TransactionId(7)))
}

fn busy() -> Datagram {
    let mut datagram = answer(Method::GET_MULTI_RESP);
    datagram.mad.set_status(MadStatus::BUSY);
    datagram
}

fn control(rmpp_type: RmppType, status: u8, words: (u32, u32)) -> Datagram {
    with_rmpp(rmpp_type, status, RmppFlags::ACTIVE, words)
}

fn segment(number: u32, count: u32) -> Datagram {
    let length = if number == count { 120 } else { 0 };
    let flags = ib_wire::mad::rmpp::flags(number, count);
    with_rmpp(RmppType::DATA, 0, flags, (number, length))
}

fn with_rmpp(
    rmpp_type: RmppType,
    status: u8,
    flags: RmppFlags,
    (segment, length_or_window): (u32, u32),
) -> Datagram {
    let mut datagram = answer(Method::GET_MULTI_RESP);
    let status = RmppStatus(status);
    let (version, resp_time) = (VERSION, 31);
    let header =
        RmppHeader { version, rmpp_type, resp_time, flags, status, segment, length_or_window };
    datagram.mad.set_rmpp(&header);
    datagram
}

fn apply(transaction: &mut Transaction, event: &str) -> Option<Step> {
    let datagram = match event {
        "answer" => answer(Method::GET_MULTI_RESP),
        "other method" => answer(Method::GET_RESP),
        "busy" => busy(),
        "only segment" => segment(1, 1),
        "busy segment" => {
            let mut datagram = segment(1, 1);
            datagram.mad.set_status(MadStatus::BUSY);
            datagram
        }
        "segment 1" => segment(1, 3),
        "segment 2" => segment(2, 3),
        "segment 3" => segment(3, 3),
        "ACK 1 of 2" => control(RmppType::ACK, 0, (1, 2)),
        "ACK 2 of 2" => control(RmppType::ACK, 0, (2, 2)),
        "ACKs 1 and 2 of 2" => {
            if name(transaction) == "Sending" {
                apply(transaction, "ACK 1 of 2");
                transaction.transmit(Instant::ZERO).expect("the window permits segment 2");
            }
            control(RmppType::ACK, 0, (2, 2))
        }
        "ACK of unsent" => control(RmppType::ACK, 0, (9, 9)),
        "STOP" => control(RmppType::STOP, 1, (0, 0)),
        "bad ABORT" => control(RmppType::ABORT, 3, (0, 0)),
        "lost" => return Some(transaction.handle_lost(Instant::ZERO)),
        "answer timer" => return Some(transaction.handle_timer(Instant::ZERO, Timer::Answer)),
        "segment timer" => {
            return Some(transaction.handle_timer(Instant::ZERO, Timer::Acknowledgement));
        }
        "message timer" => return Some(transaction.handle_timer(Instant::ZERO, Timer::Message)),
        other => panic!("unknown event {other}"),
    };
    let kind = classify(&datagram.mad);
    let limits = ReceiveLimits::default();
    transaction.matches(&datagram, kind).then(|| transaction.handle(&datagram, kind, limits))
}

fn describe(transaction: &Transaction, step: Option<Step>) -> String {
    let Some(step) = step.filter(|step| !step.ignored) else { return "-".into() };
    let mut text = match step.end {
        None => name(transaction).to_owned(),
        Some(Ok(message)) if message.status() == MadStatus::BUSY => "busy".into(),
        Some(Ok(_)) => "answered".into(),
        Some(Err(Failure::TimedOut { .. })) => "timed out".into(),
        Some(Err(Failure::Lost { .. })) => "lost".into(),
        Some(Err(Failure::Aborted { status })) => format!("aborted {}", status.0),
        Some(Err(Failure::Refused { status })) => format!("refused {}", status.0),
    };
    if let Some(reply) = step.reply {
        let header = reply.rmpp();
        text += &format!(" +{} {}", header.rmpp_type, header.segment.max(header.status.0.into()));
    }
    if let Some(timer) = step.timer {
        text += &format!(" @{timer:?}");
    }
    if step.wake {
        text += " !";
    }
    assert_eq!(step.linger.is_some(), text.starts_with("answered +ACK"));
    text
}

#[test]
fn every_event_in_every_state_has_its_result() {
    let mut differs = false;
    for (label, row) in TABLE {
        let (event, retries, on_loss) = match *label {
            "lost, retry" => ("lost", 1, OnLoss::Retry),
            "lost, no retry left" => ("lost", 0, OnLoss::Retry),
            "answer timer, last" => ("answer timer", 0, OnLoss::Fail),
            "segment timer, last" => ("segment timer", 0, OnLoss::Fail),
            other => (other, 1, OnLoss::Fail),
        };
        let found = STATES.map(|state| {
            let mut transaction = transaction(state, retries);
            transaction.request.on_loss = on_loss;
            let step = apply(&mut transaction, event);
            describe(&transaction, step)
        });
        if found != *row {
            println_row(label, &found);
            differs = true;
        }
    }
    assert!(!differs, "the rows printed above differ from `TABLE`");
}

#[test]
fn busy_response_is_returned_only_after_the_last_timeout() {
    for (retries, end) in [(0, "busy"), (1, "Queued !")] {
        let mut transaction = transaction("Waiting", retries);
        apply(&mut transaction, "busy");
        let step = transaction.handle_timer(Instant::ZERO, Timer::Answer);
        assert_eq!(describe(&transaction, Some(step)), end);
    }
    let mut transaction = transaction("Waiting", 0);
    apply(&mut transaction, "busy segment");
    let step = apply(&mut transaction, "answer");
    assert_eq!(describe(&transaction, step), "answered");
}

#[expect(clippy::print_stderr, reason = "shows the rows that differ")]
fn println_row(label: &str, found: &[String; 6]) {
    eprintln!("    ({label:?}, {found:?}),");
}
