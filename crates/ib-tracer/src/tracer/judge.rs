//! Judges each hop of a path by the observations and the fault model.
//!
//! A hop is proven good by a packet that was seen to arrive over its link, or by counters.
//!
//! A hop is proven bad if counters show another port. It is also proven bad if a trial excludes random loss
//! of the combined-route probe over it, and every other component that the probe depends on is proven good.
//!
//! The proofs hold for any number of faults. In all other cases the verdict is "not proven", and the
//! components that remain are suspects.

use std::collections::BTreeSet;

use ib_types::Guid;
use ib_wire::mad::sm::PortState;
use ib_wire::mad::smp;

use super::{Step, Tracer};
use crate::atlas::{Entry, Link, Walked, Way};
use crate::census::Outcome;
use crate::diagnosis;
use crate::fact::Fact;
use crate::fault_model::conflict;
use crate::observation::Witness;
use crate::path::{Hop, Left, NodeNumber, Stop};
use crate::probes::{Launch, Launched};
use crate::trace::{AgentState, Component, Reason, Suspicion, Verdict};
use crate::trial;

/// Maximum number of faults in a candidate.
const MOST_FAULTS: usize = 4;

/// Number of switches without an answered combined-route probe after which all switches are assumed not to
/// relay such probes, as long as none was answered.
const MOST_UNANSWERED: usize = 2;

/// Maximum number of combined-route probes from other switches for a link.
const MOST_ALTERNATIVES: usize = 3;

impl Tracer {
    /// Returns the verdicts on the hops of a path, or the step that is needed first.
    pub(super) fn judge(
        &mut self,
        own: (NodeNumber, u8),
        lid: Option<u16>,
        way: &Way,
    ) -> Result<Vec<(Hop, Verdict)>, Step> {
        let mut hops = Vec::with_capacity(way.hops.len());
        for (place, hop) in way.hops.iter().enumerate() {
            let is_last = place + 1 == way.hops.len() && way.stop == Stop::Arrived;
            hops.push((*hop, self.verdict(own, hop, (lid, is_last))?));
        }
        Ok(hops)
    }

    /// Returns the verdict on a hop of a path to a LID; caches proofs.
    pub(super) fn verdict(
        &mut self,
        own: (NodeNumber, u8),
        hop: &Hop,
        (lid, is_last): (Option<u16>, bool),
    ) -> Result<Verdict, Step> {
        let own_lid = if is_last || self.exact { lid } else { None };
        let key = (hop.from, hop.out, own_lid, is_last);
        if let Some(verdict) = self.verdicts.get(&key) {
            return Ok(verdict.clone());
        }
        let verdict = self.finding(own, hop, (lid, is_last))?;
        if !matches!(verdict, Verdict::Suspected(_)) {
            self.verdicts.insert(key, verdict.clone());
        }
        Ok(verdict)
    }

    fn finding(
        &self,
        own: (NodeNumber, u8),
        hop: &Hop,
        (lid, is_last): (Option<u16>, bool),
    ) -> Result<Verdict, Step> {
        if let Some(verdict) = self.identity(hop) {
            return Ok(verdict);
        }
        if let Some(lid) = lid.filter(|_| is_last)
            && let Some(what) = self.doubt((hop.node, hop.enters), lid).map_err(Step::Fact)?
        {
            return Ok(Verdict::Duplicate { what });
        }
        if !self.agents {
            return Ok(Verdict::NotAsked);
        }
        let base = self.atlas.end((hop.node, hop.enters)).map_or(0, |end| end.lid);
        let target = lid.filter(|_| is_last).unwrap_or(base);
        if target == 0 {
            return Ok(suspected(Reason::NoLid, Vec::new()));
        }
        self.probe(own, target)?;
        let seen = self.probes.get(target).flatten();
        let way = self.probes.way(target);
        let is_same = way.and_then(|way| way.hops.last()) == Some(hop);
        if let Some((found, _)) = seen.and_then(|seen| seen.node)
            && let Some(end) = way.and_then(|way| way.hops.last())
            && self.atlas.node(end.node).guid != found
        {
            return Ok(self.shared_lid(target, end.node, found));
        }
        match seen.map(|seen| &seen.agent) {
            Some(AgentState::Inconsistent(what)) => {
                return Ok(Verdict::Inconsistent { what: what.clone() });
            }
            Some(&AgentState::Port(port)) if is_same || way.is_some_and(has_hops) => {
                if let Some((_, arrival)) = seen.and_then(|seen| seen.node)
                    && arrival != port
                    && arrival != 0
                {
                    if !self.is_confirmed(own, target)? {
                        return Ok(suspected(Reason::TableChanged, Vec::new()));
                    }
                    return Ok(Verdict::Inconsistent {
                        what: format!(
                            "its agent reports arrival port {port}, its subnet management port {arrival}"
                        ),
                    });
                }
            }
            Some(AgentState::OtherLevel) if is_last => {
                return Ok(suspected(Reason::OtherLevel, Vec::new()));
            }
            _ => {}
        }
        let exact = self.exact && self.atlas.node(hop.from).kind.is_switch();
        if exact
            && let Some(lid) = lid
            && let Some(verdict) = self.exactly(hop, lid)?
        {
            return Ok(verdict);
        }
        let proof = match is_last {
            true => self.observations.arrived((hop.from, hop.out), target),
            false => self.observations.proven((hop.from, hop.out)),
        };
        // Some switches do not report the arrival port of SMPs to their LID.
        let is_here = seen.and_then(|it| it.node).is_some_and(|(guid, port)| {
            guid == self.atlas.node(hop.node).guid && [0, hop.enters].contains(&port)
        });
        if is_same && is_here && seen.is_some_and(|it| it.agent == AgentState::Port(hop.enters)) {
            return Ok(Verdict::Validated);
        }
        if let Some(by) = proof {
            return Ok(Verdict::Seen { by });
        }
        if is_same && seen.is_some_and(|it| self.is_at(hop, it.node)) {
            return Ok(Verdict::Seen { by: Witness::Management });
        }
        if (hop.node, hop.enters) == own && way.is_some_and(|way| way.hops.is_empty()) {
            let is_heard = self.is_heard && self.own.lid == target;
            if is_heard {
                return Ok(Verdict::Own);
            }
        }
        if !self.atlas.node(hop.from).kind.is_switch() {
            return Ok(match is_last {
                false => Verdict::Seen { by: Witness::Cable },
                true => suspected(Reason::Unanswered, vec![Component::Identity(hop.node)]),
            });
        }
        self.by_launch(own, hop, (target, lid, is_last))
    }

    /// Returns the verdict on a LID if the node that responds differs from the node that reports the LID.
    fn shared_lid(&self, lid: u16, node: NodeNumber, found: Guid) -> Verdict {
        let guid = self.atlas.node(node).guid;
        Verdict::Duplicate { what: format!("LID {lid} is reported by nodes {guid} and {found}") }
    }

    /// Returns true if a probe was answered by the node of a hop and arrived by its port.
    fn is_at(&self, hop: &Hop, arrival: Option<(Guid, u8)>) -> bool {
        arrival == Some((self.atlas.node(hop.node).guid, hop.enters))
    }

    /// Returns the verdict if a node of a hop has inconsistent responses or a duplicate GUID or LID.
    pub(super) fn identity(&self, hop: &Hop) -> Option<Verdict> {
        for node in [hop.from, hop.node] {
            if let Some(what) = self.atlas.inconsistent.get(&node).filter(|_| node == hop.node) {
                return Some(Verdict::Inconsistent { what: what.clone() });
            }
            if self.atlas.twin(node).is_some() {
                let guid = self.atlas.node(node).guid;
                let count = self.atlas.find(guid).len();
                let what = format!("GUID {guid} is reported by {count} nodes");
                return Some(Verdict::Duplicate { what });
            }
        }
        None
    }

    /// Returns why a LID may have been assigned to another port than the one that reports it.
    pub(super) fn doubt(
        &self,
        (node, _): (NodeNumber, u8),
        lid: u16,
    ) -> Result<Option<String>, Fact> {
        let claimants = self.atlas.claimants(lid);
        if claimants.len() > 1 {
            let names: Vec<String> =
                claimants.iter().map(|&(node, _)| self.atlas.name(node)).collect();
            return Ok(Some(format!("LID {lid} is reported by {}", names.join(" and "))));
        }
        if !self.atlas.node(node).kind.is_switch() {
            return Ok(None);
        }
        // A switch has port 0 in its table for its own LID.
        match self.atlas.entry(node, lid) {
            Entry::Needs(fact) => Err(fact),
            Entry::Port(port) => {
                let name = self.atlas.name(node);
                Ok(Some(format!(
                    "LID {lid} is reported by {name}, whose table sends it by port {port}"
                )))
            }
            Entry::Stop(_) => Ok(None),
        }
    }

    /// Requires a probe of a LID from the own port.
    fn probe(&self, own: (NodeNumber, u8), lid: u16) -> Result<(), Step> {
        match self.probes.get(lid) {
            Some(Some(_)) => Ok(()),
            Some(None) => Err(Step::Waits(lid)),
            None => Err(match self.atlas.walk(own, lid) {
                Walked::Needs(fact) => Step::Fact(fact),
                Walked::Ended(way) => Step::Probe(lid, Box::new(way)),
            }),
        }
    }

    /// Counts by which port a switch sends packets to one LID; `None` if that is the port of its table, or
    /// if the packets cannot be counted.
    fn exactly(&self, hop: &Hop, lid: u16) -> Result<Option<Verdict>, Step> {
        let launch = (hop.from, lid);
        if self.launched(launch)?.is_none() {
            return Ok(None);
        }
        Ok(match self.census(launch)? {
            Some(Left::By(port)) if port != hop.out => {
                Some(match self.is_launch_confirmed(launch)? {
                    true => Verdict::Detour { by: port },
                    false => suspected(Reason::TableChanged, Vec::new()),
                })
            }
            _ => None,
        })
    }

    /// Judges a link that no path from the own port has proven, by probes from the switch before it.
    fn by_launch(
        &self,
        own: (NodeNumber, u8),
        hop: &Hop,
        (target, lid, is_last): (u16, Option<u16>, bool),
    ) -> Result<Verdict, Step> {
        let place = Component::Forwarding(hop.from, hop.out);
        let Some(launch) = self.launch_of(hop, target, lid)? else {
            return Ok(suspected(Reason::NoCounters, vec![place]));
        };
        let is_direct = launch.1 == target;
        let Some(launched) = self.launched(launch)? else {
            return Ok(suspected(Reason::NoLaunch, vec![place]));
        };
        let guid = self.atlas.node(hop.node).guid;
        let mut actual = None;
        if let Launched::At(found, port) = launched
            && is_direct
        {
            if found != guid {
                return Ok(self.shared_lid(target, hop.node, found));
            }
            if port == hop.enters {
                return Ok(Verdict::Seen { by: Witness::Launch });
            }
            actual = (port != 0).then_some(port);
        }
        let left = self.census(launch)?;
        match left {
            Some(Left::By(port)) if port == hop.out => {
                if let Some(port) = actual {
                    let what = format!(
                        "it reports arrival port {port}; the switch before sends by port {}, behind \
                         which is its port {}",
                        hop.out, hop.enters
                    );
                    return Ok(Verdict::Inconsistent { what });
                }
                if !is_last {
                    return Ok(Verdict::Seen { by: Witness::Counters });
                }
            }
            Some(Left::By(port) | Left::Discarded(port)) if port != hop.out => {
                if !self.is_launch_confirmed(launch)? {
                    return Ok(suspected(Reason::TableChanged, vec![place]));
                }
                let end = self.way_end((hop.from, 0), launch.1)?;
                let arrives = matches!(launched, Launched::At(guid, port)
                    if end.is_some_and(|(node, enters)| (self.atlas.node(node).guid, enters) == (guid, port)));
                return Ok(match arrives {
                    true => Verdict::Detour { by: port },
                    false => Verdict::Misdirected { actual, left },
                });
            }
            _ => {}
        }
        if let Some(port) = actual {
            let mut suspicion = suspicion(Reason::NoCounters, vec![place]);
            suspicion.suspects.push(Component::Identity(hop.node));
            suspicion.apart = Some(format!(
                "the counters of port {} of the switch before, while packets to LID {target} arrive by \
                 port {port}",
                hop.out
            ));
            return Ok(Verdict::Suspected(Box::new(suspicion)));
        }
        if !is_direct || matches!(launched, Launched::At(..)) {
            return Ok(suspected(Reason::NoCounters, vec![place]));
        }
        self.alternatives(hop, target)?;
        match self.trials.get(launch) {
            None | Some(trial::Outcome::Running) => return Err(Step::Trial(launch)),
            Some(trial::Outcome::Answered | trial::Outcome::Unclear) => {
                return Ok(suspected(Reason::Lossy, vec![place]));
            }
            Some(trial::Outcome::Silent) => {}
        }
        self.diagnose(own, hop, launch)
    }

    /// Returns the result of a combined-route probe; `None` if no switch relays such probes.
    fn launched(&self, launch: Launch) -> Result<Option<Launched>, Step> {
        match self.probes.launched(launch) {
            Some(launched @ Launched::At(..)) => return Ok(Some(launched)),
            Some(Launched::Asking) => return Err(Step::Launch(launch)),
            Some(Launched::Unanswered) | None => {}
        }
        let is_useless = !self.probes.has_answered_launch()
            && self.probes.unanswered_switches() >= MOST_UNANSWERED;
        match self.probes.launched(launch) {
            _ if is_useless => Ok(None),
            None => Err(Step::Launch(launch)),
            launched => Ok(launched),
        }
    }

    /// Returns a combined-route probe over the link of a hop: to the target if the switch sends that LID by
    /// the link, else to the end of the path. One such probe is used for all paths over a link.
    fn launch_of(&self, hop: &Hop, target: u16, lid: Option<u16>) -> Result<Option<Launch>, Step> {
        let is_over = |lid| match self.atlas.entry(hop.from, lid) {
            Entry::Needs(fact) => Err(Step::Fact(fact)),
            Entry::Port(port) => Ok(port == hop.out),
            Entry::Stop(_) => Ok(false),
        };
        if is_over(target)? {
            return Ok(Some((hop.from, target)));
        }
        if let Some(&launch) = self.counted.get(&(hop.from, hop.out)) {
            return Ok(Some(launch));
        }
        let Some(lid) = lid else { return Ok(None) };
        if !is_over(lid)? {
            return Ok(None);
        }
        Err(Step::Count((hop.from, hop.out), (hop.from, lid)))
    }

    /// Returns true if the tables on the path from a port to a LID are unchanged at a second reading.
    fn is_confirmed(&self, start: (NodeNumber, u8), lid: u16) -> Result<bool, Step> {
        match self.atlas.walk(start, lid) {
            Walked::Needs(fact) => Err(Step::Fact(fact)),
            Walked::Ended(way) => match self.atlas.unconfirmed(&way, lid) {
                Some(fact) => Err(Step::Fact(fact)),
                None => Ok(self.atlas.changed_on(&way).is_none()),
            },
        }
    }

    /// Returns true if the tables that a probe and its response depend on are unchanged at a second reading.
    fn is_launch_confirmed(&self, (from, lid): Launch) -> Result<bool, Step> {
        let start = (from, 0);
        let back = self.atlas.end(start).map_or(0, |end| end.lid);
        if !self.is_confirmed(start, lid)? {
            return Ok(false);
        }
        match self.way_end(start, lid)? {
            Some(end) => self.is_confirmed(end, back),
            None => Ok(true),
        }
    }

    /// Returns the port at the end of the path to a LID; `None` if the path does not arrive.
    fn way_end(&self, start: (NodeNumber, u8), lid: u16) -> Result<Option<(NodeNumber, u8)>, Step> {
        match self.atlas.walk(start, lid) {
            Walked::Needs(fact) => Err(Step::Fact(fact)),
            Walked::Ended(way) if way.stop == Stop::Arrived => {
                Ok(way.hops.last().map(|hop| (hop.node, hop.enters)))
            }
            Walked::Ended(_) => Ok(None),
        }
    }

    /// Returns the port by which a probe leaves the switch, by the counters of the ports.
    fn census(&self, launch: Launch) -> Result<Option<Left>, Step> {
        let unknown = |port: &u8| {
            let node = self.atlas.node(launch.0);
            !node.links.contains_key(port) && node.route.len() < usize::from(smp::MAX_HOPS)
        };
        // Counters are read by LID, so another node with the LID would respond in place of the switch.
        let lid = self.atlas.end((launch.0, 0)).map_or(0, |end| end.lid);
        if lid == 0 || self.doubt((launch.0, 0), lid).map_err(Step::Fact)?.is_some() {
            return Ok(None);
        }
        if let Some(own) = self.atlas.own() {
            self.probe(own, lid)?;
            let node = self.probes.get(lid).flatten().and_then(|seen| seen.node);
            if node.is_some_and(|(guid, _)| guid != self.atlas.node(launch.0).guid) {
                return Ok(None);
            }
        }
        match self.censuses.get(launch) {
            Some(Outcome::Known(left)) => Ok(left),
            None => Err(Step::Census(launch)),
            Some(Outcome::WantsNeighbours) => {
                let ports = self.atlas.node(launch.0).ports;
                Err((1..=ports).find(unknown).map_or(Step::Census(launch), |port| {
                    Step::Fact(Fact::Link { node: launch.0, port })
                }))
            }
        }
    }

    /// Requires probes to a LID from more distant switches, because their responses take other paths. A probe
    /// that arrives over the link of a hop proves the hop.
    fn alternatives(&self, hop: &Hop, target: u16) -> Result<(), Step> {
        let links = self.atlas.node(hop.from).links.values();
        let neighbours: BTreeSet<NodeNumber> = links
            .filter_map(|link| match *link {
                Link::To(node, _, PortState::ACTIVE) => Some(node),
                Link::To(..) | Link::Nowhere { .. } => None,
            })
            .filter(|&node| node != hop.node && self.atlas.node(node).kind.is_switch())
            .collect();
        let mut tried = 0;
        for node in neighbours {
            if tried == MOST_ALTERNATIVES {
                break;
            }
            let way = match self.atlas.walk((node, 0), target) {
                Walked::Needs(fact) => return Err(Step::Fact(fact)),
                Walked::Ended(way) => way,
            };
            if way.stop == Stop::Arrived && way.hops.last() == Some(hop) {
                tried += 1;
                self.launched((node, target))?;
            }
        }
        Ok(())
    }

    /// Requires combined-route probes to the node behind a hop from its other neighbours. A response shows
    /// that the node answers such probes.
    fn other_launches(&self, hop: &Hop, target: u16) -> Result<(), Step> {
        let links = self.atlas.node(hop.node).links.values();
        let neighbours: BTreeSet<NodeNumber> = links
            .filter_map(|link| match *link {
                Link::To(node, _, PortState::ACTIVE) if node != hop.from => Some(node),
                Link::To(..) | Link::Nowhere { .. } => None,
            })
            .filter(|&node| self.atlas.node(node).kind.is_switch())
            .collect();
        for node in neighbours.into_iter().take(MOST_ALTERNATIVES) {
            if self.way_end((node, 0), target)?.is_some_and(|(end, _)| end == hop.node) {
                self.launched((node, target))?;
            }
        }
        Ok(())
    }

    /// Returns the verdict on a hop whose probe is not answered, if a trial has excluded random loss.
    fn diagnose(&self, own: (NodeNumber, u8), hop: &Hop, launch: Launch) -> Result<Verdict, Step> {
        let switch = self.atlas.end((hop.from, 0)).map_or(0, |end| end.lid);
        if switch != 0 {
            self.probe(own, switch)?;
        }
        let place = Component::Forwarding(hop.from, hop.out);
        let conflict = conflict(&self.atlas, &self.observations, launch).map_err(Step::Fact)?;
        for (component, link) in &conflict.answer {
            if conflict.members.contains(component) && self.is_accused(link)? {
                return Ok(suspected(Reason::AnswersLost, vec![*component]));
            }
        }
        if conflict.members.contains(&Component::Responder(hop.node)) {
            self.other_launches(hop, launch.1)?;
        }
        // The facts about the response path may have proven further components.
        let mut conflicts = Vec::new();
        for other in self.trials.silent() {
            let other = crate::fault_model::conflict(&self.atlas, &self.observations, other);
            conflicts.push(other.map_err(Step::Fact)?.members);
        }
        if diagnosis::is_certain(&place, &conflicts) {
            if !self.is_launch_confirmed(launch)? {
                return Ok(suspected(Reason::TableChanged, vec![place]));
            }
            return Ok(Verdict::Misdirected { actual: None, left: None });
        }
        conflicts.retain(|other| !other.is_disjoint(&conflict.members));
        let candidates = diagnosis::candidates(&conflicts, MOST_FAULTS);
        let mut suspicion =
            suspicion(Reason::Unanswered, conflict.members.iter().copied().collect());
        suspicion.candidates =
            candidates.into_iter().map(|set| set.into_iter().collect()).collect();
        suspicion.apart = Some(format!(
            "a trace that starts at {}, or the counters of {}",
            self.atlas.name(hop.node),
            self.atlas.name(hop.from)
        ));
        Ok(Verdict::Suspected(Box::new(suspicion)))
    }

    /// Returns true if counters show that a switch does not send by the port of its table.
    fn is_accused(&self, hop: &Hop) -> Result<bool, Step> {
        if self.observations.proven((hop.from, hop.out)).is_some() {
            return Ok(false);
        }
        let base = self.atlas.end((hop.node, hop.enters)).map_or(0, |end| end.lid);
        let Some(launch) = self.launch_of(hop, base, None)? else { return Ok(false) };
        let Some(launched) = self.launched(launch)? else { return Ok(false) };
        if launched == Launched::At(self.atlas.node(hop.node).guid, hop.enters) {
            return Ok(false);
        }
        Ok(matches!(self.census(launch)?,
            Some(Left::By(port) | Left::Discarded(port)) if port != hop.out))
    }
}

fn has_hops(way: &Way) -> bool {
    !way.hops.is_empty()
}

fn suspicion(reason: Reason, suspects: Vec<Component>) -> Suspicion {
    Suspicion { reason, suspects, candidates: Vec::new(), apart: None }
}

pub(super) fn suspected(reason: Reason, suspects: Vec<Component>) -> Verdict {
    Verdict::Suspected(Box::new(suspicion(reason, suspects)))
}
