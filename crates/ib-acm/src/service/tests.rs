//! Tests of services that exchange messages directly, without a fabric. The SA is simulated.

use std::collections::BTreeMap;
use std::time::Duration;

use ib_link::{Datagram, Incoming, Route};
use ib_types::{Gid, Guid, Instant, PKey, Qpn};
use ib_wire::acm::{
    ByteOrder, ClientHeader, ClientOpcode, ClientStatus, Entry, EntryFlags, EntryType,
    HEADER_LENGTH, PerfCounters, Resolve,
};
use ib_wire::mad::acm::AcmMessage;
use ib_wire::mad::sa::{LifeTimeCode, MCMemberRecord, PathRecord, RateCode, SaHeader};
use ib_wire::mad::sm::MtuCode;
use ib_wire::mad::{AttributeId, MAD_LENGTH, Mad, MadStatus, Method, MgmtClass, TransactionId};

use port::PREFIX;

use super::resolver::Resolver;
use super::*;
use crate::config::options::RouteProtocol;
use crate::port::{Action, Arrived, Destination, PortState};

mod changes;
mod clients;
mod expiry;
mod hostile;
mod port;
mod queues;
mod sa_requests;
mod service_levels;
mod versions;

/// The only HCA port of each service.
const PORT: PortId = PortId(1);

/// MLID of all multicast groups.
const MLID: u16 = 0xc001;

/// A host: its service, and the state of its port.
struct Host {
    service: Service,
    state: PortState,
    qpn: Qpn,
    /// True if the host is a member of the base group.
    is_member: bool,
}

impl Host {
    /// Returns true if the host has the LID.
    fn has_lid(&self, lid: u16) -> bool {
        let own = &self.state.link;
        lid >> own.lmc == own.lid >> own.lmc
    }
}

/// Hosts, the network between them, and the SA.
struct Net {
    now: Instant,
    hosts: Vec<Host>,
    /// Sent messages: host, destination and bytes.
    sent: Vec<(usize, Destination, Box<[u8; MAD_LENGTH]>)>,
    /// Hosts whose services neither send nor receive.
    off: Vec<usize>,
    /// Requests that the SA has received.
    sa_requests: Vec<(Method, AttributeId)>,
    /// Path records of the SA queries that services have sent.
    wanted: Vec<PathRecord>,
    /// Service level of the SA's paths to hosts that are not in `levels`.
    sl: u8,
    /// By destination host: service level of the SA's paths.
    levels: BTreeMap<usize, u8>,
    /// By destination host: service level of a second path that the SA adds to responses to queries of all paths.
    second_levels: BTreeMap<usize, u8>,
    /// True if the SA responds to no request.
    is_mute: bool,
    /// Attribute to whose requests the SA does not respond.
    mute_to: Option<AttributeId>,
    /// Status of the SA's responses to queries for a single path.
    path_status: MadStatus,
    /// Status of the SA's responses to queries for all paths of a port.
    table_status: MadStatus,
    /// True if the SA's responses are delayed until [`Net::deliver_late`] is called.
    is_slow: bool,
    /// Delayed responses of the SA, each with the host that receives it.
    late: Vec<(usize, Datagram)>,
    /// Status of the SA's responses to joins.
    refusal: MadStatus,
    /// If set, only joins of groups with this service level get the status `refusal`. Other joins succeed.
    refused_sl: Option<u8>,
    /// Hosts whose messages contain only one address, like messages of ibacm.
    terse: Vec<usize>,
    numbers: u64,
}

fn gid(host: usize) -> Gid {
    Gid::new(PREFIX, Guid(0x1000 + host as u64))
}

fn lid(host: usize) -> u16 {
    host as u16 + 1
}

fn name(host: usize) -> Address {
    Address::name(&format!("node{host}")).expect("the name is valid")
}

fn state(host: usize) -> PortState {
    let names = vec![name(host), Address::V4([10, 0, 0, host as u8 + 1].into())];
    port::port(&format!("dev{host}"), Guid(0x1000 + host as u64), lid(host), names)
}

impl Net {
    /// Returns the resolver of the first host's endpoint.
    fn resolver(&mut self) -> &mut Resolver {
        let key = EndpointKey::new(PORT, PKey::DEFAULT);
        let endpoint = self.hosts[0].service.table.endpoints.get_mut(&key);
        &mut endpoint.expect("the endpoint exists").resolver
    }

    /// Starts a background resolution of an address at host 0.
    fn resolve_in_background(&mut self, address: &Address) {
        let key = EndpointKey::new(PORT, PKey::DEFAULT);
        let Service { shared, table, .. } = &mut self.hosts[0].service;
        let (mut cx, resolver) = table.get(self.now, shared, key).expect("the endpoint exists");
        resolver.resolve(&mut cx, address, None);
    }

    fn new(count: usize, config: &ServiceConfig) -> Self {
        let mut this = Self {
            now: Instant::ZERO + Duration::from_secs(1),
            hosts: Vec::new(),
            sent: Vec::new(),
            off: Vec::new(),
            sa_requests: Vec::new(),
            wanted: Vec::new(),
            sl: 0,
            levels: BTreeMap::new(),
            second_levels: BTreeMap::new(),
            is_mute: false,
            mute_to: None,
            path_status: MadStatus::OK,
            table_status: MadStatus::OK,
            is_slow: false,
            late: Vec::new(),
            refusal: MadStatus::OK,
            refused_sl: None,
            terse: Vec::new(),
            numbers: 0,
        };
        for host in 0..count {
            let service = Service::new(config.clone(), [host as u8 + 1; 32]);
            let qpn = Qpn::truncated(0x100 + host as u32);
            this.hosts.push(Host { service, state: state(host), qpn, is_member: false });
            this.update(host);
        }
        this.settle();
        this
    }

    /// Reports the current state of a host's port to its service.
    fn update(&mut self, host: usize) {
        let Host { service, state, .. } = &mut self.hosts[host];
        service.set_port(self.now, PORT, state);
    }

    /// Executes the actions of all services until no service has an action.
    fn settle(&mut self) {
        loop {
            let mut moved = false;
            for host in 0..self.hosts.len() {
                while let Some(action) = self.hosts[host].service.poll_action(self.now, PORT) {
                    moved = true;
                    self.act(host, action);
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn act(&mut self, host: usize, action: Action) {
        match action {
            Action::Open { .. } | Action::Close { .. } => {}
            Action::Attach { .. } => self.hosts[host].is_member = true,
            Action::Detach { .. } => self.hosts[host].is_member = false,
            Action::Send { to, bytes, .. } => {
                self.sent.push((host, to, bytes.clone()));
                if !self.off.contains(&host) {
                    self.carry(host, &to, &bytes);
                }
            }
            Action::Mad(datagram) => {
                if let Some(answer) = self.administration(host, &datagram) {
                    if self.is_slow {
                        return self.late.push((host, answer));
                    }
                    let arrived = Arrived::Mad(Box::new(Incoming::Received(answer)));
                    self.hosts[host].service.handle(self.now, PORT, arrived);
                }
            }
        }
    }

    /// Delivers the delayed responses of the SA.
    fn deliver_late(&mut self) {
        for (host, answer) in std::mem::take(&mut self.late) {
            let arrived = Arrived::Mad(Box::new(Incoming::Received(answer)));
            self.hosts[host].service.handle(self.now, PORT, arrived);
        }
    }

    /// Delivers a message to its destinations.
    fn carry(&mut self, from: usize, to: &Destination, bytes: &[u8; MAD_LENGTH]) {
        let (link, qpn) = (self.hosts[from].state.link, self.hosts[from].qpn);
        let mut bytes = *bytes;
        if self.terse.contains(&from) {
            bytes[23] = 0;
        }
        for host in 0..self.hosts.len() {
            let it = &self.hosts[host];
            let is_for = if to.qpn == Qpn::MULTICAST {
                it.is_member && host != from
            } else {
                to.qpn == it.qpn && it.has_lid(to.route.dlid)
            };
            if is_for && !self.off.contains(&host) {
                self.deliver(host, link.gid(), link.lid, qpn, &bytes);
            }
        }
    }

    /// Delivers a message to a service. The source of the message can be invalid.
    fn deliver(&mut self, host: usize, gid: Gid, lid: u16, qpn: Qpn, bytes: &[u8]) {
        let source = self.hosts[host].state.link.gid();
        let route =
            Route { source, destination: gid, dlid: lid, is_global: true, ..Route::default() };
        let arrived = Arrived::Datagram { p_key: PKey::DEFAULT, route, qpn, bytes: bytes.into() };
        self.hosts[host].service.handle(self.now, PORT, arrived);
    }

    /// Returns the SA's response to a request.
    fn administration(&mut self, host: usize, asked: &Datagram) -> Option<Datagram> {
        let mut mad = asked.mad;
        self.sa_requests.push((mad.method(), mad.attribute_id()));
        if (mad.method(), mad.attribute_id()) == (Method::GET, AttributeId::PATH_RECORD) {
            self.wanted.extend(mad.attribute::<PathRecord>());
        }
        if self.is_mute || self.mute_to == Some(mad.attribute_id()) {
            return None;
        }
        let own = self.hosts[host].state.link;
        match mad.attribute_id() {
            AttributeId::MC_MEMBER_RECORD => {
                let mut record: MCMemberRecord = mad.attribute()?;
                if self.refused_sl.is_none_or(|sl| sl == record.sl) && self.refusal != MadStatus::OK
                {
                    mad.answer(self.refusal);
                    return Some(asked.reply(mad));
                }
                (record.mlid, record.life_time, record.hop_limit) = (MLID, LifeTimeCode(18), 0);
                mad.set_attribute(&record);
            }
            _ => {
                let wanted: PathRecord = mad.attribute()?;
                let is_table = mad.method() == Method::GET_TABLE;
                let status = if is_table { self.table_status } else { self.path_status };
                let is_it = |it: &Host| match is_table {
                    true => it.state.link != own,
                    false => it.state.link.gid() == wanted.dgid || it.has_lid(wanted.dlid),
                };
                let found = (0..self.hosts.len()).filter(|&to| is_it(&self.hosts[to]));
                let second = |to: usize| {
                    let sl = *self.second_levels.get(&to).filter(|_| is_table)?;
                    Some(PathRecord { sl, ..self.path(own, to, &wanted) })
                };
                let both = |to| [Some(self.path(own, to, &wanted)), second(to)];
                let paths: Vec<PathRecord> = found.flat_map(both).flatten().collect();
                let (Some(last), MadStatus::OK) = (paths.last(), status) else {
                    let status = if status.is_ok() { MadStatus::SA_NO_RECORDS } else { status };
                    mad.answer(status);
                    return Some(asked.reply(mad));
                };
                // The MAD has room for three records. The last path is repeated to fill the room.
                mad.set_attribute(&paths[0]);
                mad.set_sa(&SaHeader { attribute_offset: 8, ..mad.sa() });
                for (at, path) in [120, 184].into_iter().zip(paths[1..].iter().chain([last; 2])) {
                    mad.0[at..at + 64].copy_from_slice(&path.to_bytes());
                }
            }
        }
        mad.answer(MadStatus::OK);
        Some(asked.reply(mad))
    }

    /// Returns the path record of the SA for the path from the port `own` to the host `to`.
    fn path(&self, own: ib_link::LinkPort, to: usize, wanted: &PathRecord) -> PathRecord {
        let link = self.hosts[to].state.link;
        PathRecord {
            dgid: link.gid(),
            sgid: own.gid(),
            dlid: if wanted.dlid == 0 { link.lid } else { wanted.dlid },
            slid: own.lid,
            reversible: true,
            p_key: PKey::DEFAULT,
            sl: self.levels.get(&to).copied().unwrap_or(self.sl),
            mtu: MtuCode::MTU_2048,
            rate: RateCode::GBPS_100,
            ..PathRecord::zeroed()
        }
    }

    /// Advances the time by this duration, and runs the timers that expire.
    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let due = self.hosts.iter().filter_map(|host| host.service.poll_timeout()).min();
            let Some(due) = due.filter(|&due| due <= end) else { break };
            self.now = self.now.max(due);
            for host in &mut self.hosts {
                host.service.handle_timeout(self.now);
            }
            self.settle();
        }
        self.now = end;
    }

    /// Passes a client message to a service. Returns the response if it is immediate.
    fn request(&mut self, host: usize, bytes: &[u8]) -> Option<Vec<u8>> {
        let header = ClientHeader::parse(bytes.first_chunk().expect("the header is complete"));
        let (_, order) = header.length().expect("the length is valid");
        let mut out = Vec::new();
        self.numbers += 1;
        let client = ClientId(self.numbers);
        let message = (&header, &bytes[HEADER_LENGTH..], order);
        let is_there = self.hosts[host].service.request(self.now, client, message, &mut out);
        self.settle();
        is_there.then_some(out)
    }

    /// Requests the path to an address. Returns the path if it is cached.
    fn cached_path(&mut self, host: usize, to: &Address) -> Option<PathRecord> {
        let mut bytes = Vec::new();
        Resolve::request([0; 8], vec![entry_of(to)]).put(ByteOrder::NATIVE, &mut bytes);
        let answer = self.request(host, &bytes)?;
        let header = ClientHeader::parse(answer.first_chunk().expect("the header is complete"));
        assert_eq!(header.status, ClientStatus::SUCCESS);
        let answer = Resolve::parse(header, &answer[HEADER_LENGTH..], ByteOrder::NATIVE);
        Some(answer.entries[0].path_record())
    }

    /// Sends a RESOLVE request, and waits for the response.
    fn resolve(&mut self, host: usize, entries: Vec<Entry>) -> Result<PathRecord, ClientStatus> {
        let mut bytes = Vec::new();
        Resolve::request([0; 8], entries).put(ByteOrder::NATIVE, &mut bytes);
        let answer = self.request(host, &bytes).unwrap_or_else(|| {
            for _ in 0..1000 {
                if let Some((_, bytes)) = self.hosts[host].service.poll_reply() {
                    return bytes;
                }
                self.run_for(Duration::from_millis(100));
            }
            panic!("the service has sent no reply");
        });
        let header = ClientHeader::parse(answer.first_chunk().expect("the header is complete"));
        match header.status {
            ClientStatus::SUCCESS => {
                let answer = Resolve::parse(header, &answer[HEADER_LENGTH..], ByteOrder::NATIVE);
                Ok(answer.entries[0].path_record())
            }
            status => Err(status),
        }
    }

    fn find(&mut self, host: usize, to: &Address) -> Result<PathRecord, ClientStatus> {
        self.resolve(host, vec![entry_of(to)])
    }

    fn counters(&self, host: usize) -> ServiceCounters {
        *self.hosts[host].service.counters()
    }

    fn events(&mut self, host: usize) -> Vec<Event> {
        std::iter::from_fn(|| self.hosts[host].service.poll_event()).collect()
    }
}

/// Returns the entry for a destination in a client message.
fn entry_of(to: &Address) -> Entry {
    let by_path = |path: PathRecord| Entry::path(EntryFlags(0), &path);
    match to {
        Address::Gid(gid) => by_path(PathRecord { dgid: *gid, ..PathRecord::zeroed() }),
        Address::Lid(lid) => by_path(PathRecord { dlid: *lid, ..PathRecord::zeroed() }),
        _ => to.to_entry(EntryFlags::DESTINATION).expect("`to` is a name or an IP address"),
    }
}

/// Returns a preloaded path from host 0 to host 1. Its service level differs from all that the SA reports.
fn of_file() -> PathRecord {
    PathRecord {
        sgid: gid(0),
        dgid: gid(1),
        slid: lid(0),
        dlid: lid(1),
        sl: 7,
        ..PathRecord::zeroed()
    }
}

fn quiet() -> ServiceConfig {
    ServiceConfig { announcements: 0, ..ServiceConfig::default() }
}

fn by_group() -> ServiceConfig {
    ServiceConfig { route_protocol: RouteProtocol::Acm, ..quiet() }
}

#[test]
fn multicast_request_announces_its_sender() {
    let mut net = Net::new(4, &by_group());
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.find(0, &name(1)).map(|path| path.dlid), Ok(lid(1)));
    let before = net.counters(2).multicasts + net.counters(3).multicasts;
    // Hosts 2 and 3 have received the request of host 0, but not the response of host 1.
    assert_eq!(net.find(2, &name(0)).map(|path| path.dlid), Ok(lid(0)));
    // The request contains all addresses of host 0.
    let other = Address::V4([10, 0, 0, 1].into());
    assert_eq!(net.find(3, &other).map(|path| path.dlid), Ok(lid(0)));
    assert_eq!(net.counters(2).multicasts + net.counters(3).multicasts, before);
    assert_eq!(net.find(2, &name(1)).map(|path| path.dlid), Ok(lid(1)));
    assert_eq!(net.counters(2).multicasts, 1);
}

#[test]
fn announced_address_needs_no_multicast_request() {
    let config = ServiceConfig { announcements: 1, ..by_group() };
    let mut net = Net::new(3, &config);
    net.run_for(Duration::from_secs(5));
    let before = net.counters(0).multicasts;
    assert_eq!(net.find(0, &name(2)).map(|path| path.dlid), Ok(lid(2)));
    assert_eq!(net.counters(0).multicasts, before);
}

#[test]
fn equal_requests_share_one_resolution() {
    let mut net = Net::new(2, &quiet());
    net.run_for(Duration::from_secs(1));
    let mut bytes = Vec::new();
    let entry = name(1).to_entry(EntryFlags::DESTINATION).expect("the address is a name");
    Resolve::request([0; 8], vec![entry]).put(ByteOrder::NATIVE, &mut bytes);
    net.off.push(1);
    for _ in 0..10 {
        assert_eq!(net.request(0, &bytes), None);
    }
    assert_eq!(net.counters(0).multicasts, 1);
    net.off.clear();
    net.run_for(Duration::from_secs(10));
    let replies = std::iter::from_fn(|| net.hosts[0].service.poll_reply()).count();
    assert_eq!(replies, 10);
    let paths = net.sa_requests.iter().filter(|(_, id)| *id == AttributeId::PATH_RECORD).count();
    assert_eq!(paths, 1);
}

#[test]
fn groups_with_another_service_level_are_not_used() {
    let mut net = Net::new(2, &by_group());
    net.sl = 3;
    // At the first comparison, the service levels were equal. Reregistration makes the services compare them again.
    for host in 0..2 {
        net.hosts[host].state.registrations += 1;
        net.update(host);
    }
    net.settle();
    net.run_for(Duration::from_secs(2));
    let path = net.find(0, &name(1)).expect("the address is resolved");
    assert_eq!(path.sl, 3);
    let events = net.events(0);
    let differs = |event: &Event| matches!(event, Event::RoutesDiffer { group: 0, given: 3, .. });
    assert!(events.iter().any(differs), "{events:?}");
}

#[test]
fn used_peers_are_verified_and_silent_ones_removed() {
    let config = ServiceConfig { check_interval: Some(Duration::from_secs(10)), ..by_group() };
    let mut net = Net::new(2, &config);
    net.run_for(Duration::from_secs(1));
    net.find(0, &name(1)).expect("the address is resolved");
    for _ in 0..10 {
        net.run_for(Duration::from_secs(9));
        let before = net.counters(0).multicasts;
        net.find(0, &name(1)).expect("the address is resolved");
        assert_eq!(net.counters(0).multicasts, before, "only the owner is queried");
    }
    assert!(net.counters(0).checks >= 5);
    net.off.push(1);
    net.run_for(Duration::from_secs(30));
    assert_eq!(net.find(0, &name(1)), Err(ClientStatus::ETIMEDOUT));
}

#[test]
fn changed_lids_of_both_ports_are_used() {
    let mut net = Net::new(2, &ServiceConfig { announcements: 1, ..by_group() });
    net.run_for(Duration::from_secs(5));
    assert_eq!(net.find(0, &name(1)).map(|path| (path.slid, path.dlid)), Ok((1, 2)));
    net.hosts[1].state.link.lid = 20;
    net.update(1);
    net.hosts[0].state.link.lid = 10;
    net.update(0);
    net.settle();
    net.run_for(Duration::from_secs(10));
    assert_eq!(net.find(0, &name(1)).map(|path| (path.slid, path.dlid)), Ok((10, 20)));
}

#[test]
fn port_without_ud_qps_uses_preloaded_data_and_the_sa() {
    let mut config = quiet();
    config.hosts.push((Address::name("stored").expect("the name is valid"), gid(1)));
    let mut net = Net::new(2, &config);
    let mut net_state = state(0);
    net_state.has_datagrams = false;
    net.hosts[0].service = Service::new(config, [7; 32]);
    net.hosts[0].state = net_state;
    net.update(0);
    net.settle();
    let stored = Address::name("stored").expect("the name is valid");
    assert_eq!(net.find(0, &stored).map(|path| path.dlid), Ok(lid(1)));
    // Requests for addresses that are not preloaded fail immediately.
    for _ in 0..100 {
        assert_eq!(net.find(0, &name(1)), Err(ClientStatus::ENODATA));
    }
    let by_gid = net.hosts[1].state.link.gid();
    assert_eq!(net.find(0, &Address::Gid(by_gid)).map(|path| path.dlid), Ok(lid(1)));
    assert!(net.events(0).iter().any(|event| matches!(event, Event::NoDatagrams { .. })));
}

#[test]
fn lid_resolves_to_its_current_owner() {
    let mut net = Net::new(3, &quiet());
    net.run_for(Duration::from_secs(1));
    let old = lid(1);
    assert_eq!(net.find(0, &Address::Lid(old)).map(|path| path.dlid), Ok(old));
    net.hosts[1].state.link.lid = 30;
    net.update(1);
    // The name resolves to the new LID. The old LID has no owner.
    net.settle();
    net.run_for(Duration::from_secs(700));
    assert_eq!(net.find(0, &name(1)).map(|path| path.dlid), Ok(30));
    if let Ok(path) = net.find(0, &Address::Lid(old)) {
        panic!("{path:?}");
    }
}

#[test]
fn requests_fail_immediately_when_the_port_goes_down() {
    let mut net = Net::new(2, &quiet());
    net.run_for(Duration::from_secs(1));
    net.off.push(1);
    let mut bytes = Vec::new();
    let entry = name(1).to_entry(EntryFlags::DESTINATION).expect("the address is a name");
    Resolve::request([0; 8], vec![entry]).put(ByteOrder::NATIVE, &mut bytes);
    assert_eq!(net.request(0, &bytes), None);
    net.hosts[0].state.is_active = false;
    net.update(0);
    let (_, answer) = net.hosts[0].service.poll_reply().expect("the request has completed");
    assert_eq!(ClientStatus(answer[2]), ClientStatus::ENOTCONN);
    assert_eq!(net.hosts[0].service.pending(), 0);
    assert_eq!(net.find(0, &name(1)), Err(ClientStatus::ENOTCONN));
}
