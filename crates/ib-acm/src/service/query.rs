//! Questions that programs want subnet administration asked as they are.

use ib_mad::Completion;
use ib_types::{Gid, Instant};
use ib_wire::acm::ClientStatus;
use ib_wire::mad::sa::PathRecord;
use ib_wire::mad::{Method, TransactionId};

use super::administration::{Purpose, denial, record};
use super::endpoint::EndpointKey;
use super::request::Waiter;
use super::route::{DGID, DLID, NUMB_PATH, P_KEY, REVERSIBLE, SGID};
use super::{Due, Service};

/// A question of a program.
#[derive(Debug)]
pub(super) struct Query {
    key: EndpointKey,
    wanted: Box<PathRecord>,
    waiter: Box<Waiter>,
    /// Until when, at most.
    end: Instant,
    /// How often it was asked, each time of another manager or from another LID.
    starts: u32,
    request: Option<TransactionId>,
}

/// How often a question is asked while managers and LIDs change.
const MOST_STARTS: u32 = 4;

impl Service {
    /// Asks for what a program wants to know.
    pub(super) fn query(
        &mut self,
        now: Instant,
        key: EndpointKey,
        wanted: Box<PathRecord>,
        waiter: Waiter,
    ) {
        let number = self.number();
        let end = now + self.config.limit();
        let waiter = Box::new(waiter);
        let query = Query { key, wanted, waiter, end, starts: 0, request: None };
        self.queries.insert(number, query);
        self.at(end, Due::Query(number));
        self.start_query(number);
    }

    fn start_query(&mut self, number: u64) {
        let Some(query) = self.queries.get_mut(&number) else { return };
        query.starts += 1;
        let (key, wanted) = (query.key, *query.wanted);
        self.counters.sa_queries += 1;
        self.endpoint(key).counters.route_queries += 1;
        let components = components_of(&wanted);
        let purpose = Purpose::Query { number };
        let request = self.ask(key.port, Method::GET, &components, &wanted, purpose);
        if let Some(query) = self.queries.get_mut(&number) {
            query.request = request;
        }
    }

    /// Ends a question, which is answered by the caller.
    fn take_query(&mut self, number: u64) -> Option<Query> {
        let query = self.queries.remove(&number)?;
        self.due.remove(&(query.end, Due::Query(number)));
        if let Some(request) = query.request {
            self.cancel(query.key.port, request);
        }
        Some(query)
    }

    /// Takes what subnet administration has said to a question.
    pub(super) fn queried(&mut self, now: Instant, number: u64, completion: &Completion) {
        let Some(query) = self.take_query(number) else { return };
        match record::<PathRecord>(completion) {
            Ok(path) => self.succeed(&query.waiter, &path),
            Err(_) => self.fail(now, query.key, &query.waiter, of_query(completion)),
        }
    }

    /// A question has not been answered in time.
    pub(super) fn query_due(&mut self, now: Instant, number: u64) {
        if let Some(query) = self.take_query(number) {
            self.fail(now, query.key, &query.waiter, ClientStatus::ETIMEDOUT);
        }
    }

    /// Asks the questions of an endpoint again, whose answers are not believed any more: another manager is to answer, or
    /// paths begin elsewhere. The time until their end stays what it was.
    pub(super) fn query_again(&mut self, now: Instant, key: EndpointKey) {
        for number in self.queries_of(key) {
            let query = self.queries.get_mut(&number).expect("just listed");
            let (request, is_over) = (query.request.take(), query.starts >= MOST_STARTS);
            if let Some(request) = request {
                self.cancel(key.port, request);
            }
            match is_over.then(|| self.take_query(number)).flatten() {
                Some(query) => self.fail(now, key, &query.waiter, ClientStatus::ENOTCONN),
                None => self.start_query(number),
            }
        }
    }

    /// Gives up the questions of an endpoint, and tells the programs that wait.
    pub(super) fn fail_queries(&mut self, now: Instant, key: EndpointKey) {
        for number in self.queries_of(key) {
            if let Some(query) = self.take_query(number) {
                self.fail(now, key, &query.waiter, ClientStatus::ENOTCONN);
            }
        }
    }

    fn queries_of(&self, key: EndpointKey) -> Vec<u64> {
        self.queries.iter().filter(|(_, it)| it.key == key).map(|(&number, _)| number).collect()
    }
}

/// Returns what a program is told that wanted subnet administration asked: the status of its class as it is.
fn of_query(completion: &Completion) -> ClientStatus {
    match &completion.result {
        Ok(message) if message.status().class_specific() != 0 => {
            ClientStatus(message.status().class_specific())
        }
        // An answer of another kind.
        Ok(message) if message.status().is_ok() => ClientStatus::EINVAL,
        Ok(_) => denial(completion).status,
        Err(_) => ClientStatus::ETIMEDOUT,
    }
}

/// Returns the components of a path that are not zero, as ibacm takes what a program gives.
fn components_of(path: &PathRecord) -> Vec<u8> {
    let set = [
        (0, path.service_id != 0),
        (DGID, path.dgid != Gid::ZERO),
        (SGID, path.sgid != Gid::ZERO),
        (DLID, path.dlid != 0),
        (5, path.slid != 0),
        (8, path.flow_label != 0),
        (9, path.hop_limit != 0),
        (10, path.traffic_class != 0),
        (REVERSIBLE, path.reversible),
        (NUMB_PATH, path.numb_path != 0),
        (P_KEY, path.p_key.0 != 0),
        (14, path.qos_class != 0),
        (15, path.sl != 0),
        (16, path.mtu.0 != 0),
        (17, path.mtu.0 != 0),
        (18, path.rate.0 != 0),
        (19, path.rate.0 != 0),
        (20, path.life_time.0 != 0),
        (21, path.life_time.0 != 0),
    ];
    set.into_iter().filter(|&(_, is_set)| is_set).map(|(component, _)| component).collect()
}
