//! Judges each hop of a path by the observations and the fault model.
//!
//! A hop is proven good if a probe shows that a packet arrived over its link. A hop other than the last is also proven
//! good if counters show that the preceding switch sends packets out of the port in its table.
//!
//! A hop is proven bad if counters show that the preceding switch sent packets out of another port. A hop is also
//! proven bad if a trial excludes random loss of the combined-route probe over the hop, and all other components on
//! which the probe depends are proven good.
//!
//! The proofs are valid for any number of faulty components. If there is no proof, the verdict is "not proven", and the
//! components that are not proven good are suspects.

use std::collections::BTreeSet;

use ib_types::Guid;
use ib_wire::mad::sm::PortState;
use ib_wire::mad::smp;

use super::{Step, Tracer};
use crate::census::Outcome;
use crate::diagnosis;
use crate::fabric_model::Fact;
use crate::fabric_model::{Entry, Link, Path, WalkResult};
use crate::fault_model::conflict;
use crate::observation::Witness;
use crate::path::{Hop, NodeNumber, PacketFate, Stop};
use crate::probes::{CombinedResult, CombinedRoute};
use crate::trace::{AgentState, Component, Reason, Suspicion, Verdict};
use crate::trial;

/// Maximum number of faults in a candidate, a set of faults that explains the observations (see `diagnosis`).
const MAX_FAULTS: usize = 4;

/// If the combined-route probes of this number of switches were all unanswered, the client assumes that no switch
/// relays such probes.
const MAX_UNANSWERED: usize = 2;

/// Maximum number of further combined-route probes, from other switches than the preceding one, that are sent to prove
/// a hop or to test the node at its end.
const MAX_ALTERNATIVES: usize = 3;

impl Tracer {
    /// Returns the verdicts on the hops of a path. Fails with the step that has to be performed first.
    pub(super) fn judge(
        &mut self,
        own: (NodeNumber, u8),
        lid: Option<u16>,
        path: &Path,
    ) -> Result<Vec<(Hop, Verdict)>, Step> {
        let mut hops = Vec::with_capacity(path.hops.len());
        for (place, hop) in path.hops.iter().enumerate() {
            let is_last = place + 1 == path.hops.len() && path.stop == Stop::Arrived;
            hops.push((*hop, self.verdict(own, hop, (lid, is_last))?));
        }
        Ok(hops)
    }

    /// Returns the verdict on a hop of a path to a LID. Caches verdicts other than suspicions.
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
            && let Some(what) =
                self.lid_conflict((hop.node, hop.enters), lid).map_err(Step::Fact)?
        {
            return Ok(Verdict::Duplicate { what });
        }
        if !self.agents {
            return Ok(Verdict::NotProbed);
        }
        let base = self.model.end((hop.node, hop.enters)).map_or(0, |end| end.lid);
        let target = lid.filter(|_| is_last).unwrap_or(base);
        if target == 0 {
            return Ok(suspected(Reason::NoLid, Vec::new()));
        }
        self.probe(own, target)?;
        let seen = self.probes.get(target).flatten();
        let path = self.probes.path(target);
        let is_same = path.and_then(|path| path.hops.last()) == Some(hop);
        if let Some((found, _)) = seen.and_then(|seen| seen.node)
            && let Some(end) = path.and_then(|path| path.hops.last())
            && self.model.node(end.node).guid != found
        {
            return Ok(self.shared_lid(target, end.node, found));
        }
        match seen.map(|seen| &seen.agent) {
            Some(AgentState::Inconsistent(what)) => {
                return Ok(Verdict::Inconsistent { what: what.clone() });
            }
            Some(&AgentState::Port(port)) if is_same || path.is_some_and(has_hops) => {
                if let Some((_, arrival)) = seen.and_then(|seen| seen.node)
                    && arrival != port
                    && arrival != 0
                {
                    if !self.is_confirmed(own, target)? {
                        return Ok(suspected(Reason::TableChanged, Vec::new()));
                    }
                    return Ok(Verdict::Inconsistent {
                        what: format!(
                            "its agent reports arrival port {port}, but its SMA reports arrival port {arrival}"
                        ),
                    });
                }
            }
            Some(AgentState::OtherLevel) if is_last => {
                return Ok(suspected(Reason::OtherLevel, Vec::new()));
            }
            _ => {}
        }
        let exact = self.exact && self.model.node(hop.from).kind.is_switch();
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
        // Some switches report arrival port 0 for SMPs that are routed to their LID.
        let is_here = seen.and_then(|it| it.node).is_some_and(|(guid, port)| {
            guid == self.model.node(hop.node).guid && [0, hop.enters].contains(&port)
        });
        if is_same && is_here && seen.is_some_and(|it| it.agent == AgentState::Port(hop.enters)) {
            return Ok(Verdict::Validated);
        }
        if let Some(by) = proof {
            return Ok(Verdict::Observed { by });
        }
        if is_same && seen.is_some_and(|it| self.is_at(hop, it.node)) {
            return Ok(Verdict::Observed { by: Witness::Management });
        }
        if (hop.node, hop.enters) == own && path.is_some_and(|path| path.hops.is_empty()) {
            let has_probe_response = self.has_probe_response && self.own.lid == target;
            if has_probe_response {
                return Ok(Verdict::Own);
            }
        }
        if !self.model.node(hop.from).kind.is_switch() {
            return Ok(match is_last {
                false => Verdict::Observed { by: Witness::Cable },
                true => suspected(Reason::Unanswered, vec![Component::Identity(hop.node)]),
            });
        }
        self.judge_by_combined_route(own, hop, (target, lid, is_last))
    }

    /// Returns the verdict on a LID that `node` reports, but at which the node with the GUID `found` responds.
    fn shared_lid(&self, lid: u16, node: NodeNumber, found: Guid) -> Verdict {
        let guid = self.model.node(node).guid;
        Verdict::Duplicate { what: format!("LID {lid} is reported by nodes {guid} and {found}") }
    }

    /// Returns true if a probe arrived at the node and the port to which a hop leads.
    fn is_at(&self, hop: &Hop, arrival: Option<(Guid, u8)>) -> bool {
        arrival == Some((self.model.node(hop.node).guid, hop.enters))
    }

    /// Returns a verdict if the node to which a hop leads has inconsistent responses, or if a node at either end of the
    /// hop has a duplicate GUID.
    pub(super) fn identity(&self, hop: &Hop) -> Option<Verdict> {
        for node in [hop.from, hop.node] {
            if let Some(what) = self.model.inconsistent.get(&node).filter(|_| node == hop.node) {
                return Some(Verdict::Inconsistent { what: what.clone() });
            }
            if self.model.duplicate_of(node).is_some() {
                let guid = self.model.node(node).guid;
                let count = self.model.find(guid).len();
                let what = format!("GUID {guid} is reported by {count} nodes");
                return Some(Verdict::Duplicate { what });
            }
        }
        None
    }

    /// Returns a message if a LID may belong to another port than the given one, because several ports report the LID
    /// or because the table of the switch routes the LID out of a port. Returns `None` otherwise.
    pub(super) fn lid_conflict(
        &self,
        (node, _): (NodeNumber, u8),
        lid: u16,
    ) -> Result<Option<String>, Fact> {
        let claimants = self.model.claimants(lid);
        if claimants.len() > 1 {
            let names: Vec<String> =
                claimants.iter().map(|&(node, _)| self.model.name(node)).collect();
            return Ok(Some(format!("LID {lid} is reported by {}", names.join(" and "))));
        }
        if !self.model.node(node).kind.is_switch() {
            return Ok(None);
        }
        // If the switch has the LID, the entry of the LID in its table is 0.
        match self.model.entry(node, lid) {
            Entry::Needs(fact) => Err(fact),
            Entry::Port(port) => {
                let name = self.model.name(node);
                Ok(Some(format!(
                    "LID {lid} is reported by {name}, whose table sends packets to it out of port {port}"
                )))
            }
            Entry::Stop(_) => Ok(None),
        }
    }

    /// Checks that a LID was probed from the local port. If not, fails with the step that probes it.
    fn probe(&self, own: (NodeNumber, u8), lid: u16) -> Result<(), Step> {
        match self.probes.get(lid) {
            Some(Some(_)) => Ok(()),
            Some(None) => Err(Step::Waits(lid)),
            None => Err(match self.model.walk(own, lid) {
                WalkResult::Needs(fact) => Step::Fact(fact),
                WalkResult::Ended(path) => Step::Probe(lid, Box::new(path)),
            }),
        }
    }

    /// Returns a verdict if counters show that the preceding switch sends packets to a LID out of another port than
    /// `hop.out`. Returns `None` if the switch sends them out of `hop.out`, or if the counters are inconclusive.
    fn exactly(&self, hop: &Hop, lid: u16) -> Result<Option<Verdict>, Step> {
        let combined_route = (hop.from, lid);
        if self.combined_result(combined_route)?.is_none() {
            return Ok(None);
        }
        Ok(match self.census(combined_route)? {
            Some(PacketFate::Sent(port)) if port != hop.out => {
                Some(match self.is_combined_route_confirmed(combined_route)? {
                    true => Verdict::Detour { by: port },
                    false => suspected(Reason::TableChanged, Vec::new()),
                })
            }
            _ => None,
        })
    }

    /// Judges a link by combined-route probes from the preceding switch, because no probe from the local port proves
    /// the link.
    fn judge_by_combined_route(
        &self,
        own: (NodeNumber, u8),
        hop: &Hop,
        (target, lid, is_last): (u16, Option<u16>, bool),
    ) -> Result<Verdict, Step> {
        let place = Component::Forwarding(hop.from, hop.out);
        let Some(combined_route) = self.combined_route_of(hop, target, lid)? else {
            return Ok(suspected(Reason::NoCounters, vec![place]));
        };
        let is_direct = combined_route.1 == target;
        let Some(combined_result) = self.combined_result(combined_route)? else {
            return Ok(suspected(Reason::NoRelay, vec![place]));
        };
        let guid = self.model.node(hop.node).guid;
        let mut actual = None;
        if let CombinedResult::At(found, port) = combined_result
            && is_direct
        {
            if found != guid {
                return Ok(self.shared_lid(target, hop.node, found));
            }
            if port == hop.enters {
                return Ok(Verdict::Observed { by: Witness::CombinedRoute });
            }
            actual = (port != 0).then_some(port);
        }
        let left = self.census(combined_route)?;
        match left {
            Some(PacketFate::Sent(port)) if port == hop.out => {
                if let Some(port) = actual {
                    let what = format!(
                        "it reports arrival port {port}, but the preceding switch sends out of port {}, \
                         whose cable leads to port {} of this node",
                        hop.out, hop.enters
                    );
                    return Ok(Verdict::Inconsistent { what });
                }
                if !is_last {
                    return Ok(Verdict::Observed { by: Witness::Counters });
                }
            }
            Some(PacketFate::Sent(port) | PacketFate::Discarded(port)) if port != hop.out => {
                if !self.is_combined_route_confirmed(combined_route)? {
                    return Ok(suspected(Reason::TableChanged, vec![place]));
                }
                let end = self.path_end((hop.from, 0), combined_route.1)?;
                let arrives = matches!(combined_result, CombinedResult::At(guid, port)
                    if end.is_some_and(|(node, enters)| (self.model.node(node).guid, enters) == (guid, port)));
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
                "the counters of port {} of the preceding switch, while packets to LID {target} arrive \
                 at port {port}",
                hop.out
            ));
            return Ok(Verdict::Suspected(Box::new(suspicion)));
        }
        if !is_direct || matches!(combined_result, CombinedResult::At(..)) {
            return Ok(suspected(Reason::NoCounters, vec![place]));
        }
        self.alternatives(hop, target)?;
        match self.trials.get(combined_route) {
            None | Some(trial::Outcome::Running) => return Err(Step::Trial(combined_route)),
            Some(trial::Outcome::Answered | trial::Outcome::Unclear) => {
                return Ok(suspected(Reason::Lossy, vec![place]));
            }
            Some(trial::Outcome::Silent) => {}
        }
        self.diagnose(own, hop, combined_route)
    }

    /// Returns the result of a combined-route probe; `None` if no switch relays such probes.
    fn combined_result(
        &self,
        combined_route: CombinedRoute,
    ) -> Result<Option<CombinedResult>, Step> {
        match self.probes.combined_result(combined_route) {
            Some(combined_result @ CombinedResult::At(..)) => return Ok(Some(combined_result)),
            Some(CombinedResult::PendingFact) => return Err(Step::CombinedRoute(combined_route)),
            Some(CombinedResult::Unanswered) | None => {}
        }
        let is_useless = !self.probes.has_answered_combined()
            && self.probes.unanswered_switches() >= MAX_UNANSWERED;
        match self.probes.combined_result(combined_route) {
            _ if is_useless => Ok(None),
            None => Err(Step::CombinedRoute(combined_route)),
            combined_result => Ok(combined_result),
        }
    }

    /// Returns a combined-route probe from the preceding switch over the link of a hop; `None` if no such probe exists.
    ///
    /// If the table of the switch routes `target` over the link, the destination of the probe is `target`. Otherwise
    /// all paths over the link use the probe that `counted` contains for the link. If `counted` contains none, fails
    /// with the step that stores a probe to `lid`, the destination of this path.
    fn combined_route_of(
        &self,
        hop: &Hop,
        target: u16,
        lid: Option<u16>,
    ) -> Result<Option<CombinedRoute>, Step> {
        let is_over = |lid| match self.model.entry(hop.from, lid) {
            Entry::Needs(fact) => Err(Step::Fact(fact)),
            Entry::Port(port) => Ok(port == hop.out),
            Entry::Stop(_) => Ok(false),
        };
        if is_over(target)? {
            return Ok(Some((hop.from, target)));
        }
        if let Some(&combined_route) = self.counted.get(&(hop.from, hop.out)) {
            return Ok(Some(combined_route));
        }
        let Some(lid) = lid else { return Ok(None) };
        if !is_over(lid)? {
            return Ok(None);
        }
        Err(Step::Count((hop.from, hop.out), (hop.from, lid)))
    }

    /// Returns true if the tables on the path from a port to a LID were unchanged when they were read again.
    fn is_confirmed(&self, start: (NodeNumber, u8), lid: u16) -> Result<bool, Step> {
        match self.model.walk(start, lid) {
            WalkResult::Needs(fact) => Err(Step::Fact(fact)),
            WalkResult::Ended(path) => match self.model.unconfirmed(&path, lid) {
                Some(fact) => Err(Step::Fact(fact)),
                None => Ok(self.model.changed_on(&path).is_none()),
            },
        }
    }

    /// Returns true if the tables on the paths of a combined-route probe and its response were unchanged when they were
    /// read again.
    fn is_combined_route_confirmed(&self, (from, lid): CombinedRoute) -> Result<bool, Step> {
        let start = (from, 0);
        let back = self.model.end(start).map_or(0, |end| end.lid);
        if !self.is_confirmed(start, lid)? {
            return Ok(false);
        }
        match self.path_end(start, lid)? {
            Some(end) => self.is_confirmed(end, back),
            None => Ok(true),
        }
    }

    /// Returns the port at the end of the path to a LID; `None` if the path does not arrive.
    fn path_end(
        &self,
        start: (NodeNumber, u8),
        lid: u16,
    ) -> Result<Option<(NodeNumber, u8)>, Step> {
        match self.model.walk(start, lid) {
            WalkResult::Needs(fact) => Err(Step::Fact(fact)),
            WalkResult::Ended(path) if path.stop == Stop::Arrived => {
                Ok(path.hops.last().map(|hop| (hop.node, hop.enters)))
            }
            WalkResult::Ended(_) => Ok(None),
        }
    }

    /// Returns the fate of a combined-route probe in the switch from which it is routed by LID, as a port census shows;
    /// `None` if the counters are inconclusive.
    fn census(&self, combined_route: CombinedRoute) -> Result<Option<PacketFate>, Step> {
        let unknown = |port: &u8| {
            let node = self.model.node(combined_route.0);
            !node.links.contains_key(port) && node.route.len() < usize::from(smp::MAX_HOPS)
        };
        // Requests for counters are routed by LID. If another node may have the LID of the switch, it may answer these
        // requests with its own counters, so no census is started.
        let lid = self.model.end((combined_route.0, 0)).map_or(0, |end| end.lid);
        if lid == 0 || self.lid_conflict((combined_route.0, 0), lid).map_err(Step::Fact)?.is_some()
        {
            return Ok(None);
        }
        if let Some(own) = self.model.own() {
            self.probe(own, lid)?;
            let node = self.probes.get(lid).flatten().and_then(|seen| seen.node);
            if node.is_some_and(|(guid, _)| guid != self.model.node(combined_route.0).guid) {
                return Ok(None);
            }
        }
        match self.censuses.get(combined_route) {
            Some(Outcome::Known(left)) => Ok(left),
            None => Err(Step::Census(combined_route)),
            Some(Outcome::NeedsNeighbours) => {
                let ports = self.model.node(combined_route.0).ports;
                Err((1..=ports).find(unknown).map_or(Step::Census(combined_route), |port| {
                    Step::Fact(Fact::Link { node: combined_route.0, port })
                }))
            }
        }
    }

    /// Checks that combined-route probes to `target` from neighbours of the preceding switch have completed. If not,
    /// fails with the step that sends the next probe.
    ///
    /// Only probes whose last link is the link of the hop are sent. A probe that arrives over this link proves the hop.
    /// Its response returns to the neighbour, so it may arrive although responses to the preceding switch are lost.
    fn alternatives(&self, hop: &Hop, target: u16) -> Result<(), Step> {
        let links = self.model.node(hop.from).links.values();
        let neighbours: BTreeSet<NodeNumber> = links
            .filter_map(|link| match *link {
                Link::To(node, _, PortState::ACTIVE) => Some(node),
                Link::To(..) | Link::Nowhere { .. } => None,
            })
            .filter(|&node| node != hop.node && self.model.node(node).kind.is_switch())
            .collect();
        let mut tried = 0;
        for node in neighbours {
            if tried == MAX_ALTERNATIVES {
                break;
            }
            let path = match self.model.walk((node, 0), target) {
                WalkResult::Needs(fact) => return Err(Step::Fact(fact)),
                WalkResult::Ended(path) => path,
            };
            if path.stop == Stop::Arrived && path.hops.last() == Some(hop) {
                tried += 1;
                self.combined_result((node, target))?;
            }
        }
        Ok(())
    }

    /// Checks that combined-route probes to `hop.node` from its neighbours, except `hop.from`, have completed. If not,
    /// fails with the step that sends the next probe.
    ///
    /// A response shows that the node answers combined-route probes.
    fn other_combined_routes(&self, hop: &Hop, target: u16) -> Result<(), Step> {
        let links = self.model.node(hop.node).links.values();
        let neighbours: BTreeSet<NodeNumber> = links
            .filter_map(|link| match *link {
                Link::To(node, _, PortState::ACTIVE) if node != hop.from => Some(node),
                Link::To(..) | Link::Nowhere { .. } => None,
            })
            .filter(|&node| self.model.node(node).kind.is_switch())
            .collect();
        for node in neighbours.into_iter().take(MAX_ALTERNATIVES) {
            if self.path_end((node, 0), target)?.is_some_and(|(end, _)| end == hop.node) {
                self.combined_result((node, target))?;
            }
        }
        Ok(())
    }

    /// Returns the verdict on a hop if its combined-route probe is not answered and a trial has excluded random loss.
    fn diagnose(
        &self,
        own: (NodeNumber, u8),
        hop: &Hop,
        combined_route: CombinedRoute,
    ) -> Result<Verdict, Step> {
        let switch = self.model.end((hop.from, 0)).map_or(0, |end| end.lid);
        if switch != 0 {
            self.probe(own, switch)?;
        }
        let place = Component::Forwarding(hop.from, hop.out);
        let conflict =
            conflict(&self.model, &self.observations, combined_route).map_err(Step::Fact)?;
        for (component, link) in &conflict.answer {
            if conflict.members.contains(component) && self.is_misrouted(link)? {
                return Ok(suspected(Reason::AnswersLost, vec![*component]));
            }
        }
        if conflict.members.contains(&Component::Responder(hop.node)) {
            self.other_combined_routes(hop, combined_route.1)?;
        }
        // The conflicts are computed after the checks above, because these may have proven further components good.
        let mut conflicts = Vec::new();
        for other in self.trials.silent() {
            let other = crate::fault_model::conflict(&self.model, &self.observations, other);
            conflicts.push(other.map_err(Step::Fact)?.members);
        }
        if diagnosis::is_certain(&place, &conflicts) {
            if !self.is_combined_route_confirmed(combined_route)? {
                return Ok(suspected(Reason::TableChanged, vec![place]));
            }
            return Ok(Verdict::Misdirected { actual: None, left: None });
        }
        conflicts.retain(|other| !other.is_disjoint(&conflict.members));
        let candidates = diagnosis::candidates(&conflicts, MAX_FAULTS);
        let mut suspicion =
            suspicion(Reason::Unanswered, conflict.members.iter().copied().collect());
        suspicion.candidates =
            candidates.into_iter().map(|set| set.into_iter().collect()).collect();
        suspicion.apart = Some(format!(
            "a trace that starts at {}, or the counters of {}",
            self.model.name(hop.node),
            self.model.name(hop.from)
        ));
        Ok(Verdict::Suspected(Box::new(suspicion)))
    }

    /// Returns true if counters show that a switch sends packets out of another port than its table specifies.
    fn is_misrouted(&self, hop: &Hop) -> Result<bool, Step> {
        if self.observations.proven((hop.from, hop.out)).is_some() {
            return Ok(false);
        }
        let base = self.model.end((hop.node, hop.enters)).map_or(0, |end| end.lid);
        let Some(combined_route) = self.combined_route_of(hop, base, None)? else {
            return Ok(false);
        };
        let Some(combined_result) = self.combined_result(combined_route)? else { return Ok(false) };
        if combined_result == CombinedResult::At(self.model.node(hop.node).guid, hop.enters) {
            return Ok(false);
        }
        Ok(matches!(self.census(combined_route)?,
            Some(PacketFate::Sent(port) | PacketFate::Discarded(port)) if port != hop.out))
    }
}

fn has_hops(path: &Path) -> bool {
    !path.hops.is_empty()
}

fn suspicion(reason: Reason, suspects: Vec<Component>) -> Suspicion {
    Suspicion { reason, suspects, candidates: Vec::new(), apart: None }
}

pub(super) fn suspected(reason: Reason, suspects: Vec<Component>) -> Verdict {
    Verdict::Suspected(Box::new(suspicion(reason, suspects)))
}
