//! Answers of many records, found a few at a time so that nobody else has to wait.

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
use super::services::{Identity, Services};
use super::subnet::Subnet;
use super::subscriptions::Subscriptions;
use super::view::{Records, SubnetView, Viewer};
use crate::found::Place;

/// What a request, and each pair of ports whose paths are looked for, costs in microseconds.
pub(super) const COST: u32 = 5;

/// How many records are looked at in a microsecond.
const RECORDS: usize = 4;

/// How many answers are worked at in turns; the next ones wait.
const MOST: usize = 64;

/// How many requests wait for their turns.
const MOST_WAITING: usize = 4096;

/// How much is found for a request before the next one has its turn, in microseconds.
pub(super) const TURN: u32 = 160;

/// What records are made from.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    pub(super) now: Instant,
    pub(super) view: SubnetView<'a>,
    pub(super) services: &'a Services,
    pub(super) subscriptions: &'a Subscriptions,
    pub(super) groups: &'a Groups,
}

/// The records that a request wants.
#[derive(Debug)]
pub(super) enum Work {
    Paths(PathQuery),
    /// Of what a sweep has found and written.
    Found(Box<RecordQuery>),
    /// Of what ports have registered.
    Registered(Box<RegisteredQuery>),
}

/// Records of what ports have registered: services, subscriptions, members of groups.
#[derive(Debug)]
pub(super) struct RegisteredQuery {
    subnet: Arc<Subnet>,
    request: Mad,
    asker: Option<Place>,
    trusted: bool,
    /// Behind what the next one is, once something was looked at.
    after: After,
    is_done: bool,
    records: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum After {
    Service(Option<Identity>),
    Subscriber(Option<Gid>),
    Group(Option<Gid>),
}

impl RegisteredQuery {
    /// Starts to find the records that a request selects; `None` when there are no such records.
    pub(super) fn new(
        subnet: &Arc<Subnet>,
        request: &Mad,
        asker: Option<Place>,
        trusted: bool,
    ) -> Option<Self> {
        let after = match request.attribute_id() {
            AttributeId::SERVICE_RECORD => After::Service(None),
            AttributeId::INFORM_INFO_RECORD => After::Subscriber(None),
            AttributeId::MC_MEMBER_RECORD => After::Group(None),
            _ => return None,
        };
        Some(Self {
            subnet: Arc::clone(subnet),
            request: *request,
            asker,
            trusted,
            after,
            is_done: false,
            records: Vec::new(),
        })
    }

    /// Looks at about so many records more; returns at how many.
    fn step(&mut self, sources: &Sources<'_>, most: usize) -> usize {
        let Self { subnet, request, asker, trusted, records, .. } = self;
        let query = Query { mask: request.component_mask(), template: request.data() };
        let viewer = Viewer {
            gid: asker.map(|asker| subnet.gid(asker)),
            keys: asker.map_or(&[][..], |asker| subnet.p_keys(asker)),
            trusted: *trusted,
        };
        let mut looked = 0;
        while !self.is_done && looked < most {
            let (after, count) = match self.after {
                After::Service(after) => {
                    let most = most - looked;
                    let services = sources.services;
                    let last = services.records(sources.now, after, most, &query, &viewer, records);
                    (last.map(|last| After::Service(Some(last))), most)
                }
                After::Subscriber(after) => {
                    let sees = |gid: Gid| {
                        let share = |port| asker.is_some_and(|asker| subnet.share(asker, port));
                        *trusted || subnet.by_guid(gid.guid()).is_some_and(share)
                    };
                    let next = sources.subscriptions.records(after, &query, sees, records);
                    let (gid, count) = next.unzip();
                    (gid.map(|gid| After::Subscriber(Some(gid))), count.unwrap_or(1))
                }
                After::Group(after) => {
                    let next = sources.groups.records(after, &query, &viewer, records);
                    let (gid, count) = next.unzip();
                    (gid.map(|gid| After::Group(Some(gid))), count.unwrap_or(1))
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
            After::Service(_) => Records::of::<ServiceRecord>(self.records),
            After::Subscriber(_) => Records::of::<InformInfoRecord>(self.records),
            After::Group(_) => Records::of::<MCMemberRecord>(self.records),
        }
    }
}

impl Work {
    /// Goes on for about so many microseconds; returns how many it has taken.
    pub(super) fn step(&mut self, sources: &Sources<'_>, most: u32) -> Result<u32, MadStatus> {
        let records = most.max(1) as usize * RECORDS;
        let looked = match self {
            Self::Paths(query) => {
                let pairs = query.left().min((most / COST).max(1) as usize);
                query.step(pairs)?;
                return Ok(pairs as u32 * COST);
            }
            Self::Found(query) => query.step(sources.view, records),
            Self::Registered(query) => query.step(sources, records),
        };
        Ok(looked.div_ceil(RECORDS) as u32)
    }

    pub(super) fn is_done(&self) -> bool {
        match self {
            Self::Paths(query) => query.left() == 0,
            Self::Found(query) => query.left() == 0,
            Self::Registered(query) => query.is_done,
        }
    }

    /// Returns whether it is done in one turn, as far as that can be told.
    fn is_short(&self) -> bool {
        match self {
            Self::Paths(query) => query.left() <= (TURN / COST) as usize,
            Self::Found(query) => query.left() <= 1,
            Self::Registered(_) => false,
        }
    }

    fn held(&self) -> usize {
        match self {
            Self::Paths(query) => query.held(),
            Self::Found(query) => query.held(),
            Self::Registered(query) => query.records.capacity(),
        }
    }

    /// Returns the records that were found.
    pub(super) fn finish(self) -> Records {
        match self {
            Self::Paths(query) => Records::of::<PathRecord>(query.finish()),
            Self::Found(query) => query.finish(),
            Self::Registered(query) => query.finish(),
        }
    }
}

/// A request and what was found for it.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) request: Message,
    pub(super) work: Work,
}

impl Job {
    fn held(&self) -> usize {
        self.work.held() + self.request.data().len()
    }
}

/// The requests whose answers are not complete, in the order in which they have their turns.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    all: VecDeque<Job>,
    waiting: VecDeque<Message>,
}

impl Jobs {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.waiting.is_empty()
    }

    /// Returns the job whose turn it is.
    pub(super) fn next(&mut self) -> Option<Job> {
        self.all.pop_front()
    }

    /// Puts a job behind the others.
    pub(super) fn again(&mut self, job: Job) {
        self.all.push_back(job);
    }

    /// Returns a request that has waited, when there is room for its answer.
    pub(super) fn waited(&mut self) -> Option<Message> {
        if self.all.len() < MOST { self.waiting.pop_front() } else { None }
    }

    /// Returns whether the same request is being answered.
    pub(super) fn has(&self, request: &Message) -> bool {
        let key = |request: &Message| {
            let (remote, mad) = (request.remote(), request.mad());
            (remote.lid, remote.qpn, mad.transaction_id(), mad.method(), mad.attribute_id())
        };
        self.all.iter().any(|job| key(&job.request) == key(request))
    }

    /// Returns work back that may begin, and has the request wait otherwise.
    ///
    /// # Errors
    /// Fails when too many wait.
    pub(super) fn admit(
        &mut self,
        request: &Message,
        work: Work,
    ) -> Result<Option<Work>, MadStatus> {
        if self.all.len() < MOST || work.is_short() {
            return Ok(Some(work));
        }
        if request.is_reassembled() || self.waiting.len() == MOST_WAITING {
            return Err(MadStatus::BUSY);
        }
        self.waiting.push_back(request.clone());
        Ok(None)
    }

    /// Returns how many bytes the requests hold and what was found for them.
    pub(super) fn held(&self) -> usize {
        self.all.iter().map(Job::held).sum()
    }

    /// Takes away the job that holds the most.
    pub(super) fn take_largest(&mut self) -> Option<Job> {
        let jobs = self.all.iter().enumerate();
        let at = jobs.max_by_key(|(_, job)| job.held()).map(|(at, _)| at)?;
        self.all.remove(at)
    }
}
