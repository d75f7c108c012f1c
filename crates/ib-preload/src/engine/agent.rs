//! MAD agents: their registration, and the choice of the agent that gets a received MAD.

use std::collections::BTreeMap;

use ib_umad::abi::{Registration, USER_RMPP};
use ib_wire::mad::{Mad, MgmtClass};

use super::{FileId, is_response};
use crate::errno::Errno;

/// The kernel supports management classes below this limit, and the class of directed-route SMPs.
const CLASSES: u8 = 80;

/// The kernel supports class versions below this limit.
const VERSIONS: u8 = 0x83;

/// A MAD agent that is registered through an open file.
pub(super) struct Agent {
    pub(super) file: FileId,
    /// Agent ID that the program uses, unique among the agents of `file`.
    pub(super) slot: u32,
    pub(super) registration: Registration,
}

impl Agent {
    /// Creates an agent. Fails with `EINVAL` if the kernel would reject the registration.
    pub(super) fn new(file: FileId, slot: u32, wish: &Registration) -> Result<Self, Errno> {
        let class = MgmtClass(wish.class);
        let known = wish.class < CLASSES || class == MgmtClass::SUBN_DIRECTED_ROUTE;
        let fits = wish.class == 0
            || known
                && wish.class_version < VERSIONS
                && class.is_smp() == (wish.queue_pair == 0)
                && (!class.has_oui() || wish.oui != 0)
                && (wish.rmpp_version == 0 || class.may_use_rmpp());
        let legal = wish.queue_pair <= 1
            && wish.rmpp_version <= 1
            && wish.oui >> 24 == 0
            && wish.flags & !USER_RMPP == 0;
        if fits && legal {
            Ok(Self { file, slot, registration: Registration { agent: slot, ..*wish } })
        } else {
            Err(Errno::INVALID)
        }
    }

    /// Returns true if the engine segments and reassembles the agent's messages (RMPP).
    pub(super) const fn does_rmpp(&self) -> bool {
        self.registration.rmpp_version != 0 && self.registration.flags & USER_RMPP == 0
    }

    /// Returns true if both agents are registered for the same management class, class version and
    /// vendor.
    fn shares_class(&self, other: &Self) -> bool {
        let key = |agent: &Self| {
            let class = MgmtClass(agent.registration.class);
            let oui = if class.has_oui() { agent.registration.oui } else { 0 };
            (class, agent.registration.class_version, oui)
        };
        key(self) == key(other)
    }

    fn serves(&self, mad: &Mad) -> bool {
        let wish = &self.registration;
        let class = mad.class();
        let oui = u32::from_be_bytes([0, mad.0[37], mad.0[38], mad.0[39]]);
        wish.class != 0
            && wish.class == class.0
            && wish.class_version == mad.class_version()
            && (!class.has_oui() || wish.oui == oui)
            && wish.methods >> (mad.method().0 & 0x7f) & 1 != 0
    }
}

/// Agents by number. The transaction ID of a request contains the number of the agent that sent it.
#[derive(Default)]
pub(super) struct Agents {
    by_number: BTreeMap<u16, Agent>,
    last: u16,
}

impl Agents {
    /// Adds an agent. Fails with `EINVAL` if another agent is registered for the same class and for
    /// one of the same methods.
    pub(super) fn add(&mut self, agent: Agent) -> Result<u16, Errno> {
        let clashes = |other: &Agent| {
            agent.shares_class(other)
                && agent.registration.methods & other.registration.methods != 0
        };
        if self.by_number.values().any(clashes) {
            return Err(Errno::INVALID);
        }
        // Numbers are reused as late as possible, so that a response to a removed agent does not
        // match a new agent.
        let free = (1..=u16::MAX).map(|step| self.last.wrapping_add(step));
        let free =
            free.into_iter().find(|number| *number != 0 && !self.by_number.contains_key(number));
        let number = free.ok_or(Errno::NO_MEMORY)?;
        self.last = number;
        self.by_number.insert(number, agent);
        Ok(number)
    }

    pub(super) fn remove(&mut self, number: u16) {
        self.by_number.remove(&number);
    }

    pub(super) fn get(&self, number: u16) -> Option<&Agent> {
        self.by_number.get(&number)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Agent> {
        self.by_number.values()
    }

    /// Returns the agent that gets a MAD. A response goes to the agent that sent the request;
    /// another MAD goes to the agent that is registered for its class and method.
    pub(super) fn for_datagram(&self, mad: &Mad) -> Option<u16> {
        if !is_response(mad) {
            return self.for_class(mad);
        }
        let number = (mad.transaction_id().0 >> 32) as u16;
        self.by_number.contains_key(&number).then_some(number)
    }

    /// Returns the agent that is registered for the class and method of a request.
    pub(super) fn for_class(&self, mad: &Mad) -> Option<u16> {
        let mut wanting = self.by_number.iter().filter(|(_, agent)| agent.serves(mad));
        wanting.next().map(|(&number, _)| number)
    }
}
