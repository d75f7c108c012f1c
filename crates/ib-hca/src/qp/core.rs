//! What the halves of a queue pair share, and what they work with.

use std::collections::VecDeque;

use ib_types::{Instant, Qpn};

use super::attr::{QpAttributes, QpCap, QpState, QpType};
use crate::completion::Pushed;
use crate::counters::Counters;
use crate::hca::{AsyncEvent, HcaEvent, Queues};
use crate::objects::{CqId, PdId, QpId, SrqId, Wc, WcOpcode, WcStatus};
use crate::region::Regions;
use crate::trace::Messages;

/// What both halves of a queue pair know.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) id: QpId,
    pub(crate) number: Qpn,
    pub(crate) qp_type: QpType,
    pub(crate) pd: PdId,
    pub(crate) send_cq: CqId,
    pub(crate) recv_cq: CqId,
    pub(crate) srq: Option<SrqId>,
    pub(crate) cap: QpCap,
    pub(crate) state: QpState,
    pub(crate) attributes: QpAttributes,
    /// The most packets that may be under way.
    pub(crate) window: u32,
    /// What is noted of its messages.
    pub(crate) messages: Messages,
    /// The service that it is connected to, as far as that was told.
    pub(crate) service: Option<u64>,
}

/// The parts of the adapter that queue pairs work with.
pub(crate) struct Cx<'a> {
    pub(crate) now: Instant,
    pub(crate) regions: &'a mut Regions,
    pub(crate) queues: &'a mut Queues,
    pub(crate) events: &'a mut VecDeque<HcaEvent>,
    pub(crate) counters: &'a mut Counters,
}

impl Core {
    /// Returns the most bytes of payload in a packet.
    pub(crate) const fn mtu(&self) -> usize {
        self.attributes.path_mtu.bytes()
    }

    /// Returns how many READs and atomics of the other side are served at once. Linux has as many under way as the
    /// next power of two.
    pub(crate) fn most_served(&self) -> usize {
        match self.attributes.max_dest_rd_atomic {
            0 => 0,
            most => usize::from(most).next_power_of_two(),
        }
    }

    /// Returns true in a state in which packets go out.
    pub(crate) const fn sends(&self) -> bool {
        matches!(self.state, QpState::Rts | QpState::Sqd)
    }

    /// Returns true in a state in which packets are taken.
    pub(crate) const fn receives(&self) -> bool {
        matches!(self.state, QpState::Rtr | QpState::Rts | QpState::Sqd | QpState::Sqe)
    }

    /// Returns a completion of which only the queue pair is known.
    pub(crate) const fn completion(&self) -> Wc {
        Wc {
            wr_id: 0,
            status: WcStatus::Success,
            opcode: WcOpcode::Send,
            byte_len: 0,
            qp_num: self.number,
            src_qp: Qpn::SMI,
            imm_data: None,
            invalidated_rkey: None,
            grh: false,
            slid: 0,
            sl: 0,
        }
    }
}

impl Cx<'_> {
    /// Puts a completion into a queue.
    pub(crate) fn complete(&mut self, cq: CqId, wc: Wc, solicited: bool) {
        let Some(queue) = self.queues.cqs.get_mut(cq.0) else { return };
        let had_overrun = queue.overrun;
        match queue.push(wc, solicited) {
            Pushed::Quietly => {}
            Pushed::Notify => self.events.push_back(HcaEvent::Completion(cq)),
            Pushed::Overrun if had_overrun => {}
            Pushed::Overrun => {
                self.events.push_back(HcaEvent::Async(AsyncEvent::CqError(cq)));
                self.queues.overrun.push(cq);
            }
        }
    }
}
