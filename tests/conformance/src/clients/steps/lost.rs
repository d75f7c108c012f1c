//! Links that go down and up, caused by a command of the simulator or by a client.

use std::path::Path;

use ib_topology::PortId;

use super::{Duration, Order, Question, Stage, StageError, check_tables, expect};
use crate::clients::expect::directed_routes;
use crate::clients::server::Kind;

const SWEEP: Duration = Duration::from_secs(20);

/// Removes a link: OpenSM must receive a trap and sweep, and iblinkinfo must not print the link.
pub(super) fn unlink(stage: &mut Stage<'_>) -> Result<(), StageError> {
    let fabric = stage.setup.fabric;
    let Some(&port) = expect::spare_links(fabric).first() else { return Ok(()) };
    let port = fabric.port(port);
    let name = fabric.node(port.node).name.clone();
    let traps = traps(stage);
    let ups = stage.manager.ups();
    order(stage, Order::Unlink(&name, port.number));
    let swept = stage.manager.settles(ups + 1, SWEEP);
    stage.check(swept, || "OpenSM does not sweep after a link is lost".to_owned());
    let heard = traps < self::traps(stage);
    stage.check(heard, || "OpenSM has not received trap 128 after a link loss".to_owned());
    look(stage, fabric.link_count() - 1)?;

    let ups = stage.manager.ups();
    order(stage, Order::Relink(&name, port.number));
    let swept = stage.manager.settles(ups + 1, SWEEP);
    stage.check(swept, || "OpenSM does not sweep after a link is restored".to_owned());
    look(stage, fabric.link_count())
}

/// Disables, enables and resets a port with ibportstate, on `ibfabric sim`. The link must go down and up at both ends,
/// and OpenSM must receive a trap.
///
/// On ibsim, this step does nothing: there, a disabled port remains active but forwards nothing, even after it is
/// enabled again. The state of its neighbor port does not change either.
pub(super) fn disable(stage: &mut Stage<'_>) -> Result<(), StageError> {
    if *stage.setup.server == Kind::Ibsim {
        return Ok(());
    }
    let fabric = stage.setup.fabric;
    let start = expect::seat_port(fabric, &stage.seat.node);
    let (Some(&id), Some(start)) = (expect::spare_links(fabric).last(), start) else {
        return Ok(());
    };
    // Directed routes to both ends of the link that do not use the link itself, because it will be disabled.
    let mut less = fabric.clone();
    less.disconnect(id);
    let routes = directed_routes(&less, start);
    let ends = [Some(fabric.port(id)), fabric.peer(id)];
    let ends = ends.map(|port| port.expect("a spare link has two ends"));
    let [(route, number), far] = ends.map(|port| (routes[&port.node].clone(), port.number));
    let near = (route.clone(), number);
    let (links, downed) = (fabric.link_count(), downed(stage, id)?);

    change(stage, &near, "disable", ("Down", "Disabled"))?;
    expect_port(stage, &near, ("Down", "Disabled"))?;
    // The port at the other end of the link is in the Polling state, because its peer is disabled.
    expect_port(stage, &far, ("Down", "Polling"))?;
    let (answer, kept) = stage.run_client(&Question::new("iblinkinfo"))?;
    let active = expect::link_ends(&answer.output, stage.setup.plan.speed);
    let disabled = answer.output.matches("Down/Disabled)==>").count();
    stage.check((active, disabled) == (2 * (links - 1), 1), || {
        format!(
            "iblinkinfo shows {active} ends of active links and {disabled} disabled ends after \
             one of {links} links was disabled ({})",
            kept.display()
        )
    });

    for verb in ["enable", "reset"] {
        change(stage, &near, verb, ("Initialize", "LinkUp"))?;
        for end in [&near, &far] {
            expect_port(stage, end, ("Active", "LinkUp"))?;
        }
        let (answer, kept) = stage.run_client(&Question::new("iblinkinfo"))?;
        let found = expect::link_ends(&answer.output, stage.setup.plan.speed);
        stage.check(found == 2 * links, || {
            let expected = 2 * links;
            format!(
                "iblinkinfo shows {found} ends of active links, not {expected}, after {verb} ({})",
                kept.display()
            )
        });
    }
    // The link went down twice: by the disable and by the reset.
    let now = self::downed(stage, id)?;
    stage.check(now == downed.map(|count| count + 2), || {
        format!("LinkDownedCounter of both ends: {downed:?} before the link went down twice, {now:?} after")
    });
    let (answer, _) = stage.run_client(&Question::new("dump_lfts"))?;
    check_tables(stage, &answer.output)
}

/// One end of a link: the directed route to the switch, and the number of the switch's port.
type End = (String, u8);

/// Changes a port with ibportstate. The client must print the port's new states, and OpenSM must receive a trap and
/// sweep.
fn change(
    stage: &mut Stage<'_>,
    (route, number): &End,
    verb: &str,
    states: (&str, &str),
) -> Result<(), StageError> {
    let (traps, ups) = (traps(stage), stage.manager.ups());
    let line = format!("ibportstate -D {route} {number} {verb}");
    let (answer, kept) = stage.run_client(&Question::new(&line))?;
    // ibportstate prints the port's states before the change, and then the states after it.
    let after = answer.output.rsplit("After PortInfo set:").next().unwrap_or_default();
    check_states(stage, &line, after, states, &kept);
    stage.check(answer.code == Some(0), || format!("{line}: exit status {:?}", answer.code));
    let swept = stage.manager.settles(ups + 1, SWEEP);
    stage.check(swept, || format!("OpenSM does not sweep after {line}"));
    let heard = traps < self::traps(stage);
    stage.check(heard, || format!("OpenSM has not received trap 128 after {line}"));
    Ok(())
}

fn expect_port(
    stage: &mut Stage<'_>,
    (route, number): &End,
    states: (&str, &str),
) -> Result<(), StageError> {
    let line = format!("smpquery -D portinfo {route} {number}");
    let (answer, kept) = stage.run_client(&Question::new(&line))?;
    check_states(stage, &line, &answer.output, states, &kept);
    Ok(())
}

/// Checks the logical and the physical state in the output of a client.
fn check_states(
    stage: &mut Stage<'_>,
    line: &str,
    output: &str,
    states: (&str, &str),
    kept: &Path,
) {
    let found = ["LinkState", "PhysLinkState"].map(|name| expect::field(output, name));
    stage.check(found == [Some(states.0), Some(states.1)], || {
        format!("{line} shows {found:?}, not {states:?} ({})", kept.display())
    });
}

/// Returns the values of `LinkDownedCounter` at both ends of a link.
fn downed(stage: &mut Stage<'_>, id: PortId) -> Result<[u64; 2], StageError> {
    let fabric = stage.setup.fabric;
    let lids = stage.manager.lids()?;
    let mut counts = [u64::MAX; 2];
    let ends = [Some(fabric.port(id)), fabric.peer(id)];
    for (count, port) in counts.iter_mut().zip(ends.into_iter().flatten()) {
        let lid = lids.get(&fabric.node(port.node).guid).copied().unwrap_or_default();
        let (answer, _) =
            stage.run_client(&Question::new(&format!("perfquery {lid} {}", port.number)))?;
        *count = expect::counter(&answer.output, "LinkDownedCounter").unwrap_or(u64::MAX);
    }
    Ok(counts)
}

fn look(stage: &mut Stage<'_>, links: usize) -> Result<(), StageError> {
    let answer = stage.ask(&Question::new("iblinkinfo"))?;
    let found = expect::link_ends(&answer.output, stage.setup.plan.speed);
    stage.check(found == 2 * links, || {
        format!("iblinkinfo shows {found} ends of active links, not {}", 2 * links)
    });
    stage.ask(&Question::new("ibnetdiscover -p"))?;
    stage.ask(&Question::new("dump_lfts"))?;
    // ibqueryerrors is not run, because Debian's version sometimes crashes if a counter is not zero.
    Ok(())
}

fn order(stage: &mut Stage<'_>, order: Order<'_>) {
    let done = stage.server.order(order);
    stage.check(done.is_ok(), || match done {
        Ok(()) => String::new(),
        Err(error) => format!("the simulator rejects {order:?}: {error}"),
    });
}

fn traps(stage: &Stage<'_>) -> usize {
    stage.manager.log().matches("num:128").count()
}
