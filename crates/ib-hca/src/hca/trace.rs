//! The HCA's functions for tracing: records of completed messages, and packet traces.

use std::sync::Arc;

use ib_link::{Direction, Remote, Route};
use ib_types::{Instant, Qpn};
use ib_wire::mad::Mad;
use ib_wire::packet::{Bth, Deth, Header};

use super::Hca;
use crate::id::QpId;
use crate::qp::attr::{QpAttributes, QpState, QpType};
use crate::qp::context::QpContext;
use crate::trace::{
    MessageRing, PacketReader, PacketTrace, PacketTracer, Selection, SelectionId, SelectionStatus,
    TraceError,
};

impl Hca {
    /// Returns the IDs of all queue pairs, with their queue pair numbers.
    pub fn queue_pairs(&self) -> impl Iterator<Item = (QpId, Qpn)> {
        self.qps.iter().map(|qp| (qp.context.id, qp.context.number))
    }

    /// Returns the queue pair with the given number.
    #[must_use]
    pub fn find_qp(&self, number: Qpn) -> Option<QpId> {
        self.by_number.get(&number.get()).copied()
    }

    /// Returns the ring that records the last completed messages of a queue pair. The HCA always records completed
    /// messages.
    #[must_use]
    pub fn messages(&self, qp: QpId) -> Option<Arc<MessageRing>> {
        self.qps.get(qp.0).map(|qp| Arc::clone(qp.context.messages.ring()))
    }

    /// Starts a packet trace of a queue pair. Returns the reader of its packets.
    ///
    /// # Errors
    /// Fails if the queue pair does not exist or is traced already, or if the options are invalid.
    pub fn trace_packets(
        &mut self,
        qp: QpId,
        options: PacketTrace,
    ) -> Result<PacketReader, TraceError> {
        let qp = self.qps.get_mut(qp.0).ok_or(TraceError::NoSuchQp)?;
        if qp.tracer.is_some() {
            return Err(TraceError::Traced);
        }
        let (tracer, reader) = PacketTracer::start(options, qp.context.number)?;
        qp.tracer = Some(Box::new(tracer));
        Ok(reader)
    }

    /// Changes the options of a packet trace. The trace keeps the size of its ring.
    ///
    /// # Errors
    /// Fails if the queue pair is not traced, or if the options are invalid.
    pub fn change_trace(&mut self, qp: QpId, options: PacketTrace) -> Result<(), TraceError> {
        let qp = self.qps.get_mut(qp.0).ok_or(TraceError::NoSuchQp)?;
        qp.tracer.as_mut().ok_or(TraceError::NotTraced)?.change(options)
    }

    /// Ends the packet trace of a queue pair. The reader can still read all recorded packets.
    ///
    /// # Errors
    /// Fails if the queue pair is not traced.
    pub fn end_trace(&mut self, qp: QpId) -> Result<(), TraceError> {
        let qp = self.qps.get_mut(qp.0).ok_or(TraceError::NoSuchQp)?;
        qp.tracer.take().map(drop).ok_or(TraceError::NotTraced)
    }

    /// Ends the packet trace of queue pair 1.
    ///
    /// # Errors
    /// Fails if queue pair 1 is not traced.
    pub fn end_gsi_trace(&mut self) -> Result<(), TraceError> {
        self.gsi.tracer.take().map(drop).ok_or(TraceError::NotTraced)
    }

    /// Sets the service ID to which the connection manager has connected a queue pair. Selections can include queue
    /// pairs by service ID.
    ///
    /// # Errors
    /// Fails if the queue pair does not exist.
    pub fn set_service(&mut self, qp: QpId, service: u64) -> Result<(), TraceError> {
        let qp = self.qps.get_mut(qp.0).ok_or(TraceError::NoSuchQp)?;
        qp.context.service = Some(service);
        self.selections.update(qp);
        Ok(())
    }

    /// Returns the service ID that [`Hca::set_service`] has set for a queue pair.
    #[must_use]
    pub fn service(&self, qp: QpId) -> Option<u64> {
        self.qps.get(qp.0)?.context.service
    }

    /// Returns the transport of a queue pair.
    #[must_use]
    pub fn qp_type(&self, qp: QpId) -> Option<QpType> {
        Some(self.qps.get(qp.0)?.context.init.qp_type)
    }

    /// Returns true if a queue pair has a packet trace.
    #[must_use]
    pub fn is_traced(&self, qp: QpId) -> bool {
        self.qps.get(qp.0).is_some_and(|qp| qp.tracer.is_some())
    }

    /// Adds a selection: traces the packets of all present and future queue pairs that the selection includes.
    ///
    /// [`Hca::poll_selected`] returns the readers of the traces. Queue pairs that are traced already keep their traces.
    ///
    /// # Errors
    /// Fails if the options are invalid.
    pub fn select(&mut self, selection: Selection) -> Result<SelectionId, TraceError> {
        self.selections.add(selection, &mut self.qps, &mut self.gsi)
    }

    /// Returns how many of a selection's queue pairs are traced for this selection, and how many for another selection
    /// or by [`Hca::trace_packets`]. All counts are 0 if the selection does not exist.
    #[must_use]
    pub fn selection_status(&self, id: SelectionId) -> SelectionStatus {
        self.selections.status(id, &self.qps, &self.gsi)
    }

    /// Changes the trace options of a selection. Its traces keep the sizes of their rings.
    ///
    /// # Errors
    /// Fails if no selection has this ID, or if the options are invalid.
    pub fn change_selection(
        &mut self,
        id: SelectionId,
        trace: &PacketTrace,
    ) -> Result<(), TraceError> {
        self.selections.change(id, trace, &mut self.qps, &mut self.gsi)
    }

    /// Removes a selection and ends its packet traces. Their readers can still read all recorded packets.
    pub fn deselect(&mut self, id: SelectionId) {
        self.selections.remove(id, &mut self.qps, &mut self.gsi);
    }

    /// Returns the packet reader of the next trace that was started for a selection, and the ID of the selection. Each
    /// reader is returned once, in the order in which the traces were started.
    pub fn poll_selected(&mut self) -> Option<(SelectionId, PacketReader)> {
        self.selections.poll()
    }

    /// Records a sent or received MAD in the packet trace of queue pair 1. The link has transferred this MAD itself
    /// ([`Datagram`](ib_link::Datagram)), so no packet of the MAD has passed through the HCA.
    pub fn note_datagram(
        &mut self,
        direction: Direction,
        now: Instant,
        route: &Route,
        remote: &Remote,
        mad: &Mad,
    ) {
        self.gsi.note_datagram(direction, now, route, remote, mad);
    }

    /// Records the loss of a packet in the trace of the queue pair that sent the packet.
    ///
    /// `bytes` are the packet's headers from the BTH on. `length` is the size in bytes of headers and payload. `why`
    /// says where and why the packet was lost.
    pub fn note_lost(
        &mut self,
        now: Instant,
        route: &Route,
        bytes: &[u8],
        length: usize,
        why: &str,
    ) {
        let Some(bth) = bytes.first_chunk().map(Bth::parse) else { return };
        let source = bth.opcode.headers().and_then(|headers| headers.offset(Header::Deth));
        let source = source.and_then(|at| bytes[Bth::LENGTH..].get(at..)?.first_chunk());
        let (tracer, route) = if let Some(deth) = source {
            let source = Deth::parse(deth).source;
            let tracer = match self.by_number.get(&source.get()) {
                None if source == Qpn::GSI => self.gsi.tracer.as_mut(),
                None => None,
                Some(id) => self.qps.get_mut(id.0).and_then(|qp| qp.tracer.as_mut()),
            };
            (tracer, *route)
        } else {
            let sends = |context: &QpContext| {
                let QpAttributes { dest_qp_num, route: own, .. } = &context.attributes;
                context.init.qp_type != QpType::Ud
                    && context.state != QpState::Reset
                    && *dest_qp_num == bth.destination
                    && own.dlid == route.dlid
                    && (!own.is_global || own.destination == route.destination)
            };
            let mut traced = self.qps.iter_mut().filter(|qp| qp.tracer.is_some());
            let Some(qp) = traced.find(|qp| sends(&qp.context)) else { return };
            (qp.tracer.as_mut(), qp.context.attributes.route)
        };
        if let Some(tracer) = tracer {
            tracer.note_lost(now, why, &route, bytes, length);
        }
    }
}
