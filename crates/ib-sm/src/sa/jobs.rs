//! Searches for the records of large responses. Each search runs in slices of time, so that the SA serves other
//! requests in between.

use std::collections::VecDeque;
use std::sync::Arc;

use ib_mad::Message;
use ib_types::{Gid, Instant};
use ib_wire::mad::sa::{InformInfoRecord, MCMemberRecord, PathRecord, ServiceRecord};
use ib_wire::mad::{AttributeId, Mad, MadStatus};

use super::groups::Groups;
use super::path::PathQuery;
use super::query::Query;
use super::records::RecordQuery;
use super::services::{ServiceKey, Services};
use super::subnet::Subnet;
use super::subscriptions::Subscriptions;
use super::view::{Records, SubnetView, Viewer};
use crate::discovered_subnet::PortIndex;

/// Time in microseconds that a budget is charged for each request, and for each port pair of a path query.
pub(super) const COST: u32 = 5;

/// Number of records that a search is assumed to check per microsecond. It converts a time into a number of records.
const RECORDS: usize = 4;

/// Maximum number of concurrent searches. Requests that need further searches wait.
const MAX: usize = 64;

/// Maximum number of requests that wait until a search completes.
const MAX_WAITING: usize = 4096;

/// Length of a time slice in microseconds.
pub(super) const TURN: u32 = 160;

/// The data from which records are built.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    pub(super) now: Instant,
    pub(super) view: SubnetView<'a>,
    pub(super) services: &'a Services,
    pub(super) subscriptions: &'a Subscriptions,
    pub(super) groups: &'a Groups,
}

/// A search for the records of a response.
#[derive(Debug)]
pub(super) enum RecordSearch {
    Paths(PathQuery),
    /// Search for records of nodes, ports, links and tables.
    DiscoveredSubnet(Box<RecordQuery>),
    /// Search for services, subscriptions or group members.
    Registered(Box<RegisteredQuery>),
}

/// Search for records of registrations: services, subscriptions or group members.
#[derive(Debug)]
pub(super) struct RegisteredQuery {
    subnet: Arc<Subnet>,
    request: Mad,
    requester: Option<PortIndex>,
    trusted: bool,
    /// The service, subscriber or group that was checked last. The search continues after it.
    after: Cursor,
    is_done: bool,
    records: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Cursor {
    Service(Option<ServiceKey>),
    Subscriber(Option<Gid>),
    Group(Option<Gid>),
}

impl RegisteredQuery {
    /// Starts the search for the services, subscriptions or group members that a request selects. Returns `None` if the
    /// request is for other records.
    pub(super) fn new(
        subnet: &Arc<Subnet>,
        request: &Mad,
        requester: Option<PortIndex>,
        trusted: bool,
    ) -> Option<Self> {
        let after = match request.attribute_id() {
            AttributeId::SERVICE_RECORD => Cursor::Service(None),
            AttributeId::INFORM_INFO_RECORD => Cursor::Subscriber(None),
            AttributeId::MC_MEMBER_RECORD => Cursor::Group(None),
            _ => return None,
        };
        Some(Self {
            subnet: Arc::clone(subnet),
            request: *request,
            requester,
            trusted,
            after,
            is_done: false,
            records: Vec::new(),
        })
    }

    /// Continues the search: checks about `most` records. Returns the number of records that were checked.
    fn step(&mut self, sources: &Sources<'_>, most: usize) -> usize {
        let Self { subnet, request, requester, trusted, records, .. } = self;
        let query = Query { mask: request.component_mask(), template: request.data() };
        let viewer = Viewer {
            gid: requester.map(|requester| subnet.gid(requester)),
            keys: requester.map_or(&[][..], |requester| subnet.p_keys(requester)),
            trusted: *trusted,
        };
        let mut looked = 0;
        while !self.is_done && looked < most {
            let (after, count) = match self.after {
                Cursor::Service(after) => {
                    let most = most - looked;
                    let services = sources.services;
                    let last = services.records(sources.now, after, most, &query, &viewer, records);
                    (last.map(|last| Cursor::Service(Some(last))), most)
                }
                Cursor::Subscriber(after) => {
                    let sees = |gid: Gid| {
                        let share =
                            |port| requester.is_some_and(|requester| subnet.share(requester, port));
                        *trusted || subnet.by_guid(gid.guid()).is_some_and(share)
                    };
                    let next = sources.subscriptions.records(after, &query, sees, records);
                    let (gid, count) = next.unzip();
                    (gid.map(|gid| Cursor::Subscriber(Some(gid))), count.unwrap_or(1))
                }
                Cursor::Group(after) => {
                    let next = sources.groups.records(after, &query, &viewer, records);
                    let (gid, count) = next.unzip();
                    (gid.map(|gid| Cursor::Group(Some(gid))), count.unwrap_or(1))
                }
            };
            looked += count;
            match after {
                Some(after) => self.after = after,
                None => self.is_done = true,
            }
        }
        looked
    }

    fn finish(self) -> Records {
        match self.after {
            Cursor::Service(_) => Records::of::<ServiceRecord>(self.records),
            Cursor::Subscriber(_) => Records::of::<InformInfoRecord>(self.records),
            Cursor::Group(_) => Records::of::<MCMemberRecord>(self.records),
        }
    }
}

impl RecordSearch {
    /// Continues the search for about `most` microseconds. Returns the time that was used.
    pub(super) fn step(&mut self, sources: &Sources<'_>, most: u32) -> Result<u32, MadStatus> {
        let records = most.max(1) as usize * RECORDS;
        let looked = match self {
            Self::Paths(query) => {
                let pairs = query.left().min((most / COST).max(1) as usize);
                query.step(pairs)?;
                return Ok(pairs as u32 * COST);
            }
            Self::DiscoveredSubnet(query) => query.step(sources.view, records),
            Self::Registered(query) => query.step(sources, records),
        };
        Ok(looked.div_ceil(RECORDS) as u32)
    }

    pub(super) fn is_done(&self) -> bool {
        match self {
            Self::Paths(query) => query.left() == 0,
            Self::DiscoveredSubnet(query) => query.left() == 0,
            Self::Registered(query) => query.is_done,
        }
    }

    /// Returns true if the search will probably complete within one slice.
    fn is_short(&self) -> bool {
        match self {
            Self::Paths(query) => query.left() <= (TURN / COST) as usize,
            Self::DiscoveredSubnet(query) => query.left() <= 1,
            Self::Registered(_) => false,
        }
    }

    fn held(&self) -> usize {
        match self {
            Self::Paths(query) => query.held(),
            Self::DiscoveredSubnet(query) => query.held(),
            Self::Registered(query) => query.records.capacity(),
        }
    }

    /// Returns the records that the search has found.
    pub(super) fn finish(self) -> Records {
        match self {
            Self::Paths(query) => Records::of::<PathRecord>(query.finish()),
            Self::DiscoveredSubnet(query) => query.finish(),
            Self::Registered(query) => query.finish(),
        }
    }
}

/// A request, with the search for its records.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) request: Message,
    pub(super) work: RecordSearch,
}

impl Job {
    fn held(&self) -> usize {
        self.work.held() + self.request.data().len()
    }
}

/// The searches in progress, in round-robin order, and the requests that wait until a search completes.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    all: VecDeque<Job>,
    waiting: VecDeque<Message>,
}

impl Jobs {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.waiting.is_empty()
    }

    /// Removes and returns the job to be continued next.
    pub(super) fn next(&mut self) -> Option<Job> {
        self.all.pop_front()
    }

    /// Appends a job that is not complete.
    pub(super) fn requeue(&mut self, job: Job) {
        self.all.push_back(job);
    }

    /// Removes and returns a waiting request, if another search may start.
    pub(super) fn next_waiting(&mut self) -> Option<Message> {
        if self.all.len() < MAX { self.waiting.pop_front() } else { None }
    }

    /// Returns true if a search for the same request is already in progress.
    pub(super) fn has(&self, request: &Message) -> bool {
        let key = |request: &Message| {
            let (remote, mad) = (request.remote(), request.mad());
            (remote.lid, remote.qpn, mad.transaction_id(), mad.method(), mad.attribute_id())
        };
        self.all.iter().any(|job| key(&job.request) == key(request))
    }

    /// Returns the search if it may start now. Otherwise queues the request and returns `None`.
    ///
    /// # Errors
    /// Fails with `BUSY` if too many requests are waiting.
    pub(super) fn admit(
        &mut self,
        request: &Message,
        work: RecordSearch,
    ) -> Result<Option<RecordSearch>, MadStatus> {
        if self.all.len() < MAX || work.is_short() {
            return Ok(Some(work));
        }
        if request.is_reassembled() || self.waiting.len() == MAX_WAITING {
            return Err(MadStatus::BUSY);
        }
        self.waiting.push_back(request.clone());
        Ok(None)
    }

    /// Returns the total size in bytes of all requests and records.
    pub(super) fn held(&self) -> usize {
        self.all.iter().map(Job::held).sum()
    }

    /// Removes and returns the job that uses the most memory.
    pub(super) fn take_largest(&mut self) -> Option<Job> {
        let jobs = self.all.iter().enumerate();
        let at = jobs.max_by_key(|(_, job)| job.held()).map(|(at, _)| at)?;
        self.all.remove(at)
    }
}
