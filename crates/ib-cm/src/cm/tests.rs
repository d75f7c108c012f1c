//! Tests of the connection manager. This module has shared helpers, for example two CMs that exchange MADs.

use std::time::Duration;

use ib_link::Route;
use ib_types::{Gid, Guid, Instant, PKey, Psn, Qpn};
use ib_wire::mad::{Mad, Method, MgmtClass, TransactionId};

use super::*;
use crate::*;

mod dialogue;
mod golden;
mod hostile;
mod limits;
mod services;
mod simulation;
mod transitions;

const SERVICE: ServiceId = ServiceId(0x1234_5678);

const NOW: Instant = Instant::from_nanos(1_000_000);

fn gid(last: u8) -> Gid {
    let mut bytes = [0; 16];
    (bytes[10], bytes[11], bytes[15]) = (0xff, 0xff, last);
    Gid::from_bytes(bytes)
}

/// Returns the route from one HCA to another on an Ethernet link.
fn route(from: u8, to: u8) -> Route {
    Route { source: gid(from), destination: gid(to), is_global: true, ..Route::default() }
}

fn config(guid: u8) -> CmConfig {
    CmConfig { ca_guid: Guid(guid.into()), ..CmConfig::default() }
}

fn manager(guid: u8) -> Cm {
    Cm::new(config(guid), [guid; 32])
}

fn qpn(number: u32) -> Qpn {
    Qpn::new(number).unwrap()
}

fn psn(number: u32) -> Psn {
    Psn::new(number).unwrap()
}

fn request(number: u32) -> ConnectParams {
    ConnectParams::new(route(1, 2), SERVICE, qpn(number), psn(number + 1000))
}

fn acceptance(number: u32) -> AcceptParams {
    AcceptParams::new(qpn(number), psn(number + 2000))
}

fn sent(cm: &mut Cm) -> Vec<Mad> {
    std::iter::from_fn(|| cm.poll_transmit()).map(|(_, mad)| mad).collect()
}

/// Returns the names of messages.
fn names(mads: &[Mad]) -> Vec<&'static str> {
    mads.iter().map(|mad| name(mad.attribute_id())).collect()
}

fn name(id: AttributeId) -> &'static str {
    match id {
        AttributeId::CM_REQ => "REQ",
        AttributeId::CM_REP => "REP",
        AttributeId::CM_RTU => "RTU",
        AttributeId::CM_REJ => "REJ",
        AttributeId::CM_MRA => "MRA",
        AttributeId::CM_DREQ => "DREQ",
        AttributeId::CM_DREP => "DREP",
        AttributeId::CM_APR => "APR",
        AttributeId::CM_SIDR_REQ => "SIDR_REQ",
        AttributeId::CM_SIDR_REP => "SIDR_REP",
        _ => "?",
    }
}

fn events(cm: &mut Cm) -> Vec<CmEvent> {
    std::iter::from_fn(|| cm.poll_event()).collect()
}

/// Two CMs on a lossless wire. The second CM listens.
struct Pair {
    here: Cm,
    there: Cm,
}

impl Pair {
    fn new() -> Self {
        let mut there = manager(2);
        there.listen(SERVICE).unwrap();
        Self { here: manager(1), there }
    }

    /// Delivers messages in both directions until there are no more. Returns the names of the messages.
    fn carry(&mut self, now: Instant) -> Vec<&'static str> {
        let mut carried = Vec::new();
        loop {
            let before = carried.len();
            for mad in sent(&mut self.here) {
                carried.push(name(mad.attribute_id()));
                assert!(self.there.handle(now, &route(2, 1), &mad));
            }
            for mad in sent(&mut self.there) {
                carried.push(name(mad.attribute_id()));
                assert!(self.here.handle(now, &route(1, 2), &mad));
            }
            if carried.len() == before {
                return carried;
            }
        }
    }

    /// Establishes a connection. Returns its IDs at both CMs.
    fn connect(&mut self, now: Instant) -> (ConnectionId, ConnectionId) {
        let here = self.here.connect(now, &request(0x10)).unwrap();
        self.carry(now);
        let there = requested(&mut self.there).id;
        self.there.accept(now, there, &acceptance(0x20)).unwrap();
        self.carry(now);
        assert!(matches!(events(&mut self.here)[..], [CmEvent::Connected(_)]));
        self.here.established(here, b"").unwrap();
        self.carry(now);
        assert!(matches!(events(&mut self.there)[..], [CmEvent::Established { .. }]));
        (here, there)
    }
}

fn requested(cm: &mut Cm) -> Requested {
    match cm.poll_event() {
        Some(CmEvent::Requested(requested)) => *requested,
        other => panic!("found {other:?}, expected a request"),
    }
}

/// Runs the timers of a CM until no timer is running. Returns the final time and the sent messages.
fn run_out(cm: &mut Cm) -> (Instant, Vec<Mad>) {
    let (mut now, mut all) = (NOW, sent(cm));
    while let Some(at) = cm.poll_timeout() {
        now = at;
        cm.handle_timeout(now);
        all.extend(sent(cm));
    }
    (now, all)
}
