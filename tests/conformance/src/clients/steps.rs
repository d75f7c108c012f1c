//! What a session does: bring-up, questions, counters, lost links, osmtest.

use std::fs;
use std::time::Duration;

use super::expect;
use super::fabrics::{ENGINES, write_net};
use super::program::Question;
use super::questions;
use super::server::Order;
use super::session::{Record, Session, SessionError, Setup, socket_name};
use super::tables::{self, Tables};

mod lost;
mod osmtest;

pub use osmtest::{FLOWS, FULL_FLOWS, INVENTORY_FLOWS};

/// Runs everything.
///
/// # Errors
/// See [`SessionError`].
pub fn thorough(setup: &Setup<'_>) -> Result<Record, SessionError> {
    let mut session = Session::start(setup)?;
    bring_up(&mut session)?;
    ask_all(&mut session)?;
    if !session.manager.is_alive() {
        // Everything that follows would wait for it in vain.
        session.check(false, || "OpenSM died of the questions".to_owned());
        return Ok(session.finish());
    }
    counters(&mut session)?;
    osmtest::run(&mut session)?;
    lost::unlink(&mut session)?;
    lost::disable(&mut session)?;
    Ok(session.finish())
}

/// Brings the fabric up and compares the tables; with the second engine, clients also ping.
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
    if setup.engine == ENGINES[1] {
        ping(&mut session)?;
    }
    Ok(session.finish())
}

/// Says whether the simulator complains of the fabric, as ibsim 0.10 does of speeds beyond HDR.
///
/// # Errors
/// See [`SessionError`].
pub fn complains(setup: &Setup<'_>) -> Result<bool, SessionError> {
    let directory = &setup.directory;
    fs::create_dir_all(directory)?;
    let net = directory.join("net");
    write_net(setup.fabric, &net)?;
    // It goes on with links of no speed.
    drop(setup.server.start(&net, directory, &socket_name())?);
    Ok(fs::read_to_string(directory.join("server.log"))?.contains("invalid speed"))
}

/// Checks that the simulator has the tables that OpenSM thinks it has.
fn bring_up(session: &mut Session<'_>) -> Result<(), SessionError> {
    let engine = session.record.engine.clone();
    session.note("the engine that configured the switches", engine);
    let answer = session.ask(&Question::new("dump_lfts"))?;
    check_tables(session, &answer.output)?;
    let lids = session.manager.lids()?;
    let lids: String = lids.iter().map(|(guid, lid)| format!("{guid} {lid}\n")).collect();
    session.note("the LIDs", lids);
    Ok(())
}

/// Checks that what `dump_lfts` printed is what OpenSM wrote into its own dump.
fn check_tables(session: &mut Session<'_>, dump_lfts: &str) -> Result<(), SessionError> {
    let dump = session.manager.dump("opensm-lfts.dump")?;
    let (expected, mut found) = (tables::parse(&dump), tables::parse(dump_lfts));
    let top = expected.values().filter_map(|table| table.keys().last()).max();
    if let Some(&top) = top.filter(|&top| top % tables::BLOCK == 0) {
        read_last_block(session, top, &mut found)?;
    }
    let switches = session.setup.fabric.nodes().filter(|(_, node)| node.kind.is_switch()).count();
    session.check(!expected.is_empty() && expected.len() <= switches, || {
        format!("OpenSM's dump has {} switches, the fabric {switches}", expected.len())
    });
    let differences = tables::differences(&expected, &found);
    session.check(differences.is_empty(), || {
        format!("dump_lfts and opensm-lfts.dump differ:{differences}")
    });
    Ok(())
}

/// Reads the ports of the highest LID where `dump_lfts` leaves it out: it takes that LID for the end of
/// the last block, so that one which is the first of its block is missing.
fn read_last_block(
    session: &mut Session<'_>,
    lid: u16,
    found: &mut Tables,
) -> Result<(), SessionError> {
    let fabric = session.setup.fabric;
    let Some(start) = expect::seat_port(fabric, &session.seat.node) else { return Ok(()) };
    for (id, route) in expect::directed_routes(fabric, start) {
        let node = fabric.node(id);
        if !node.kind.is_switch() {
            continue;
        }
        let line = format!("smpdump -D {route} 0x19 {}", lid / tables::BLOCK);
        let (answer, kept) = session.hear(&Question::new(&line))?;
        let port = answer.output.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        session.check(port.is_some(), || format!("{line} shows no table ({})", kept.display()));
        if let Some(port) = port.filter(|&port| port != 255) {
            found.entry(node.guid).or_default().insert(lid, port);
        }
    }
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
            "ibstat" if setup.complete => {
                let found =
                    ["Rate: ", "Link layer: "].map(|name| expect::word(&answer.output, name));
                let rate = expect::rate(setup.plan.speed).to_string();
                session.check(found == [Some(rate.as_str()), Some("InfiniBand")], || {
                    format!("ibstat shows {found:?} on a port of {rate} Gbit/s")
                });
            }
            _ => {}
        }
    }
    for line in ["saquery NR", "saquery PIR", "saquery SWIR"] {
        session.ask(&Question { many: true, ..Question::new(line) })?;
    }
    if setup.complete {
        let switches = setup.fabric.nodes().filter(|(_, node)| node.kind.is_switch()).count();
        for (line, record, expected) in [
            ("saquery NR", "NodeRecord dump", setup.fabric.node_count()),
            ("saquery LR", "LinkRecord dump", 2 * setup.fabric.link_count()),
            ("saquery SWIR", "SwitchInfoRecord dump", switches),
        ] {
            let (answer, kept) = session.hear(&Question::new(line))?;
            let found = answer.output.matches(record).count();
            session.check(found == expected, || {
                format!("{line} lists {found} records of {expected} ({})", kept.display())
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
    let before = (read(session, &end)?, read(session, &near)?);
    for _ in 0..3 {
        session.hear(&Question::new(&format!("smpquery nodeinfo {}", host.lid)))?;
    }
    let after = (read(session, &end)?, read(session, &near)?);
    // Both ends were read in the same order before and after, so what they gain is the same.
    let [xmit, rcv, xmit_data, rcv_data] =
        [0, 1, 2, 3].map(|at| after.0[at].wrapping_sub(before.0[at]));
    let [near_xmit, near_rcv, near_xmit_data, near_rcv_data] =
        [0, 1, 2, 3].map(|at| after.1[at].wrapping_sub(before.1[at]));
    let sent = (xmit, xmit_data) == (near_rcv, near_rcv_data);
    let received = (rcv, rcv_data) == (near_xmit, near_xmit_data);
    session.check(xmit > 0 && rcv > 0 && sent && received, || {
        format!(
            "perfquery: the last host gains {xmit} packets sent ({xmit_data} words) and {rcv} \
             received ({rcv_data}), its switch's port {near_rcv} received ({near_rcv_data}) and \
             {near_xmit} sent ({near_xmit_data})"
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
///
/// OpenSM is ended first: the server's port asks for a manager's messages and says so in its
/// capability mask, upon which OpenSM asks it for `SMInfo`, and of that ibping dies.
fn ping(session: &mut Session<'_>) -> Result<(), SessionError> {
    let (second, last) = (session.actors.second.clone(), session.actors.last.clone());
    let ended = session.manager.stop();
    session.ended = true;
    session.check(ended, || "OpenSM does not end".to_owned());
    let limit = Duration::from_secs(60);
    let server = Question { manages: true, limit, ..Question::new("ibping -S").on(&last.name) };
    let server = session.leave_running(&server)?;
    std::thread::sleep(Duration::from_millis(300));
    session.ask(&Question::new(&format!("smpquery portinfo {} 1", last.lid)))?;
    session.ask(&Question::new(&format!("ibping -c 2 {}", last.lid)))?;
    let answer =
        session.ask(&Question::new(&format!("ibping -c 2 {}", last.lid)).on(&second.name))?;
    let heard = answer.output.contains("2 received");
    session.check(heard, || format!("ibping: {}", answer.output.trim()));
    drop(server);
    Ok(())
}
