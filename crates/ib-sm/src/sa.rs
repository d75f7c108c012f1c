//! Subnet administration (SA): queries, registrations and notices. Source: IBTA volume 1, chapter
//! 15.
//!
//! | file | contents |
//! |---|---|
//! | `sa` | requests and responses |
//! | `subnet` | the subnet from which queries are answered, with indexes |
//! | `jobs` | large responses, collected in slices of time |
//! | `records` | records of nodes, ports, links and tables |
//! | `path` | PathRecords |
//! | `groups` | multicast groups and their members |
//! | `services` | ServiceRecords |
//! | `subscriptions` | event subscriptions (InformInfo) and reports |

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
use crate::discovered_subnet::{DiscoveredSubnet, PortIndex};

mod groups;
mod jobs;
mod path;
mod query;
mod records;
mod services;
pub(crate) mod subnet;
mod subscriptions;
mod view;

use groups::{Groups, MembershipRequest, has};
use jobs::{COST, Job, Jobs, RecordSearch, RegisteredQuery, Sources, TURN};
use path::PathQuery;
use query::Query;
use records::RecordQuery;
use services::{Services, without_key};
use subnet::Subnet;
use subscriptions::Subscriptions;
use view::Records;
pub(crate) use view::SubnetView;

/// `ClassVersion` of the SA.
const VERSION: u8 = 2;

/// Tag in the transaction IDs of reports. It differs from the tag of the SM.
const REPORTER: u16 = 2;

/// Maximum number of reports in flight.
const REPORTS: usize = 16;

/// Number of bytes of records in each RMPP segment.
const PER_SEGMENT: u32 = 200;

/// `ProducerType` of the notices that the SM issues. The value means class manager.
const CLASS_MANAGER: u32 = 4;

/// `ClassPortInfo:CapabilityMask`: multicast (9), multiple paths (10), PortInfoRecords with at least the given
/// capabilities (13). Optional records (8) are not claimed, because only some are supported. Get and Set of Notice (1)
/// are not supported either. OpenSM claims them without supporting them.
const CAPABILITIES: u16 = 1 << 9 | 1 << 10 | 1 << 13;

/// `ClassPortInfo:CapabilityMask2`: `MulticastFDBTop` (3), all fields of PortInfo (6), extended speeds (7),
/// services of multicast groups (8), PortInfoRecords by `CapabilityMask2` (10), send-only full members
/// (12), 2x links (13), HDR (15) and NDR (17). Alias GUIDs (5) cannot be set.
const CAPABILITIES2: u32 =
    1 << 3 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 12 | 1 << 13 | 1 << 15 | 1 << 17;

/// The SA.
#[derive(Debug)]
pub(crate) struct Sa {
    responder: Responder,
    /// Sends reports to subscribers, and waits for their responses.
    reporter: Requester,
    services: Services,
    subscriptions: Subscriptions,
    groups: Groups,
    /// Requests whose responses are not complete yet.
    jobs: Jobs,
    /// Time in microseconds that requests have used in the current iteration of the loop in `work`.
    spent: u32,
    /// Time in microseconds that earlier iterations of this loop have used, and that is not charged to a budget yet.
    owed: u32,
    /// Maximum total size in bytes of incomplete responses and of responses that are being sent.
    most_bytes: usize,
}

/// The result of a query.
enum Answer {
    Records(Records),
    /// A search that collects the records in slices of time.
    RecordSearch(RecordSearch),
}

impl Sa {
    /// Creates the SA. It has the multicast groups of the configured partitions.
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

    /// Processes a received MAD, or the report that a sent MAD was lost. Returns true if the MAD belongs to the SA.
    pub(crate) fn handle(&mut self, now: Instant, incoming: &Incoming) -> bool {
        let (Incoming::Received(datagram) | Incoming::Lost(datagram)) = incoming;
        if self.reporter.handle(now, incoming) {
            self.drop_completed_reports();
            return true;
        }
        if datagram.mad.class() != MgmtClass::SUBN_ADM || !self.responder.handle(now, incoming) {
            return false;
        }
        true
    }

    /// Returns true if requests are waiting for their responses.
    pub(crate) fn has_work(&self) -> bool {
        self.responder.requests() > 0 || !self.jobs.is_empty()
    }

    /// Serves waiting requests within a budget in microseconds. Time that exceeds the budget is charged to later
    /// budgets.
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
                None => self.jobs.next_waiting(),
            };
            if let Some(request) = request {
                self.spent += COST;
                self.answer(now, &request, view);
            }
            self.owed = std::mem::take(&mut self.spent);
        }
    }

    /// Starts the search for the records of a response. If the search completes within one slice, responds at once.
    fn begin(&mut self, now: Instant, view: SubnetView<'_>, request: &Message, work: RecordSearch) {
        if self.jobs.has(request) {
            return;
        }
        match self.jobs.admit(request, work) {
            Ok(Some(work)) => self.advance(now, view, Job { request: request.clone(), work }, TURN),
            Ok(None) => {}
            Err(status) => self.refuse(request, status),
        }
    }

    /// Continues a search for records for about `most` microseconds.
    fn advance(&mut self, now: Instant, view: SubnetView<'_>, mut job: Job, most: u32) {
        let Self { services, subscriptions, groups, .. } = self;
        let sources = Sources { now, view, services, subscriptions, groups };
        match job.work.step(&sources, most) {
            Err(status) => return self.refuse(&job.request, status),
            Ok(cost) => self.spent += cost,
        }
        if !job.work.is_done() {
            self.jobs.requeue(job);
            return self.make_room();
        }
        let records = job.work.finish();
        if job.request.mad().method() == Method::GET {
            self.one(&job.request, &records);
        } else {
            self.table(&job.request, records);
        }
    }

    /// Refuses the requests whose searches use the most memory, until the total size is at most `most_bytes`.
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
        self.drop_completed_reports();
    }

    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        while self.reporter.outstanding() < REPORTS
            && let Some(report) = self.subscriptions.next_report()
        {
            self.reporter.start(report).expect("the method `Report` has a response");
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

    /// Sends a notice to its subscribers.
    pub(crate) fn notify(&mut self, notice: Notice, issuer: Gid) {
        self.subscriptions.notify(notice, issuer);
    }

    /// Removes the group memberships and subscriptions of a port that has left the subnet.
    pub(crate) fn forget(&mut self, port: Gid, manager: (u16, Gid)) {
        self.subscriptions.forget(port);
        for gone in self.groups.forget(port) {
            self.notify_group(&gone, TrapNumber::MULTICAST_GROUP_DELETED, manager);
        }
    }

    /// Limits the number of multicast LIDs to the smallest `MulticastFDBCap` of all switches.
    pub(crate) fn limit_groups(&mut self, found: &DiscoveredSubnet) {
        let caps = found.nodes().filter_map(|(_, node)| node.switch.map(|it| it.multicast_fdb_cap));
        self.groups.set_lid_limit(caps.filter(|&cap| cap > 0).min().unwrap_or(u16::MAX));
    }

    /// Returns the member ports of each group, by multicast LID. Returns `None` if no port has joined or left a group
    /// since the last call.
    pub(crate) fn take_group_changes(&mut self) -> Option<BTreeMap<u16, Vec<Guid>>> {
        let changed = !self.groups.take_changed().is_empty();
        changed.then(|| {
            let groups = self.groups.by_lid().filter(|(_, group)| group.ports().next().is_some());
            groups.map(|(mlid, group)| (mlid, group.ports().collect())).collect()
        })
    }

    fn drop_completed_reports(&mut self) {
        // The results of reports need no action: if a subscriber does not respond, the report is given up.
        while self.reporter.poll_event().is_some() {}
    }

    fn notify_group(
        &mut self,
        group: &MCMemberRecord,
        trap: TrapNumber,
        (manager_lid, manager): (u16, Gid),
    ) {
        self.notify(gid_notice(trap, manager_lid, group.mgid), manager);
    }

    fn answer(&mut self, now: Instant, request: &Message, view: SubnetView<'_>) {
        let mad = request.mad();
        // An SM that is not the master does not respond. The client retries or queries the master.
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
                    Ok(Answer::RecordSearch(work)) => self.begin(now, view, request, work),
                    Err(status) => self.refuse(request, status),
                }
            }
            _ => self.refuse(request, MadStatus::BAD_METHOD_ATTRIBUTE),
        }
    }

    /// Returns the records that a request selects, or a search for them.
    fn read(
        &mut self,
        request: &Message,
        subnet: &Arc<Subnet>,
        view: SubnetView<'_>,
    ) -> Result<Answer, MadStatus> {
        let mad = request.mad();
        let mask = mad.component_mask();
        let requester = subnet.by_lid(request.remote().lid);
        let trusted = is_trusted(mad);
        let viewer = viewer(requester, trusted)?;
        let one = mad.method() == Method::GET;
        let work = match (mad.method(), mad.attribute_id()) {
            (Method::GET_TRACE_TABLE, AttributeId::PATH_RECORD) => {
                self.spent += path::MAX_TRACED_PAIRS as u32 * COST;
                let wanted: PathRecord =
                    mad.attribute().expect("the match arm checked the attribute ID");
                let records = path::trace_records(subnet, mask, &wanted, viewer)?;
                let bytes = records.iter().flat_map(Record::to_record).collect();
                return Ok(Answer::Records(Records::of::<TraceRecord>(bytes)));
            }
            (Method::GET_MULTI, AttributeId::MULTI_PATH_RECORD) => {
                let data = request.data();
                let head = data.first_chunk().ok_or(MadStatus::SA_REQUEST_INVALID)?;
                let wanted = MultiPathRecord::parse(head);
                RecordSearch::Paths(PathQuery::multi(subnet, mask, &wanted, data, viewer)?)
            }
            (Method::GET_TRACE_TABLE | Method::GET_MULTI, _) => {
                return Err(MadStatus::BAD_METHOD_ATTRIBUTE);
            }
            (_, AttributeId::PATH_RECORD) => {
                let wanted: PathRecord =
                    mad.attribute().expect("the match arm checked the attribute ID");
                RecordSearch::Paths(PathQuery::new(subnet, mask, &wanted, viewer, one)?)
            }
            (_, AttributeId::SM_INFO_RECORD) => {
                let query = Query { mask, template: mad.data() };
                let records = records::manager_records(subnet, viewer, &view.manager, &query);
                return Ok(Answer::Records(Records::of::<SmInfoRecord>(records)));
            }
            // Only trusted clients may see P_Key tables.
            (_, AttributeId::P_KEY_TABLE_RECORD) if !trusted => {
                return Err(MadStatus::SA_REQUEST_INVALID);
            }
            _ => {
                let enough = if one { 2 } else { usize::MAX };
                let found = RecordQuery::new(subnet, mad, viewer, enough).map(Box::new);
                let registered =
                    || RegisteredQuery::new(subnet, mad, requester, trusted).map(Box::new);
                let work = found
                    .map(RecordSearch::DiscoveredSubnet)
                    .or_else(|| registered().map(RecordSearch::Registered));
                work.ok_or(MadStatus::BAD_METHOD_ATTRIBUTE)?
            }
        };
        Ok(Answer::RecordSearch(work))
    }

    fn refuse(&mut self, request: &Message, status: MadStatus) {
        let mut mad = header(request.mad(), status, 0);
        mad.data_mut().fill(0);
        self.responder.respond(request.datagram(), mad, MgmtClass::SUBN_ADM.data_offset() as u16);
    }

    /// Responds to Get, which needs exactly one record.
    fn one(&mut self, request: &Message, records: &Records) {
        match records.bytes.len() / records.stride {
            0 => self.refuse(request, MadStatus::SA_NO_RECORDS),
            1 => self.plain(request, &records.bytes[..records.length]),
            _ => self.refuse(request, MadStatus::SA_TOO_MANY_RECORDS),
        }
    }

    /// Responds with a single MAD.
    fn plain(&mut self, request: &Message, attribute: &[u8]) {
        let mut mad = header(request.mad(), MadStatus::OK, 0);
        mad.data_mut().fill(0);
        mad.data_mut()[..attribute.len()].copy_from_slice(attribute);
        let length = MgmtClass::SUBN_ADM.data_offset() + attribute.len();
        self.responder.respond(request.datagram(), mad, length as u16);
    }

    /// Responds with a table of any length.
    fn table(&mut self, request: &Message, records: Records) {
        let distance = if records.bytes.is_empty() { 0 } else { records.stride / 8 };
        let mut mad = header(request.mad(), MadStatus::OK, distance as u16);
        mad.set_attribute_id(records.id);
        let length = records.bytes.len();
        if length <= mad.data().len() {
            // A response of one segment is not stored for retransmission. A client that does not receive it repeats its
            // request.
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

    /// Executes a Set or Delete, and returns the attribute for the response.
    fn write(
        &mut self,
        now: Instant,
        request: &Message,
        subnet: &Arc<Subnet>,
        view: SubnetView<'_>,
    ) -> Result<Vec<u8>, MadStatus> {
        let mad = request.mad();
        let (mask, set) = (mad.component_mask(), mad.method() == Method::SET);
        let requester = subnet.by_lid(request.remote().lid).ok_or(MadStatus::SA_REQUEST_INVALID)?;
        let manager = view.address();
        match mad.attribute_id() {
            AttributeId::SERVICE_RECORD => {
                let record: ServiceRecord =
                    mad.attribute().expect("the match arm checked the attribute ID");
                let in_partition = |key| {
                    let at = subnet.by_guid(record.service_gid.guid());
                    has(subnet.p_keys(requester), key)
                        && (record.service_gid.is_multicast()
                            || at.is_some_and(|at| has(subnet.p_keys(at), key)))
                };
                let record = if set {
                    self.services.register(now, mask, record, in_partition)?
                } else {
                    self.services.unregister(&record)?
                };
                let trusted = is_trusted(mad);
                Ok(bytes(&if trusted { record } else { without_key(record) }))
            }
            AttributeId::INFORM_INFO if set => {
                let info: InformInfo =
                    mad.attribute().expect("the match arm checked the attribute ID");
                let trusted = is_trusted(mad);
                let (gid, remote) = (subnet.gid(requester), *request.remote());
                Ok(bytes(&self.subscriptions.set(gid, remote, info, trusted)?))
            }
            AttributeId::MC_MEMBER_RECORD => {
                let mut wanted: MCMemberRecord =
                    mad.attribute().expect("the match arm checked the attribute ID");
                let given = wanted.port_gid;
                // A GID with the default prefix means the GID with the prefix of the subnet.
                if given.prefix() == Gid::DEFAULT_PREFIX {
                    wanted.port_gid = Gid::new(subnet.prefix, given.guid());
                }
                let member = subnet.by_guid(given.guid()).ok_or(MadStatus::SA_INVALID_GID)?;
                let membership = MembershipRequest {
                    requester: subnet.gid(requester),
                    requester_keys: subnet.p_keys(requester),
                    keys: subnet.p_keys(member),
                    limits: subnet.limits(member),
                };
                let mut change = if set {
                    self.groups.join(mask, &wanted, &membership, subnet.prefix)?
                } else {
                    self.groups.leave(mask, &wanted, &membership)?
                };
                change.record.port_gid = given;
                if change.created {
                    let trap = TrapNumber::MULTICAST_GROUP_CREATED;
                    self.notify_group(&change.record, trap, manager);
                }
                if change.deleted {
                    let trap = TrapNumber::MULTICAST_GROUP_DELETED;
                    self.notify_group(&change.record, trap, manager);
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

/// Returns an attribute in wire format.
fn bytes<A: Attribute>(attribute: &A) -> Vec<u8> {
    let mut bytes = vec![0; A::LENGTH];
    attribute.write(&mut bytes);
    bytes
}

/// Returns a notice of the SM about the given GID.
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

/// Returns the header of a response.
fn header(request: &Mad, status: MadStatus, attribute_offset: u16) -> Mad {
    let mut mad = *request;
    mad.answer(status);
    mad.set_sa(&SaHeader { sm_key: 0, attribute_offset, ..request.sa() });
    mad
}

/// Returns true if the request has the `SA_Key`. Requests with a wrong key have been dropped before.
fn is_trusted(mad: &Mad) -> bool {
    mad.sa().sm_key != 0
}

/// Returns the port whose partitions limit the visible records; `None` if all records are visible.
fn viewer(requester: Option<PortIndex>, trusted: bool) -> Result<Option<PortIndex>, MadStatus> {
    if trusted { Ok(None) } else { requester.map(Some).ok_or(MadStatus::SA_REQUEST_INVALID) }
}

#[cfg(test)]
mod tests;
