//! What is noted of queue pairs, and who may read it.

use std::sync::Arc;

use ib_types::Qpn;

use super::Hca;
use crate::objects::QpId;
use crate::trace::{MessageRing, PacketReader, PacketTrace, Packets, TraceError};

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

    /// Starts to keep the packets of queue pair 1: its management datagrams.
    ///
    /// # Errors
    /// As [`Hca::trace_packets`].
    pub fn trace_general(&mut self, options: PacketTrace) -> Result<PacketReader, TraceError> {
        if self.general.is_some() {
            return Err(TraceError::Traced);
        }
        let (packets, reader) = Packets::start(options, Qpn::GSI)?;
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
}
