//! Steps of a [`Stage`]: bring-up, queries, counters, lost links, osmtest.

use std::fs;
use std::time::Duration;

use super::expect;
use super::fabrics::{ENGINES, write_net};
use super::program::Question;
use super::questions;
use super::server::Order;
use super::stage::{Record, Setup, Stage, StageError, socket_name};
use super::tables;

mod lost;
mod osmtest;

pub use osmtest::{FLOWS, FULL_FLOWS, INVENTORY_FLOWS};

/// Runs the steps of a long test: bring-up, queries, counters, osmtest, and links that go down and up.
///
/// # Errors
/// See [`StageError`].
pub fn thorough(setup: &Setup<'_>) -> Result<Record, StageError> {
    let mut stage = Stage::start(setup)?;
    bring_up(&mut stage)?;
    ask_all(&mut stage)?;
    if !stage.manager.is_alive() {
        // Without OpenSM, the following steps would only exceed their time limits.
        stage.check(false, || "OpenSM has ended unexpectedly".to_owned());
        return Ok(stage.finish());
    }
    counters(&mut stage)?;
    osmtest::run(&mut stage)?;
    lost::unlink(&mut stage)?;
    lost::disable(&mut stage)?;
    Ok(stage.finish())
}

/// Runs the steps of a short test: bring-up and a few queries.
///
/// If the routing engine is the second one of [`ENGINES`], also runs `ibping`.
///
/// # Errors
/// See [`StageError`].
pub fn brief(setup: &Setup<'_>) -> Result<Record, StageError> {
    let mut stage = Stage::start(setup)?;
    bring_up(&mut stage)?;
    let (first, last) = (stage.actors.manager.lid, stage.actors.last.lid);
    let leaf = stage.actors.leaf.clone();
    for line in [
        format!("ibtracert {first} {last}"),
        format!("ibtracert {last} {first}"),
        format!("smpquery sl2vl {} {}", leaf.lid, leaf.port),
        format!("smpquery switchinfo {}", leaf.lid),
        "dump_mfts".to_owned(),
    ] {
        stage.ask(&Question::new(&line))?;
    }
    if setup.engine == ENGINES[1] {
        ping(&mut stage)?;
    }
    Ok(stage.finish())
}

/// Returns true if the simulator reports that it does not support the fabric. ibsim 0.10 does so for speeds beyond HDR.
///
/// # Errors
/// See [`StageError`].
pub fn complains(setup: &Setup<'_>) -> Result<bool, StageError> {
    let directory = &setup.directory;
    fs::create_dir_all(directory)?;
    let net = directory.join("net");
    write_net(setup.fabric, &net)?;
    // For a link with an unsupported speed, ibsim logs `invalid speed` and keeps running.
    drop(setup.server.start(&net, directory, &socket_name())?);
    Ok(fs::read_to_string(directory.join("server.log"))?.contains("invalid speed"))
}

/// Checks that the simulator's forwarding tables equal OpenSM's. Records the routing engine and the LIDs.
fn bring_up(stage: &mut Stage<'_>) -> Result<(), StageError> {
    let engine = stage.record.engine.clone();
    stage.note("the engine that configured the switches", engine);
    let answer = stage.ask(&Question::new("dump_lfts"))?;
    check_tables(stage, &answer.output)?;
    let lids = stage.manager.lids()?;
    let lids: String = lids.iter().map(|(guid, lid)| format!("{guid} {lid}\n")).collect();
    stage.note("the LIDs", lids);
    Ok(())
}

/// Compares the output of `dump_lfts` with OpenSM's dump of its tables.
fn check_tables(stage: &mut Stage<'_>, dump_lfts: &str) -> Result<(), StageError> {
    let dump = stage.manager.dump("opensm-lfts.dump")?;
    let (expected, mut found) = (tables::parse(&dump), tables::parse(dump_lfts));
    for (guid, lid, question) in tables::last_block(stage.setup.fabric, &stage.seat.node, &expected)
    {
        let (answer, kept) = stage.run_client(&question)?;
        let port = tables::first_entry(&answer.output);
        stage.check(port.is_some(), || format!("{question} shows no table ({})", kept.display()));
        if let Some(port) = port.filter(|&port| port != 255) {
            found.entry(guid).or_default().insert(lid, port);
        }
    }
    let switches = stage.setup.fabric.nodes().filter(|(_, node)| node.kind.is_switch()).count();
    stage.check(!expected.is_empty() && expected.len() <= switches, || {
        format!("OpenSM's dump has {} switches, the fabric has {switches}", expected.len())
    });
    let differences = tables::differences(&expected, &found);
    stage.check(differences.is_empty(), || {
        format!("dump_lfts and opensm-lfts.dump differ:{differences}")
    });
    Ok(())
}

fn ask_all(stage: &mut Stage<'_>) -> Result<(), StageError> {
    let setup = stage.setup;
    for question in questions::all(&stage.actors) {
        let answer = stage.ask(&question)?;
        if question.node.is_some() {
            continue;
        }
        match question.words.join(" ").as_str() {
            "ibnetdiscover" => {
                let faults = expect::discovered(setup.fabric, &answer.output);
                stage.check(faults.is_empty(), || faults.join("\n"));
            }
            "iblinkinfo" => {
                let found = expect::link_ends(&answer.output, setup.plan.speed);
                let expected = 2 * setup.fabric.link_count();
                stage.check(found == expected, || {
                    let speed = setup.plan.speed;
                    format!("iblinkinfo shows {found} ends of active {speed} links, not {expected}")
                });
            }
            "ibstat" if setup.complete => {
                let found =
                    ["Rate: ", "Link layer: "].map(|name| expect::word(&answer.output, name));
                let rate = expect::rate(setup.plan.speed).to_string();
                stage.check(found == [Some(rate.as_str()), Some("InfiniBand")], || {
                    format!("ibstat shows {found:?} on a port of {rate} Gbit/s")
                });
            }
            _ => {}
        }
    }
    for line in ["saquery NR", "saquery PIR", "saquery SWIR"] {
        stage.ask(&Question { many: true, ..Question::new(line) })?;
    }
    if setup.complete {
        let switches = setup.fabric.nodes().filter(|(_, node)| node.kind.is_switch()).count();
        for (line, record, expected) in [
            ("saquery NR", "NodeRecord dump", setup.fabric.node_count()),
            ("saquery LR", "LinkRecord dump", 2 * setup.fabric.link_count()),
            ("saquery SWIR", "SwitchInfoRecord dump", switches),
        ] {
            let (answer, kept) = stage.run_client(&Question::new(line))?;
            let found = answer.output.matches(record).count();
            stage.check(found == expected, || {
                format!("{line} lists {found} of {expected} records ({})", kept.display())
            });
        }
    }
    Ok(())
}

/// Checks that the counters of both ends of a link agree. Records how much the counters of the last host increase
/// during a known number of queries.
fn counters(stage: &mut Stage<'_>) -> Result<(), StageError> {
    let (host, far) = (stage.actors.last.clone(), stage.actors.far.clone());
    let near = Question::new(&format!("perfquery {} {}", far.lid, far.port));
    let end = Question::new(&format!("perfquery {} 1", host.lid));
    let read = |stage: &mut Stage<'_>, question: &Question| {
        let (answer, _) = stage.run_client(question)?;
        let counter = |name| expect::counter(&answer.output, name);
        let all = ["PortXmitPkts", "PortRcvPkts", "PortXmitData", "PortRcvData"].map(counter);
        Ok::<_, StageError>(all.map(|value| value.unwrap_or(u64::MAX)))
    };
    let before = (read(stage, &end)?, read(stage, &near)?);
    for _ in 0..3 {
        stage.run_client(&Question::new(&format!("smpquery nodeinfo {}", host.lid)))?;
    }
    let after = (read(stage, &end)?, read(stage, &near)?);
    // Reading the counters also sends packets over the link. These packets count equally at both ends, because both
    // ends are read in the same order before and after the traffic.
    let [xmit, rcv, xmit_data, rcv_data] =
        [0, 1, 2, 3].map(|at| after.0[at].wrapping_sub(before.0[at]));
    let [near_xmit, near_rcv, near_xmit_data, near_rcv_data] =
        [0, 1, 2, 3].map(|at| after.1[at].wrapping_sub(before.1[at]));
    let sent = (xmit, xmit_data) == (near_rcv, near_rcv_data);
    let received = (rcv, rcv_data) == (near_xmit, near_xmit_data);
    stage.check(xmit > 0 && rcv > 0 && sent && received, || {
        format!(
            "perfquery: the last host has sent {xmit} packets ({xmit_data} words) and received {rcv} \
             ({rcv_data} words), its switch's port has received {near_rcv} ({near_rcv_data} words) and \
             sent {near_xmit} ({near_xmit_data} words)"
        )
    });
    for (title, line, times) in [
        ("5 NodeInfo queries by LID", format!("smpquery nodeinfo {}", host.lid), 5),
        ("5 NodeInfo queries by directed route", format!("smpquery -D nodeinfo {}", host.route), 5),
        ("2 traces", format!("ibtracert {} {}", stage.actors.manager.lid, host.lid), 2),
    ] {
        let before = read(stage, &end)?;
        for _ in 0..times {
            stage.run_client(&Question::new(&line))?;
        }
        let after = read(stage, &end)?;
        let [xmit, rcv, xmit_data, rcv_data] =
            [0, 1, 2, 3].map(|at| after[at].wrapping_sub(before[at]));
        let text = format!("sent {xmit} ({xmit_data} words), received {rcv} ({rcv_data} words)");
        stage.note(&format!("increase of the last host's counters after {title}"), text);
    }
    Ok(())
}

/// Runs an ibping server on the last host, and clients that ping it.
///
/// The server's port is registered for messages to an SM, and therefore has `IsSM` in its capability mask. OpenSM would
/// query the `SMInfo` of this port, and the ibping server would terminate. So OpenSM is stopped first.
fn ping(stage: &mut Stage<'_>) -> Result<(), StageError> {
    let (second, last) = (stage.actors.second.clone(), stage.actors.last.clone());
    let ended = stage.manager.stop();
    stage.ended = true;
    stage.check(ended, || "OpenSM does not end".to_owned());
    let limit = Duration::from_secs(60);
    let server = Question { manages: true, limit, ..Question::new("ibping -S").on(&last.name) };
    let server = stage.start_client(&server)?;
    std::thread::sleep(Duration::from_millis(300));
    stage.ask(&Question::new(&format!("smpquery portinfo {} 1", last.lid)))?;
    stage.ask(&Question::new(&format!("ibping -c 2 {}", last.lid)))?;
    let answer =
        stage.ask(&Question::new(&format!("ibping -c 2 {}", last.lid)).on(&second.name))?;
    let heard = answer.output.contains("2 received");
    stage.check(heard, || format!("ibping did not receive 2 responses: {}", answer.output.trim()));
    drop(server);
    Ok(())
}
