//! Queue pair 1 (general services interface): queued MADs and their packets.

use std::collections::VecDeque;

use ib_link::{Direction, Remote, Route};
use ib_types::{Instant, PKey, QKey, Qpn};
use ib_wire::mad::Mad;
use ib_wire::packet::{Bth, Deth, Header, Opcode};

use crate::counters::{Counters, DropReason};
use crate::event::HcaEvent;
use crate::packet::{Packet, Writer};
use crate::trace::{PacketNote, PacketTracer};

/// Maximum number of queued MADs.
const MOST_MADS: usize = 1 << 16;

/// Queue pair 1.
#[derive(Debug, Default)]
pub(super) struct Gsi {
    /// MADs to send.
    mads: VecDeque<(Route, Box<Mad>)>,
    /// The packet trace, if enabled.
    pub(super) tracer: Option<Box<PacketTracer>>,
}

impl Gsi {
    /// Returns true if no MAD is queued.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.mads.is_empty()
    }

    /// Queues a MAD for queue pair 1 of another port. Returns false if too many MADs are queued.
    pub(super) fn send(&mut self, route: Route, mad: Mad) -> bool {
        let has_room = self.mads.len() < MOST_MADS;
        if has_room {
            self.mads.push_back((route, Box::new(mad)));
        }
        has_room
    }

    /// Writes the packet of the next queued MAD, and returns the packet's route.
    pub(super) fn write(&mut self, now: Instant, writer: &mut Writer<'_>) -> Option<Route> {
        let (route, mad) = self.mads.pop_front()?;
        let (opcode, p_key, destination) = (Opcode::UD_SEND_ONLY, PKey::DEFAULT, Qpn::GSI);
        writer.put(&Bth { opcode, p_key, destination, ..Bth::default() }.to_bytes());
        writer.put(&Deth { q_key: QKey::GSI, source: Qpn::GSI }.to_bytes());
        writer.put(&mad.0);
        if let Some(tracer) = &mut self.tracer {
            let note = PacketNote::new(Direction::Send, now, &route);
            tracer.note(&note, writer.head(), writer.written());
        }
        Some(route)
    }

    /// Processes a packet received at queue pair 1. Returns an event with its MAD; `None` if the packet is dropped.
    pub(super) fn handle(
        &mut self,
        counters: &mut Counters,
        now: Instant,
        route: &Route,
        packet: &Packet<'_>,
    ) -> Option<HcaEvent> {
        let event = receive(route, packet);
        if let Some(tracer) = &mut self.tracer {
            let dropped = event.as_ref().err().copied();
            let note = PacketNote { dropped, ..PacketNote::new(Direction::Receive, now, route) };
            tracer.note(&note, packet.bytes, packet.bytes);
        }
        event.inspect_err(|&reason| counters.drop(reason)).ok()
    }

    /// Records a sent or received MAD in the packet trace. The link has transferred this MAD itself
    /// ([`Datagram`](ib_link::Datagram)), so no packet of the MAD has passed through the HCA.
    pub(super) fn note_datagram(
        &mut self,
        direction: Direction,
        now: Instant,
        route: &Route,
        remote: &Remote,
        mad: &Mad,
    ) {
        let Some(tracer) = &mut self.tracer else { return };
        let (destination, source) = match direction {
            Direction::Send => (remote.qpn, Qpn::GSI),
            Direction::Receive => (Qpn::GSI, remote.qpn),
        };
        let opcode = Opcode::UD_SEND_ONLY;
        let bth = Bth { opcode, p_key: remote.p_key, destination, ..Bth::default() };
        let deth = Deth { q_key: remote.q_key, source };
        let bytes = [&bth.to_bytes()[..], &deth.to_bytes(), &mad.0].concat();
        tracer.note(&PacketNote::new(direction, now, route), &bytes, &bytes);
    }
}

/// Returns the event of a received MAD, or the reason why its packet is dropped.
fn receive(route: &Route, packet: &Packet<'_>) -> Result<HcaEvent, DropReason> {
    let deth = packet.header(Header::Deth).map(Deth::parse);
    let deth =
        deth.filter(|_| packet.bth.opcode == Opcode::UD_SEND_ONLY).ok_or(DropReason::Opcode)?;
    if deth.q_key != QKey::GSI {
        return Err(DropReason::QKey);
    }
    if !packet.bth.p_key.matches(PKey::DEFAULT) {
        return Err(DropReason::PKey);
    }
    let bytes = packet.payload.try_into().map_err(|_| DropReason::Length)?;
    Ok(HcaEvent::Mad { route: *route, source: deth.source, mad: Box::new(Mad(bytes)) })
}
