//! Subnet administration: what is asked of it, in which order, and what its answers mean.

use ib_link::Remote;
use ib_mad::{Backoff, Completion, Failure, Request, Timing, Urgency};
use ib_types::{Gid, Instant};
use ib_wire::acm::ClientStatus;
use ib_wire::mad::sa::{ComponentMask, SaHeader};
use ib_wire::mad::{Attribute, Mad, MadStatus, Method, MgmtClass, TransactionId};

use super::Service;
use super::endpoint::EndpointKey;
use super::route::Target;
use crate::port::PortId;

/// Why subnet administration is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To join a group: for the first time, or again because that failed or may be forgotten.
    Join { key: EndpointKey, mgid: Gid, is_first: bool },
    /// To leave one.
    Leave,
    /// For a route: one that somebody waits for, or one that is known and grows old.
    Route { key: EndpointKey, target: Target, is_refresh: bool },
    /// For all paths of the port, to compare their service levels.
    Compare { key: EndpointKey },
    /// Because a program wants it asked: the number of its question.
    Query { number: u64 },
}

impl Purpose {
    /// Returns which of the questions that wait for their turn go first: those that all others need, then those that
    /// programs wait for, then what only keeps what is known fresh. What is asked again and again has its turn among those
    /// of programs, so that it keeps nobody from theirs.
    const fn urgency(self) -> Urgency {
        match self {
            Self::Join { is_first: true, .. } | Self::Leave | Self::Compare { .. } => {
                Urgency::First
            }
            Self::Join { is_first: false, .. }
            | Self::Route { is_refresh: false, .. }
            | Self::Query { .. } => Urgency::Normal,
            Self::Route { is_refresh: true, .. } => Urgency::Last,
        }
    }

    /// Returns whether it is asked again a few times before it is given up. What nobody waits for, or is asked again
    /// later in any case, does not keep others from their turn for long.
    const fn is_patient(self) -> bool {
        !matches!(
            self,
            Self::Leave | Self::Join { is_first: false, .. } | Self::Route { is_refresh: true, .. }
        )
    }
}

/// Why subnet administration has not said what was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Denial {
    /// What programs are told.
    pub(super) status: ClientStatus,
    /// What people are told.
    pub(super) why: String,
    /// Whether it has said no. Otherwise it is silent, busy, out of resources, or has answered something else: what is
    /// known is as good as before, and asking again may help.
    pub(super) is_final: bool,
}

impl Denial {
    /// Returns what an answer to something else is.
    pub(super) fn foreign() -> Self {
        let why = "its answer is of another kind".to_owned();
        Self { status: ClientStatus::EINVAL, why, is_final: false }
    }

    /// Returns what a status means that is not OK.
    fn of_status(status: MadStatus) -> Self {
        let code = match status.class_specific() {
            _ if status.is_busy() => ClientStatus::ETIMEDOUT,
            // No records, or a GID that nobody has.
            3 | 5 => ClientStatus::ENODATA,
            1 => ClientStatus::ENOMEM,
            _ => ClientStatus::EINVAL,
        };
        let is_later = status.is_busy() || status == MadStatus::SA_NO_RESOURCES;
        Self { status: code, why: status.to_string(), is_final: !is_later }
    }
}

/// Returns the record of an answer.
pub(super) fn record<A: Attribute>(completion: &Completion) -> Result<A, Denial> {
    match &completion.result {
        Ok(message) if message.status().is_ok() => {
            message.mad().attribute().ok_or_else(Denial::foreign)
        }
        _ => Err(denial(completion)),
    }
}

/// Returns why an answer has no records.
pub(super) fn denial(completion: &Completion) -> Denial {
    match &completion.result {
        Ok(message) => Denial::of_status(message.status()),
        Err(failure) => {
            let status = match failure {
                Failure::TimedOut { .. } => ClientStatus::ETIMEDOUT,
                _ => ClientStatus::ENOTCONN,
            };
            Denial { status, why: failure.to_string(), is_final: false }
        }
    }
}

impl Service {
    /// Asks subnet administration.
    pub(super) fn ask<A: Attribute>(
        &mut self,
        id: PortId,
        method: Method,
        components: &[u8],
        wanted: &A,
        purpose: Purpose,
    ) -> Option<TransactionId> {
        let (timeout, retries) = (self.config.timeout, self.config.retries);
        let port = self.ports.get_mut(&id)?;
        let own = port.state.link;
        let mut mad = Mad::new(MgmtClass::SUBN_ADM, method, TransactionId(0));
        mad.set_attribute(wanted);
        let component_mask = ComponentMask::of(components);
        mad.set_sa(&SaHeader { component_mask, ..mad.sa() });
        let remote = Remote { sl: own.sm_sl, ..Remote::gsi(own.sm_lid) };
        let backoff = Backoff::Doubling { longest: timeout };
        let retries = if purpose.is_patient() { retries.saturating_add(2) } else { 1 };
        let timing = Timing { timeout: timeout / 4, retries, backoff };
        let request = Request::new(remote, mad).with_timing(timing);
        let request = request.with_urgency(purpose.urgency());
        let started = port.requester.start(request).expect("a method that is answered");
        port.asked.insert(started.0, purpose);
        Some(started)
    }

    /// Forgets that something was asked.
    pub(super) fn cancel(&mut self, id: PortId, request: TransactionId) {
        if let Some(port) = self.ports.get_mut(&id) {
            port.requester.cancel(request);
            port.asked.remove(&request.0);
        }
    }

    /// Takes what subnet administration has said.
    pub(super) fn take_answers(&mut self, now: Instant, id: PortId) {
        while let Some(port) = self.ports.get_mut(&id)
            && let Some(completion) = port.requester.poll_event()
        {
            let Some(purpose) = port.asked.remove(&completion.transaction_id.0) else { continue };
            match purpose {
                Purpose::Leave => {}
                Purpose::Join { key, mgid, .. } => self.joined(now, key, mgid, record(&completion)),
                Purpose::Route { key, target, .. } => {
                    self.routed(now, key, target, record(&completion));
                }
                Purpose::Compare { key } => self.compare(now, key, &completion),
                Purpose::Query { number } => self.queried(now, number, &completion),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_from_what_may_be_otherwise_later() {
        // The last two are the bare code of a bad field, and that with the bit of a redirection.
        for (status, is_final, code) in [
            (0x0001, false, ClientStatus::ETIMEDOUT),
            (0x0100, false, ClientStatus::ENOMEM),
            (0x0101, false, ClientStatus::ETIMEDOUT),
            (0x0200, true, ClientStatus::EINVAL),
            (0x0300, true, ClientStatus::ENODATA),
            (0x0500, true, ClientStatus::ENODATA),
            (0x0700, true, ClientStatus::EINVAL),
            (0x0007, true, ClientStatus::EINVAL),
            (0x0003, true, ClientStatus::EINVAL),
        ] {
            let denial = Denial::of_status(MadStatus(status));
            assert_eq!((denial.is_final, denial.status), (is_final, code), "{status:#06x}");
        }
    }
}
