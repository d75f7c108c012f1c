//! Selections of queue pairs whose packets are traced.

use std::collections::VecDeque;

use ib_types::Qpn;

use super::gsi::Gsi;
use crate::qp::Qp;
use crate::table::Table;
use crate::trace::{
    PacketReader, PacketTrace, PacketTracer, Selection, SelectionId, SelectionStatus, TraceError,
};

/// The selections of an HCA, in the order in which they were added. A queue pair that is not traced yet is traced for
/// the first selection that includes it.
#[derive(Debug, Default)]
pub(super) struct Selections {
    last: u64,
    all: Vec<(SelectionId, Selection)>,
    /// Readers of started traces, until [`Self::poll`] returns them.
    started: VecDeque<(SelectionId, PacketReader)>,
}

impl Selections {
    /// Adds a selection, and traces the queue pairs that it includes. Returns its ID.
    pub(super) fn add(
        &mut self,
        mut selection: Selection,
        qps: &mut Table<Qp>,
        gsi: &mut Gsi,
    ) -> Result<SelectionId, TraceError> {
        selection.trace.check()?;
        // A UD queue pair has many peers. Its trace records only packets to and from the peers of the selection.
        selection.trace.filter.peers.extend_from_slice(&selection.peers);
        self.last += 1;
        let id = SelectionId(self.last);
        self.all.push((id, selection));
        self.update_all(qps, gsi);
        Ok(id)
    }

    /// Changes the trace options of a selection. Its traces keep the sizes of their rings.
    pub(super) fn change(
        &mut self,
        id: SelectionId,
        trace: &PacketTrace,
        qps: &mut Table<Qp>,
        gsi: &mut Gsi,
    ) -> Result<(), TraceError> {
        trace.check()?;
        let mut all = self.all.iter_mut();
        let (_, selection) = all.find(|(it, _)| *it == id).ok_or(TraceError::NotTraced)?;
        let ring_bytes = selection.trace.ring_bytes;
        let mut trace = PacketTrace { ring_bytes, ..trace.clone() };
        trace.filter.peers.clone_from(&selection.peers);
        selection.trace = trace.clone();
        let is_own = |tracer: &&mut Box<PacketTracer>| tracer.selection == Some(id);
        if let Some(tracer) = gsi.tracer.as_mut().filter(is_own) {
            tracer.change(trace.clone().with_whole_payload())?;
        }
        for tracer in qps.iter_mut().filter_map(|qp| qp.tracer.as_mut()).filter(is_own) {
            tracer.change(trace.clone())?;
        }
        Ok(())
    }

    /// Removes a selection and ends its traces. If another selection includes one of the queue pairs, the queue pair is
    /// traced for that selection from then on.
    pub(super) fn remove(&mut self, id: SelectionId, qps: &mut Table<Qp>, gsi: &mut Gsi) {
        self.all.retain(|(it, _)| *it != id);
        let tracers = qps.iter_mut().map(|qp| &mut qp.tracer).chain([&mut gsi.tracer]);
        for tracer in tracers {
            tracer.take_if(|tracer| tracer.selection == Some(id));
        }
        self.update_all(qps, gsi);
    }

    /// Returns how many of a selection's queue pairs are traced for this selection, and how many for another selection
    /// or by [`Hca::trace_packets`](crate::Hca::trace_packets). All counts are 0 if the selection does not exist.
    pub(super) fn status(&self, id: SelectionId, qps: &Table<Qp>, gsi: &Gsi) -> SelectionStatus {
        let mut status = SelectionStatus::default();
        let Some((_, selection)) = self.all.iter().find(|(it, _)| *it == id) else {
            return status;
        };
        if let Some(tracer) = gsi.tracer.as_ref().filter(|_| selection.includes_gsi()) {
            status.count(id, tracer.selection);
        }
        status.has_gsi = status.own > 0;
        let included = qps.iter().filter(|qp| qp.context.is_in(selection));
        for tracer in included.filter_map(|qp| qp.tracer.as_ref()) {
            status.count(id, tracer.selection);
        }
        status.is_gsi_only = selection.qpns.iter().all(|qpn| *qpn == Qpn::GSI)
            && (selection.peers.is_empty() || !selection.qpns.is_empty());
        status
    }

    /// Starts a trace of each queue pair that a selection includes and that is not traced yet.
    fn update_all(&mut self, qps: &mut Table<Qp>, gsi: &mut Gsi) {
        if gsi.tracer.is_none() {
            let mut all = self.all.iter();
            let found = all.find(|(_, selection)| selection.includes_gsi());
            let found =
                found.map(|(id, selection)| (*id, selection.trace.clone().with_whole_payload()));
            gsi.tracer = found.and_then(|(id, trace)| self.start(id, trace, Qpn::GSI));
        }
        qps.iter_mut().for_each(|qp| self.update(qp));
    }

    /// Starts the trace of a new or changed queue pair if a selection includes it and it is not traced yet.
    pub(super) fn update(&mut self, qp: &mut Qp) {
        if qp.tracer.is_some() {
            return;
        }
        let found = self.all.iter().find(|(_, selection)| qp.context.is_in(selection));
        let Some((id, selection)) = found else { return };
        qp.tracer = self.start(*id, selection.trace.clone(), qp.context.number);
    }

    /// Starts a trace. Returns `None` if there is no memory for its ring: the queue pair is then not traced.
    fn start(
        &mut self,
        id: SelectionId,
        trace: PacketTrace,
        qpn: Qpn,
    ) -> Option<Box<PacketTracer>> {
        let (mut tracer, reader) = PacketTracer::start(trace, qpn).ok()?;
        tracer.selection = Some(id);
        self.started.push_back((id, reader));
        Some(Box::new(tracer))
    }

    /// Returns the reader of the next started trace, and the selection of the trace. Each reader is returned once.
    pub(super) fn poll(&mut self) -> Option<(SelectionId, PacketReader)> {
        self.started.pop_front()
    }
}
