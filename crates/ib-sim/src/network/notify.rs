//! Raises, sends and repeats traps.

use ib_topology::{NodeId, PortId};
use ib_types::ServiceLevel;
use ib_wire::mad::sm::notice::{
    KeyDetails, LinkStateDetails, LocalChangeDetails, NoticeType, SwitchKeyDetails, SwitchKeyFields,
};
use ib_wire::mad::sm::{NoticeDetails, TrapNumber};
use ib_wire::mad::{AttributeId, Method, TransactionId, smp};

use super::Network;
use crate::event::{Event, Timer};
use crate::log::Entry;
use crate::loss::Loss;
use crate::trap;

impl Network {
    /// Sends trap 128: the link state of a switch port has changed.
    pub(super) fn trap_link_state(&mut self, node: NodeId) {
        let port = self.fabric.port_id(node, 0);
        let details = LinkStateDetails { lid: self.fabric.port(port).info.lid };
        let details = NoticeDetails::LinkState(details);
        self.raise(port, NoticeType::URGENT, TrapNumber::LINK_STATE_CHANGE, &details);
    }

    /// Sends trap 144: the capabilities of an end port have changed.
    pub(crate) fn trap_capabilities(&mut self, port: PortId) {
        let info = &self.fabric.port(port).info;
        let mut details = LocalChangeDetails::zeroed();
        details.lid = info.lid;
        details.capability_mask = info.capability_mask;
        let details = NoticeDetails::LocalChange(details);
        self.raise(port, NoticeType::INFORMATIONAL, TrapNumber::LOCAL_CHANGES, &details);
    }

    /// Drops a packet whose P_Key matches none of an end port's P_Keys, and sends a trap from this
    /// port.
    pub(crate) fn refuse_key(&mut self, port: PortId, key: u32) {
        let violations = &mut self.fabric.port_mut(port).info.p_key_violations;
        *violations = violations.saturating_add(1);
        let packet = &self.flights.get(key).packet;
        let p_key = packet.p_key();
        let mut details = KeyDetails::zeroed();
        (details.lid1, details.lid2) = (packet.slid, packet.dlid);
        details.key = ib_types::QKey(u32::from(p_key.0));
        details.sl = packet.sl.get();
        (details.qp2, details.qp1) = packet.queue_pairs();
        if let Some(grh) = packet.grh {
            (details.gid1, details.gid2) = (grh.source, grh.destination);
        }
        let details = NoticeDetails::Key(details);
        self.raise(port, NoticeType::SECURITY, TrapNumber::BAD_P_KEY, &details);
        self.lose(port, key, Loss::Partition(p_key.0));
    }

    /// Drops a packet whose P_Key a switch port does not admit, and sends a trap.
    pub(super) fn refuse_partition(&mut self, node: NodeId, port: PortId, key: u32) {
        let packet = &self.flights.get(key).packet;
        let p_key = packet.p_key();
        let mut details = SwitchKeyDetails::zeroed();
        // The trap has a source QP only for MADs, and GIDs only for packets with a GRH.
        type Fields = SwitchKeyFields;
        details.valid = Fields::LID1 | Fields::LID2 | Fields::P_KEY | Fields::SL | Fields::QP2;
        details.valid = details.valid.with(Fields::QP1, packet.mad().is_some());
        if let Some(grh) = packet.grh {
            details.valid = details.valid | Fields::GID1 | Fields::GID2;
            (details.gid1, details.gid2) = (grh.source, grh.destination);
        }
        (details.lid1, details.lid2) = (packet.slid, packet.dlid);
        details.p_key = p_key;
        details.sl = packet.sl.get();
        (details.qp2, details.qp1) = packet.queue_pairs();
        let own = self.fabric.port_id(node, 0);
        details.switch_lid = self.fabric.port(own).info.lid;
        details.port = self.fabric.port(port).number;
        let details = NoticeDetails::SwitchKey(details);
        self.raise(own, NoticeType::SECURITY, TrapNumber::SWITCH_BAD_P_KEY, &details);
        self.lose(port, key, Loss::Partition(p_key.0));
    }

    /// Sends a trap from an end port, if the port has a LID and knows the LID of its subnet
    /// manager.
    pub(crate) fn raise(
        &mut self,
        port: PortId,
        kind: NoticeType,
        trap: TrapNumber,
        details: &NoticeDetails,
    ) {
        let state = self.fabric.port(port);
        let (node, lid, sm_lid) = (state.node, state.info.lid, state.info.master_sm_lid);
        let sender = self.fabric.node_mut(node);
        if lid == 0 || sm_lid == 0 || !sender.powered {
            return;
        }
        let mut notice = trap::notice(sender.kind, lid, kind, trap);
        notice.set_details(details);
        if let Some(transaction) = sender.traps.raise(port, notice) {
            self.send_trap(node, transaction);
        }
    }

    /// Sends or repeats a trap, unless it was repressed.
    pub(crate) fn send_trap(&mut self, node: NodeId, transaction: u32) {
        let traps = &mut self.fabric.node_mut(node).traps;
        let Some((port, notice, sent)) = traps.send(transaction) else { return };
        let info = &self.fabric.port(port).info;
        let at = self.now() + trap::pause(sent, info.subnet_timeout);
        self.clock.schedule(at, Event::Timer(Timer::Trap { node, transaction }));
        let dlid = info.master_sm_lid;
        let level = ServiceLevel::new(info.master_sm_sl).unwrap_or_default();
        let transaction = TransactionId(u64::from(transaction));
        let mut mad = smp::lid_request(Method::TRAP, transaction, (AttributeId::NOTICE, 0));
        mad.set_attribute(&notice);
        self.log(Entry::Trap { port, number: notice.trap, count: sent });
        let packet = self.fabric.management_packet(port, dlid, level, mad);
        // If the subnet manager is at the same node, the trap is delivered to a client of the end
        // port.
        if let Some(delivery) = self.send_by_lid(port, packet, None) {
            let (port, key) = delivery.parts();
            self.deliver_mad(self.fabric.end_port_of(port), key);
        }
    }

    /// Processes a TrapRepress.
    pub(crate) fn repress(&mut self, node: NodeId, transaction: u64) {
        if let Some(next) = self.fabric.node_mut(node).traps.repress(transaction) {
            self.send_trap(node, next);
        }
    }
}
