//! How traces go on: what each needs next, and what came of it.

use ib_types::Instant;

use super::{Asked, Source, Step, TraceId, Tracer, start_of, view};
use crate::atlas::{Walked, Way};
use crate::facts::Fact;
use crate::probes::Probe;
use crate::trace::{Stop, Trace, TraceError, Verdict};
use crate::tree::{Branch, BranchEnd, Tree};

impl Tracer {
    /// Goes on with the traces that something was found out for.
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
                        self.trees.get_mut(&id).expect("it goes on").awaits = steps.len();
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

    /// Does what a trace needs to go on; then it is ready once more.
    fn take(&mut self, id: TraceId, step: Step, now: Instant) {
        match step {
            Step::Fact(fact) => self.want(id, Source::Told, fact),
            Step::Real(fact) => self.want(id, Source::Real, fact),
            Step::Probe(lid, way) => {
                if self.probes.get(lid).is_none()
                    && let Some((question, request)) = self.probes.ask(lid, *way, &self.atlas)
                {
                    self.send(Asked::Probe(lid, question), *request);
                }
                match self.probes.get(lid) {
                    Some(Probe::Asking) => self.probes_wanted.entry(lid).or_default().push(id),
                    _ => self.ready.push_front(id),
                }
            }
            Step::Launch(launch) => {
                self.launches_wanted.entry(launch).or_default().push(id);
                if self.probes.launched(launch).is_none() {
                    let view = view(self.via, &self.atlas, &self.real);
                    let request = self.probes.launch(launch, view);
                    self.send(Asked::Launch(launch, false), request);
                }
            }
            Step::Census(launch) => {
                self.launches_wanted.entry(launch).or_default().push(id);
                self.censuses.want(launch);
            }
            Step::Count(link, launch) => {
                self.counted.entry(link).or_insert(launch);
                self.ready.push_front(id);
            }
            Step::Waits(lid) => self.probes_wanted.entry(lid).or_default().push(id),
            Step::Done(result) => self.end(now, id, *result),
        }
    }

    pub(super) fn end(&mut self, _: Instant, id: TraceId, result: Result<Trace, TraceError>) {
        if self.jobs.remove(&id).is_some() {
            self.events.push_back((id, result));
        }
    }

    /// Finds out all that the trace of a tree needs next, or what came of it.
    fn step_tree(&self, mlid: u16) -> Result<Result<Tree, TraceError>, Vec<Step>> {
        let Some(own) = self.atlas.own() else {
            return match self.atlas.lacking.get(&Fact::Own) {
                Some(why) => Ok(Err(TraceError::NoOwnPort(why.clone()))),
                None => Err(vec![Step::Fact(Fact::Own)]),
            };
        };
        let grown = Tree::grow(&self.atlas, own, mlid)
            .map_err(|facts| facts.into_iter().map(Step::Fact).collect::<Vec<_>>())?;
        let (mut branches, mut steps) = (Vec::with_capacity(grown.len()), Vec::new());
        for branch in grown {
            if matches!(branch.end, BranchEnd::Broken(_)) {
                branches.push(branch);
                continue;
            }
            // Each branch is looked at as a hop of a way that goes on.
            let way = Way { hops: vec![branch.hop], stop: Stop::NoEntry { at: branch.hop.node } };
            match self.judge(own, (None, None), way) {
                Ok((hops, _)) => {
                    let verdict = hops.into_iter().next();
                    let verdict = verdict.map_or(Verdict::NotAsked, |(_, verdict)| verdict);
                    branches.push(Branch { verdict, ..branch });
                }
                Err(step) => steps.push(step),
            }
        }
        if steps.is_empty() { Ok(Ok(Tree { mlid, start: own, branches })) } else { Err(steps) }
    }

    /// Finds out what a trace needs next.
    fn step(&self, id: TraceId, started: Instant, now: Instant) -> Step {
        let job = &self.jobs[&id];
        let failed = |error| Step::Done(Box::new(Err(error)));
        let Some(own) = self.atlas.own() else {
            return match self.atlas.lacking.get(&Fact::Own) {
                Some(why) => failed(TraceError::NoOwnPort(why.clone())),
                None => Step::Fact(Fact::Own),
            };
        };
        let lid = job.to_lid.expect("it is known");
        let start = match job.from_lid {
            None => own,
            Some(from) => match self.atlas.walk(own, from) {
                Walked::Needs(fact) => return Step::Fact(fact),
                Walked::Ended(way) if way.stop == Stop::Arrived => start_of(own, &way),
                Walked::Ended(Way { hops, stop }) => {
                    let name = |number| self.atlas.name(number);
                    let why = stop.describe(&self.atlas, (from, &hops), &name);
                    let stop = Box::new(stop);
                    return failed(TraceError::NoStart { lid: from, why, hops, stop });
                }
            },
        };
        let way = match self.atlas.walk(start, lid) {
            Walked::Needs(fact) => return Step::Fact(fact),
            Walked::Ended(way) => way,
        };
        let whole = (start == own).then_some(lid);
        let (hops, stop) = match self.judge(own, (Some(lid), whole), way) {
            Ok(judged) => judged,
            Err(step) => return step,
        };
        let (from, to) = (job.from, job.to);
        let elapsed = now.since(started);
        Step::Done(Box::new(Ok(Trace { from, to, lid, start, hops, stop, elapsed })))
    }
}
