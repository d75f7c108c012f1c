//! What is noted of queue pairs, and who may read it.

use std::sync::Arc;

use ib_link::{Direction, Remote, Route};
use ib_types::{Instant, Qpn};
use ib_wire::mad::Mad;
use ib_wire::packet::{Bth, Deth, Header, Opcode};

use super::Hca;
use crate::objects::QpId;
use crate::qp::core::Core;
use crate::qp::{QpAttributes, QpState, QpType};
use crate::trace::{
    MessageRing, Noted, PacketReader, PacketTrace, Packets, Selection, SelectionId, Standing,
    TraceError,
};

/// The selections of an adapter.
#[derive(Debug, Default)]
pub(super) struct Selections {
    last: u64,
    all: Vec<(SelectionId, Selection)>,
    /// What they have begun to keep and nobody has taken yet.
    begun: std::collections::VecDeque<(SelectionId, PacketReader)>,
}

impl Hca {
    /// Returns the queue pairs and their numbers.
    pub fn queue_pairs(&self) -> impl Iterator<Item = (QpId, Qpn)> {
        self.qps.iter().map(|qp| (qp.core.id, qp.core.number))
    }

    /// Returns the queue pair that has a number.
    #[must_use]
    pub fn find_qp(&self, number: Qpn) -> Option<QpId> {
        self.by_number.get(&number.get()).copied()
    }

    /// Returns the command blocks of a queue pair's messages, which are always written.
    #[must_use]
    pub fn messages(&self, qp: QpId) -> Option<Arc<MessageRing>> {
        self.qps.get(qp.0).map(|qp| Arc::clone(qp.core.messages.ring()))
    }

    /// Starts to keep the packets of a queue pair, for whoever gets the reader.
    ///
    /// # Errors
    /// Fails when there is no such queue pair, its packets are kept already, or the options ask for what cannot
    /// be.
    pub fn trace_packets(
        &mut self,
        qp: QpId,
        options: PacketTrace,
    ) -> Result<PacketReader, TraceError> {
        let qp = self.qps.get_mut(qp.0).ok_or(TraceError::NoSuchQp)?;
        if qp.packets.is_some() {
            return Err(TraceError::Traced);
        }
        let (packets, reader) = Packets::start(options, qp.core.number)?;
        qp.packets = Some(Box::new(packets));
        Ok(reader)
    }

    /// Changes which packets are kept, and how much of them, from now on; the length of the ring stays.
    ///
    /// # Errors
    /// Fails when no packets are kept, or the options ask for what cannot be.
    pub fn change_trace(&mut self, qp: QpId, options: PacketTrace) -> Result<(), TraceError> {
        let qp = self.qps.get_mut(qp.0).ok_or(TraceError::NoSuchQp)?;
        qp.packets.as_mut().ok_or(TraceError::NotTraced)?.change(options)
    }

    /// Keeps no more packets of a queue pair. What the reader has not read yet it still can.
    ///
    /// # Errors
    /// Fails when no packets are kept.
    pub fn end_trace(&mut self, qp: QpId) -> Result<(), TraceError> {
        let qp = self.qps.get_mut(qp.0).ok_or(TraceError::NoSuchQp)?;
        qp.packets.take().map(drop).ok_or(TraceError::NotTraced)
    }

    /// Starts to keep the packets of queue pair 1: its management datagrams, which are kept whole.
    ///
    /// # Errors
    /// As [`Hca::trace_packets`].
    pub fn trace_general(&mut self, options: PacketTrace) -> Result<PacketReader, TraceError> {
        if self.general.is_some() {
            return Err(TraceError::Traced);
        }
        let (packets, reader) = Packets::start(options.whole(), Qpn::GSI)?;
        self.general = Some(Box::new(packets));
        Ok(reader)
    }

    /// Keeps no more packets of queue pair 1.
    ///
    /// # Errors
    /// Fails when none are kept.
    pub fn end_general(&mut self) -> Result<(), TraceError> {
        self.general.take().map(drop).ok_or(TraceError::NotTraced)
    }

    /// Tells which service a queue pair is connected to, by which selections may choose it: the number of the
    /// connection manager.
    ///
    /// # Errors
    /// Fails when there is no such queue pair.
    pub fn set_service(&mut self, qp: QpId, service: u64) -> Result<(), TraceError> {
        self.qps.get_mut(qp.0).ok_or(TraceError::NoSuchQp)?.core.service = Some(service);
        self.offer(qp);
        Ok(())
    }

    /// Returns the service that a queue pair is connected to, as far as it was told.
    #[must_use]
    pub fn service(&self, qp: QpId) -> Option<u64> {
        self.qps.get(qp.0)?.core.service
    }

    /// Returns the transport of a queue pair.
    #[must_use]
    pub fn qp_type(&self, qp: QpId) -> Option<QpType> {
        Some(self.qps.get(qp.0)?.core.qp_type)
    }

    /// Returns whether the packets of a queue pair are kept.
    #[must_use]
    pub fn is_traced(&self, qp: QpId) -> bool {
        self.qps.get(qp.0).is_some_and(|qp| qp.packets.is_some())
    }

    /// Keeps the packets of all queue pairs that a selection chooses, now and as soon as they fit it. What reads
    /// them comes by [`Hca::poll_selected`]. Those that are traced already stay with whoever traces them.
    ///
    /// # Errors
    /// Fails when the options ask for what cannot be.
    pub fn select(&mut self, mut selection: Selection) -> Result<SelectionId, TraceError> {
        selection.trace.check()?;
        // Datagrams go to many.
        selection.trace.filter.peers.extend_from_slice(&selection.peers);
        self.selections.last += 1;
        let id = SelectionId(self.selections.last);
        self.selections.all.push((id, selection));
        self.offer_all();
        Ok(id)
    }

    /// Returns what a selection has; nothing when there is no such selection.
    #[must_use]
    pub fn standing(&self, id: SelectionId) -> Standing {
        let mut standing = Standing::default();
        let Some((_, selection)) = self.selections.all.iter().find(|(it, _)| *it == id) else {
            return standing;
        };
        if let Some(packets) = self.general.as_ref().filter(|_| selection.takes_general()) {
            standing.count(id, packets.selection);
        }
        standing.has_general = standing.own > 0;
        let chosen = self.qps.iter().filter(|qp| selection.chooses(&qp.core));
        for packets in chosen.filter_map(|qp| qp.packets.as_ref()) {
            standing.count(id, packets.selection);
        }
        standing.is_general = selection.qpns.iter().all(|qpn| *qpn == Qpn::GSI)
            && (selection.peers.is_empty() || !selection.qpns.is_empty());
        standing
    }

    /// Changes what is kept of the packets of a selection, from now on; the length of the rings stays.
    ///
    /// # Errors
    /// Fails when there is no such selection, or the options ask for what cannot be.
    pub fn change_selection(
        &mut self,
        id: SelectionId,
        trace: &PacketTrace,
    ) -> Result<(), TraceError> {
        trace.check()?;
        let mut all = self.selections.all.iter_mut();
        let (_, selection) = all.find(|(it, _)| *it == id).ok_or(TraceError::NotTraced)?;
        let ring_bytes = selection.trace.ring_bytes;
        let mut trace = PacketTrace { ring_bytes, ..trace.clone() };
        trace.filter.peers.clone_from(&selection.peers);
        selection.trace = trace.clone();
        let is_own = |packets: &&mut Box<Packets>| packets.selection == Some(id);
        if let Some(packets) = self.general.as_mut().filter(is_own) {
            packets.change(trace.clone().whole())?;
        }
        for packets in self.qps.iter_mut().filter_map(|qp| qp.packets.as_mut()).filter(is_own) {
            packets.change(trace.clone())?;
        }
        Ok(())
    }

    /// Keeps no more packets for a selection. What was not read yet still can be.
    pub fn deselect(&mut self, id: SelectionId) {
        self.selections.all.retain(|(it, _)| *it != id);
        let is_own = |packets: &Option<Box<Packets>>| {
            packets.as_ref().is_some_and(|packets| packets.selection == Some(id))
        };
        for qp in self.qps.iter_mut() {
            if is_own(&qp.packets) {
                qp.packets = None;
            }
        }
        if is_own(&self.general) {
            self.general = None;
        }
        // Whoever wanted the same has it now.
        self.offer_all();
    }

    /// Lets the selections look at all queue pairs.
    fn offer_all(&mut self) {
        let takes = |(_, it): &&(SelectionId, Selection)| it.takes_general();
        if self.general.is_none()
            && let Some((id, selection)) = self.selections.all.iter().find(takes)
            && let Ok((mut packets, reader)) =
                Packets::start(selection.trace.clone().whole(), Qpn::GSI)
        {
            packets.selection = Some(*id);
            self.general = Some(Box::new(packets));
            self.selections.begun.push_back((*id, reader));
        }
        let qps: Vec<QpId> = self.qps.iter().map(|qp| qp.core.id).collect();
        for qp in qps {
            self.offer(qp);
        }
    }

    /// Returns the next queue pair that a selection has chosen, as what reads its packets.
    pub fn poll_selected(&mut self) -> Option<(SelectionId, PacketReader)> {
        self.selections.begun.pop_front()
    }

    /// Lets the selections look at a queue pair that is new or has changed.
    pub(super) fn offer(&mut self, id: QpId) {
        if self.selections.all.is_empty() {
            return;
        }
        let Some(qp) = self.qps.get_mut(id.0).filter(|qp| qp.packets.is_none()) else { return };
        let chooses = |(_, it): &&(SelectionId, Selection)| it.chooses(&qp.core);
        let Some((selection, chosen)) = self.selections.all.iter().find(chooses) else { return };
        // Where there is no memory for one more ring the queue pair is not traced; it goes on.
        let Ok((mut packets, reader)) = Packets::start(chosen.trace.clone(), qp.core.number) else {
            return;
        };
        packets.selection = Some(*selection);
        qp.packets = Some(Box::new(packets));
        self.selections.begun.push_back((*selection, reader));
    }

    /// Keeps a management datagram that has come to queue pair 1, or has left it, by another way than the adapter's
    /// own: where a fabric hands over datagrams instead of packets.
    pub fn note_datagram(
        &mut self,
        (direction, now): (Direction, Instant),
        route: &Route,
        remote: &Remote,
        mad: &Mad,
    ) {
        let Some(packets) = &mut self.general else { return };
        let (destination, source) = match direction {
            Direction::Send => (remote.qpn, Qpn::GSI),
            Direction::Receive => (Qpn::GSI, remote.qpn),
        };
        let opcode = Opcode::UD_SEND_ONLY;
        let bth = Bth { opcode, p_key: remote.p_key, destination, ..Bth::default() };
        let deth = Deth { q_key: remote.q_key, source };
        let bytes = [&bth.to_bytes()[..], &deth.to_bytes(), &mad.0].concat();
        packets.note(&Noted::new((direction, now), route), &bytes, &bytes);
    }

    /// Takes the news that a packet which the adapter has sent was lost on its way, for the trace of its queue
    /// pair: its headers from the BTH on, how long it was with its payload, the way that it took, when, where and why.
    pub fn note_lost(
        &mut self,
        now: Instant,
        route: &Route,
        (bytes, length): (&[u8], usize),
        why: &str,
    ) {
        let Some(bth) = bytes.first_chunk().map(Bth::parse) else { return };
        let source = bth.opcode.headers().and_then(|headers| headers.offset(Header::Deth));
        let source = source.and_then(|at| bytes[Bth::LENGTH..].get(at..)?.first_chunk());
        let (packets, route) = if let Some(deth) = source {
            let source = Deth::parse(deth).source;
            let packets = match self.by_number.get(&source.get()) {
                None if source == Qpn::GSI => self.general.as_mut(),
                None => None,
                Some(id) => self.qps.get_mut(id.0).and_then(|qp| qp.packets.as_mut()),
            };
            (packets, *route)
        } else {
            let sends = |core: &Core| {
                let QpAttributes { dest_qp_num, route: own, .. } = &core.attributes;
                core.qp_type != QpType::Ud
                    && core.state != QpState::Reset
                    && *dest_qp_num == bth.destination
                    && own.dlid == route.dlid
                    && (!own.is_global || own.destination == route.destination)
            };
            let mut traced = self.qps.iter_mut().filter(|qp| qp.packets.is_some());
            let Some(qp) = traced.find(|qp| sends(&qp.core)) else { return };
            (qp.packets.as_mut(), qp.core.attributes.route)
        };
        if let Some(packets) = packets {
            packets.note_lost((now, why), &route, (bytes, length));
        }
    }
}
