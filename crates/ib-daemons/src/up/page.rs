//! The web page of the fabric. It answers calls of the API and executes commands that change the fabric.
//!
//! | module | holds |
//! |---|---|
//! | `files` | the static files of the page |
//! | `model` | data of the fabric that does not change: nodes, links and their numbers |
//! | `state` | the state that changes: links, traffic, the SM |
//! | `missing` | nodes that the SM cannot reach |
//! | `path`, `load` | the path between two nodes; the number of host pairs that use each link |
//! | `node`, `acm`, `device` | details of a node, of its ACM service, of the block device |

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ib_sim::{Addresses, Command, LogLevel, Sim, Target};
use ib_topology::{Fabric, PortId};
use ib_types::Instant;
use ib_wire::acm::ClientStatus;
use ib_wire::mad::sa::PathRecord;

use super::load_generator::LoadGenerator;
use crate::error::DaemonError;
use crate::sim::Manager;
use crate::up::hosts::{BlockPair, Hosts, Reply};
use crate::up::web::{Answer, ApiCall, Json, PathQuery, Refusal, Request, Resolve, Start, Web};

mod acm;
mod device;
mod files;
mod load;
mod log_lines;
mod missing;
pub(super) mod model;
mod node;
mod path;
mod state;

use load::Loads;
use log_lines::condensed;
use model::{Model, json};
use node::NodeContext;
use state::States;

/// Number of the page's first resolve request. Each later request gets the next number.
const FIRST_REQUEST: u64 = 1 << 32;

/// Maximum duration of a run of the load generator, in seconds.
const LONGEST_EXERCISE: u32 = 600;

/// The web page.
pub(super) struct Page {
    web: Web,
    model: Arc<Model>,
    states: States,
    loads: Loads,
    /// Lines that the SM has logged and that were not published yet.
    sm_lines: Option<Arc<Mutex<Vec<String>>>>,
    /// True if there are log lines that were not published yet.
    has_lines: bool,
    /// Outstanding resolve requests by number, each with the time at which it was sent.
    waiting: BTreeMap<u64, (Request, Instant)>,
    next_request: u64,
    /// True if the last call of `show` has handled requests of clients. The event loop then calls `show` again at once.
    has_changed: bool,
}

/// The parts of the simulator that the page shows and changes.
pub(super) struct FabricView<'a> {
    /// The fabric.
    pub(super) sim: &'a mut Sim,
    /// The IP addresses of the fabric's ports.
    pub(super) addresses: &'a Addresses,
    /// The SM that runs within this process, if any.
    pub(super) manager: Option<&'a Manager>,
}

/// The hosts and the block device that the page shows and controls.
pub(super) struct Scene<'a> {
    pub(super) hosts: &'a mut Hosts,
    /// Name of the block device.
    pub(super) device: &'static str,
    /// The client and the server of the block device.
    pub(super) pair: Option<&'a BlockPair>,
    /// Ports of the block device's hosts: those of the client, then those of the server.
    pub(super) ends: &'a [Vec<PortId>; 2],
    /// Path of the block device's NBD socket.
    pub(super) nbd: &'a Path,
    /// Number of connected NBD clients.
    pub(super) programs: usize,
    /// True if no NBD request is outstanding, not even one of a disconnected client.
    pub(super) is_idle: bool,
    pub(super) load_generator: &'a mut LoadGenerator,
}

impl Page {
    /// Starts the web server at an address; port 0 selects a free port.
    pub(super) fn start(
        address: SocketAddr,
        fabric: Fabric,
        (name, engine, socket): (&str, &str, &str),
    ) -> Result<Self, DaemonError> {
        let web = Web::start(address, files::FILES).map_err(|error| {
            DaemonError::Failed(format!(
                "cannot serve the page at {address}: {error}; --http selects another address"
            ))
        })?;
        Ok(Self {
            web,
            model: Arc::new(Model::new(fabric, name, engine, socket)),
            states: States::default(),
            loads: Loads::default(),
            sm_lines: None,
            has_lines: false,
            waiting: BTreeMap::new(),
            next_request: FIRST_REQUEST,
            has_changed: false,
        })
    }

    /// Returns the URL of the page.
    pub(super) fn url(&self) -> String {
        self.web.url()
    }

    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.web.bell()
    }

    pub(super) fn silence(&self) {
        self.web.silence();
    }

    /// Returns the time at which [`Page::show`] must be called even without a request.
    pub(super) fn due(&self) -> Option<Instant> {
        let listeners = self.web.listeners();
        self.has_changed.then_some(Instant::ZERO).or((listeners > 0).then(|| self.states.due()))
    }

    /// Answers API requests, and publishes the state of the fabric to the clients that listen for it.
    pub(super) fn show(&mut self, view: &mut FabricView<'_>, mut scene: Scene<'_>) {
        self.take_lines(view);
        self.has_changed = false;
        while let Some(request) = self.web.poll_request() {
            self.has_changed = true;
            if let ApiCall::Resolve(resolve) = &request.call {
                let resolve = resolve.clone();
                self.resolve(view.sim, scene.hosts, &resolve, request);
                continue;
            }
            let answer = self.answer(&request.call, view, &mut scene);
            request.answer(answer.unwrap_or_else(Answer::Refused));
        }
        if self.web.listeners() == 0 {
            return self.states.reset();
        }
        if view.sim.now() < self.states.due() {
            return;
        }
        let has_to = self.web.has_newcomers() | std::mem::take(&mut self.has_lines);
        if let Some(members) = self.states.update((view.sim, &self.model, view.manager), has_to) {
            self.web.publish(&members);
        }
    }

    /// Publishes new log lines of the simulator and of the SM.
    fn take_lines(&mut self, view: &mut FabricView<'_>) {
        let now = view.sim.now();
        let sm_lines = self.sm_lines.get_or_insert_with(|| {
            view.sim.set_log(LogLevel::Events);
            let sm_lines = Arc::new(Mutex::new(Vec::new()));
            if let Some(manager) = view.manager {
                manager.listen(listener(Arc::clone(&sm_lines)));
            }
            sm_lines
        });
        let sm_lines =
            std::mem::take(&mut *sm_lines.lock().unwrap_or_else(PoisonError::into_inner));
        for line in sm_lines {
            self.web.log(now, &format!("SM: {line}"));
            self.has_lines = true;
        }
        for line in condensed(&view.sim.take_log()) {
            // A log line of the simulator begins with its time in seconds, which is passed to the web server
            // separately.
            let (at, line) = line.split_once(' ').unwrap_or(("", &line));
            let seconds = at.parse::<f64>().ok();
            let at = seconds.map_or(now, |seconds| Instant::from_nanos((seconds * 1e9) as u64));
            self.web.log(at, line);
            self.has_lines = true;
        }
    }

    fn answer(
        &self,
        call: &ApiCall,
        view: &mut FabricView<'_>,
        scene: &mut Scene<'_>,
    ) -> Result<Answer, Refusal> {
        let model = &*self.model;
        let plan = || view.manager.and_then(|manager| manager.shown().plan);
        let json = match *call {
            ApiCall::Fabric => model.json(),
            ApiCall::Path(PathQuery { from, to }) => {
                let nodes = [model.node(from)?, model.node(to)?];
                path::path((view.sim, model, plan().as_deref()), nodes)?
            }
            ApiCall::Addresses => node::addresses(view.sim, view.addresses),
            ApiCall::Load => {
                let engine = plan().map_or("", |plan| plan.routing.engine.name());
                return Ok(self.loads.answer(view.sim, &self.model, engine));
            }
            ApiCall::Node(id) => {
                let context = NodeContext {
                    hosts: scene.hosts,
                    ends: scene.ends,
                    device: scene.device,
                    manager: view.manager,
                    addresses: view.addresses,
                };
                node::node((view.sim, model), &context, model.node(id)?)
            }
            ApiCall::Names(id) => {
                let port = self.host(scene.hosts, id)?;
                let service =
                    scene.hosts.service(port).expect("`host` returned the port of a host");
                acm::acm(service, view.sim.now())
            }
            ApiCall::Device => {
                let names = (scene.device, scene.nbd, scene.programs);
                device::device(view.sim, scene.pair, names)
            }
            ApiCall::Exercise => json(&scene.load_generator.progress()),
            ApiCall::Link(link) => set_link(view.sim, model.link(link.link)?.0, link.up)?,
            ApiCall::Start(start) => begin(view.sim.now(), start, scene)?,
            ApiCall::Resolve(_) => unreachable!("`show` handles resolve requests"),
        };
        Ok(Answer::Json(json))
    }

    /// Returns the port of the host at a node.
    fn host(&self, hosts: &Hosts, id: u32) -> Result<PortId, Refusal> {
        let node = self.model.node(id)?;
        let port = self.model.end_port(node).filter(|&port| hosts.has(port));
        port.ok_or_else(|| {
            let name = &self.model.fabric.node(node).name;
            Refusal::not_found(format!("{name} has no ACM service in this process"))
        })
    }

    /// Sends a resolve request to the ACM service of the host at a node.
    fn resolve(&mut self, sim: &mut Sim, hosts: &mut Hosts, what: &Resolve, request: Request) {
        let port = self.host(hosts, what.from);
        let entry = port.and_then(|port| Ok((port, acm::destination_of(sim, port, &what.to)?)));
        let (port, entry) = match entry {
            Ok(found) => found,
            Err(refusal) => return request.answer(refusal),
        };
        let number = self.next_request;
        self.next_request += 1;
        self.waiting.insert(number, (request, sim.now()));
        if let Some(message) = hosts.request(sim, port, number, vec![entry]) {
            hosts.queue_reply(Reply { port, number, message });
        }
    }

    /// Passes the response to a resolve request to the client that has sent the request.
    pub(super) fn take_reply(
        &mut self,
        now: Instant,
        number: u64,
        found: Result<PathRecord, ClientStatus>,
    ) {
        if let Some((request, since)) = self.waiting.remove(&number) {
            let micros = now.since(since).as_secs_f64() * 1e6;
            match acm::resolved(found, micros) {
                Ok(json) => request.answer(Answer::Json(json)),
                Err(refusal) => request.answer(refusal),
            }
        }
    }

    /// Answers the outstanding resolve requests of a removed host with an error.
    pub(super) fn cancel_requests(&mut self, port: PortId) {
        let (node, model) = (|id: u32| self.model.node(id).ok(), &self.model);
        let is_there = |(_, (request, _)): (&u64, &mut (Request, Instant))| match &request.call {
            ApiCall::Resolve(resolve) => {
                node(resolve.from).and_then(|node| model.end_port(node)) == Some(port)
            }
            _ => false,
        };
        let gone = self.waiting.extract_if(.., |number, it| is_there((number, it)));
        for (_, (request, _)) in gone {
            request.answer(Refusal::conflict("the host was removed"));
        }
    }
}

/// Cuts or restores the link of a port.
fn set_link(sim: &mut Sim, port: PortId, up: bool) -> Result<Json, Refusal> {
    let (node, number) = sim.place(port);
    let target = Target { node: sim.node_name(node).to_owned(), port: Some(number) };
    let command = if up { Command::Relink(target) } else { Command::Unlink(target) };
    sim.run(&command).map_err(Refusal::conflict)?;
    Ok(Json::from_static(b"{}"))
}

/// Starts the load generator.
fn begin(now: Instant, Start { seconds }: Start, scene: &mut Scene<'_>) -> Result<Json, Refusal> {
    if !(1..=LONGEST_EXERCISE).contains(&seconds) {
        let error = format!("{seconds} seconds: expected 1 to {LONGEST_EXERCISE}");
        return Err(Refusal::bad(error));
    }
    let name = scene.device;
    let Some(geometry) = scene.pair.and_then(BlockPair::geometry) else {
        return Err(Refusal::conflict(format!("this fabric has no {name}")));
    };
    if scene.load_generator.is_running() {
        return Err(Refusal::conflict(format!("the load generator of {name} is running already")));
    }
    if !scene.is_idle {
        let error = format!("{name} is in use by an NBD client: disconnect it first");
        return Err(Refusal::conflict(error));
    }
    scene.load_generator.start(now, geometry.size, Duration::from_secs(seconds.into()));
    Ok(Json::from_static(b"{}"))
}

/// Returns a callback that stores the SM's log lines until they are published.
fn listener(sm_lines: Arc<Mutex<Vec<String>>>) -> crate::log::Listener {
    Box::new(move |line| {
        sm_lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
    })
}
