//! Computes plans in another thread, so that the SM keeps responding to MADs meanwhile.

use std::sync::mpsc::{Receiver, Sender, channel};

use ib_os::alarm::Bell;
use ib_sm::{Plan, PlanError, PlanJob};

type Made = (u64, Result<Plan, PlanError>);

/// Computes plans. Only the plan that was started last is used.
pub(super) struct Planner {
    /// Wakes the SM's event loop. If `None`, plans are computed synchronously, as links in virtual time require.
    bell: Option<Bell>,
    started: u64,
    made: Receiver<Made>,
    sender: Sender<Made>,
}

impl Planner {
    /// Creates a planner. When a plan is complete, the planner rings the bell; without a bell it computes plans
    /// synchronously.
    pub(super) fn new(bell: Option<Bell>) -> Self {
        let (sender, made) = channel();
        Self { bell, started: 0, made, sender }
    }

    /// Starts to compute a plan. The results of plans that were started before are ignored.
    pub(super) fn start(&mut self, job: Box<PlanJob>) {
        self.started += 1;
        let (number, sender) = (self.started, self.sender.clone());
        let make = move || {
            // The send fails if the planner was dropped.
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

    /// Returns the plan that was started last, once it is complete.
    pub(super) fn take(&mut self) -> Option<Result<Plan, PlanError>> {
        let newest = self.made.try_iter().find(|&(number, _)| number == self.started);
        newest.map(|(_, plan)| plan)
    }
}
