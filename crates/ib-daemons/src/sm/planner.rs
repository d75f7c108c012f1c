//! Computes plans in another thread, so that the SM keeps responding to MADs meanwhile.

use std::sync::mpsc::{Receiver, Sender, channel};

use ib_os::alarm::Bell;
use ib_sm::{Plan, PlanError, PlanJob};

type Made = (u64, Result<Plan, PlanError>);

/// Computes plans. Only the plan that was started last is used.
pub(super) struct Planner {
    /// Bell that wakes the SM's event loop when a plan is complete. `None` if plans are computed synchronously, as an
    /// SM in virtual time requires.
    bell: Option<Bell>,
    started: u64,
    made: Receiver<Made>,
    sender: Sender<Made>,
}

impl Planner {
    /// Creates a planner. If `bell` is `Some`, another thread computes each plan and then rings `bell`. If `None`,
    /// [`Planner::start`] itself computes the plan.
    pub(super) fn new(bell: Option<Bell>) -> Self {
        let (sender, made) = channel();
        Self { bell, started: 0, made, sender }
    }

    /// Starts to compute a plan. The results of plans that were started before are ignored.
    pub(super) fn start(&mut self, job: Box<PlanJob>) {
        self.started += 1;
        let (number, sender) = (self.started, self.sender.clone());
        let make = move || {
            // The send fails if the planner was dropped. The plan is then of no use.
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
