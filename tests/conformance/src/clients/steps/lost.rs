//! Links that go and come, by the simulator's own command and by a client's.

use std::path::Path;

use ib_topology::PortId;

use super::{Duration, Order, Question, Session, SessionError, check_tables, expect};
use crate::clients::expect::directed_routes;
use crate::clients::server::Kind;

const SWEEP: Duration = Duration::from_secs(20);

/// Takes a link out: OpenSM must hear of it and sweep, and iblinkinfo must not show it.
pub(super) fn unlink(session: &mut Session<'_>) -> Result<(), SessionError> {
    let fabric = session.setup.fabric;
    let Some(&port) = expect::spare_links(fabric).first() else { return Ok(()) };
    let port = fabric.port(port);
    let name = fabric.node(port.node).name.clone();
    let traps = traps(session);
    let ups = session.manager.ups();
    order(session, Order::Unlink(&name, port.number));
    let swept = session.manager.settles(ups + 1, SWEEP);
    session.check(swept, || "OpenSM does not sweep after a link is lost".to_owned());
    let heard = traps < self::traps(session);
    session.check(heard, || "OpenSM hears no trap 128 when a link is lost".to_owned());
    look(session, fabric.link_count() - 1)?;

    let ups = session.manager.ups();
    order(session, Order::Relink(&name, port.number));
    let swept = session.manager.settles(ups + 1, SWEEP);
    session.check(swept, || "OpenSM does not sweep after a link comes back".to_owned());
    look(session, fabric.link_count())
}

/// Disables a port with ibportstate, enables it again and resets it, on `ibfabric sim`: the link must
/// go down and come up as a real one does, at both ends, and OpenSM must hear of it.
///
/// There is nothing to compare: a port of ibsim that is disabled stays active and passes nothing more,
/// also after it was enabled, and its neighbor sees no change.
pub(super) fn disable(session: &mut Session<'_>) -> Result<(), SessionError> {
    if *session.setup.server == Kind::Ibsim {
        return Ok(());
    }
    let fabric = session.setup.fabric;
    let start = expect::seat_port(fabric, &session.seat.node);
    let (Some(&id), Some(start)) = (expect::spare_links(fabric).last(), start) else {
        return Ok(());
    };
    // Routes that do not lead through the link itself.
    let mut less = fabric.clone();
    less.disconnect(id);
    let routes = directed_routes(&less, start);
    let ends = [Some(fabric.port(id)), fabric.peer(id)];
    let ends = ends.map(|port| port.expect("the link has two ends"));
    let [(route, number), far] = ends.map(|port| (routes[&port.node].clone(), port.number));
    let near = (route.clone(), number);
    let (links, downed) = (fabric.link_count(), downed(session, id)?);

    change(session, &near, "disable", ("Down", "Disabled"))?;
    expect_port(session, &near, ("Down", "Disabled"))?;
    // It hears nothing, and tries again and again.
    expect_port(session, &far, ("Down", "Polling"))?;
    let (answer, kept) = session.hear(&Question::new("iblinkinfo"))?;
    let active = expect::link_ends(&answer.output, session.setup.plan.speed);
    let disabled = answer.output.matches("Down/Disabled)==>").count();
    session.check((active, disabled) == (2 * (links - 1), 1), || {
        format!(
            "iblinkinfo shows {active} ends of active links and {disabled} that are disabled after \
             one of {links} links was disabled ({})",
            kept.display()
        )
    });

    for verb in ["enable", "reset"] {
        change(session, &near, verb, ("Initialize", "LinkUp"))?;
        for end in [&near, &far] {
            expect_port(session, end, ("Active", "LinkUp"))?;
        }
        let (answer, kept) = session.hear(&Question::new("iblinkinfo"))?;
        let found = expect::link_ends(&answer.output, session.setup.plan.speed);
        session.check(found == 2 * links, || {
            let expected = 2 * links;
            format!(
                "iblinkinfo shows {found} ends of active links, not {expected}, after {verb} ({})",
                kept.display()
            )
        });
    }
    // The link went down twice: when it was disabled, and when it was reset.
    let now = self::downed(session, id)?;
    session.check(now == downed.map(|count| count + 2), || {
        format!("LinkDownedCounter of the ends: {downed:?} before two losses, {now:?} after")
    });
    let (answer, _) = session.hear(&Question::new("dump_lfts"))?;
    check_tables(session, &answer.output)
}

/// The directed route to a switch and a port of it.
type End = (String, u8);

/// Lets ibportstate change a port: it must show the states after that, and OpenSM must sweep by
/// itself.
fn change(
    session: &mut Session<'_>,
    (route, number): &End,
    verb: &str,
    states: (&str, &str),
) -> Result<(), SessionError> {
    let (traps, ups) = (traps(session), session.manager.ups());
    let line = format!("ibportstate -D {route} {number} {verb}");
    let (answer, kept) = session.hear(&Question::new(&line))?;
    // The last of what it shows is what it found afterwards.
    let after = answer.output.rsplit("After PortInfo set:").next().unwrap_or_default();
    check_states(session, &line, after, states, &kept);
    session.check(answer.code == Some(0), || format!("{line}: exit status {:?}", answer.code));
    let swept = session.manager.settles(ups + 1, SWEEP);
    session.check(swept, || format!("OpenSM does not sweep after {line}"));
    let heard = traps < self::traps(session);
    session.check(heard, || format!("OpenSM hears no trap 128 after {line}"));
    Ok(())
}

fn expect_port(
    session: &mut Session<'_>,
    (route, number): &End,
    states: (&str, &str),
) -> Result<(), SessionError> {
    let line = format!("smpquery -D portinfo {route} {number}");
    let (answer, kept) = session.hear(&Question::new(&line))?;
    check_states(session, &line, &answer.output, states, &kept);
    Ok(())
}

/// Checks the logical and the physical state that a client shows.
fn check_states(
    session: &mut Session<'_>,
    line: &str,
    output: &str,
    states: (&str, &str),
    kept: &Path,
) {
    let found = ["LinkState", "PhysLinkState"].map(|name| expect::field(output, name));
    session.check(found == [Some(states.0), Some(states.1)], || {
        format!("{line} shows {found:?}, not {states:?} ({})", kept.display())
    });
}

/// Returns how often the ends of a link saw it go down.
fn downed(session: &mut Session<'_>, id: PortId) -> Result<[u64; 2], SessionError> {
    let fabric = session.setup.fabric;
    let lids = session.manager.lids()?;
    let mut counts = [u64::MAX; 2];
    let ends = [Some(fabric.port(id)), fabric.peer(id)];
    for (count, port) in counts.iter_mut().zip(ends.into_iter().flatten()) {
        let lid = lids.get(&fabric.node(port.node).guid).copied().unwrap_or_default();
        let (answer, _) =
            session.hear(&Question::new(&format!("perfquery {lid} {}", port.number)))?;
        *count = expect::counter(&answer.output, "LinkDownedCounter").unwrap_or(u64::MAX);
    }
    Ok(counts)
}

fn look(session: &mut Session<'_>, links: usize) -> Result<(), SessionError> {
    let answer = session.ask(&Question::new("iblinkinfo"))?;
    let found = expect::link_ends(&answer.output, session.setup.plan.speed);
    session.check(found == 2 * links, || {
        format!("iblinkinfo shows {found} ends of active links, not {}", 2 * links)
    });
    session.ask(&Question::new("ibnetdiscover -p"))?;
    session.ask(&Question::new("dump_lfts"))?;
    // Not ibqueryerrors: once a counter is not zero, Debian's crashes now and then.
    Ok(())
}

fn order(session: &mut Session<'_>, order: Order<'_>) {
    let done = session.server.order(order);
    session.check(done.is_ok(), || match done {
        Ok(()) => String::new(),
        Err(error) => format!("{order:?} is refused: {error}"),
    });
}

fn traps(session: &Session<'_>) -> usize {
    session.manager.log().matches("num:128").count()
}
