//! Plans are made in a thread of their own, so that the manager goes on answering.

use std::sync::mpsc::{Receiver, Sender, channel};

use ib_os::alarm::Bell;
use ib_sm::{Plan, PlanError, PlanJob};

type Made = (u64, Result<Plan, PlanError>);

/// Makes plans, the last one of which counts.
pub(super) struct Planner {
    /// `None` makes plans at once: for links whose time stands still meanwhile.
    bell: Option<Bell>,
    started: u64,
    made: Receiver<Made>,
    sender: Sender<Made>,
}

impl Planner {
    /// Returns a planner that rings when a plan is made; without a bell it makes plans at once.
    pub(super) fn new(bell: Option<Bell>) -> Self {
        let (sender, made) = channel();
        Self { bell, started: 0, made, sender }
    }

    /// Starts to make a plan; one that is being made already is forgotten.
    pub(super) fn start(&mut self, job: Box<PlanJob>) {
        self.started += 1;
        let (number, sender) = (self.started, self.sender.clone());
        let make = move || {
            // Nobody waits any more for what a planner that is gone had started.
            let _ = sender.send((number, job.run()));
        };
        match self.bell.clone() {
            None => make(),
            Some(bell) => {
                rayon::spawn(move || {
                    make();
                    bell.ring();
                });
            }
        }
    }

    /// Returns the plan that was started last, once it is made.
    pub(super) fn take(&mut self) -> Option<Result<Plan, PlanError>> {
        let newest = self.made.try_iter().find(|&(number, _)| number == self.started);
        newest.map(|(_, plan)| plan)
    }
}
