//! Tests of [`Manager`]: two ports on Ethernet, whose connection managers exchange MADs.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ib_cm::{Cm, CmConfig, Requested};
use ib_link::Route;
use ib_types::{Gid, Guid, PKey, Psn, Qpn};
use ib_wire::mad::Method;
use ib_wire::mad::sa::{ComponentMask, MCMemberRecord, PathRecord, RateCode};

use super::abi::*;
use super::address::Address;
use super::port::PortView;
use super::*;
use crate::layout::{Bytes, Field};

mod connections;
mod services;

/// A port of a fabric that consists of two ports.
struct TestPort {
    cm: Cm,
    address: IpAddr,
    psn: u32,
}

fn gid_of(address: IpAddr) -> Gid {
    ib_device::gid_of(address)
}

impl CmPort for TestPort {
    fn view(&mut self) -> PortView {
        PortView {
            is_infiniband: false,
            node_guid: gid_of(self.address).0 as u64,
            gid: gid_of(self.address),
            p_keys: vec![PKey::DEFAULT.0],
            rate: RateCode(0),
        }
    }

    fn cm(&mut self) -> &mut Cm {
        &mut self.cm
    }

    fn random_psn(&mut self) -> Psn {
        self.psn += 1;
        Psn::truncated(self.psn)
    }

    fn own_address_for(&self, other: IpAddr) -> Option<IpAddr> {
        Some(self.address).filter(|own| own.is_ipv4() == other.is_ipv4())
    }

    fn gid_of(&mut self, address: IpAddr) -> Result<Option<Gid>, Errno> {
        let is_known = [HERE, THERE].iter().any(|known| known.parse() == Ok(address));
        Ok(is_known.then(|| gid_of(address)))
    }

    fn ethernet_path(&mut self, to: Gid) -> PathRecord {
        let mtu = ib_wire::mad::sm::MtuCode::MTU_1024;
        let (sgid, hop_limit, p_key) = (gid_of(self.address), 64, PKey::DEFAULT);
        PathRecord { sgid, dgid: to, hop_limit, p_key, mtu, ..PathRecord::zeroed() }
    }

    fn query_path(&mut self, _: Gid, _: Duration) -> Option<TransactionId> {
        None
    }

    fn query_membership(
        &mut self,
        _: Method,
        _: &MCMemberRecord,
        _: ComponentMask,
    ) -> Option<TransactionId> {
        None
    }

    fn check_request(&mut self, _: &Requested) -> bool {
        true
    }

    fn route_back(&self, path: &Route) -> Route {
        Route { source: gid_of(self.address), ..*path }
    }

    fn set_service(&mut self, _: Qpn, _: u64) {}
}

const HERE: &str = "10.0.0.1";
const THERE: &str = "10.0.0.2";

/// Number of the channel in both processes.
const CHANNEL: FileId = 1;

/// A process with its port.
struct Side {
    manager: Manager,
    port: TestPort,
    now: Instant,
}

impl Side {
    fn new(address: &str, guid: u64) -> Self {
        let config = CmConfig { ca_guid: Guid(guid), ..CmConfig::default() };
        let cm = Cm::new(config, [guid as u8; 32]);
        let address = address.parse().unwrap();
        let mut side = Self {
            manager: Manager::default(),
            port: TestPort { cm, address, psn: guid as u32 * 100 },
            now: Instant::from_nanos(1_000_000),
        };
        side.open(CHANNEL);
        side
    }

    fn open(&mut self, channel: FileId) {
        let (readiness, _) = Readiness::open(0).unwrap();
        self.manager.open(channel, readiness);
    }

    fn on(&mut self, channel: FileId, request: &Request) -> Result<Vec<u8>, Errno> {
        let context = Context { now: self.now, ..Context::default() };
        self.manager.execute(channel, request, context, &mut self.port)
    }

    fn run(&mut self, request: &Request) -> Result<Vec<u8>, Errno> {
        self.on(CHANNEL, request)
    }

    fn number(&mut self, request: &Request) -> u32 {
        u32::read(&self.run(request).unwrap())
    }

    fn create(&mut self, uid: u64, port_space: u16) -> u32 {
        let create = CreateId { uid, port_space, qp_type: 2, ..CreateId::default() };
        self.number(&Request::CreateId(create))
    }

    fn bind(&mut self, id: u32, address: &str) -> Result<Vec<u8>, Errno> {
        self.run(&Request::Bind(bind(id, address)))
    }

    /// Creates an ID that listens on an address.
    fn listen(&mut self, uid: u64, port_space: u16, address: &str, backlog: i32) -> u32 {
        let id = self.create(uid, port_space);
        self.bind(id, address).unwrap();
        self.run(&Request::Listen(Listen { id, backlog })).unwrap();
        id
    }

    /// Resolves a destination and the route to it.
    fn resolve(&mut self, id: u32, destination: &str) -> Result<(), Errno> {
        let bytes = socket(destination).to_bytes();
        self.run(&Request::ResolveAddr(ResolveAddr {
            id,
            timeout_ms: 2_000,
            destination_size: bytes.len() as u16,
            destination: Bytes::padded(&bytes),
            ..ResolveAddr::default()
        }))?;
        assert_eq!(self.event(), (EventType::AddrResolved as u32, 0));
        self.run(&Request::ResolveRoute(ResolveRoute { id, timeout_ms: 2_000 }))?;
        assert_eq!(self.event(), (EventType::RouteResolved as u32, 0));
        Ok(())
    }

    fn connect(&mut self, id: u32, data: &[u8]) -> Result<Vec<u8>, Errno> {
        let parameters = parameters(0x11, data);
        self.run(&Request::Connect(Connect { parameters, id, reserved: 0 }))
    }

    fn accept(&mut self, id: u32, uid: u64, data: &[u8]) -> Result<Vec<u8>, Errno> {
        let parameters = parameters(0x22, data);
        self.run(&Request::Accept(Accept { uid, parameters, id, reserved: 0 }))
    }

    /// Reads the next event. Returns its head and the bytes of its parameters.
    fn next(&mut self) -> Option<(EventHead, Vec<u8>)> {
        match self.run(&Request::GetEvent) {
            Ok(bytes) => {
                assert_eq!(bytes.len(), EVENT);
                Some((EventHead::read(&bytes), bytes[EventHead::SIZE..].to_vec()))
            }
            Err(error) => {
                assert_eq!(error, Errno::AGAIN);
                None
            }
        }
    }

    /// Reads the next event. Returns its type and status.
    fn event(&mut self) -> (u32, i32) {
        let (head, _) = self.next().expect("an event waits");
        (head.event, head.status)
    }

    fn destroy(&mut self, id: u32) -> Result<u32, Errno> {
        self.run(&Request::DestroyId(id)).map(|bytes| u32::read(&bytes))
    }

    /// Passes the events of the connection manager to the `Manager` under test.
    fn collect(&mut self) {
        while let Some(event) = self.port.cm.poll_event() {
            self.manager.handle(event, &mut self.port, self.now);
        }
    }

    /// Runs all timers of the connection manager that expire within a minute.
    fn wait(&mut self) {
        let end = self.now + Duration::from_secs(60);
        while let Some(at) = self.port.cm.poll_timeout().filter(|at| *at <= end) {
            self.now = at;
            self.port.cm.handle_timeout(at);
            self.collect();
        }
    }
}

/// Delivers MADs between both processes until there are no more.
fn carry(here: &mut Side, there: &mut Side) {
    while deliver(here, there) | deliver(there, here) {}
}

/// Delivers the MADs of one process to the other. Returns true if there were any.
fn deliver(from: &mut Side, to: &mut Side) -> bool {
    from.collect();
    let mut has_moved = false;
    while let Some((route, mad)) = from.port.cm.poll_transmit() {
        let (source, destination) = (route.destination, gid_of(from.port.address));
        to.port.cm.handle(to.now, &Route { source, destination, ..route }, &mad);
        to.collect();
        has_moved = true;
    }
    has_moved
}

fn sides() -> (Side, Side) {
    (Side::new(HERE, 1), Side::new(THERE, 2))
}

fn socket(text: &str) -> Address {
    Address::Ip(text.parse::<SocketAddr>().unwrap())
}

fn bind(id: u32, address: &str) -> Bind {
    let bytes = socket(address).to_bytes();
    let address_size = bytes.len() as u16;
    Bind { id, address_size, reserved: 0, address: Bytes::padded(&bytes) }
}

fn parameters(qp_num: u32, data: &[u8]) -> ConnectionParam {
    ConnectionParam {
        qp_num,
        private_data: Bytes::padded(data),
        private_data_len: data.len() as u8,
        responder_resources: 3,
        initiator_depth: 2,
        retry_count: 7,
        rnr_retry_count: 7,
        valid: 1,
        ..ConnectionParam::default()
    }
}
