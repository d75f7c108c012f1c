//! Port census: reads port counters to find the port out of which a switch sends packets that get lost.
//!
//! A lost packet has no response, but the port that sent the packet has counted it. The packets of a census are
//! copies of one combined-route probe, sent in bursts.
//!
//! The tracer sends a burst of N packets and then a burst of 3 N packets. It reads the counters of all ports before,
//! between and after the bursts.
//! The port that sends the packets counts N and then 3 N, and little more. These two bursts are one try. Two successive
//! tries, with bursts of different sizes, have to find the same port. A port other than the one in the forwarding table
//! is reported only if the port in the table counts no burst. If a port has much other traffic, its counters prove
//! nothing.
//!
//! If the responses of the switch itself are lost, the tracer reads the counters at the other ends of the switch's
//! cables. There, the port to which the switch sends the packets counts them as received. Only one census runs at a
//! time. No other request is outstanding during a census, because the ports would count it, too.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use ib_link::Remote;
use ib_mad::{Failure, Message, Request, Timing};
use ib_wire::mad::pm::{PortCounters, PortCountersExtended};
use ib_wire::mad::{AttributeId, Mad, Method, MgmtClass, TransactionId};

use crate::fabric_model::{Entry, FabricModel, Link};
use crate::path::{NodeNumber, PacketFate};
use crate::probes::{CombinedRoute, Probes};

/// Lower limit of the timeout of the packets of a burst.
///
/// The timeout is a tenth of the configured timeout, but at least this value. If the configured timeout is below this
/// value, the configured timeout is used. The tracer reads the counters when every packet of the burst has been
/// answered or has timed out.
const MIN_BURST_TIME: Duration = Duration::from_millis(20);

/// Maximum number of tries of a census, each with two bursts. The census ends earlier if two successive tries find the
/// same port.
const MAX_TRIES: u32 = 4;

/// Factor by which the burst size grows from one try to the next after a request for counters had to be repeated.
const GROWTH: u64 = 4;

/// Factor for the test whether the port in the forwarding table is idle while another port sends the bursts.
///
/// For each of these two ports, the packets counted in the first burst are subtracted from those counted in the second.
/// The port in the table is idle if its difference, times this factor, is below the difference of the other port.
const IDLE_FACTOR: u64 = 4;

/// Returns the number of packets in the first burst of the first try, for a switch with this number of ports. The
/// burst grows with the number of ports, because a port may also count the requests for the counters of all ports.
fn first_burst(ports: u8) -> u64 {
    8 + u64::from(ports) / 2
}

/// A request of a port census.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CensusRequest {
    /// Requests PortCounters of this switch port or, if the switch does not respond, of the port at the other end of
    /// its cable.
    Counters(u8),
    /// As `Counters`, but requests the 64-bit counters (PortCountersExtended).
    Extended(u8),
    /// A packet of a burst: a copy of the combined-route probe. It is expected to be lost.
    Burst,
}

/// Packet counters of a port in one reading.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// Packets that the port has sent, or that the port at the other end of its cable has received. `None` if
    /// the counter is saturated.
    sent: Option<u64>,
    discarded: u64,
    /// Received packets that the switch could not relay.
    stuck: u64,
}

type Reading = BTreeMap<u8, Count>;

/// Phase of a port census. The phases `Before`, `Between` and `Last` read the counters of all ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The counters of one port are read, to find out whether the switch responds.
    First,
    Before,
    SmallBurst,
    Between,
    LargeBurst,
    Last,
}

/// State of the running port census, which finds the port out of which a switch sends a combined-route probe.
#[derive(Debug)]
struct Census {
    stage: Stage,
    /// By port of the switch: LID and port number at the other end of the cable. `None` if the census reads the
    /// counters of the switch itself.
    behind: Option<BTreeMap<u8, (u16, u8)>>,
    /// Number of outstanding requests of the census.
    left: usize,
    /// Number of completed tries, each with two bursts.
    tries: u32,
    /// Number of packets in the first burst of this try. The second burst has three times as many.
    burst: u64,
    /// True if a request for counters had to be repeated. Ports count the repetitions as well, so the evaluation of the
    /// counters allows for them.
    is_lossy: bool,
    /// Port that the previous try found, and the fate of the packets there. `None` if there is no previous try, or if
    /// that try did not find exactly one port.
    suspect: Option<PacketFate>,
    readings: [Reading; 3],
    /// Number of requests in each reading of the counters, including repetitions.
    attempts: [u64; 3],
    /// Port out of which the switch sends its responses to the local port.
    back: Option<u8>,
    /// Number of responses to each of the two bursts.
    answered: [u64; 2],
}

/// All port censuses, and their results: the ports out of which switches send combined-route probes.
#[derive(Debug, Default)]
pub(crate) struct Censuses {
    queue: VecDeque<CombinedRoute>,
    running: Option<(CombinedRoute, Census)>,
    known: BTreeMap<CombinedRoute, Outcome>,
    sent: BTreeMap<CombinedRoute, u32>,
}

/// Result of a port census.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// The census has ended. The value is the fate of the probe at the switch; `None` if the counters do not show it.
    Known(Option<PacketFate>),
    /// The switch does not respond. Another census has to read the counters at the other ends of the switch's cables.
    NeedsNeighbours,
}

/// Progress of a port census after a response.
pub(crate) enum Progress {
    /// These requests have to be sent for the census. If the list is empty, the census still waits for responses.
    Waits(Vec<(CensusRequest, Request)>),
    Done,
}

impl Censuses {
    /// Returns the result of the port census of a combined-route probe; `None` until the census has ended.
    pub(crate) fn get(&self, combined_route: CombinedRoute) -> Option<Outcome> {
        self.known.get(&combined_route).copied()
    }

    /// Returns the number of probes in all bursts of a port census.
    pub(crate) fn sent(&self, combined_route: CombinedRoute) -> u32 {
        self.sent.get(&combined_route).copied().unwrap_or_default()
    }

    /// Queues the census of a combined-route probe, unless it is queued or running already, or has ended as
    /// [`Outcome::Known`].
    pub(crate) fn want(&mut self, combined_route: CombinedRoute) {
        let is_running = self.running.as_ref().is_some_and(|(it, _)| *it == combined_route);
        let is_known = matches!(self.known.get(&combined_route), Some(Outcome::Known(_)));
        if !is_running && !is_known && !self.queue.contains(&combined_route) {
            self.queue.push_back(combined_route);
        }
    }

    /// Returns true if a port census is running.
    pub(crate) const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Starts the next queued census, and returns its probe and its first requests. Returns `None` if a census is
    /// running or none is queued.
    ///
    /// If the switch has no port whose counters can be read, the returned list of requests is empty. The census has
    /// then already ended with `Outcome::Known(None)`.
    pub(crate) fn poll(
        &mut self,
        model: &FabricModel,
        timing: Timing,
    ) -> Option<(CombinedRoute, Vec<(CensusRequest, Request)>)> {
        if self.running.is_some() {
            return None;
        }
        let combined_route = self.queue.pop_front()?;
        let mut census = Census {
            stage: Stage::First,
            behind: None,
            left: 1,
            tries: 0,
            burst: first_burst(model.node(combined_route.0).ports),
            is_lossy: false,
            suspect: None,
            readings: Default::default(),
            attempts: [0; 3],
            back: model.arrival_port(combined_route.0),
            answered: [0; 2],
        };
        let requests = if self.known.remove(&combined_route).is_none() {
            vec![census.counters(CensusRequest::Counters(1), combined_route.0, model, timing)]
        } else {
            census.stage = Stage::Before;
            census.behind = Some(behind(combined_route.0, model));
            census.all(combined_route.0, model, timing)
        };
        if requests.is_empty() {
            self.known.insert(combined_route, Outcome::Known(None));
        } else {
            census.left = requests.len();
            self.running = Some((combined_route, census));
        }
        Some((combined_route, requests))
    }

    /// Processes the response to a request of a census, or the timeout of the request.
    pub(crate) fn handle(
        &mut self,
        (combined_route, inquiry): (CombinedRoute, CensusRequest),
        (result, attempts): (Result<Message, Failure>, u32),
        (model, probes, timing): (&FabricModel, &Probes, Timing),
    ) -> Progress {
        let Some((_, census)) = self.running.as_mut().filter(|(it, _)| *it == combined_route)
        else {
            return Progress::Waits(Vec::new());
        };
        census.left -= 1;
        census.is_lossy |= result.is_ok() && attempts > 1 && inquiry != CensusRequest::Burst;
        let answer = result.ok().filter(|message| message.status().is_ok());
        if census.stage == Stage::First && answer.is_none() {
            self.end(combined_route, Outcome::NeedsNeighbours);
            return Progress::Done;
        }
        if inquiry != CensusRequest::Burst {
            census.attempts[census.reading()] += u64::from(attempts);
        }
        if let Some(message) = answer {
            census.read(inquiry, message.mad());
        }
        if census.left > 0 {
            return Progress::Waits(Vec::new());
        }
        let size = census.burst;
        let burst = |count| {
            let timeout = (timing.timeout / 10).max(MIN_BURST_TIME).min(timing.timeout);
            let once = Timing { retries: 0, timeout, ..timing };
            let lost = || probes.combined(combined_route, model).with_timing(once);
            (0..count).map(|_| (CensusRequest::Burst, lost())).collect()
        };
        let more: Vec<(CensusRequest, Request)> = match census.stage {
            Stage::First => {
                census.stage = Stage::Before;
                census.all(combined_route.0, model, timing)
            }
            Stage::Before => {
                census.stage = Stage::SmallBurst;
                burst(size)
            }
            Stage::SmallBurst => {
                census.stage = Stage::Between;
                census.all(combined_route.0, model, timing)
            }
            Stage::Between => {
                census.stage = Stage::LargeBurst;
                burst(3 * size)
            }
            Stage::LargeBurst => {
                census.stage = Stage::Last;
                census.all(combined_route.0, model, timing)
            }
            Stage::Last => {
                let expected = match model.entry(combined_route.0, combined_route.1) {
                    Entry::Port(port) => Some(port),
                    Entry::Needs(_) | Entry::Stop(_) => None,
                };
                let mut found = census.conclude(expected, combined_route.0, model);
                census.tries += 1;
                *self.sent.entry(combined_route).or_default() += 4 * census.burst as u32;
                let left = found.pop().filter(|_| found.is_empty());
                // Other traffic at a port may resemble the bursts of one try, but hardly those of the next try, whose
                // sizes differ. So a result counts only if two successive tries agree.
                let is_settled = left.is_some() && left == census.suspect;
                if is_settled || census.tries == MAX_TRIES {
                    self.end(combined_route, Outcome::Known(left.filter(|_| is_settled)));
                    return Progress::Done;
                }
                census.suspect = left;
                census.burst = match census.is_lossy {
                    true => census.burst * GROWTH,
                    false => census.burst * 3 / 2 + 3,
                };
                census.stage = Stage::Before;
                census.readings = Default::default();
                census.attempts = [0; 3];
                census.answered = [0; 2];
                census.all(combined_route.0, model, timing)
            }
        };
        census.left = more.len();
        debug_assert!(census.left > 0, "every stage of a census sends at least one request");
        Progress::Waits(more)
    }

    fn end(&mut self, combined_route: CombinedRoute, outcome: Outcome) {
        self.running = None;
        self.known.insert(combined_route, outcome);
    }
}

impl Census {
    /// Returns the requests for one reading of all counters. The ports count these requests as well. So all readings
    /// consist of the same requests, and remain comparable.
    fn all(
        &self,
        switch: NodeNumber,
        model: &FabricModel,
        timing: Timing,
    ) -> Vec<(CensusRequest, Request)> {
        let is_read = |port: &u8| self.behind.as_ref().is_none_or(|it| it.contains_key(port));
        (1..=model.node(switch).ports)
            .filter(is_read)
            .flat_map(|port| [CensusRequest::Counters(port), CensusRequest::Extended(port)])
            .map(|inquiry| self.counters(inquiry, switch, model, timing))
            .collect()
    }

    /// Returns a request for the counters at a port.
    fn counters(
        &self,
        inquiry: CensusRequest,
        switch: NodeNumber,
        model: &FabricModel,
        timing: Timing,
    ) -> (CensusRequest, Request) {
        let (id, port) = match inquiry {
            CensusRequest::Counters(port) => (AttributeId::PORT_COUNTERS, port),
            CensusRequest::Extended(port) => (AttributeId::PORT_COUNTERS_EXTENDED, port),
            CensusRequest::Burst => unreachable!("bursts do not read counters"),
        };
        let (lid, port) = match &self.behind {
            Some(behind) => behind[&port],
            None => (model.end((switch, 0)).map_or(0, |end| end.lid), port),
        };
        let mut mad = Mad::new(MgmtClass::PERFORMANCE, Method::GET, TransactionId(0));
        mad.set_attribute_id(id);
        mad.data_mut()[1] = port;
        (inquiry, Request::new(Remote::gsi(lid), mad).with_timing(timing))
    }

    /// Returns the index of a reading in `readings`: the current one or, in other stages, the next one. The readings
    /// are 0 before the bursts, 1 between them and 2 after them.
    const fn reading(&self) -> usize {
        match self.stage {
            Stage::First | Stage::Before => 0,
            Stage::SmallBurst | Stage::Between => 1,
            Stage::LargeBurst | Stage::Last => 2,
        }
    }

    /// Stores the counters of a port in the current reading, or counts the response to a packet of a burst.
    fn read(&mut self, inquiry: CensusRequest, mad: &Mad) {
        let number = self.reading();
        let (reading, behind) = (&mut self.readings[number], self.behind.is_some());
        match inquiry {
            CensusRequest::Counters(port) => {
                let Some(source_route) = mad.attribute::<PortCounters>() else { return };
                let count = reading.entry(port).or_default();
                let packets =
                    if behind { source_route.rcv_packets } else { source_route.xmit_packets };
                // A saturated 32-bit counter is ignored. The 64-bit counters, if present, are not saturated.
                if packets < u32::MAX {
                    count.sent = count.sent.max(Some(packets.into()));
                }
                if behind {
                    return;
                }
                count.discarded = source_route.xmit_discards.into();
                count.stuck = source_route.rcv_switch_relay_errors.into();
            }
            CensusRequest::Extended(port) => {
                let Some(source_route) = mad.attribute::<PortCountersExtended>() else { return };
                let packets =
                    if behind { source_route.rcv_packets } else { source_route.xmit_packets };
                reading.entry(port).or_default().sent = Some(packets);
            }
            CensusRequest::Burst => {
                self.answered[usize::from(self.stage == Stage::LargeBurst)] += 1;
            }
        }
    }

    /// Returns the ports whose counters show both bursts, each with the fate of the packets there. `expected` is the
    /// port in the forwarding table.
    fn conclude(
        &self,
        expected: Option<u8>,
        switch: NodeNumber,
        model: &FabricModel,
    ) -> Vec<PacketFate> {
        // The switch sends its responses to the tracer out of the port `back`, which counts them. Some of the responses
        // may be lost, so the tracer does not know their exact number. It evaluates the counters of `back` only if no
        // request was repeated and the counters of all other linked ports were read.
        let is_read = |port| self.growth(port, |count| count.sent).is_some();
        let links = model.node(switch).links.iter();
        let mut linked = links.filter(|(_, link)| matches!(link, Link::To(..)));
        let is_complete = linked.all(|(port, _)| self.back == Some(*port) || is_read(*port));
        let mut found = Vec::new();
        for &port in self.readings[2].keys() {
            if self.back == Some(port) && (self.is_lossy || !is_complete) {
                continue;
            }
            let left = [
                (PacketFate::Sent(port), self.growth(port, |count| count.sent)),
                (PacketFate::Discarded(port), self.growth(port, |count| Some(count.discarded))),
                (PacketFate::Dropped(port), self.growth(port, |count| Some(count.stuck))),
            ];
            found.extend(left.into_iter().find(|(_, growth)| self.is_burst(*growth)));
        }
        // `expected` is the port in the forwarding table. Another port is reported only if `expected` is idle. If the
        // counters of `expected` were not read, `expected` is taken as idle, unless requests were repeated.
        if let [(PacketFate::Sent(port) | PacketFate::Discarded(port), Some([small, large]))] =
            found[..]
            && Some(port) != expected
        {
            let more = large.saturating_sub(small);
            let is_idle = match expected.and_then(|port| self.growth(port, |count| count.sent)) {
                Some([small, large]) => large.abs_diff(small) * IDLE_FACTOR < more,
                None => !self.is_lossy,
            };
            if !is_idle {
                return Vec::new();
            }
        }
        found.into_iter().map(|(left, _)| left).collect()
    }

    /// Returns the increase of a port's counter during each burst; `None` if the counter was not read.
    fn growth(&self, port: u8, what: fn(&Count) -> Option<u64>) -> Option<[u64; 2]> {
        let answers = if self.back == Some(port) { self.answered } else { [0; 2] };
        let mut read = [0; 3];
        for (value, reading) in read.iter_mut().zip(&self.readings) {
            *value = what(reading.get(&port)?)?;
        }
        let [first, between, last] = read;
        let small = between.saturating_sub(first).saturating_sub(answers[0]);
        let large = last.saturating_sub(between).saturating_sub(answers[1]);
        Some([small, large])
    }

    /// Returns true if the bursts, and little other traffic, explain the increase of a counter.
    fn is_burst(&self, growth: Option<[u64; 2]>) -> bool {
        let Some([small, large]) = growth else { return false };
        // Ports also count the census's own requests for counters, and the responses to them. If requests were
        // repeated, the three readings contain different numbers of requests. Each request adds at most two packets to
        // a counter: itself and its response.
        let explained = match self.is_lossy {
            true => 2 * (self.attempts[1] + self.attempts[2]),
            false => 0,
        };
        let slack = 2 + self.burst / 4 + explained;
        // The second burst has `2 * burst` more probes than the first. Some of them may be lost on the way to the
        // switch.
        let more = large.saturating_sub(small);
        let sum = u128::from(small) + u128::from(large);
        // For random traffic, the counts of two bursts rarely differ by more than twice the square root of their sum.
        let stands_out =
            more >= self.burst.min(64) + explained && u128::from(more).pow(2) >= 4 * sum;
        let is_quiet =
            more <= 2 * self.burst + slack && small <= self.burst + 2 * self.attempts[1] + slack;
        // A port in a forwarding loop counts each packet several times. The counts of the two bursts still have the
        // ratio 1 : 3.
        let is_loop = small >= self.burst && large.abs_diff(3 * small) <= slack;
        stands_out && (is_quiet || is_loop)
    }
}

/// For each port of a switch, returns the LID and the port number at the other end of its cable. Omits a port if
/// another node could respond to requests that are sent to this LID.
fn behind(switch: NodeNumber, model: &FabricModel) -> BTreeMap<u8, (u16, u8)> {
    let links = model.node(switch).links.iter();
    links
        .filter_map(|(&port, link)| match *link {
            Link::To(next, enters, _) => {
                let end = model.end((next, enters)).filter(|end| end.lid != 0)?;
                let is_routed = matches!(model.entry(next, end.lid), Entry::Port(_));
                let is_doubtful = model.claimants(end.lid).len() > 1
                    || model.node(next).kind.is_switch() && is_routed;
                (!is_doubtful).then_some((port, (end.lid, enters)))
            }
            Link::Nowhere { .. } => None,
        })
        .collect()
}
