//! A connection manager receives arbitrary messages, while the program that owns it connects, accepts and closes.
//!
//! Checks that the connection manager does not exceed its limits, and that its tables are empty after all connections
//! were closed. The input is a list of events: a byte that selects the event, and its parameters.
#![no_main]

use std::time::Duration;

use ib_cm::{
    AcceptParams, Cm, CmConfig, CmEvent, ConnectParams, ConnectionId, PortSpace, ServiceId,
    SidrParams, SidrReply, SidrRequestId,
};
use ib_fuzz::Input;
use ib_link::Route;
use ib_types::{Gid, Guid, Instant, PKey, Psn, QKey, Qpn};
use ib_wire::mad::cm::{RejectReason, SidrStatus};
use ib_wire::mad::{AttributeId, Mad, Method, MgmtClass, TransactionId};
use libfuzzer_sys::fuzz_target;

const MOST: usize = 6;
const SERVICE: ServiceId = ServiceId(0x1234);
const PORT: u16 = 7471;

const KINDS: [AttributeId; 11] = [
    AttributeId::CM_REQ,
    AttributeId::CM_REP,
    AttributeId::CM_RTU,
    AttributeId::CM_REJ,
    AttributeId::CM_MRA,
    AttributeId::CM_DREQ,
    AttributeId::CM_DREP,
    AttributeId::CM_LAP,
    AttributeId::CM_APR,
    AttributeId::CM_SIDR_REQ,
    AttributeId::CM_SIDR_REP,
];

fn route() -> Route {
    let (source, destination) = (Gid(0xffff_0a00_0001), Gid(0xffff_0a00_0002));
    Route { source, destination, is_global: true, ..Route::default() }
}

struct World {
    now: Instant,
    cm: Cm,
    /// The latest 16 messages of the connection manager. Matching responses are constructed from them.
    sent: Vec<Mad>,
    connections: Vec<ConnectionId>,
    questions: Vec<SidrRequestId>,
}

impl World {
    fn collect(&mut self) {
        while let Some((_, mad)) = self.cm.poll_transmit() {
            assert_eq!(mad.class(), MgmtClass::COMMUNICATION);
            self.sent.push(mad);
        }
        let extra = self.sent.len().saturating_sub(16);
        self.sent.drain(..extra);
        while let Some(event) = self.cm.poll_event() {
            match event {
                CmEvent::Requested(requested) => self.connections.push(requested.id),
                CmEvent::SidrRequested(requested) => self.questions.push(requested.id),
                _ => {}
            }
        }
        assert!(self.cm.connections() <= MOST, "{} connections", self.cm.connections());
        assert!(self.cm.sidr_requests() <= 2 * MOST, "{} SIDR requests", self.cm.sidr_requests());
    }

    /// Passes a message with arbitrary content, or a response to a sent message, to the connection manager.
    fn message(&mut self, input: &mut Input<'_>) {
        let kind = KINDS[input.below(KINDS.len())];
        let how = input.byte();
        let mut mad = Mad::new(MgmtClass::COMMUNICATION, Method::SEND, TransactionId(how.into()));
        mad.set_attribute_id(kind);
        let content = &mut mad.0[24..];
        let peers = u32::from(input.byte() & 3) + 1;
        // Most messages start with the communication IDs of sender and receiver. A SIDR_REP starts with the request ID
        // of the SIDR_REQ.
        content[..4].copy_from_slice(&peers.to_be_bytes());
        if !self.sent.is_empty() {
            let before = &self.sent[input.below(self.sent.len())];
            let theirs = kind == AttributeId::CM_SIDR_REP;
            content[if theirs { 0..4 } else { 4..8 }].copy_from_slice(&before.0[24..28]);
            if how & 0x80 != 0 {
                content[8..].copy_from_slice(&before.0[32..]);
            }
        }
        if kind == AttributeId::CM_REQ {
            let service = match how & 3 {
                0 => ServiceId::port(PortSpace::TCP, PORT),
                1 => ServiceId(u64::from(how)),
                _ => SERVICE,
            };
            content[4..8].fill(0);
            content[8..16].copy_from_slice(&service.0.to_be_bytes());
            content[16..24].copy_from_slice(&u64::from(how & 0x0c).to_be_bytes());
            content[32..35].copy_from_slice(&[0, 1, how]);
            content[50] = 0x37;
        }
        if kind == AttributeId::CM_SIDR_REQ {
            content[8..16].copy_from_slice(&SERVICE.0.to_be_bytes());
        }
        // Overwrites up to seven bytes of the message at arbitrary offsets.
        for _ in 0..input.below(8) {
            let at = input.below(232);
            content[at] = input.byte();
        }
        if how & 0x7c == 0x7c {
            mad.0[input.below(24)] = input.byte();
        }
        self.cm.handle(self.now, &route(), &mad);
    }

    /// Calls a function of the connection manager, for a connection in any state.
    fn call(&mut self, input: &mut Input<'_>) {
        let (kind, which) = (input.below(10), input.byte());
        let qpn = Qpn::truncated(0x100 + u32::from(which));
        let said = vec![which; usize::from(which)];
        let now = self.now;
        let id = self.connections.get(usize::from(which) % self.connections.len().max(1)).copied();
        let question = self.questions.get(usize::from(which) % self.questions.len().max(1));
        match (kind, id) {
            (0, _) => {
                let params = ConnectParams::new(route(), SERVICE, qpn, Psn::truncated(5));
                let params = ConnectParams { private_data: said, ..params };
                self.connections.extend(self.cm.connect(now, &params));
            }
            (1, _) => {
                let (service_id, p_key) = (SERVICE, PKey::DEFAULT);
                let private_data = said;
                let params =
                    SidrParams { route: route(), service_id, p_key, cma: None, private_data };
                let _ = self.cm.resolve(now, &params);
            }
            (2, _) => {
                let Some(&question) = question else { return };
                let (status, q_key) = (SidrStatus(which & 7), QKey(1));
                let answer = SidrReply { status, qpn, q_key, private_data: said };
                let _ = self.cm.sidr_reply(now, question, &answer);
            }
            (3..=4, Some(id)) => {
                let params = AcceptParams::new(qpn, Psn::truncated(5));
                let _ = self.cm.accept(now, id, &AcceptParams { private_data: said, ..params });
            }
            (5, Some(id)) => drop(self.cm.established(id, &said)),
            (6, Some(id)) => {
                let reason = RejectReason(which.into());
                let _ = self.cm.reject(now, id, reason, &said);
            }
            (7, Some(id)) => drop(self.cm.mra(now, id, which & 63, &said)),
            (8, Some(id)) => drop(self.cm.disconnect(now, id, &said)),
            (_, Some(id)) if which & 1 == 0 => drop(self.cm.message_received(id)),
            (_, Some(id)) => drop(self.cm.close(now, id)),
            _ => {}
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let config = CmConfig {
        ca_guid: Guid(1),
        retries: input.byte() & 3,
        max_connections: MOST,
        max_half_open: MOST / 2,
        max_sidr: MOST,
        ..CmConfig::default()
    };
    let cm = Cm::new(config, [1; 32]);
    let (sent, connections, questions) = (Vec::new(), Vec::new(), Vec::new());
    let mut world = World { now: Instant::from_nanos(1000), cm, sent, connections, questions };
    world.cm.listen(SERVICE).expect("the service has no listener yet");
    world.cm.listen_cm(PortSpace::TCP, PORT).expect("the port has no listener yet");
    while !input.0.is_empty() {
        match input.below(8) {
            0..=3 => world.message(&mut input),
            4..=6 => world.call(&mut input),
            _ => {
                world.now += Duration::from_nanos(1 << (input.byte() % 36));
                world.cm.handle_timeout(world.now);
            }
        }
        world.collect();
    }
    for id in world.connections.clone() {
        let _ = world.cm.close(world.now, id);
    }
    world.collect();
    for round in 0.. {
        assert!(round < 10_000, "timers expire indefinitely");
        let Some(at) = world.cm.poll_timeout() else { break };
        world.now = world.now.max(at);
        world.cm.handle_timeout(world.now);
        world.collect();
    }
    assert_eq!((world.cm.connections(), world.cm.sidr_requests()), (0, 0), "the tables are empty");
});
