//! Links that go and come, by the simulator's own command and by a client's.

use super::{Duration, Order, Question, Session, SessionError, expect};
use crate::clients::expect::directed_routes;

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

/// Disables a port with ibportstate, enables it again and resets it.
pub(super) fn disable(session: &mut Session<'_>) -> Result<(), SessionError> {
    let fabric = session.setup.fabric;
    let Some(&id) = expect::spare_links(fabric).last() else { return Ok(()) };
    let start = fabric.find_name(&session.seat.node);
    let start = start.and_then(|node| {
        fabric.ports_of(node).find(|(_, port)| port.peer.is_some()).map(|(id, _)| id)
    });
    let Some(start) = start else { return Ok(()) };
    // The nearer end, so that its directed route does not lead through the link itself.
    let routes = directed_routes(fabric, start);
    let ends = [Some(fabric.port(id)), fabric.peer(id)];
    let near = ends.into_iter().flatten().min_by_key(|port| routes[&port.node].len());
    let Some(near) = near else { return Ok(()) };
    let (route, number) = (routes[&near.node].clone(), near.number);
    for verb in ["disable", "enable", "reset"] {
        session.ask(&Question::new(&format!("ibportstate -D {route} {number} {verb}")))?;
        // ibsim sends no trap for a port that a client disables.
        let swept = session.manager.sweeps(SWEEP);
        session.check(swept, || format!("the subnet does not come up after ibportstate {verb}"));
        session.ask(&Question::new(&format!("smpquery -D portinfo {route} {number}")))?;
        session.ask(&Question::new("iblinkinfo"))?;
    }
    session.ask(&Question::new("dump_lfts"))?;
    Ok(())
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
