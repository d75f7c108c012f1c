//! What a session does: bring-up, questions, counters, lost links, osmtest.

use std::fs;
use std::time::Duration;

use super::expect;
use super::program::Question;
use super::questions;
use super::server::Order;
use super::session::{Record, Session, SessionError, Setup};
use super::tables;

mod lost;
mod osmtest;

pub use osmtest::{FLOWS, FULL_FLOWS};

/// Runs everything.
///
/// # Errors
/// See [`SessionError`].
pub fn thorough(setup: &Setup<'_>) -> Result<Record, SessionError> {
    let mut session = Session::start(setup)?;
    bring_up(&mut session)?;
    ask_all(&mut session)?;
    counters(&mut session)?;
    osmtest::run(&mut session)?;
    ping(&mut session)?;
    lost::unlink(&mut session)?;
    lost::disable(&mut session)?;
    Ok(session.finish())
}

/// Brings the fabric up and compares the tables.
///
/// # Errors
/// See [`SessionError`].
pub fn brief(setup: &Setup<'_>) -> Result<Record, SessionError> {
    let mut session = Session::start(setup)?;
    bring_up(&mut session)?;
    let (first, last) = (session.actors.manager.lid, session.actors.last.lid);
    let leaf = session.actors.leaf.clone();
    for line in [
        format!("ibtracert {first} {last}"),
        format!("ibtracert {last} {first}"),
        format!("smpquery sl2vl {} {}", leaf.lid, leaf.port),
        format!("smpquery switchinfo {}", leaf.lid),
        "dump_mfts".to_owned(),
    ] {
        session.ask(&Question::new(&line))?;
    }
    Ok(session.finish())
}

/// Checks that the simulator has the tables that OpenSM thinks it has.
fn bring_up(session: &mut Session<'_>) -> Result<(), SessionError> {
    let engine = session.record.engine.clone();
    session.note("the engine that configured the switches", engine);
    let answer = session.ask(&Question::new("dump_lfts"))?;
    let dump = session.manager.dump("opensm-lfts.dump")?;
    let (expected, found) = (tables::parse(&dump), tables::parse(&answer.output));
    let switches = session.setup.fabric.nodes().filter(|(_, node)| node.kind.is_switch()).count();
    session.check(!expected.is_empty() && expected.len() <= switches, || {
        format!("OpenSM's dump has {} switches, the fabric {switches}", expected.len())
    });
    let differences = tables::differences(&expected, &found);
    session.check(differences.is_empty(), || {
        format!("dump_lfts and opensm-lfts.dump differ:{differences}")
    });
    let lids = session.manager.lids()?;
    let lids: String = lids.iter().map(|(guid, lid)| format!("{guid} {lid}\n")).collect();
    session.note("the LIDs", lids);
    Ok(())
}

fn ask_all(session: &mut Session<'_>) -> Result<(), SessionError> {
    let setup = session.setup;
    for question in questions::all(&session.actors) {
        let answer = session.ask(&question)?;
        if question.node.is_some() {
            continue;
        }
        match question.words.join(" ").as_str() {
            "ibnetdiscover" => {
                let faults = expect::discovered(setup.fabric, &answer.output);
                session.check(faults.is_empty(), || faults.join("\n"));
            }
            "iblinkinfo" => {
                let found = expect::link_ends(&answer.output, setup.plan.speed);
                let expected = 2 * setup.fabric.link_count();
                session.check(found == expected, || {
                    let speed = setup.plan.speed;
                    format!("iblinkinfo shows {found} ends of active {speed} links, not {expected}")
                });
            }
            _ => {}
        }
    }
    for line in ["saquery NR", "saquery PIR", "saquery LR", "saquery SWIR", "saquery SL2VL"] {
        let question = Question { many: true, ..Question::new(line) };
        let answer = session.ask(&question)?;
        if setup.complete && line == "saquery NR" {
            let found = answer.output.matches("NodeRecord dump").count();
            let expected = setup.fabric.node_count();
            session.check(found == expected, || {
                format!("saquery lists {found} nodes of {expected}")
            });
        }
    }
    Ok(())
}

/// Checks that the counters of the two ends of a link agree, and counts known traffic.
fn counters(session: &mut Session<'_>) -> Result<(), SessionError> {
    let (host, far) = (session.actors.last.clone(), session.actors.far.clone());
    let near = Question::new(&format!("perfquery {} {}", far.lid, far.port));
    let end = Question::new(&format!("perfquery {} 1", host.lid));
    let read = |session: &mut Session<'_>, question: &Question| {
        let (answer, _) = session.hear(question)?;
        let counter = |name| expect::counter(&answer.output, name);
        let all = ["PortXmitPkts", "PortRcvPkts", "PortXmitData", "PortRcvData"].map(counter);
        Ok::<_, SessionError>(all.map(|value| value.unwrap_or(u64::MAX)))
    };
    let at_host = read(session, &end)?;
    let at_switch = read(session, &near)?;
    // The host is asked first: its answer leaves after it was counted up, and passes the switch
    // before the switch is asked.
    let [xmit, rcv, ..] = at_host;
    session.check(xmit > 0 && at_switch[0] == rcv && at_switch[1] == xmit.wrapping_add(1), || {
        format!(
            "perfquery: the last host sent {xmit} packets and received {rcv}, its switch's port \
             received {} (one more expected) and sent {} (as many expected)",
            at_switch[1], at_switch[0]
        )
    });
    for (title, line, times) in [
        ("5 NodeInfo by LID", format!("smpquery nodeinfo {}", host.lid), 5),
        ("5 NodeInfo by directed route", format!("smpquery -D nodeinfo {}", host.route), 5),
        ("2 traces", format!("ibtracert {} {}", session.actors.manager.lid, host.lid), 2),
    ] {
        let before = read(session, &end)?;
        for _ in 0..times {
            session.hear(&Question::new(&line))?;
        }
        let after = read(session, &end)?;
        let [xmit, rcv, xmit_data, rcv_data] =
            [0, 1, 2, 3].map(|at| after[at].wrapping_sub(before[at]));
        let text = format!("sent {xmit} ({xmit_data} words), received {rcv} ({rcv_data} words)");
        session.note(&format!("what the counters of the last host gain by {title}"), text);
    }
    Ok(())
}

/// Runs an ibping server on the last host and clients against it.
fn ping(session: &mut Session<'_>) -> Result<(), SessionError> {
    let (second, last) = (session.actors.second.clone(), session.actors.last.clone());
    // A port that asks for a manager's messages says so in its capability mask, which traps.
    let ups = session.manager.ups();
    let limit = Duration::from_secs(60);
    let server = Question { manages: true, limit, ..Question::new("ibping -S").on(&last.name) };
    let server = session.leave_running(&server)?;
    std::thread::sleep(Duration::from_millis(300));
    let settled = session.manager.settles(ups, limit);
    session.check(settled, || "OpenSM does not come to rest".to_owned());
    session.ask(&Question::new(&format!("smpquery portinfo {} 1", last.lid)))?;
    let count = "ibping -c 2";
    session.ask(&Question::new(&format!("{count} {}", last.lid)))?;
    session.ask(&Question::new(&format!("{count} -G {}", last.guid)).on(&second.name))?;
    drop(server);
    std::thread::sleep(Duration::from_millis(200));
    Ok(())
}
