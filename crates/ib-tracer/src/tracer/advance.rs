//! Advances traces: determines the next step of each trace, and performs this step.

use ib_types::Instant;

use super::judge::suspected;
use super::{RequestPurpose, Source, Step, TraceId, Tracer, end_of_path};
use crate::fabric_model::{Fact, FactSource};
use crate::fabric_model::{Path, WalkResult};
use crate::path::{Hop, NodeNumber, Stop};
use crate::trace::{Judgement, Reason, Trace, TraceError, Verdict};
use crate::tree::{Branch, BranchEnd, Tree};
use crate::trial;

impl Tracer {
    /// Continues the traces that wait for no fact and no probe.
    pub(super) fn advance(&mut self, now: Instant) {
        loop {
            self.advance_ready(now);
            self.take_censuses();
            if self.ready.is_empty() {
                break;
            }
        }
    }

    fn advance_ready(&mut self, now: Instant) {
        while let Some(id) = self.ready.pop_front() {
            if let Some(tree) = self.trees.get_mut(&id) {
                tree.awaits = tree.awaits.saturating_sub(1);
                if tree.awaits > 0 {
                    continue;
                }
                let mlid = tree.mlid;
                match self.step_tree(mlid) {
                    Ok(tree) => {
                        self.trees.remove(&id);
                        self.tree_events.push_back((id, tree));
                    }
                    Err(steps) => {
                        self.trees.get_mut(&id).expect("the tree has not completed").awaits =
                            steps.len();
                        for step in steps {
                            self.take(id, step, now);
                        }
                    }
                }
                continue;
            }
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            let started = *job.started.get_or_insert(now);
            if job.to_lid.is_none() || job.from.is_some() && job.from_lid.is_none() {
                continue;
            }
            let step = self.step(id, started, now);
            self.take(id, step, now);
        }
    }

    /// Performs the next step of a trace. When the step completes, the trace is ready for another step.
    fn take(&mut self, id: TraceId, step: Step, now: Instant) {
        match step {
            Step::Fact(fact) => self.want(id, Source::Nodes, fact),
            Step::Claim(fact) => self.want(id, Source::SaRecords, fact),
            Step::Probe(lid, path) => {
                if self.probes.get(lid).is_none()
                    && let Some((question, request)) = self.probes.ask(lid, *path, &self.model)
                {
                    self.send(RequestPurpose::Probe(lid, question), *request);
                }
                match self.probes.get(lid) {
                    Some(None) => self.probes_wanted.entry(lid).or_default().push(id),
                    _ => self.ready.push_front(id),
                }
            }
            Step::CombinedRoute(combined_route) => {
                self.combined_routes_wanted.entry(combined_route).or_default().push(id);
                if self.probes.combined_result(combined_route).is_none() {
                    let request = self.probes.combined_route(combined_route, &self.model);
                    self.send(RequestPurpose::CombinedRoute(combined_route), request);
                }
            }
            Step::Trial(combined_route) => {
                if self.trials.get(combined_route).is_none() {
                    let known = (&self.probes, self.timing);
                    let requests = self.trials.start(combined_route, &self.model, known);
                    self.send_trial(combined_route, requests);
                }
                match self.trials.get(combined_route) {
                    Some(trial::Outcome::Running) => {
                        self.combined_routes_wanted.entry(combined_route).or_default().push(id);
                    }
                    _ => self.ready.push_front(id),
                }
            }
            Step::Census(combined_route) => {
                self.combined_routes_wanted.entry(combined_route).or_default().push(id);
                self.censuses.want(combined_route);
            }
            Step::Count(link, combined_route) => {
                self.counted.entry(link).or_insert(combined_route);
                self.ready.push_front(id);
            }
            Step::Waits(lid) => self.probes_wanted.entry(lid).or_default().push(id),
            Step::Done(result) => self.end(now, id, *result),
            Step::Surveyed => drop(self.jobs.remove(&id)),
        }
    }

    pub(super) fn end(&mut self, _: Instant, id: TraceId, result: Result<Trace, TraceError>) {
        if self.jobs.remove(&id).is_some() {
            self.events.push_back((id, result));
        }
    }

    /// Returns the result of the trace of a multicast tree. Fails with the next steps if the trace is not complete.
    fn step_tree(&mut self, mlid: u16) -> Result<Result<Tree, TraceError>, Vec<Step>> {
        let Some(own) = self.model.own() else {
            return match self.model.unreadable.get(&Fact::Own) {
                Some(why) => Ok(Err(TraceError::NoOwnPort(why.clone()))),
                None => Err(vec![Step::Fact(Fact::Own)]),
            };
        };
        let grown = Tree::grow(&self.model, own, mlid)
            .map_err(|facts| facts.into_iter().map(Step::Fact).collect::<Vec<_>>())?;
        let claimed = self.claimed_tree(mlid)?;
        let (mut branches, mut steps) = (Vec::with_capacity(grown.len()), Vec::new());
        for branch in grown {
            if let Some(claimed) = &claimed
                && !claimed.contains(&self.port_of(&branch.hop))
            {
                let what =
                    "the multicast table in the SA's records does not forward out of this port"
                        .to_owned();
                branches.push(Branch { verdict: Verdict::OtherLink { what }, ..branch });
                continue;
            }
            if matches!(branch.end, BranchEnd::Broken(_)) {
                branches.push(branch);
                continue;
            }
            match self.verdict(own, &branch.hop, (None, false)) {
                Ok(verdict) => branches.push(Branch { verdict, ..branch }),
                Err(step) => steps.push(step),
            }
        }
        if !steps.is_empty() {
            return Err(steps);
        }
        let found = branches.iter().map(|branch| self.port_of(&branch.hop)).collect();
        branches.extend(self.missing_branches(claimed.as_ref(), &found));
        Ok(Ok(Tree { mlid, start: own, branches }))
    }

    /// Returns the next step of a trace.
    fn step(&mut self, id: TraceId, started: Instant, now: Instant) -> Step {
        let job = &self.jobs[&id];
        let (from, to, is_survey) = (job.from, job.to, job.is_survey);
        let (from_lid, lid) = (job.from_lid, job.to_lid.expect("LIDs of ready jobs are known"));
        let failed = |error| match is_survey {
            true => Step::Surveyed,
            false => Step::Done(Box::new(Err(error))),
        };
        let Some(own) = self.model.own() else {
            return match self.model.unreadable.get(&Fact::Own) {
                Some(why) => failed(TraceError::NoOwnPort(why.clone())),
                None => Step::Fact(Fact::Own),
            };
        };
        let start = match from_lid {
            None => own,
            Some(from) => match self.locate(own, from) {
                Ok(Ok(start)) => start,
                Ok(Err(error)) => return failed(error),
                Err(fact) => return Step::Fact(fact),
            },
        };
        let path = match self.model.walk(start, lid) {
            WalkResult::Needs(fact) => return Step::Fact(fact),
            WalkResult::Ended(path) => path,
        };
        if is_survey {
            return Step::Surveyed;
        }
        let judged = match self.via {
            FactSource::DirectedRoutes => {
                self.judge(own, Some(lid), &path).map(|hops| (hops, path.stop.clone()))
            }
            FactSource::SaRecords => self.compare(own, (from_lid, lid), &path),
        };
        let (hops, stop) = match judged {
            Ok(judged) => judged,
            Err(step) => return step,
        };
        let is_bad = stop.judgement() == Judgement::ProvenBad
            || hops.iter().any(|(_, verdict)| verdict.is_bad());
        // The subnet manager (SM) may have changed tables since they were read. So they are read again before a fault
        // is reported.
        if is_bad && let Some(fact) = self.model.unconfirmed(&path, lid) {
            return Step::Fact(fact);
        }
        let (hops, stop) = match self.model.changed_on(&path) {
            Some(at) => (hops.into_iter().map(downgrade).collect(), Stop::Changed { at }),
            None => (hops, stop),
        };
        let elapsed = now.since(started);
        Step::Done(Box::new(Ok(Trace { from, to, lid, start, hops, stop, elapsed })))
    }

    /// Returns the port that has a LID. It is the end of the path from the local port to the LID.
    fn locate(
        &mut self,
        own: (NodeNumber, u8),
        lid: u16,
    ) -> Result<Result<(NodeNumber, u8), TraceError>, Fact> {
        let start = match self.starts.get(&lid) {
            Some(&start) => start,
            None => match self.model.walk(own, lid) {
                WalkResult::Needs(fact) => return Err(fact),
                WalkResult::Ended(path) if path.stop == Stop::Arrived => {
                    let start = end_of_path(own, &path);
                    self.starts.insert(lid, start);
                    start
                }
                WalkResult::Ended(Path { hops, stop }) => {
                    let name = |number| self.model.name(number);
                    let why = stop.describe(&self.model, (lid, &hops), &name);
                    let stop = Box::new(stop);
                    return Ok(Err(TraceError::NoStart { lid, why, hops, stop }));
                }
            },
        };
        Ok(match self.lid_conflict(start, lid)? {
            None => Ok(start),
            Some(why) => {
                let stop = Box::new(Stop::Uncompared { why: why.clone() });
                Err(TraceError::NoStart { lid, why, hops: Vec::new(), stop })
            }
        })
    }
}

/// Replaces the verdict "bad" by "not proven", because a forwarding table on the path has changed.
fn downgrade((hop, verdict): (Hop, Verdict)) -> (Hop, Verdict) {
    match verdict.is_bad() {
        true => (hop, suspected(Reason::TableChanged, Vec::new())),
        false => (hop, verdict),
    }
}
