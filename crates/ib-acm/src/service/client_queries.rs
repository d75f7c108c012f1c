//! SA path queries that clients specify (flag `QUERY_SA`).

use std::collections::BTreeMap;

use ib_mad::Completion;
use ib_types::{Gid, Instant};
use ib_wire::acm::ClientStatus;
use ib_wire::mad::sa::PathRecord;
use ib_wire::mad::{Method, TransactionId};

use super::context::{Context, Timer};
use super::pending::PendingRequest;
use super::sa::{DGID, DLID, NUMB_PATH, P_KEY, REVERSIBLE, SGID, SaError, SaRequest, attribute_of};

/// An SA query that a client requested.
#[derive(Debug)]
struct ClientQuery {
    path: Box<PathRecord>,
    request: Box<PendingRequest>,
    /// Time at which the query fails.
    deadline: Instant,
    /// Number of times that the query was sent. It is sent again if the SM or the LID of the port changes.
    attempts: u32,
    transaction: Option<TransactionId>,
}

/// Maximum number of times that a query is sent. The query fails if it would have to be sent once more.
const MAX_ATTEMPTS: u32 = 4;

/// SA queries that clients requested at an endpoint. The key is a random number.
#[derive(Debug, Default)]
pub(super) struct ClientQueries(BTreeMap<u64, ClientQuery>);

impl ClientQueries {
    /// Sends the query of a client to the SA.
    pub(super) fn start(
        &mut self,
        cx: &mut Context<'_>,
        path: Box<PathRecord>,
        request: PendingRequest,
    ) {
        let number = cx.random();
        let deadline = cx.now + cx.config().request_time_limit();
        let request = Box::new(request);
        let query = ClientQuery { path, request, deadline, attempts: 0, transaction: None };
        self.0.insert(number, query);
        cx.set_timer(deadline, Timer::ClientQuery(number));
        self.send(cx, number);
    }

    fn send(&mut self, cx: &mut Context<'_>, number: u64) {
        let Some(query) = self.0.get_mut(&number) else { return };
        query.attempts += 1;
        cx.shared.counters.sa_queries += 1;
        cx.identity.counters.route_queries += 1;
        let purpose = SaRequest::ClientQuery { key: cx.key, number };
        let components = components_of(&query.path);
        query.transaction = Some(cx.send_sa(Method::GET, &components, &*query.path, purpose));
    }

    /// Removes a query, so that the caller can respond to the client.
    fn remove(&mut self, cx: &mut Context<'_>, number: u64) -> Option<ClientQuery> {
        let query = self.0.remove(&number)?;
        cx.clear_timer(query.deadline, Timer::ClientQuery(number));
        cx.cancel_sa(query.transaction);
        Some(query)
    }

    fn fail(&mut self, cx: &mut Context<'_>, number: u64, status: ClientStatus) {
        if let Some(query) = self.remove(cx, number) {
            cx.fail(&query.request, status);
        }
    }

    /// Responds to the client with the SA's response.
    pub(super) fn handle_response(
        &mut self,
        cx: &mut Context<'_>,
        number: u64,
        completion: &Completion,
    ) {
        match attribute_of::<PathRecord>(completion) {
            Ok(path) => {
                if let Some(query) = self.remove(cx, number) {
                    cx.shared.pending.succeed(&query.request, &path);
                }
            }
            Err(_) => self.fail(cx, number, status_of(completion)),
        }
    }

    /// Fails a query whose time limit has expired.
    pub(super) fn handle_timer(&mut self, cx: &mut Context<'_>, number: u64) {
        self.fail(cx, number, ClientStatus::ETIMEDOUT);
    }

    /// Sends all queries again, because the SM or the LID of the port has changed. Their time limits do not change.
    pub(super) fn restart(&mut self, cx: &mut Context<'_>) {
        for number in self.numbers() {
            let query = self.0.get_mut(&number).expect("the query was just listed");
            cx.cancel_sa(query.transaction.take());
            match query.attempts >= MAX_ATTEMPTS {
                true => self.fail(cx, number, ClientStatus::ENOTCONN),
                false => self.send(cx, number),
            }
        }
    }

    /// Fails all queries, because the endpoint is down.
    pub(super) fn fail_all(&mut self, cx: &mut Context<'_>) {
        for number in self.numbers() {
            self.fail(cx, number, ClientStatus::ENOTCONN);
        }
    }

    fn numbers(&self) -> Vec<u64> {
        self.0.keys().copied().collect()
    }
}

/// Returns the status that a client receives for a failed SA query: the class-specific status of the response, if any.
fn status_of(completion: &Completion) -> ClientStatus {
    match &completion.result {
        Ok(message) if message.status().class_specific() != 0 => {
            ClientStatus(message.status().class_specific())
        }
        // The SA's response has another attribute than the query.
        Ok(message) if message.status().is_ok() => ClientStatus::EINVAL,
        Ok(_) => SaError::from_completion(completion).status,
        Err(_) => ClientStatus::ETIMEDOUT,
    }
}

/// Returns the components of an SA query, as bit numbers of the component mask: the nonzero fields of the path record.
/// ibacm sets the same bits.
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
