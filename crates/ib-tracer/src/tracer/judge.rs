//! What is to be said of the hops of a way, by what agents, launches and links tell.

use ib_wire::mad::sm::PortState;
use ib_wire::mad::smp;

use super::{Step, Tracer, Via, start_of};
use crate::atlas::{Entry, Link, NodeNumber, Walked, Way};
use crate::census::Outcome;
use crate::facts::Fact;
use crate::probes::{Launch, Launched, Probe};
use crate::trace::{Hop, Left, Stop, Verdict};

impl Tracer {
    /// Finds out what is to be said of the hops of a way, or what has to be asked first.
    pub(super) fn judge(
        &self,
        own: (NodeNumber, u8),
        (lid, whole): (Option<u16>, Option<u16>),
        way: Way,
    ) -> Result<(Vec<(Hop, Verdict)>, Stop), Step> {
        let mut hops = Vec::with_capacity(way.hops.len());
        let mut waits = None;
        for (place, hop) in way.hops.iter().enumerate() {
            let is_last = place + 1 == way.hops.len() && way.stop == Stop::Arrived;
            let base = self.atlas.end((hop.node, hop.enters)).map_or(0, |end| end.lid);
            let asked = lid.filter(|_| is_last).unwrap_or(base);
            if !self.agents || asked == 0 {
                hops.push((*hop, Verdict::NotAsked));
                continue;
            }
            match self.probes.get(asked) {
                Some(Probe::Known(_)) => hops.push((*hop, self.probes.verdict(asked, hop))),
                Some(Probe::Asking) => waits = Some(asked),
                None => {
                    return Err(match self.atlas.walk(own, asked) {
                        Walked::Needs(fact) => Step::Fact(fact),
                        Walked::Ended(way) => Step::Probe(asked, Box::new(way)),
                    });
                }
            }
        }
        if let Some(lid) = waits {
            return Err(Step::Waits(lid));
        }
        let last = hops.len().wrapping_sub(1);
        let mut before = None;
        for (place, (hop, verdict)) in hops.iter_mut().enumerate() {
            // What is sent from here to the end of a way that starts here has taken the way itself.
            let is_whole = place == last && whole.is_some() && way.stop == Stop::Arrived;
            self.look_closer(hop, verdict, (lid, is_whole), before)?;
            before = self.atlas.node(hop.from).kind.is_switch().then_some(hop.from);
            if self.lossy && *verdict == Verdict::Lost {
                *verdict = Verdict::Unanswered;
            }
        }
        Ok((hops, way.stop))
    }

    /// Looks at a hop from the switch before: whatever became of what was sent from here to the hop's
    /// own LID, it tells of this link only what the switch before does.
    fn look_closer(
        &self,
        hop: &Hop,
        verdict: &mut Verdict,
        (lid, is_whole): (Option<u16>, bool),
        before: Option<NodeNumber>,
    ) -> Result<(), Step> {
        if !self.agents {
            return Ok(());
        }
        let is_switch = self.atlas.node(hop.from).kind.is_switch();
        let mut real = *hop;
        if self.via == Via::Administration {
            if let Some(lid) = lid.filter(|_| is_switch) {
                let holds = self.atlas.held(hop.from, lid).map_err(Step::Fact)?;
                if let Some(holds) = holds.filter(|&holds| holds != hop.out) {
                    *verdict = Verdict::OtherTable { holds };
                    return Ok(());
                }
            }
            match self.compare_link(hop)? {
                Compared::Same(same) => real = same,
                Compared::Other(what) => {
                    *verdict = Verdict::OtherLink { what };
                    return Ok(());
                }
                Compared::Unknown => return Ok(()),
            }
        }
        let (hop, atlas) = (&real, self.view());
        let is_bad = verdict.is_bad();
        if self.exact
            && !is_bad
            && is_switch
            && *verdict != Verdict::NotAsked
            && let Some(lid) = lid
            && let Some(by) = self.detour(hop, (hop.from, lid))?
        {
            *verdict = Verdict::Detour { by };
            return Ok(());
        }
        if matches!(verdict, Verdict::Validated | Verdict::NotAsked) {
            return Ok(());
        }
        let launch = match self.launch_of(hop, lid).filter(|_| is_switch) {
            None => None,
            Some(Err(fact)) if self.via == Via::Administration => return Err(Step::Real(fact)),
            Some(Err(fact)) => return Err(Step::Fact(fact)),
            Some(Ok((launch, node, port))) => match self.probes.launched(launch) {
                None | Some(Launched::Asking) => return Err(Step::Launch(launch)),
                Some(Launched::Unable) => None,
                Some(launched) => Some((launch, launched, (atlas.node(node).guid, port))),
            },
        };
        let Some((launch, launched, wanted)) = launch else {
            // An adapter has no choice, and its cable was followed.
            if !is_whole
                && matches!(
                    verdict,
                    Verdict::Lost
                        | Verdict::Elsewhere { .. }
                        | Verdict::Mismatch { same_link: false, .. }
                )
            {
                *verdict = Verdict::OwnRouteAstray;
            }
            return Ok(());
        };
        if let Launched::At(guid, port) = launched
            && (guid, port) == wanted
        {
            if wanted.0 != atlas.node(hop.node).guid
                && let Some(by) = self.detour_over(hop, launch)?
            {
                *verdict = Verdict::Detour { by };
                return Ok(());
            }
            match verdict {
                Verdict::OwnRouteOnly { seen, .. } => *seen = true,
                _ if is_bad => *verdict = Verdict::OwnRouteAstray,
                _ => {}
            }
            return Ok(());
        }
        let is_next = wanted.0 == atlas.node(hop.node).guid;
        let left = self.census(launch)?;
        *verdict = match launched {
            // The switch sends it as it should; a later one does not, or the answer gets lost.
            _ if left == Some(Left::By(hop.out)) && (launched == Launched::Lost || !is_next) => {
                Verdict::OwnRouteAstray
            }
            Launched::At(guid, _) if guid != wanted.0 => {
                Verdict::Misdirected { actual: None, elsewhere: Some(guid), left }
            }
            Launched::At(_, port) => {
                Verdict::Misdirected { actual: Some(port), elsewhere: None, left }
            }
            _ if left.is_some() => Verdict::Misdirected { actual: None, elsewhere: None, left },
            _ if self.lossy => Verdict::Unanswered,
            _ if self.is_cleared(hop, before)? => Verdict::OwnRouteAstray,
            _ if !is_next && !self.is_lost_here(hop, lid)? => Verdict::OwnRouteAstray,
            _ => Verdict::Misdirected { actual: None, elsewhere: None, left },
        };
        Ok(())
    }

    /// Returns the other port by which the switch before sends what arrives at the end of a way. One
    /// launch is counted for each link, and every one where that has left by another port.
    fn detour_over(&self, hop: &Hop, launch: Launch) -> Result<Option<u8>, Step> {
        match self.counted.get(&(hop.from, hop.out)) {
            None => Err(Step::Count((hop.from, hop.out), launch)),
            Some(&first) if first == launch => self.detour(hop, launch),
            Some(&first) => match self.detour(hop, first)? {
                Some(_) => self.detour(hop, launch),
                None => Ok(None),
            },
        }
    }

    /// Returns the other port that a launch leaves by.
    fn detour(&self, hop: &Hop, launch: Launch) -> Result<Option<u8>, Step> {
        match self.probes.launched(launch) {
            None | Some(Launched::Asking) => Err(Step::Launch(launch)),
            // Where it does not arrive there is more to be said than this.
            Some(Launched::Lost | Launched::Unable) => Ok(None),
            Some(Launched::At(..)) => Ok(match self.census(launch)? {
                Some(Left::By(port)) if port != hop.out => Some(port),
                _ => None,
            }),
        }
    }

    /// Returns where a launch leaves, by what ports count.
    fn census(&self, launch: Launch) -> Result<Option<Left>, Step> {
        let unknown = |port: &u8| {
            let node = self.view().node(launch.0);
            !node.links.contains_key(port) && node.route.len() < usize::from(smp::MAX_HOPS)
        };
        match self.censuses.get(launch) {
            Some(Outcome::Known(left)) => Ok(left),
            None => Err(Step::Census(launch)),
            Some(Outcome::WantsNeighbours) => {
                let ports = self.view().node(launch.0).ports;
                Err((1..=ports).find(unknown).map_or(Step::Census(launch), |port| {
                    let fact = Fact::Link { node: launch.0, port };
                    match self.via {
                        Via::DirectedRoutes => Step::Fact(fact),
                        Via::Administration => Step::Real(fact),
                    }
                }))
            }
        }
    }

    /// Returns whether a launch from the switch before the switch before shows that a link carries what it
    /// should: the answer comes back another way than that of a launch from nearer by.
    fn is_cleared(&self, hop: &Hop, before: Option<NodeNumber>) -> Result<bool, Step> {
        let Some(before) = before.filter(|_| self.via == Via::DirectedRoutes) else {
            return Ok(false);
        };
        let Some(end) = self.atlas.end((hop.node, hop.enters)) else { return Ok(false) };
        let way = match self.atlas.walk((before, 0), end.lid) {
            Walked::Needs(fact) => return Err(Step::Fact(fact)),
            Walked::Ended(way) => way,
        };
        if way.stop != Stop::Arrived || way.hops.last() != Some(hop) {
            return Ok(false);
        }
        let launch = (before, end.lid);
        match self.probes.launched(launch) {
            None | Some(Launched::Asking) => Err(Step::Launch(launch)),
            Some(Launched::At(guid, port)) => {
                Ok((guid, port) == (self.atlas.node(hop.node).guid, hop.enters))
            }
            Some(Launched::Lost | Launched::Unable) => Ok(false),
        }
    }

    /// Returns whether what is launched behind a link arrives at the end of a way: then what was launched
    /// before it, and did not arrive, is lost on the link.
    fn is_lost_here(&self, hop: &Hop, lid: Option<u16>) -> Result<bool, Step> {
        let Some(lid) = lid.filter(|_| self.view().node(hop.node).kind.is_switch()) else {
            return Ok(false);
        };
        match self.probes.launched((hop.node, lid)) {
            None | Some(Launched::Asking) => Err(Step::Launch((hop.node, lid))),
            Some(launched) => Ok(matches!(launched, Launched::At(..))),
        }
    }

    /// Compares a link that subnet administration has told with the one that is there.
    fn compare_link(&self, hop: &Hop) -> Result<Compared, Step> {
        let (told, real) = (&self.atlas, &self.real);
        let Some(own) = real.own() else {
            return match real.lacking.contains_key(&Fact::Own) {
                true => Ok(Compared::Unknown),
                false => Err(Step::Real(Fact::Own)),
            };
        };
        let place = (hop.from, if told.node(hop.from).kind.is_switch() { 0 } else { hop.out });
        let Some(end) = told.end(place) else { return Ok(Compared::Unknown) };
        // The way to the near end, by what is there.
        let way = match real.walk(own, end.lid) {
            Walked::Needs(fact) => return Err(Step::Real(fact)),
            Walked::Ended(way) => way,
        };
        let (node, _) = start_of(own, &way);
        if way.stop != Stop::Arrived || real.node(node).guid != told.node(hop.from).guid {
            return Ok(Compared::Unknown);
        }
        Ok(match real.node(node).links.get(&hop.out) {
            None => return Err(Step::Real(Fact::Link { node, port: hop.out })),
            Some(Link::Nowhere(why)) => Compared::Other(format!("nobody answers behind it: {why}")),
            Some(&Link::To(next, enters, state)) => {
                let there = (real.node(next).guid, enters);
                if there != (told.node(hop.node).guid, hop.enters) {
                    Compared::Other(format!("it leads to port {enters} of {}", real.name(next)))
                } else if state != PortState::ACTIVE {
                    Compared::Other(format!("it is in state {state}"))
                } else {
                    Compared::Same(Hop { from: node, out: hop.out, node: next, enters })
                }
            }
        })
    }

    /// Returns a launch that goes over the link of a hop, and where it has to arrive: at the hop itself
    /// where the switch before sends to its own LID over that link, else at the end of the way.
    fn launch_of(
        &self,
        hop: &Hop,
        lid: Option<u16>,
    ) -> Option<Result<(Launch, NodeNumber, u8), Fact>> {
        let atlas = self.view();
        let end = atlas.end((hop.node, hop.enters))?;
        match atlas.entry(hop.from, end.lid) {
            Entry::Needs(fact) => return Some(Err(fact)),
            Entry::Port(port) if port == hop.out => {
                return Some(Ok(((hop.from, end.lid), hop.node, hop.enters)));
            }
            Entry::Port(_) | Entry::Stop(_) => {}
        }
        let lid = lid?;
        match atlas.walk((hop.from, 0), lid) {
            Walked::Needs(fact) => Some(Err(fact)),
            Walked::Ended(way) if way.stop == Stop::Arrived => {
                let last = way.hops.last()?;
                Some(Ok(((hop.from, lid), last.node, last.enters)))
            }
            Walked::Ended(_) => None,
        }
    }
}

/// What is there, beside what was told.
enum Compared {
    /// The same link.
    Same(Hop),
    /// Something else, in words.
    Other(String),
    /// Its near end is not reached.
    Unknown,
}
