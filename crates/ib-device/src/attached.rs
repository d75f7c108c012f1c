//! The link of an HCA at a port of a fabric that another process simulates.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use ib_attach::{AttachedPort, Frame};
use ib_hca::Hca;
use ib_link::{Datagram, Direction, Incoming, Remote, Route};
use ib_mad::{Backoff, Completion, Request, Requester, RequesterConfig, Timing};
use ib_os::alarm::Alarm;
use ib_os::clock;
use ib_types::{Gid, Instant, Mtu};
use ib_wire::mad::sa::{ComponentMask, PathRecord, SaHeader};
use ib_wire::mad::{Attribute, Mad, Method, MgmtClass, TransactionId};

use crate::engines::Engines;
use crate::path::Path;
use crate::path::{grh_of, is_group, route_from, route_of, route_to};

/// Maximum number of frames that the HCA receives before it sends again.
const ROUND: usize = 64;

/// Timeout and retries of the path queries of [`Device::path_to`](crate::Device::path_to).
pub(crate) const PATH_TIMING: Timing =
    Timing { timeout: Duration::from_millis(500), retries: 3, backoff: Backoff::Fixed };

/// Number of empty polls of the rings between two polls of the simulator's socket.
const POLLS_PER_SOCKET_POLL: u32 = 256;

/// A port of a simulated fabric, and the cached paths that start at the port.
pub(crate) struct Attached {
    pub(crate) port: AttachedPort,
    requester: Requester,
    /// Completions of SA queries that were not yet returned to the callers.
    completions: VecDeque<Completion>,
    paths: BTreeMap<Gid, Path>,
    /// Value of the port's change counter when the paths were cached.
    changes: u64,
    /// Number of received packets, which [`LinkCounters::without_icrc`](crate::LinkCounters::without_icrc) reports.
    pub(crate) received: u64,
    /// True if a packet may wait for a free slot, because the ring to the simulator was full.
    waits: bool,
    looks: u32,
    /// MADs that wait for a free slot of the ring to the simulator.
    pub(crate) unsent: VecDeque<Datagram>,
}

impl Attached {
    pub(crate) fn new(port: AttachedPort, first: u32) -> Self {
        let config = RequesterConfig { first, ..RequesterConfig::default() };
        Self {
            port,
            requester: Requester::new(config),
            completions: VecDeque::new(),
            paths: BTreeMap::new(),
            changes: 0,
            received: 0,
            waits: false,
            looks: 0,
            unsent: VecDeque::new(),
        }
    }

    /// Returns the first GID of the port.
    pub(crate) const fn gid(&self) -> Gid {
        self.port.details().port.gid()
    }

    /// Sends queued packets and MADs until the ring is full. Returns true if any were sent.
    pub(crate) fn transmit(&mut self, now: Instant, hca: &mut Hca) -> bool {
        let mut moved = false;
        while let Some(datagram) =
            self.unsent.pop_front().or_else(|| self.requester.poll_transmit(now))
        {
            if !self.port.send(&datagram) {
                self.unsent.push_front(datagram);
                break;
            }
            let Remote { lid, sl, grh, .. } = datagram.remote;
            let (source, slid) = (self.gid(), self.port.details().port.lid);
            let route = Route { source, slid, dlid: lid, sl, ..Route::default() };
            let route = route_to(grh.as_ref(), route);
            hca.note_datagram(Direction::Send, now, &route, &datagram.remote, &datagram.mad);
            moved = true;
        }
        loop {
            // If the ring is full, `send_with` does not call the closure. The HCA may then have a packet
            // to send, so `waits` becomes true.
            let mut is_asked = false;
            let sent = self.port.send_with(|slot| {
                is_asked = true;
                let sent = hca.poll_transmit(now, slot)?;
                let Route { slid, dlid, sl, .. } = sent.route;
                let grh = grh_of(&sent.route);
                Some((Frame::Packet { slid, dlid, sl, grh }, sent.length))
            });
            moved |= sent;
            if !sent {
                self.waits = !is_asked;
                break;
            }
        }
        self.port.flush();
        moved
    }

    /// Processes received frames. Returns true if any had arrived.
    pub(crate) fn receive(&mut self, engines: &mut Engines) -> io::Result<bool> {
        let mut moved = false;
        let (gid, own) = (self.gid(), self.port.details().port);
        for _ in 0..ROUND {
            let mut datagram = None;
            let came = self.port.receive(|frame, bytes| match frame {
                Frame::Packet { slid, dlid, sl, grh } => {
                    let to = if is_group(dlid) { own.lid } else { dlid };
                    let route = Route { slid: to, dlid: slid, sl, ..Route::default() };
                    self.received += 1;
                    // The clock is read after the packet has arrived, so that no trace shows a
                    // packet as received before it was sent.
                    engines.hca.handle(clock::now(), &route_from(gid, grh.as_ref(), route), bytes);
                }
                Frame::Lost { slid, dlid, sl, grh } => {
                    let route = Route { source: gid, slid, dlid, sl, ..Route::default() };
                    if let Some((why, packet, length)) = Frame::parse_loss_report(bytes) {
                        let route = route_to(grh.as_ref(), route);
                        engines.hca.note_lost(clock::now(), &route, packet, length, why);
                    }
                }
                Frame::Datagram { .. } => datagram = frame.datagram(bytes),
                // A simulator sends no packets over Ethernet.
                Frame::Ethernet { .. } => {}
            });
            let now = clock::now();
            let handed = datagram.map(|datagram| {
                let Remote { lid, sl, path_bits, grh, .. } = datagram.remote;
                let slid = own.lid | u16::from(path_bits);
                let route = Route { slid, dlid: lid, sl, ..Route::default() };
                (datagram, route_from(gid, grh.as_ref(), route))
            });
            if let Some((datagram, route)) = &handed {
                let remote = &datagram.remote;
                engines.hca.note_datagram(Direction::Receive, now, route, remote, &datagram.mad);
            }
            if let Some((datagram, route)) = handed
                && !self.requester.handle(now, &Incoming::Received(datagram))
            {
                engines.handle_mad(now, route, datagram.remote.qpn, datagram.mad);
            }
            if !came {
                break;
            }
            moved = true;
        }
        let now = clock::now();
        if self.requester.poll_timeout().is_some_and(|at| at <= now) {
            self.requester.handle_timeout(now);
        }
        self.looks += 1;
        if moved {
            self.port.flush();
        } else if self.looks >= POLLS_PER_SOCKET_POLL {
            self.looks = 0;
            self.port.receive_messages().map_err(io::Error::other)?;
        }
        Ok(moved)
    }

    /// Waits until a frame arrives, an SA query times out, the time `until` has come, or `alarm` is rung. If a packet
    /// or MAD waits for a slot of the ring to the simulator, a free slot also ends the wait.
    pub(crate) fn wait(&mut self, until: Instant, alarm: Option<&Alarm>) -> io::Result<()> {
        let until = self.requester.poll_timeout().into_iter().fold(until, Instant::min);
        let wants_room = self.waits || !self.unsent.is_empty();
        self.port.wait(until, wants_room, alarm).map_err(io::Error::other)
    }

    /// Prepares a wait that the caller does itself, for example in `poll`. Returns the time at
    /// which the wait has to end; `None` if there is work already.
    pub(crate) fn begin_wait(&mut self, until: Instant) -> Option<Instant> {
        let until = self.requester.poll_timeout().into_iter().fold(until, Instant::min);
        let wants_room = self.waits || !self.unsent.is_empty();
        self.port.begin_wait(wants_room).then_some(until)
    }

    /// Returns the path to a port, if it is cached.
    pub(crate) fn path(&mut self, to: Gid) -> Option<Path> {
        if self.port.changes() != self.changes {
            self.paths.clear();
            self.changes = self.port.changes();
        }
        self.paths.get(&to).copied()
    }

    /// Starts an SA query for the path to a port. Returns the transaction ID of the query.
    pub(crate) fn query_path(&mut self, to: Gid, timing: Timing) -> TransactionId {
        let wanted =
            PathRecord { dgid: to, sgid: self.gid(), numb_path: 1, ..PathRecord::zeroed() };
        self.query(Method::GET, &wanted, ComponentMask::of(&[2, 3, 12]), timing)
    }

    /// Starts an SA query. Returns its transaction ID.
    pub(crate) fn query<A: Attribute>(
        &mut self,
        method: Method,
        wanted: &A,
        component_mask: ComponentMask,
        timing: Timing,
    ) -> TransactionId {
        let mut mad = Mad::new(MgmtClass::SUBN_ADM, method, TransactionId(0));
        mad.set_attribute(wanted);
        mad.set_sa(&SaHeader { component_mask, ..mad.sa() });
        let own = self.port.details().port;
        let remote = Remote { sl: own.sm_sl, ..Remote::gsi(own.sm_lid) };
        let request = Request::new(remote, mad).with_timing(timing);
        self.requester.start(request).expect("the methods of SA queries have responses")
    }

    /// Returns the completion of the next SA query that has ended.
    pub(crate) fn poll_query(&mut self) -> Option<Completion> {
        self.completions.pop_front().or_else(|| self.requester.poll_event())
    }

    /// Returns the completion of a query; `None` if the query is not complete. Completions of other queries are kept.
    fn take_query(&mut self, query: TransactionId) -> Option<Completion> {
        self.completions.extend(std::iter::from_fn(|| self.requester.poll_event()));
        let position = self.completions.iter().position(|it| it.transaction_id == query)?;
        self.completions.remove(position)
    }

    /// Returns the result of a path query to the SA: the path or the reason of the failure. A
    /// returned path is also cached. `None` if the query is not complete.
    pub(crate) fn take_path(
        &mut self,
        to: Gid,
        query: TransactionId,
    ) -> Option<Result<Path, String>> {
        let completion = self.take_query(query)?;
        let answer = match completion.result {
            Ok(message) if message.status().is_ok() => {
                let path: PathRecord =
                    message.mad().attribute().expect("a response has the attribute of its request");
                let mtu = Mtu::from_code(path.mtu.0).unwrap_or(Mtu::B256);
                let path = Path { route: route_of(&path), mtu, p_key: path.p_key };
                self.changes = self.port.changes();
                self.paths.insert(to, path);
                Ok(path)
            }
            Ok(message) => Err(format!("the SA returned {}", message.status())),
            Err(failure) => Err(failure.to_string()),
        };
        Some(answer)
    }

    /// Returns the GID of the port that has the IP address; `None` if no port has it.
    pub(crate) fn gid_of(&mut self, address: IpAddr) -> io::Result<Option<Gid>> {
        if let IpAddr::V6(address) = address
            && (u128::from(address) >> 64) as u64 == self.port.details().port.gid_prefix
        {
            return Ok(Some(Gid(u128::from(address))));
        }
        let found = self.port.resolve(&address.to_string()).map_err(io::Error::other)?;
        Ok(found.map(|place| place.gid))
    }
}
