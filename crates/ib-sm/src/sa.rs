//! The SA: what ports ask about the subnet; IBTA volume 1, chapter 15.
//!
//! | file | holds |
//! |---|---|
//! | `sa` | requests and their answers |
//! | `subnet` | what is known of the subnet, with indexes |
//! | `jobs` | answers of many records, found a few at a time |
//! | `records` | what a sweep has found and written |
//! | `path` | PathRecords |
//! | `groups` | multicast groups and their members |
//! | `services` | services that ports offer |
//! | `subscriptions` | who is told of what happens |

use std::collections::BTreeMap;
use std::sync::Arc;

use ib_link::{Datagram, Incoming};
use ib_mad::{
    Message, Requester, RequesterConfig, RespondError, Responder, ResponderConfig, ResponderEvent,
};
use ib_types::{Gid, Guid, Instant, QKey, Qpn};
use ib_wire::mad::rmpp::{self, RmppFlags, RmppHeader, RmppStatus, RmppType};
use ib_wire::mad::sa::{
    InformInfo, MCMemberRecord, MultiPathRecord, PathRecord, Record, SaHeader, ServiceRecord,
    SmInfoRecord, TraceRecord,
};
use ib_wire::mad::sm::notice::{GidDetails, NoticeType};
use ib_wire::mad::sm::{Notice, NoticeDetails, TrapNumber};
use ib_wire::mad::{Attribute, AttributeId, ClassPortInfo, Mad, MadStatus, Method, MgmtClass};

use crate::config::SmConfig;
use crate::found::{Found, Place};

mod groups;
mod jobs;
mod path;
mod query;
mod records;
mod services;
pub(crate) mod subnet;
mod subscriptions;
mod view;

use groups::{Applicant, Groups, has};
use jobs::{COST, Job, Jobs, RegisteredQuery, Sources, TURN, Work};
use path::PathQuery;
use query::Query;
use records::RecordQuery;
use services::{Services, without_key};
use subnet::Subnet;
use subscriptions::Subscriptions;
use view::Records;
pub(crate) use view::SubnetView;

/// The version of the class.
const VERSION: u8 = 2;

/// What tells the transactions of reports from those of the subnet manager.
const REPORTER: u16 = 2;

/// How many reports may be in flight.
const REPORTS: usize = 16;

/// The bytes of records that a segment carries.
const PER_SEGMENT: u32 = 200;

/// The producer of notices that the manager itself issues.
const CLASS_MANAGER: u32 = 4;

/// ClassPortInfo:CapabilityMask: multicast (9), multiple paths (10), PortInfoRecords that have at least
/// given capabilities (13). Not all optional records (8) are answered, and Get and Set of Notice (1)
/// are not: OpenSM claims the latter and answers neither.
const CAPABILITIES: u16 = 1 << 9 | 1 << 10 | 1 << 13;

/// `ClassPortInfo:CapabilityMask2`: `MulticastFDBTop` (3), all fields of PortInfo (6), extended speeds (7),
/// services of multicast groups (8), PortInfoRecords by `CapabilityMask2` (10), send-only full members
/// (12), 2x links (13), HDR (15) and NDR (17). Alias GUIDs (5) cannot be set.
const CAPABILITIES2: u32 =
    1 << 3 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 12 | 1 << 13 | 1 << 15 | 1 << 17;

/// The administration of a subnet.
#[derive(Debug)]
pub(crate) struct Administration {
    responder: Responder,
    /// Sends reports and waits until they are taken.
    reporter: Requester,
    services: Services,
    subscriptions: Subscriptions,
    groups: Groups,
    /// Requests whose answers are not complete.
    jobs: Jobs,
    /// What the requests of this turn have cost in microseconds, and what is owed for earlier ones.
    spent: u32,
    owed: u32,
    /// How many bytes answers may hold, those that are not complete and those that are sent.
    most_bytes: usize,
}

/// What is answered to a question.
enum Answer {
    Records(Records),
    /// It has to be found.
    Work(Work),
}

impl Administration {
    /// Starts with the groups that partitions ask for.
    pub(crate) fn new(config: &SmConfig) -> Self {
        let most_bytes = config.sa_max_bytes;
        let responder = ResponderConfig { max_bytes: most_bytes, ..ResponderConfig::default() };
        Self {
            most_bytes,
            responder: Responder::new(responder),
            reporter: Requester::new(RequesterConfig { tag: REPORTER, ..Default::default() }),
            services: Services::default(),
            subscriptions: Subscriptions::default(),
            groups: Groups::new(config),
            jobs: Jobs::default(),
            spent: 0,
            owed: 0,
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
        self.responder.requests() > 0 || !self.jobs.is_empty()
    }

    /// Answers requests that wait, as far as a credit in microseconds allows. What they have cost beyond
    /// that is owed by the next ones.
    pub(crate) fn work(&mut self, now: Instant, view: SubnetView<'_>, credit: &mut u32) {
        while self.has_work() {
            let pays = self.owed.min(*credit);
            self.owed -= pays;
            *credit -= pays;
            if *credit == 0 {
                return;
            }
            if let Some(job) = self.jobs.next() {
                self.advance(now, view, job, TURN.min(*credit));
            }
            let request = match self.responder.poll_event() {
                Some(ResponderEvent::Request(request)) => Some(request),
                Some(_) => None,
                None => self.jobs.waited(),
            };
            if let Some(request) = request {
                self.spent += COST;
                self.answer(now, &request, view);
            }
            self.owed = std::mem::take(&mut self.spent);
        }
    }

    /// Begins to find records, and answers when they are found soon.
    fn begin(&mut self, now: Instant, view: SubnetView<'_>, request: &Message, work: Work) {
        if self.jobs.has(request) {
            return;
        }
        match self.jobs.admit(request, work) {
            Ok(Some(work)) => self.advance(now, view, Job { request: request.clone(), work }, TURN),
            Ok(None) => {}
            Err(status) => self.refuse(request, status),
        }
    }

    /// Finds records for about so many microseconds.
    fn advance(&mut self, now: Instant, view: SubnetView<'_>, mut job: Job, most: u32) {
        let Self { services, subscriptions, groups, .. } = self;
        let sources = Sources { now, view, services, subscriptions, groups };
        match job.work.step(&sources, most) {
            Err(status) => return self.refuse(&job.request, status),
            Ok(cost) => self.spent += cost,
        }
        if !job.work.is_done() {
            self.jobs.again(job);
            return self.make_room();
        }
        let records = job.work.finish();
        if job.request.mad().method() == Method::GET {
            self.one(&job.request, &records);
        } else {
            self.table(&job.request, records);
        }
    }

    /// Refuses the longest answers when all together are too long.
    fn make_room(&mut self) {
        while self.jobs.held() + self.responder.held() > self.most_bytes
            && let Some(job) = self.jobs.take_largest()
        {
            self.refuse(&job.request, MadStatus::SA_NO_RESOURCES);
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

    /// Takes note of how many multicast LIDs the switches of a subnet can forward.
    pub(crate) fn take_room(&mut self, found: &Found) {
        let caps = found.nodes().filter_map(|(_, node)| node.switch.map(|it| it.multicast_fdb_cap));
        self.groups.set_room(caps.filter(|&cap| cap > 0).min().unwrap_or(u16::MAX));
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

    fn answer(&mut self, now: Instant, request: &Message, view: SubnetView<'_>) {
        let mad = request.mad();
        // A manager that has no subnet yet, or none any more, does not answer: who asks will ask
        // again, or somebody else.
        let Some(subnet) = view.subnet else { return };
        let key = mad.sa().sm_key;
        if key != 0 && key != view.sa_key {
            return;
        }
        if mad.class_version() != VERSION {
            return self.refuse(request, MadStatus::BAD_VERSION);
        }
        match (mad.method(), mad.attribute_id()) {
            (Method::GET, AttributeId::CLASS_PORT_INFO) => self.class_port_info(request),
            (Method::SET | Method::DELETE, _) => match self.write(now, request, subnet, view) {
                Ok(attribute) => self.plain(request, &attribute),
                Err(status) => self.refuse(request, status),
            },
            (Method::GET | Method::GET_TABLE | Method::GET_TRACE_TABLE | Method::GET_MULTI, _) => {
                match self.read(request, subnet, view) {
                    Ok(Answer::Records(records)) if mad.method() == Method::GET => {
                        self.one(request, &records);
                    }
                    Ok(Answer::Records(records)) => self.table(request, records),
                    Ok(Answer::Work(work)) => self.begin(now, view, request, work),
                    Err(status) => self.refuse(request, status),
                }
            }
            _ => self.refuse(request, MadStatus::BAD_METHOD_ATTRIBUTE),
        }
    }

    /// Returns the records that a request selects, or how they are found.
    fn read(
        &mut self,
        request: &Message,
        subnet: &Arc<Subnet>,
        view: SubnetView<'_>,
    ) -> Result<Answer, MadStatus> {
        let mad = request.mad();
        let mask = mad.component_mask();
        let asker = subnet.by_lid(request.remote().lid);
        let trusted = is_trusted(mad);
        let viewer = viewer(asker, trusted)?;
        let one = mad.method() == Method::GET;
        let work = match (mad.method(), mad.attribute_id()) {
            (Method::GET_TRACE_TABLE, AttributeId::PATH_RECORD) => {
                self.spent += path::MOST_TRACED as u32 * COST;
                let wanted: PathRecord = mad.attribute().expect("the attribute was looked at");
                let records = path::trace_records(subnet, mask, &wanted, viewer)?;
                let bytes = records.iter().flat_map(Record::to_record).collect();
                return Ok(Answer::Records(Records::of::<TraceRecord>(bytes)));
            }
            (Method::GET_MULTI, AttributeId::MULTI_PATH_RECORD) => {
                let data = request.data();
                let head = data.first_chunk().ok_or(MadStatus::SA_REQUEST_INVALID)?;
                let wanted = MultiPathRecord::parse(head);
                Work::Paths(PathQuery::multi(subnet, mask, &wanted, data, viewer)?)
            }
            (Method::GET_TRACE_TABLE | Method::GET_MULTI, _) => {
                return Err(MadStatus::BAD_METHOD_ATTRIBUTE);
            }
            (_, AttributeId::PATH_RECORD) => {
                let wanted: PathRecord = mad.attribute().expect("the attribute was looked at");
                Work::Paths(PathQuery::new(subnet, mask, &wanted, viewer, one)?)
            }
            (_, AttributeId::SM_INFO_RECORD) => {
                let query = Query { mask, template: mad.data() };
                let records = records::manager_records(subnet, viewer, &view.manager, &query);
                return Ok(Answer::Records(Records::of::<SmInfoRecord>(records)));
            }
            // Keys are for those who can tell the manager's own.
            (_, AttributeId::P_KEY_TABLE_RECORD) if !trusted => {
                return Err(MadStatus::SA_REQUEST_INVALID);
            }
            _ => {
                let enough = if one { 2 } else { usize::MAX };
                let found = RecordQuery::new(subnet, mad, viewer, enough).map(Box::new);
                let registered = || RegisteredQuery::new(subnet, mad, asker, trusted).map(Box::new);
                let work = found.map(Work::Found).or_else(|| registered().map(Work::Registered));
                work.ok_or(MadStatus::BAD_METHOD_ATTRIBUTE)?
            }
        };
        Ok(Answer::Work(work))
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
        match self.responder.respond_message(request.datagram(), mad, records.bytes) {
            Ok(()) | Err(RespondError::UnderWay) => {}
            Err(_) => self.refuse(request, MadStatus::SA_NO_RESOURCES),
        }
    }

    /// Does what a Set or Delete wants; returns the attribute of the answer.
    fn write(
        &mut self,
        now: Instant,
        request: &Message,
        subnet: &Arc<Subnet>,
        view: SubnetView<'_>,
    ) -> Result<Vec<u8>, MadStatus> {
        let mad = request.mad();
        let (mask, set) = (mad.component_mask(), mad.method() == Method::SET);
        let asker = subnet.by_lid(request.remote().lid).ok_or(MadStatus::SA_REQUEST_INVALID)?;
        let manager = view.address();
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
                let trusted = is_trusted(mad);
                Ok(bytes(&if trusted { record } else { without_key(record) }))
            }
            AttributeId::INFORM_INFO if set => {
                let info: InformInfo = mad.attribute().expect("the attribute was looked at");
                let trusted = is_trusted(mad);
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
                    limits: subnet.limits(member),
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

    fn class_port_info(&mut self, request: &Message) {
        let info = ClassPortInfo {
            base_version: 1,
            class_version: VERSION,
            capability_mask: CAPABILITIES,
            capability_mask2: CAPABILITIES2,
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

/// Returns whether a request knows the key; those with a wrong one are not answered.
fn is_trusted(mad: &Mad) -> bool {
    mad.sa().sm_key != 0
}

/// Returns the port that only hears of what it may know of; `None` for those who may know of all.
fn viewer(asker: Option<Place>, trusted: bool) -> Result<Option<Place>, MadStatus> {
    if trusted { Ok(None) } else { asker.map(Some).ok_or(MadStatus::SA_REQUEST_INVALID) }
}

#[cfg(test)]
mod tests;
