//! The objects and counters of an HCA that all its queue pairs use.

use std::collections::VecDeque;

use ib_link::Route;
use ib_types::Instant;

use crate::completion::{Cq, PushOutcome, Wc};
use crate::counters::Counters;
use crate::event::{AsyncEvent, HcaEvent};
use crate::id::{CqId, PdId};
use crate::region::Regions;
use crate::srq::Srq;
use crate::table::Table;

/// An address handle.
#[derive(Debug)]
pub(crate) struct AddressHandle {
    pub(crate) pd: PdId,
    pub(crate) route: Route,
}

/// The state of an HCA that all its queue pairs share.
#[derive(Debug)]
pub(crate) struct HcaResources {
    /// The current time, as the HCA's owner has passed it to the current call.
    pub(crate) now: Instant,
    pub(crate) regions: Regions,
    pub(crate) cqs: Table<Cq>,
    pub(crate) srqs: Table<Srq>,
    pub(crate) ahs: Table<AddressHandle>,
    /// CQs that have just overrun. The HCA fails their queue pairs after the current operation.
    pub(crate) overrun: Vec<CqId>,
    pub(crate) events: VecDeque<HcaEvent>,
    pub(crate) counters: Counters,
}

impl HcaResources {
    pub(crate) fn new(max_mr: usize) -> Self {
        Self {
            now: Instant::default(),
            regions: Regions::new(max_mr),
            cqs: Table::default(),
            srqs: Table::default(),
            ahs: Table::default(),
            overrun: Vec::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Adds a completion to a completion queue.
    pub(crate) fn complete(&mut self, id: CqId, wc: Wc, solicited: bool) {
        let Some(cq) = self.cqs.get_mut(id.0) else { return };
        match cq.push(wc, solicited) {
            PushOutcome::Queued | PushOutcome::Lost => {}
            PushOutcome::Notify => self.events.push_back(HcaEvent::Completion(id)),
            PushOutcome::Overrun => {
                self.events.push_back(HcaEvent::Async(AsyncEvent::CqError(id)));
                self.overrun.push(id);
            }
        }
    }
}
