//! Completion queues.

use std::collections::VecDeque;

use crate::objects::Wc;

/// When a completion queue tells of what comes (`ibv_req_notify_cq`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Armed {
    #[default]
    No,
    /// At the next completion that its sender or a failure asks for.
    Solicited,
    /// At the next one.
    Any,
}

/// A completion queue.
#[derive(Debug)]
pub(crate) struct Cq {
    queue: VecDeque<Wc>,
    most: usize,
    armed: Armed,
    /// Whether a completion found no room.
    pub(crate) overrun: bool,
    /// How many queue pairs use it.
    pub(crate) users: u32,
}

/// What a completion has brought about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// It is there.
    Quietly,
    /// It is there, and somebody waits for it.
    Notify,
    /// There was no room for it.
    Overrun,
}

impl Cq {
    pub(crate) fn new(most: usize) -> Self {
        Self { queue: VecDeque::new(), most, armed: Armed::No, overrun: false, users: 0 }
    }

    pub(crate) fn arm(&mut self, solicited_only: bool) {
        self.armed = match (solicited_only, self.armed) {
            (true, Armed::No | Armed::Solicited) => Armed::Solicited,
            _ => Armed::Any,
        };
    }

    pub(crate) fn push(&mut self, wc: Wc, solicited: bool) -> Pushed {
        if self.queue.len() >= self.most || self.overrun {
            self.overrun = true;
            return Pushed::Overrun;
        }
        self.queue.push_back(wc);
        let notify = match self.armed {
            Armed::No => false,
            Armed::Solicited => solicited,
            Armed::Any => true,
        };
        if notify {
            self.armed = Armed::No;
            return Pushed::Notify;
        }
        Pushed::Quietly
    }

    pub(crate) fn poll(&mut self) -> Option<Wc> {
        self.queue.pop_front()
    }

    /// Forgets what a queue pair that is destroyed has left.
    pub(crate) fn forget(&mut self, qp_num: ib_types::Qpn) {
        self.queue.retain(|wc| wc.qp_num != qp_num);
    }
}
