//! Services on a wire of their own: no fabric, and subnet administration that always has an answer.

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

/// The only port of each service.
const PORT: PortId = PortId(1);

/// The group's LID.
const MLID: u16 = 0xc001;

/// A service at a LID.
struct Host {
    service: Service,
    state: PortState,
    qpn: Qpn,
    /// Whether it is in the group.
    is_member: bool,
}

impl Host {
    /// Returns whether a LID is one of its own.
    fn has_lid(&self, lid: u16) -> bool {
        let own = &self.state.link;
        lid >> own.lmc == own.lid >> own.lmc
    }
}

/// Hosts and their wire.
struct Net {
    now: Instant,
    hosts: Vec<Host>,
    /// What was sent by whom, and where to: to the group where that is nowhere.
    sent: Vec<(usize, Destination, Box<[u8; MAD_LENGTH]>)>,
    /// The services that are off.
    off: Vec<usize>,
    /// What subnet administration was asked for.
    asked: Vec<(Method, AttributeId)>,
    /// The routes that it was asked for.
    wanted: Vec<PathRecord>,
    /// The service level of its paths, and those to hosts where they differ.
    sl: u8,
    levels: BTreeMap<usize, u8>,
    /// The service level of a second path to a host.
    second_levels: BTreeMap<usize, u8>,
    /// Whether it answers, and what it does not answer otherwise.
    is_mute: bool,
    mute_to: Option<AttributeId>,
    /// What it says to whoever asks for a path, and for all.
    path_status: MadStatus,
    table_status: MadStatus,
    /// Whether its answers are kept back until [`Net::deliver_late`], and those for whom they are.
    is_slow: bool,
    late: Vec<(usize, Datagram)>,
    /// What it says to whoever wants to join a group, and the only service level for which it says so.
    refusal: MadStatus,
    refused_sl: Option<u8>,
    /// Hosts whose services tell one address at a time, as ibacm does.
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
    Address::name(&format!("node{host}")).expect("a name")
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
        &mut endpoint.expect("the default endpoint").resolver
    }

    /// Has the first host resolve an address without a client request.
    fn resolve_in_background(&mut self, address: &Address) {
        let key = EndpointKey::new(PORT, PKey::DEFAULT);
        let Service { shared, table, .. } = &mut self.hosts[0].service;
        let (mut cx, resolver) = table.get(self.now, shared, key).expect("the default endpoint");
        resolver.resolve(&mut cx, address, None);
    }

    fn new(count: usize, config: &ServiceConfig) -> Self {
        let mut this = Self {
            now: Instant::ZERO + Duration::from_secs(1),
            hosts: Vec::new(),
            sent: Vec::new(),
            off: Vec::new(),
            asked: Vec::new(),
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

    /// Tells a service what its port is now.
    fn update(&mut self, host: usize) {
        let Host { service, state, .. } = &mut self.hosts[host];
        service.set_port(self.now, PORT, state);
    }

    /// Carries what is to be carried at this moment.
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

    /// Has the answers arrive that subnet administration was slow with.
    fn deliver_late(&mut self) {
        for (host, answer) in std::mem::take(&mut self.late) {
            let arrived = Arrived::Mad(Box::new(Incoming::Received(answer)));
            self.hosts[host].service.handle(self.now, PORT, arrived);
        }
    }

    /// Takes a message to where it goes.
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

    /// Hands a service a message from wherever it says that it comes.
    fn deliver(&mut self, host: usize, gid: Gid, lid: u16, qpn: Qpn, bytes: &[u8]) {
        let source = self.hosts[host].state.link.gid();
        let route =
            Route { source, destination: gid, dlid: lid, is_global: true, ..Route::default() };
        let arrived = Arrived::Datagram { p_key: PKey::DEFAULT, route, qpn, bytes: bytes.into() };
        self.hosts[host].service.handle(self.now, PORT, arrived);
    }

    /// Answers for subnet administration.
    fn administration(&mut self, host: usize, asked: &Datagram) -> Option<Datagram> {
        let mut mad = asked.mad;
        self.asked.push((mad.method(), mad.attribute_id()));
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
                // There is room for three; the last one fills it.
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

    /// Returns what subnet administration says of the way from a port to a host.
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

    /// Lets time pass.
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

    /// Hands a service a message of a program; returns the answer that is there at once.
    fn say(&mut self, host: usize, bytes: &[u8]) -> Option<Vec<u8>> {
        let header = ClientHeader::parse(bytes.first_chunk().expect("a header"));
        let (_, order) = header.length().expect("a length");
        let mut out = Vec::new();
        self.numbers += 1;
        let client = ClientId(self.numbers);
        let message = (&header, &bytes[HEADER_LENGTH..], order);
        let is_there = self.hosts[host].service.request(self.now, client, message, &mut out);
        self.settle();
        is_there.then_some(out)
    }

    /// Returns the path that is known to an address, without any question.
    fn known(&mut self, host: usize, to: &Address) -> Option<PathRecord> {
        let mut bytes = Vec::new();
        Resolve::request([0; 8], vec![entry_of(to)]).put(ByteOrder::NATIVE, &mut bytes);
        let answer = self.say(host, &bytes)?;
        let header = ClientHeader::parse(answer.first_chunk().expect("a header"));
        assert_eq!(header.status, ClientStatus::SUCCESS);
        let answer = Resolve::parse(header, &answer[HEADER_LENGTH..], ByteOrder::NATIVE);
        Some(answer.entries[0].path_record())
    }

    /// Resolves, and waits for the answer.
    fn resolve(&mut self, host: usize, entries: Vec<Entry>) -> Result<PathRecord, ClientStatus> {
        let mut bytes = Vec::new();
        Resolve::request([0; 8], entries).put(ByteOrder::NATIVE, &mut bytes);
        let answer = self.say(host, &bytes).unwrap_or_else(|| {
            for _ in 0..1000 {
                if let Some((_, bytes)) = self.hosts[host].service.poll_reply() {
                    return bytes;
                }
                self.run_for(Duration::from_millis(100));
            }
            panic!("no answer");
        });
        let header = ClientHeader::parse(answer.first_chunk().expect("a header"));
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

/// Returns what a program says that wants to reach an address.
fn entry_of(to: &Address) -> Entry {
    let by_path = |path: PathRecord| Entry::path(EntryFlags(0), &path);
    match to {
        Address::Gid(gid) => by_path(PathRecord { dgid: *gid, ..PathRecord::zeroed() }),
        Address::Lid(lid) => by_path(PathRecord { dlid: *lid, ..PathRecord::zeroed() }),
        _ => to.to_entry(EntryFlags::DESTINATION).expect("a name"),
    }
}

/// Returns what a file says of the way from host 0 to host 1, with a service level that subnet administration has not.
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
fn who_has_asked_is_known_to_all_that_have_heard_it() {
    let mut net = Net::new(4, &by_group());
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.find(0, &name(1)).map(|path| path.dlid), Ok(lid(1)));
    let before = net.counters(2).multicasts + net.counters(3).multicasts;
    // Hosts 2 and 3 have heard of host 0, not of host 1, whose answer went to host 0 alone.
    assert_eq!(net.find(2, &name(0)).map(|path| path.dlid), Ok(lid(0)));
    // All of its addresses.
    let other = Address::V4([10, 0, 0, 1].into());
    assert_eq!(net.find(3, &other).map(|path| path.dlid), Ok(lid(0)));
    assert_eq!(net.counters(2).multicasts + net.counters(3).multicasts, before);
    assert_eq!(net.find(2, &name(1)).map(|path| path.dlid), Ok(lid(1)));
    assert_eq!(net.counters(2).multicasts, 1);
}

#[test]
fn an_announcement_makes_a_question_needless() {
    let config = ServiceConfig { announcements: 1, ..by_group() };
    let mut net = Net::new(3, &config);
    net.run_for(Duration::from_secs(5));
    let before = net.counters(0).multicasts;
    assert_eq!(net.find(0, &name(2)).map(|path| path.dlid), Ok(lid(2)));
    assert_eq!(net.counters(0).multicasts, before);
}

#[test]
fn the_same_request_of_several_programs_is_asked_once() {
    let mut net = Net::new(2, &quiet());
    net.run_for(Duration::from_secs(1));
    let mut bytes = Vec::new();
    let entry = name(1).to_entry(EntryFlags::DESTINATION).expect("a name");
    Resolve::request([0; 8], vec![entry]).put(ByteOrder::NATIVE, &mut bytes);
    net.off.push(1);
    for _ in 0..10 {
        assert_eq!(net.say(0, &bytes), None);
    }
    assert_eq!(net.counters(0).multicasts, 1);
    net.off.clear();
    net.run_for(Duration::from_secs(10));
    let replies = std::iter::from_fn(|| net.hosts[0].service.poll_reply()).count();
    assert_eq!(replies, 10);
    let paths = net.asked.iter().filter(|(_, id)| *id == AttributeId::PATH_RECORD).count();
    assert_eq!(paths, 1);
}

#[test]
fn routes_of_groups_are_refused_where_service_levels_differ() {
    let mut net = Net::new(2, &by_group());
    net.sl = 3;
    // The first comparison was made when they were equal.
    for host in 0..2 {
        net.hosts[host].state.registrations += 1;
        net.update(host);
    }
    net.settle();
    net.run_for(Duration::from_secs(2));
    let path = net.find(0, &name(1)).expect("it is there");
    assert_eq!(path.sl, 3);
    let events = net.events(0);
    let differs = |event: &Event| matches!(event, Event::RoutesDiffer { group: 0, given: 3, .. });
    assert!(events.iter().any(differs), "{events:?}");
}

#[test]
fn what_is_known_is_confirmed_and_what_is_silent_is_forgotten() {
    let config = ServiceConfig { check_interval: Some(Duration::from_secs(10)), ..by_group() };
    let mut net = Net::new(2, &config);
    net.run_for(Duration::from_secs(1));
    net.find(0, &name(1)).expect("it is there");
    for _ in 0..10 {
        net.run_for(Duration::from_secs(9));
        let before = net.counters(0).multicasts;
        net.find(0, &name(1)).expect("it is there");
        assert_eq!(net.counters(0).multicasts, before, "its owner alone is asked");
    }
    assert!(net.counters(0).checks >= 5);
    net.off.push(1);
    net.run_for(Duration::from_secs(30));
    assert_eq!(net.find(0, &name(1)), Err(ClientStatus::ETIMEDOUT));
}

#[test]
fn another_lid_is_learned_and_the_own_one_is_used() {
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
fn a_port_without_queue_pairs_serves_what_files_and_administration_say() {
    let mut config = quiet();
    config.hosts.push((Address::name("stored").expect("a name"), gid(1)));
    let mut net = Net::new(2, &config);
    let mut net_state = state(0);
    net_state.has_datagrams = false;
    net.hosts[0].service = Service::new(config, [7; 32]);
    net.hosts[0].state = net_state;
    net.update(0);
    net.settle();
    let stored = Address::name("stored").expect("a name");
    assert_eq!(net.find(0, &stored).map(|path| path.dlid), Ok(lid(1)));
    // Those that are not known end at once, however many there are.
    for _ in 0..100 {
        assert_eq!(net.find(0, &name(1)), Err(ClientStatus::ENODATA));
    }
    let by_gid = net.hosts[1].state.link.gid();
    assert_eq!(net.find(0, &Address::Gid(by_gid)).map(|path| path.dlid), Ok(lid(1)));
    assert!(net.events(0).iter().any(|event| matches!(event, Event::NoDatagrams { .. })));
}

#[test]
fn a_lid_is_its_present_owners() {
    let mut net = Net::new(3, &quiet());
    net.run_for(Duration::from_secs(1));
    let old = lid(1);
    assert_eq!(net.find(0, &Address::Lid(old)).map(|path| path.dlid), Ok(old));
    net.hosts[1].state.link.lid = 30;
    net.update(1);
    // By its name its new LID is learned, and the old one is nobody's.
    net.settle();
    net.run_for(Duration::from_secs(700));
    assert_eq!(net.find(0, &name(1)).map(|path| path.dlid), Ok(30));
    if let Ok(path) = net.find(0, &Address::Lid(old)) {
        panic!("{path:?}");
    }
}

#[test]
fn what_a_port_that_is_down_is_asked_ends_at_once() {
    let mut net = Net::new(2, &quiet());
    net.run_for(Duration::from_secs(1));
    net.off.push(1);
    let mut bytes = Vec::new();
    let entry = name(1).to_entry(EntryFlags::DESTINATION).expect("a name");
    Resolve::request([0; 8], vec![entry]).put(ByteOrder::NATIVE, &mut bytes);
    assert_eq!(net.say(0, &bytes), None);
    net.hosts[0].state.is_active = false;
    net.update(0);
    let (_, answer) = net.hosts[0].service.poll_reply().expect("it is over");
    assert_eq!(ClientStatus(answer[2]), ClientStatus::ENOTCONN);
    assert_eq!(net.hosts[0].service.pending(), 0);
    assert_eq!(net.find(0, &name(1)), Err(ClientStatus::ENOTCONN));
}
