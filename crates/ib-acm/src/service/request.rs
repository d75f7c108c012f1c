//! What programs ask, and the answers.

use ib_types::{Gid, Guid, Instant, PKey};
use ib_wire::acm::{
    ByteOrder, ClientHeader, ClientOpcode, ClientStatus, EndpointInfo, Entry, EntryFlags,
    EntryType, HEADER, PerfCounters, Resolve,
};
use ib_wire::mad::sa::PathRecord;

use super::Service;
use super::endpoint::{Endpoint, EndpointKey, added};
use crate::Address;

/// The number that the owner of a service gives a program; it gives none twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// A request that waits for its answer.
#[derive(Clone, Debug)]
pub(super) struct Waiter {
    pub(super) client: ClientId,
    header: ClientHeader,
    order: ByteOrder,
    /// The source that was chosen for it, which the answer tells.
    chosen: Option<Entry>,
    /// Where several endpoints are at it, what they are known by.
    pub(super) race: Option<u64>,
}

/// An endpoint as it is told to people and programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointView {
    /// The adapter.
    pub device: Box<str>,
    /// The GUID of the adapter.
    pub node_guid: Guid,
    /// The port.
    pub port: u8,
    /// The partition.
    pub p_key: PKey,
    /// Its names and addresses.
    pub addresses: Vec<Address>,
    /// Whether its port is in service and it has joined the group that everybody has.
    pub is_up: bool,
    /// Its counters.
    pub counters: PerfCounters,
    /// The groups that it has joined, the least wanted first.
    pub groups: Vec<Gid>,
    /// How many addresses of others it knows.
    pub known: usize,
    /// How many ports they belong to.
    pub peers: usize,
    /// Whether it has a queue pair of datagrams; without one, [`NO_DATAGRAMS`](super::NO_DATAGRAMS) holds.
    pub has_datagrams: bool,
}

/// What is known of an address of another port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownView {
    /// The address.
    pub address: Address,
    /// The port's GID.
    pub gid: Gid,
    /// Its LID; 0 where only subnet administration knows it.
    pub lid: u16,
    /// The queue pair of the service there; 0 where it is not known.
    pub qpn: u32,
    /// How long ago its owner was heard of.
    pub age: std::time::Duration,
    /// Whether a file says it.
    pub is_preloaded: bool,
    /// The route that subnet administration has told, or a file.
    pub route: Option<RouteView>,
}

/// What is known of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteView {
    /// The LID that it leads to.
    pub dlid: u16,
    /// Its service level.
    pub sl: u8,
}

/// The name of who resolves, as ibacm has it.
const PROVIDER: &str = "ibacmp";

impl Service {
    /// Takes a message of a program: a header, what follows it, and the byte order that the length was in. An answer
    /// that is there at once is written to the end of `out`; any other comes from [`Service::poll_reply`].
    /// Returns whether it was there.
    pub fn request(
        &mut self,
        now: Instant,
        client: ClientId,
        message: (&ClientHeader, &[u8], ByteOrder),
        out: &mut Vec<u8>,
    ) -> bool {
        let (&header, data, order) = message;
        let waiter = Waiter { client, header, order, chosen: None, race: None };
        let opcode = match header.version {
            ib_wire::acm::VERSION => header.opcode.request(),
            _ => ClientOpcode::default(),
        };
        let done = match opcode {
            ClientOpcode::RESOLVE => return self.resolve(now, &waiter, data, out),
            ClientOpcode::PERF_QUERY => self.perf(&header, data, order, out),
            ClientOpcode::EP_QUERY => self.endpoint_query(&header, out),
            _ => Err(ClientStatus::EINVAL),
        };
        let Err(status) = done else { return true };
        put_failure(&waiter, status, out);
        true
    }

    /// Begins to resolve; returns whether that is done.
    fn resolve(&mut self, now: Instant, waiter: &Waiter, data: &[u8], out: &mut Vec<u8>) -> bool {
        let asked = Resolve::parse(waiter.header, data, waiter.order);
        let is_whole = data.len() == asked.entries.len() * Entry::LENGTH;
        let parsed =
            if is_whole { Question::of(&asked.entries) } else { Err(ClientStatus::EINVAL) };
        let found = parsed.and_then(|question| {
            let sources = self.sources(&question)?;
            Ok((question, sources))
        });
        let (question, sources) = match found {
            Ok(found) => found,
            Err(status) => {
                self.lost.resolves += 1;
                self.lost.errors += 1;
                put_failure(waiter, status, out);
                return true;
            }
        };
        self.endpoint(sources[0].0).counters.resolves += 1;
        let race = (sources.len() > 1).then(|| self.number());
        self.races.extend(race.map(|race| (race, sources.len())));
        self.waiting += 1;
        for (key, chosen) in sources {
            let chosen = chosen.and_then(|address| address.to_entry(EntryFlags::SOURCE));
            let waiter = Waiter { chosen, race, ..waiter.clone() };
            match self.start(now, key, question.clone(), &waiter) {
                Started::Waits => {}
                Started::Path(path) => {
                    if self.wins(&waiter) {
                        self.waiting -= 1;
                        put_path(&waiter, &path, out);
                        return true;
                    }
                }
                Started::Failed(status) => {
                    if self.loses(&waiter) {
                        self.waiting -= 1;
                        let counters = &mut self.endpoint(key).counters;
                        match status {
                            ClientStatus::ENODATA => counters.no_data += 1,
                            _ => counters.errors += 1,
                        }
                        put_failure(&waiter, status, out);
                        return true;
                    }
                }
            }
        }
        false
    }

    /// Answers a request that has waited.
    pub(super) fn succeed(&mut self, waiter: &Waiter, path: &PathRecord) {
        if !self.wins(waiter) {
            return;
        }
        self.waiting -= 1;
        let mut out = Vec::new();
        put_path(waiter, path, &mut out);
        self.replies.push_back((waiter.client, out));
    }

    /// Fails a request that has waited.
    pub(super) fn fail(
        &mut self,
        _: Instant,
        key: EndpointKey,
        waiter: &Waiter,
        status: ClientStatus,
    ) {
        if !self.loses(waiter) {
            return;
        }
        self.waiting -= 1;
        let mut out = Vec::new();
        put_failure(waiter, status, &mut out);
        let counters = self.endpoints.get_mut(&key).map(|endpoint| &mut endpoint.counters);
        counters.unwrap_or(&mut self.lost).errors += 1;
        self.replies.push_back((waiter.client, out));
    }

    /// Returns the counters of all endpoints together.
    #[must_use]
    pub fn perf_counters(&self) -> PerfCounters {
        self.endpoints.values().fold(self.lost, |sum, it| added(&sum, &it.counters))
    }

    /// Returns what is to be told of the endpoints, in the order of their numbers, which begin with 1.
    #[must_use]
    pub fn endpoints(&self) -> Vec<EndpointView> {
        let view = |(key, endpoint): (&EndpointKey, &Endpoint)| {
            let state = &self.ports.get(&key.port)?.state;
            Some(EndpointView {
                device: state.device.clone(),
                node_guid: state.link.node_guid,
                port: state.link.number,
                p_key: endpoint.p_key,
                addresses: endpoint.addresses.clone(),
                is_up: self.is_in_service(*key),
                counters: endpoint.counters,
                groups: endpoint.joined().collect(),
                known: endpoint.cache.len(),
                peers: endpoint.cache.peers(),
                has_datagrams: state.has_datagrams,
            })
        };
        self.endpoints.iter().filter_map(view).collect()
    }

    /// Returns what is known of others: of one address, or all, in the order of the addresses.
    #[must_use]
    pub fn known(&self, now: Instant, only: Option<&Address>) -> Vec<KnownView> {
        let mut found = Vec::new();
        for endpoint in self.endpoints.values() {
            endpoint.cache.each(|address, peer, seen, is_preloaded| {
                if only.is_none_or(|only| only == address) {
                    found.push(KnownView {
                        address: address.clone(),
                        gid: peer.gid,
                        lid: peer.lid,
                        qpn: peer.qpn,
                        age: seen.age(now),
                        is_preloaded,
                        route: peer.route.map(|it| RouteView { dlid: it.dlid(), sl: it.sl() }),
                    });
                }
            });
        }
        found.sort_by(|one, other| one.address.cmp(&other.address));
        found
    }

    /// Returns the addresses of others that are asked for just now, in their order.
    #[must_use]
    pub fn resolving(&self) -> Vec<Address> {
        let asked = self.endpoints.values().flat_map(|endpoint| endpoint.by_address.keys());
        let mut asked: Vec<Address> = asked.cloned().collect();
        asked.sort_unstable();
        asked.dedup();
        asked
    }

    /// Forgets what is known of others, but for what files say; returns how many addresses are gone.
    pub fn flush(&mut self, _: Instant) -> usize {
        let endpoints = self.endpoints.values_mut();
        endpoints.fold(0, |count, endpoint| {
            endpoint.by_lid.clear();
            count + endpoint.cache.clear()
        })
    }

    /// Answers with counters.
    fn perf(
        &self,
        header: &ClientHeader,
        data: &[u8],
        order: ByteOrder,
        out: &mut Vec<u8>,
    ) -> Result<(), ClientStatus> {
        let counters = match (data, header.src_index) {
            ([], 0) => self.perf_counters(),
            ([], index) => {
                let found = self.endpoints.values().nth(usize::from(index) - 1);
                found.ok_or(ClientStatus::EINVAL)?.counters
            }
            (data, _) => {
                let entry = data.try_into().map_err(|_| ClientStatus::EINVAL)?;
                // The length is in network order, the address as in RESOLVE.
                let native = Entry::parse(entry, ByteOrder::NATIVE);
                let entry = match native.kind.name() {
                    Some(_) => native,
                    None => Entry::parse(entry, order),
                };
                if !entry.flags.has(EntryFlags::SOURCE) {
                    return Err(ClientStatus::EINVAL);
                }
                let address = Address::of_entry(&entry).map_err(|_| ClientStatus::ESRCTYPE)?;
                let key = self.owner(&address).ok_or(ClientStatus::ESRCADDR)?;
                self.endpoints.get(&key).ok_or(ClientStatus::ESRCADDR)?.counters
            }
        };
        let values = counters.values();
        let mut answer = answer_to(header, ClientStatus::SUCCESS);
        answer.src_out = values.len() as u8;
        answer.set_length(HEADER + 8 * values.len(), ByteOrder::Big);
        out.extend_from_slice(&answer.to_bytes());
        for value in values {
            out.extend_from_slice(&value.to_be_bytes());
        }
        Ok(())
    }

    /// Answers with what an endpoint is.
    fn endpoint_query(&self, header: &ClientHeader, out: &mut Vec<u8>) -> Result<(), ClientStatus> {
        let (number, port) = (usize::from(header.src_out), header.src_index);
        let of_port = |(key, _): &(&EndpointKey, &Endpoint)| {
            let own = self.ports.get(&key.port).map(|port| port.state.link.number);
            port == 0 || own == Some(port)
        };
        let place = number.checked_sub(1).ok_or(ClientStatus::EINVAL)?;
        let found = self.endpoints.iter().filter(of_port).nth(place);
        let (key, endpoint) = found.ok_or(ClientStatus::EINVAL)?;
        let state = &self.ports.get(&key.port).ok_or(ClientStatus::EINVAL)?.state;
        let mut provider = [0; 64];
        provider[..PROVIDER.len()].copy_from_slice(PROVIDER.as_bytes());
        // More do not fit into a message.
        let most = (ib_wire::acm::MOST_DATA - EndpointInfo::LENGTH) / 64;
        let addresses = &endpoint.addresses[..endpoint.addresses.len().min(most)];
        let info = EndpointInfo {
            device_guid: state.link.node_guid.0,
            port: state.link.number,
            port_count: state.port_count,
            p_key: endpoint.p_key.0,
            address_count: addresses.len() as u16,
            provider,
        };
        let mut answer = answer_to(header, ClientStatus::SUCCESS);
        let length = HEADER + EndpointInfo::LENGTH + 64 * addresses.len();
        answer.set_length(length, ByteOrder::Big);
        out.extend_from_slice(&answer.to_bytes());
        out.extend_from_slice(&info.to_bytes());
        for address in addresses {
            let mut name = [0; 64];
            let text = address.to_string();
            let length = text.len().min(63);
            name[..length].copy_from_slice(&text.as_bytes()[..length]);
            out.extend_from_slice(&name);
        }
        Ok(())
    }
}

/// What became of a question at once.
pub(super) enum Started {
    /// It waits.
    Waits,
    /// It is answered.
    Path(PathRecord),
    /// It cannot be answered.
    Failed(ClientStatus),
}

/// Where a question starts from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// From an own address.
    Address(Address),
    /// From a port; what is zero makes no difference.
    Port { gid: Gid, lid: u16, p_key: PKey },
    /// From wherever the way begins.
    Open,
}

/// What is wanted.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    /// The path to an address.
    Address(Address),
    /// What subnet administration says to this.
    OfSa(Box<PathRecord>),
}

/// What a program asks.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) source: Source,
    pub(super) wanted: Wanted,
    /// Only what is known already is wanted.
    pub(super) no_delay: bool,
}

impl Question {
    pub(super) const fn address(&self) -> Option<&Address> {
        match &self.wanted {
            Wanted::Address(address) => Some(address),
            Wanted::OfSa(_) => None,
        }
    }

    /// Returns what the entries of a message ask.
    fn of(entries: &[Entry]) -> Result<Self, ClientStatus> {
        let any = |flag| entries.iter().any(|entry| entry.flags.has(flag));
        let no_delay = any(EntryFlags::NODELAY);
        if any(EntryFlags::QUERY_SA) {
            let [entry] = entries else { return Err(ClientStatus::EINVAL) };
            if entry.kind != EntryType::PATH {
                return Err(ClientStatus::EINVAL);
            }
            let path = entry.path_record();
            let source = Source::Port { gid: path.sgid, lid: path.slid, p_key: PKey(0) };
            if path.sgid == Gid::ZERO && path.slid == 0 {
                return Err(ClientStatus::ESRCADDR);
            }
            return Ok(Self { source, wanted: Wanted::OfSa(Box::new(path)), no_delay });
        }
        if let [entry] = entries
            && entry.kind == EntryType::PATH
        {
            let path = entry.path_record();
            let to = match (path.dgid, path.dlid) {
                (Gid::ZERO, 0) => return Err(ClientStatus::EDESTADDR),
                (Gid::ZERO, lid) => Address::Lid(lid),
                (gid, _) => Address::Gid(gid),
            };
            let source = Source::Port { gid: path.sgid, lid: path.slid, p_key: path.p_key };
            return Ok(Self { source, wanted: Wanted::Address(to), no_delay });
        }
        let (mut source, mut destination) = (None, None);
        for entry in entries {
            let is_source = entry.flags.has(EntryFlags::SOURCE);
            let is_destination = entry.flags.has(EntryFlags::DESTINATION);
            let (slot, kind, bad) = match (is_source, is_destination) {
                (true, false) => (&mut source, ClientStatus::ESRCTYPE, ClientStatus::ESRCADDR),
                (false, true) => {
                    (&mut destination, ClientStatus::EDESTTYPE, ClientStatus::EDESTADDR)
                }
                _ => return Err(ClientStatus::EINVAL),
            };
            let address = Address::of_entry(entry).map_err(|error| match error {
                crate::address::AddressError::Type(_) => kind,
                _ => bad,
            })?;
            if slot.replace(address).is_some() {
                return Err(ClientStatus::EINVAL);
            }
        }
        let destination = destination.ok_or(ClientStatus::EINVAL)?;
        let source = source.map_or(Source::Open, Source::Address);
        Ok(Self { source, wanted: Wanted::Address(destination), no_delay })
    }
}

/// Returns the header of an answer.
fn answer_to(header: &ClientHeader, status: ClientStatus) -> ClientHeader {
    let opcode = header.opcode.answer();
    ClientHeader { opcode, status, ..ClientHeader::new(opcode, header.transaction) }
}

/// Writes an answer that says why there is none.
fn put_failure(waiter: &Waiter, status: ClientStatus, out: &mut Vec<u8>) {
    let mut answer = answer_to(&waiter.header, status);
    answer.set_length(HEADER, waiter.order);
    out.extend_from_slice(&answer.to_bytes());
}

/// Writes an answer with a path.
fn put_path(waiter: &Waiter, path: &PathRecord, out: &mut Vec<u8>) {
    let path = Entry::path(EntryFlags::PATH, path);
    let entries = [Some(path), waiter.chosen];
    let header = answer_to(&waiter.header, ClientStatus::SUCCESS);
    let entries = entries.into_iter().flatten().collect();
    Resolve { header, entries }.put(waiter.order, out);
}
