//! Requests of other SMs, traps, and the election of the master.

use ib_link::Datagram;
use ib_mad::{Failure, Message};
use ib_types::{Gid, Instant};
use ib_wire::mad::sm::{Notice, SmInfo, SmState, TrapNumber};
use ib_wire::mad::smp;
use ib_wire::mad::{AttributeId, MadStatus, Method, MgmtClass};

use super::{SmEvent, Stage, SubnetManager};
use crate::discovered_subnet::PortIndex;
use crate::election::{self, Order};
use crate::multicast::MulticastTables;

impl SubnetManager {
    /// Processes a received trap, or a received Get or Set of SMInfo. Returns false for all other MADs.
    pub(super) fn handle_request(&mut self, now: Instant, datagram: &Datagram) -> bool {
        let mad = &datagram.mad;
        if !mad.class().is_smp() || mad.base_version() != 1 {
            return false;
        }
        match (mad.method(), mad.attribute_id()) {
            (Method::TRAP, AttributeId::NOTICE) => self.handle_trap(now, datagram),
            (Method::GET, AttributeId::SM_INFO) => self.answer(datagram, MadStatus::OK),
            (Method::SET, AttributeId::SM_INFO) => self.handle_set_sm_info(now, datagram),
            _ => return false,
        }
        true
    }

    /// Responds to a Get or Set of SMInfo with the SMInfo of this SM.
    fn answer(&mut self, datagram: &Datagram, status: MadStatus) {
        let mut mad = datagram.mad;
        mad.set_attribute(&self.info());
        smp::answer(&mut mad, status);
        if mad.class() == MgmtClass::SUBN_DIRECTED_ROUTE {
            // The link (`MadLink`) advances the hop pointer of each SMP that it sends. Therefore the response starts
            // with the hop pointer of the received request, which is zero on ibsim.
            mad.set_hop_pointer(datagram.mad.hop_pointer());
        }
        self.smps.respond(datagram.reply(mad));
    }

    fn handle_trap(&mut self, now: Instant, datagram: &Datagram) {
        // Only the master processes a trap, and responds with TrapRepress.
        if self.state != SmState::MASTER {
            return;
        }
        let notice: Notice =
            datagram.mad.attribute().expect("`handle_request` checked the attribute ID");
        let mut mad = datagram.mad;
        mad.set_method(Method::TRAP_REPRESS);
        mad.set_m_key(self.config.m_key);
        self.smps.respond(datagram.reply(mad));
        if let Some(subnet) = &self.served {
            let issuer = subnet.by_lid(notice.issuer_lid).map(|port_index| subnet.gid(port_index));
            self.sa.notify(notice, issuer.unwrap_or(Gid(0)));
        }
        if changes_subnet(&notice) {
            let at = self.served.as_ref().and_then(|subnet| {
                let port_index = subnet.by_lid(notice.issuer_lid)?;
                Some(subnet.found.node(port_index.node).info.node_guid)
            });
            match at {
                Some(guid) => self.triggers.add_changed(guid),
                None => {
                    let lid = notice.issuer_lid;
                    let why =
                        format!("trap {} from LID {lid}, which is not assigned", notice.trap.0);
                    self.search_soon(now, why);
                }
            }
        }
        self.counters.traps += 1;
        self.reporter.push(SmEvent::Trap(Box::new(notice)));
        self.advance(now);
    }

    /// Requests a full discovery because of a trap from an unknown port. The discovery starts at once, but at most one
    /// starts in each period of [`SEARCH_PAUSE`](super::triggers).
    fn search_soon(&mut self, now: Instant, why: String) {
        if let Some(from) = self.triggers.search_soon(now, why)
            && let Stage::Idle { next } = &mut self.stage
        {
            *next = Some(next.map_or(from, |at| at.min(from)));
        }
    }

    fn handle_set_sm_info(&mut self, now: Instant, datagram: &Datagram) {
        let sender: SmInfo =
            datagram.mad.attribute().expect("`handle_request` checked the attribute ID");
        let modifier = datagram.mad.attribute_modifier();
        let key = self.config.sm_key;
        if key != 0 && sender.sm_key != key {
            return self.answer(datagram, MadStatus::BAD_FIELD);
        }
        match election::order(self.state, &sender, modifier) {
            Err(status) => self.answer(datagram, status),
            Ok(order) => {
                self.answer(datagram, MadStatus::OK);
                self.apply_order(now, order);
            }
        }
    }

    fn apply_order(&mut self, now: Instant, order: Order) {
        match order {
            Order::Nothing => {}
            Order::TakeOver => {
                // The former master may have written tables in the switches, so this SM no longer knows the tables.
                self.subnet.forget_tables();
                self.subnet.multicast = MulticastTables::default();
                self.cache = None;
                self.become_state(SmState::MASTER);
                self.triggers.set_reason("another SM hands the subnet over");
                self.explore(now);
            }
            Order::Disable => {
                self.become_state(SmState::NOT_ACTIVE);
                self.stage = Stage::NotActive;
            }
            Order::Standby => {
                self.become_state(SmState::DISCOVERING);
                self.triggers.set_reason("the master requested standby");
                self.explore(now);
            }
            Order::Discover => self.search(now),
        }
    }

    /// Starts a discovery to find the current master.
    fn search(&mut self, now: Instant) {
        self.become_state(SmState::DISCOVERING);
        self.subnet.forget_tables();
        self.cache = None;
        self.triggers.set_reason("the master is unknown");
        self.explore(now);
    }

    /// Becomes a standby SM that polls the SM at the given port. That SM is the master, or will become the master.
    pub(super) fn stand_by(&mut self, now: Instant, master: PortIndex) {
        self.become_state(SmState::STANDBY);
        self.subnet.is_fresh = true;
        let next = now + self.config.sminfo_polling_timeout;
        self.stage = Stage::Standby { master, next, failures: 0, waiting: false };
    }

    /// Processes the response to a poll of the master, or its timeout.
    pub(super) fn handle_poll_result(
        &mut self,
        now: Instant,
        from: PortIndex,
        result: Result<Message, Failure>,
    ) {
        let own = self.info();
        let Stage::Standby { master, next, failures, waiting } = &mut self.stage else { return };
        if *master != from {
            return;
        }
        let info = result.ok().filter(|answer| answer.status().is_ok());
        let info = info.and_then(|answer| answer.mad().attribute::<SmInfo>());
        if let Some(info) = info {
            self.subnet.found.managers.insert(from, info);
        }
        *waiting = false;
        *next = now + self.config.sminfo_polling_timeout;
        match info {
            Some(info) if info.state == SmState::MASTER => *failures = 0,
            // The polled SM is not active, or it loses the election: this SM tries to become the master.
            Some(info) if info.state == SmState::NOT_ACTIVE || own.outranks(&info) => {
                self.search(now);
            }
            // The polled SM outranks this SM but is not the master yet, or it has not responded.
            _ => {
                *failures += 1;
                if *failures >= self.config.sminfo_polling_retries {
                    self.search(now);
                }
            }
        }
    }

    /// Processes the response to the HANDOVER that this SM has sent.
    pub(super) fn handle_handover_result(
        &mut self,
        now: Instant,
        to: PortIndex,
        result: &Result<Message, Failure>,
    ) {
        let accepted = result.as_ref().is_ok_and(|answer| answer.status().is_ok());
        if accepted {
            if let Some(info) = self.subnet.found.managers.get_mut(&to) {
                info.state = SmState::MASTER;
            }
            self.stand_by(now, to);
        } else {
            // The receiver of the HANDOVER did not accept it, so this SM remains the master.
            self.plan(now);
        }
    }
}

/// Returns true if the trap reports a change of links, ports or switches.
fn changes_subnet(notice: &Notice) -> bool {
    let changes = [
        TrapNumber::LINK_STATE_CHANGE,
        TrapNumber::LOCAL_CHANGES,
        TrapNumber::SYSTEM_IMAGE_GUID_CHANGE,
    ];
    notice.is_generic && changes.contains(&notice.trap)
}
