//! Subnet administration: what ports ask about the subnet; IBTA volume 1, chapter 15.
//!
//! | file | holds |
//! |---|---|
//! | `sa` | requests and their answers |
//! | `subnet` | what is known of the subnet, with indexes |
//! | `records` | what a sweep has found and written |
//! | `path` | PathRecords |
//! | `groups` | multicast groups and their members |
//! | `services` | services that ports offer |
//! | `subscriptions` | who is told of what happens |

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use ib_link::{Datagram, Incoming};
use ib_mad::{Message, Requester, RequesterConfig, Responder, ResponderConfig, ResponderEvent};
use ib_types::{Gid, Guid, Instant, QKey, Qpn};
use ib_wire::mad::rmpp::{self, RmppFlags, RmppHeader, RmppStatus, RmppType};
use ib_wire::mad::sa::{
    GuidInfoRecord, InformInfo, InformInfoRecord, LifeTimeCode, LinearForwardingRecord, LinkRecord,
    MCMemberRecord, MultiPathRecord, MulticastForwardingRecord, NodeRecord, PKeyTableRecord,
    PathRecord, PortInfoRecord, Record, SaHeader, ServiceRecord, SlToVlRecord, SmInfoRecord,
    SwitchInfoRecord, TraceRecord, VlArbitrationRecord,
};
use ib_wire::mad::sm::notice::{GidDetails, NoticeType};
use ib_wire::mad::sm::{Notice, NoticeDetails, SmInfo, TrapNumber};
use ib_wire::mad::{Attribute, AttributeId, ClassPortInfo, Mad, MadStatus, Method, MgmtClass};

use crate::config::SmConfig;
use crate::multicast::MulticastTables;
use crate::tables::{Tables, WrittenTables};

mod groups;
mod path;
mod records;
mod services;
pub(crate) mod subnet;
mod subscriptions;

use groups::{Applicant, Groups, has};
use path::PathQuery;
use records::Query;
use services::{Services, without_key};
use subnet::Subnet;
use subscriptions::Subscriptions;

/// The version of the class.
const VERSION: u8 = 2;

/// What tells the transactions of reports from those of the subnet manager.
const REPORTER: u16 = 2;

/// What a request, and each pair of ports whose paths are looked for, costs in microseconds.
const COST: u32 = 5;

/// How many pairs of ports a request has looked at before the next one has its turn.
const TURN: usize = 32;

/// How many requests for many paths have their turns; the next ones wait.
const MOST_QUERIES: usize = 64;

/// How many reports may be under way.
const REPORTS: usize = 16;

/// The bytes of records that a segment carries.
const PER_SEGMENT: u32 = 200;

/// The producer of notices that the manager itself issues.
const CLASS_MANAGER: u32 = 4;

/// ClassPortInfo:CapabilityMask: optional records, multicast, multiple paths, PortInfoRecords by
/// capabilities.
const CAPABILITIES: u16 = 1 << 8 | 1 << 9 | 1 << 10 | 1 << 13;

/// ClassPortInfo:CapabilityMask2: records of switches tell `MulticastFDBTop`.
const MULTICAST_FDB_TOP: u32 = 1 << 3;

/// What administration answers by.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    /// The subnet, once it was up.
    pub(crate) subnet: Option<&'a Arc<Subnet>>,
    pub(crate) tables: &'a Tables,
    pub(crate) multicast: &'a MulticastTables,
    pub(crate) written: &'a WrittenTables,
    /// What the manager says of itself.
    pub(crate) manager: SmInfo,
    /// The key of those who are trusted.
    pub(crate) sa_key: u64,
}

/// The administration of a subnet.
#[derive(Debug)]
pub(crate) struct Administration {
    responder: Responder,
    /// Sends reports and waits until they are taken.
    reporter: Requester,
    services: Services,
    subscriptions: Subscriptions,
    groups: Groups,
    /// Requests for many paths, in the order in which they have their turns.
    queries: VecDeque<(Message, PathQuery)>,
}

/// The records of an answer, one behind the other.
struct Records {
    id: AttributeId,
    bytes: Vec<u8>,
    stride: usize,
    /// The length of a record without the gap to the next one.
    length: usize,
}

impl Known<'_> {
    /// Returns the LID and GID of the manager.
    fn place(&self) -> (u16, Gid) {
        let lid =
            self.subnet.and_then(|subnet| subnet.found.own.and_then(|own| subnet.base_lid(own)));
        let prefix = self.subnet.map_or(0, |subnet| subnet.prefix);
        (lid.unwrap_or(0), Gid::new(prefix, self.manager.guid))
    }
}

impl Records {
    fn of<R: Record>(bytes: Vec<u8>) -> Self {
        Self { id: R::ID, bytes, stride: R::STRIDE, length: R::LENGTH }
    }
}

impl Administration {
    /// Starts with the groups that partitions ask for.
    pub(crate) fn new(config: &SmConfig) -> Self {
        let mut groups = Groups::default();
        for partition in config.partitions.all() {
            if let Some(group) = &partition.ipoib {
                let life_time = LifeTimeCode(config.packet_life_time);
                // There are fewer partitions than multicast LIDs, and no two have the same key.
                let _ = groups.add_broadcast(partition, group, life_time);
            }
        }
        Self {
            responder: Responder::new(ResponderConfig::default()),
            reporter: Requester::new(RequesterConfig { tag: REPORTER, ..Default::default() }),
            services: Services::default(),
            subscriptions: Subscriptions::default(),
            groups,
            queries: VecDeque::new(),
        }
    }

    /// Takes a datagram. Returns true when it was for administration.
    pub(crate) fn handle(&mut self, now: Instant, incoming: &Incoming) -> bool {
        let (Incoming::Received(datagram) | Incoming::Lost(datagram)) = incoming;
        if self.reporter.handle(now, incoming) {
            self.drop_reported();
            return true;
        }
        if datagram.mad.class() != MgmtClass::SUBN_ADM || !self.responder.handle(now, incoming) {
            return false;
        }
        true
    }

    /// Returns true when requests wait.
    pub(crate) fn has_work(&self) -> bool {
        self.responder.requests() > 0 || !self.queries.is_empty()
    }

    /// Answers requests that wait, as far as a credit in microseconds allows.
    pub(crate) fn work(&mut self, now: Instant, known: Known<'_>, credit: &mut u32) {
        while *credit > 0 && self.has_work() {
            if let Some((request, mut query)) = self.queries.pop_front() {
                let pairs = query.left().min(TURN).min((*credit / COST).max(1) as usize);
                *credit = credit.saturating_sub(pairs as u32 * COST);
                match query.step(pairs) {
                    Ok(()) if query.left() > 0 => self.queries.push_back((request, query)),
                    Ok(()) => self.tell_paths(&request, &query.finish()),
                    Err(status) => self.refuse(&request, status),
                }
            }
            if self.queries.len() < MOST_QUERIES
                && let Some(event) = self.responder.poll_event()
                && let ResponderEvent::Request(request) = event
            {
                *credit = credit.saturating_sub(COST);
                self.answer(now, &request, known);
            }
        }
    }

    /// Answers a request for paths.
    fn tell_paths(&mut self, request: &Message, paths: &[PathRecord]) {
        let mut bytes = vec![0; paths.len() * PathRecord::STRIDE];
        for (path, to) in paths.iter().zip(bytes.chunks_exact_mut(PathRecord::STRIDE)) {
            path.write(&mut to[..PathRecord::LENGTH]);
        }
        let records = Records::of::<PathRecord>(bytes);
        if request.mad().method() == Method::GET {
            self.one(request, &records);
        } else {
            self.table(request, records);
        }
    }

    /// Finds paths at once when there are few, and else bit by bit.
    fn find_paths(&mut self, request: &Message, query: Result<PathQuery, MadStatus>) {
        match query {
            Err(status) => self.refuse(request, status),
            Ok(mut query) if query.left() <= TURN => match query.step(TURN) {
                Ok(()) => self.tell_paths(request, &query.finish()),
                Err(status) => self.refuse(request, status),
            },
            Ok(query) => self.queries.push_back((request.clone(), query)),
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.responder.handle_timeout(now);
        self.services.handle_timeout(now);
        self.reporter.handle_timeout(now);
        self.drop_reported();
    }

    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        while self.reporter.outstanding() < REPORTS
            && let Some(report) = self.subscriptions.next_report()
        {
            self.reporter.start(report).expect("a report is answered");
        }
        self.responder.poll_transmit(now).or_else(|| self.reporter.poll_transmit(now))
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let all = [
            self.responder.poll_timeout(),
            self.reporter.poll_timeout(),
            self.services.poll_timeout(),
        ];
        all.into_iter().flatten().min()
    }

    /// Tells subscribers of a notice about a port.
    pub(crate) fn tell(&mut self, notice: Notice, issuer: Gid) {
        self.subscriptions.tell(notice, issuer);
    }

    /// Forgets what a port that has gone was part of.
    pub(crate) fn forget(&mut self, port: Gid, manager: (u16, Gid)) {
        self.subscriptions.forget(port);
        for gone in self.groups.forget(port) {
            self.tell_of_group(&gone, TrapNumber::MULTICAST_GROUP_DELETED, manager);
        }
    }

    /// Returns the ports of each group by multicast LID, when some have come or gone since this was
    /// last asked.
    pub(crate) fn take_group_changes(&mut self) -> Option<BTreeMap<u16, Vec<Guid>>> {
        let changed = !self.groups.take_changed().is_empty();
        changed.then(|| {
            let groups = self.groups.by_lid().filter(|(_, group)| group.ports().next().is_some());
            groups.map(|(mlid, group)| (mlid, group.ports().collect())).collect()
        })
    }

    fn drop_reported(&mut self) {
        // Whoever does not answer does not listen.
        while self.reporter.poll_event().is_some() {}
    }

    fn tell_of_group(
        &mut self,
        group: &MCMemberRecord,
        trap: TrapNumber,
        (manager_lid, manager): (u16, Gid),
    ) {
        self.tell(gid_notice(trap, manager_lid, group.mgid), manager);
    }

    fn answer(&mut self, now: Instant, request: &Message, known: Known<'_>) {
        let mad = request.mad();
        // A manager that has no subnet yet, or none any more, does not answer: who asks will ask
        // again, or somebody else.
        let Some(subnet) = known.subnet else { return };
        let key = mad.sa().sm_key;
        if key != 0 && key != known.sa_key {
            return;
        }
        if mad.class_version() != VERSION {
            return self.refuse(request, MadStatus::BAD_VERSION);
        }
        match (mad.method(), mad.attribute_id()) {
            (Method::GET, AttributeId::CLASS_PORT_INFO) => self.class_port_info(request),
            (Method::SET | Method::DELETE, _) => match self.write(now, request, subnet, known) {
                Ok(attribute) => self.plain(request, &attribute),
                Err(status) => self.refuse(request, status),
            },
            (Method::GET_TRACE_TABLE, AttributeId::PATH_RECORD) => {
                let wanted: PathRecord = mad.attribute().expect("the attribute was looked at");
                match path::trace_records(subnet, mad.component_mask(), &wanted) {
                    Ok(records) => {
                        let bytes = records.iter().flat_map(Record::to_record).collect();
                        self.table(request, Records::of::<TraceRecord>(bytes));
                    }
                    Err(status) => self.refuse(request, status),
                }
            }
            (Method::GET_MULTI, AttributeId::MULTI_PATH_RECORD) => {
                let data = request.data();
                let Some(head) = data.first_chunk() else {
                    return self.refuse(request, MadStatus::SA_REQUEST_INVALID);
                };
                let wanted = MultiPathRecord::parse(head);
                let query = PathQuery::multi(subnet, mad.component_mask(), &wanted, data);
                self.find_paths(request, query);
            }
            (Method::GET | Method::GET_TABLE, AttributeId::PATH_RECORD) => {
                let wanted: PathRecord = mad.attribute().expect("the attribute was looked at");
                let one = mad.method() == Method::GET;
                let query = PathQuery::new(subnet, mad.component_mask(), &wanted, one);
                self.find_paths(request, Ok(query));
            }
            (Method::GET | Method::GET_TABLE, _) => match self.read(now, request, subnet, known) {
                Ok(records) if mad.method() == Method::GET => self.one(request, &records),
                Ok(records) => self.table(request, records),
                Err(status) => self.refuse(request, status),
            },
            _ => self.refuse(request, MadStatus::BAD_METHOD_ATTRIBUTE),
        }
    }

    fn refuse(&mut self, request: &Message, status: MadStatus) {
        let mut mad = header(request.mad(), status, 0);
        mad.data_mut().fill(0);
        self.responder.respond(request.datagram(), mad, MgmtClass::SUBN_ADM.data_offset() as u16);
    }

    /// Answers Get: exactly one record is an answer.
    fn one(&mut self, request: &Message, records: &Records) {
        match records.bytes.len() / records.stride {
            0 => self.refuse(request, MadStatus::SA_NO_RECORDS),
            1 => self.plain(request, &records.bytes[..records.length]),
            _ => self.refuse(request, MadStatus::SA_TOO_MANY_RECORDS),
        }
    }

    /// Answers with one datagram.
    fn plain(&mut self, request: &Message, attribute: &[u8]) {
        let mut mad = header(request.mad(), MadStatus::OK, 0);
        mad.data_mut().fill(0);
        mad.data_mut()[..attribute.len()].copy_from_slice(attribute);
        let length = MgmtClass::SUBN_ADM.data_offset() + attribute.len();
        self.responder.respond(request.datagram(), mad, length as u16);
    }

    /// Answers with a table, of any length.
    fn table(&mut self, request: &Message, records: Records) {
        let distance = if records.bytes.is_empty() { 0 } else { records.stride / 8 };
        let mut mad = header(request.mad(), MadStatus::OK, distance as u16);
        mad.set_attribute_id(records.id);
        let length = records.bytes.len();
        if length <= mad.data().len() {
            // What fits is not kept until it is acknowledged: who misses it asks again.
            mad.set_rmpp(&RmppHeader {
                version: rmpp::VERSION,
                rmpp_type: RmppType::DATA,
                resp_time: 31,
                flags: RmppFlags::ACTIVE | RmppFlags::FIRST | RmppFlags::LAST,
                status: RmppStatus::NORMAL,
                segment: 1,
                length_or_window: rmpp::payload_length(length as u32, PER_SEGMENT, 1),
            });
            mad.data_mut().fill(0);
            mad.data_mut()[..length].copy_from_slice(&records.bytes);
            let length = MgmtClass::SUBN_ADM.data_offset() + length;
            return self.responder.respond(request.datagram(), mad, length as u16);
        }
        let sent = self.responder.respond_message(request.datagram(), mad, records.bytes);
        if sent.is_err() {
            // The answer to the same request is under way, or too many are.
        }
    }

    /// Does what a Set or Delete wants; returns the attribute of the answer.
    fn write(
        &mut self,
        now: Instant,
        request: &Message,
        subnet: &Arc<Subnet>,
        known: Known<'_>,
    ) -> Result<Vec<u8>, MadStatus> {
        let mad = request.mad();
        let (mask, set) = (mad.component_mask(), mad.method() == Method::SET);
        let asker = subnet.by_lid(request.remote().lid).ok_or(MadStatus::SA_REQUEST_INVALID)?;
        let manager = known.place();
        match mad.attribute_id() {
            AttributeId::SERVICE_RECORD => {
                let record: ServiceRecord = mad.attribute().expect("the attribute was looked at");
                let in_partition = |key| {
                    let at = subnet.by_guid(record.service_gid.guid());
                    has(subnet.p_keys(asker), key)
                        && (record.service_gid.is_multicast()
                            || at.is_some_and(|at| has(subnet.p_keys(at), key)))
                };
                let record = if set {
                    self.services.register(now, mask, record, in_partition)?
                } else {
                    self.services.withdraw(&record)?
                };
                let trusted = mad.sa().sm_key != 0;
                Ok(bytes(&if trusted { record } else { without_key(record) }))
            }
            AttributeId::INFORM_INFO if set => {
                let info: InformInfo = mad.attribute().expect("the attribute was looked at");
                let trusted = mad.sa().sm_key != 0;
                let (gid, remote) = (subnet.gid(asker), *request.remote());
                Ok(bytes(&self.subscriptions.set(gid, remote, info, trusted)?))
            }
            AttributeId::MC_MEMBER_RECORD => {
                let mut wanted: MCMemberRecord =
                    mad.attribute().expect("the attribute was looked at");
                let given = wanted.port_gid;
                // The prefix that ports have before they are told theirs stands for any.
                if given.prefix() == Gid::DEFAULT_PREFIX {
                    wanted.port_gid = Gid::new(subnet.prefix, given.guid());
                }
                let member = subnet.by_guid(given.guid()).ok_or(MadStatus::SA_INVALID_GID)?;
                let applicant = Applicant {
                    asker: subnet.gid(asker),
                    asker_keys: subnet.p_keys(asker),
                    keys: subnet.p_keys(member),
                    ability: subnet.ability(member),
                };
                let mut change = if set {
                    self.groups.join(mask, &wanted, &applicant, subnet.prefix)?
                } else {
                    self.groups.leave(mask, &wanted, &applicant)?
                };
                change.record.port_gid = given;
                if change.created {
                    let trap = TrapNumber::MULTICAST_GROUP_CREATED;
                    self.tell_of_group(&change.record, trap, manager);
                }
                if change.deleted {
                    let trap = TrapNumber::MULTICAST_GROUP_DELETED;
                    self.tell_of_group(&change.record, trap, manager);
                }
                Ok(bytes(&change.record))
            }
            _ => Err(MadStatus::BAD_METHOD_ATTRIBUTE),
        }
    }

    /// Returns the records that a Get or GetTable selects.
    fn read(
        &self,
        now: Instant,
        request: &Message,
        subnet: &Subnet,
        known: Known<'_>,
    ) -> Result<Records, MadStatus> {
        let mad = request.mad();
        let query = Query { mask: mad.component_mask(), template: mad.data() };
        Ok(match mad.attribute_id() {
            AttributeId::SERVICE_RECORD => {
                let asker = subnet.by_lid(request.remote().lid);
                let asker = asker.ok_or(MadStatus::SA_REQUEST_INVALID)?;
                let trusted = mad.sa().sm_key != 0;
                let keys = subnet.p_keys(asker);
                Records::of::<ServiceRecord>(self.services.records(now, &query, keys, trusted))
            }
            AttributeId::INFORM_INFO_RECORD => {
                Records::of::<InformInfoRecord>(self.subscriptions.records(&query))
            }
            AttributeId::MC_MEMBER_RECORD => {
                let asker = subnet.by_lid(request.remote().lid).map(|place| subnet.gid(place));
                let trusted = mad.sa().sm_key != 0;
                Records::of::<MCMemberRecord>(self.groups.records(&query, trusted, asker))
            }
            _ => return read(request, subnet, known),
        })
    }

    fn class_port_info(&mut self, request: &Message) {
        let info = ClassPortInfo {
            base_version: 1,
            class_version: VERSION,
            capability_mask: CAPABILITIES,
            capability_mask2: MULTICAST_FDB_TOP,
            resp_time_value: 18,
            redirect_qp: Qpn::truncated(1),
            redirect_q_key: QKey::GSI,
            trap_q_key: QKey::GSI,
            ..ClassPortInfo::zeroed()
        };
        let mut bytes = [0; ClassPortInfo::LENGTH];
        info.emit(&mut bytes);
        self.plain(request, &bytes);
    }
}

/// Returns an attribute as it stands in a datagram.
fn bytes<A: Attribute>(attribute: &A) -> Vec<u8> {
    let mut bytes = vec![0; A::LENGTH];
    attribute.write(&mut bytes);
    bytes
}

/// Returns a notice about a GID, as the manager issues it.
pub(crate) fn gid_notice(trap: TrapNumber, manager_lid: u16, gid: Gid) -> Notice {
    let mut notice = Notice {
        is_generic: true,
        notice_type: NoticeType::SUBNET_MANAGEMENT,
        producer: CLASS_MANAGER,
        trap,
        issuer_lid: manager_lid,
        ..Notice::zeroed()
    };
    notice.set_details(&NoticeDetails::Gid(GidDetails { gid }));
    notice
}

/// Returns the header of an answer.
fn header(request: &Mad, status: MadStatus, attribute_offset: u16) -> Mad {
    let mut mad = *request;
    mad.answer(status);
    mad.set_sa(&SaHeader { sm_key: 0, attribute_offset, ..request.sa() });
    mad
}

/// Returns the records that a Get or GetTable selects.
fn read(request: &Message, subnet: &Subnet, known: Known<'_>) -> Result<Records, MadStatus> {
    let mad = request.mad();
    let query = Query { mask: mad.component_mask(), template: mad.data() };
    Ok(match mad.attribute_id() {
        AttributeId::NODE_RECORD => {
            Records::of::<NodeRecord>(records::node_records(subnet, &query))
        }
        AttributeId::PORT_INFO_RECORD => {
            Records::of::<PortInfoRecord>(records::port_info_records(subnet, &query))
        }
        AttributeId::SWITCH_INFO_RECORD => {
            Records::of::<SwitchInfoRecord>(records::switch_info_records(subnet, &query))
        }
        AttributeId::LINK_RECORD => {
            Records::of::<LinkRecord>(records::link_records(subnet, &query))
        }
        AttributeId::LINEAR_FORWARDING_RECORD => Records::of::<LinearForwardingRecord>(
            records::forwarding_records(subnet, known.tables, &query),
        ),
        AttributeId::MULTICAST_FORWARDING_RECORD => Records::of::<MulticastForwardingRecord>(
            records::multicast_records(subnet, known.multicast, &query),
        ),
        AttributeId::SM_INFO_RECORD => {
            Records::of::<SmInfoRecord>(records::manager_records(subnet, &known.manager, &query))
        }
        AttributeId::GUID_INFO_RECORD => {
            Records::of::<GuidInfoRecord>(records::guid_info_records(subnet, &query))
        }
        AttributeId::P_KEY_TABLE_RECORD => {
            // Keys are for those who can tell the manager's own.
            if mad.sa().sm_key == 0 {
                return Err(MadStatus::SA_REQUEST_INVALID);
            }
            Records::of::<PKeyTableRecord>(records::p_key_records(subnet, &query))
        }
        AttributeId::SL_TO_VL_RECORD => {
            Records::of::<SlToVlRecord>(records::sl_to_vl_records(subnet, known.written, &query))
        }
        AttributeId::VL_ARBITRATION_RECORD => Records::of::<VlArbitrationRecord>(
            records::arbitration_records(subnet, known.written, &query),
        ),
        _ => return Err(MadStatus::BAD_METHOD_ATTRIBUTE),
    })
}
