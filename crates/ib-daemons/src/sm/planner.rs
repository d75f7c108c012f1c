//! Computes plans in another thread, so that the SM keeps responding.

use std::sync::mpsc::{Receiver, Sender, channel};

use ib_os::alarm::Bell;
use ib_sm::{Plan, PlanError, PlanJob};

type Made = (u64, Result<Plan, PlanError>);

/// Computes plans; only the newest one is used.
pub(super) struct Planner {
    /// Bell of the SM's loop. `None` computes plans synchronously, for links in virtual time.
    bell: Option<Bell>,
    started: u64,
    made: Receiver<Made>,
    sender: Sender<Made>,
}

impl Planner {
    /// Creates a planner. It rings the bell when a plan is complete; without a bell it computes synchronously.
    pub(super) fn new(bell: Option<Bell>) -> Self {
        let (sender, made) = channel();
        Self { bell, started: 0, made, sender }
    }

    /// Starts to compute a plan; the result of an earlier one is ignored.
    pub(super) fn start(&mut self, job: Box<PlanJob>) {
        self.started += 1;
        let (number, sender) = (self.started, self.sender.clone());
        let make = move || {
            // The planner may have been dropped.
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

    /// Returns the newest plan once it is complete.
    pub(super) fn take(&mut self) -> Option<Result<Plan, PlanError>> {
        let newest = self.made.try_iter().find(|&(number, _)| number == self.started);
        newest.map(|(_, plan)| plan)
    }
}
