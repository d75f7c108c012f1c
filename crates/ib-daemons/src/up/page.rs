//! The page of the fabric: what browsers are told, and what they may change.
//!
//! | module | holds |
//! |---|---|
//! | `files` | the files of the page |
//! | `model` | what never changes of the fabric, and the numbers of nodes and links |
//! | `state` | what changes all the time |
//! | `missing` | nodes that are not reached |
//! | `way`, `load` | the way from a node to another one, how many pairs of hosts use each link |
//! | `node`, `names`, `device` | all of a node, of its service of names, of the block device |

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ib_sim::{Addresses, Command, LogLevel, Sim, Target};
use ib_topology::{Fabric, PortId};
use ib_types::Instant;
use ib_wire::acm::ClientStatus;
use ib_wire::mad::sa::PathRecord;

use super::exercise::Exercise;
use crate::error::DaemonError;
use crate::sim::Manager;
use crate::up::hosts::{BlockPair, Hosts, Reply};
use crate::up::web::{Answer, Asked, Json, Refusal, Request, Resolve, Start, Way, Web};

mod device;
mod files;
mod load;
mod log_lines;
mod missing;
pub(super) mod model;
mod names;
mod node;
mod state;
mod way;

use load::Loads;
use log_lines::condensed;
use model::{Model, json};
use node::Places;
use state::States;

/// Questions to services of names have numbers from here on.
const FIRST_QUESTION: u64 = 1 << 32;

/// The longest exercise in seconds.
const LONGEST_EXERCISE: u32 = 600;

/// The page.
pub(super) struct Page {
    web: Web,
    model: Arc<Model>,
    states: States,
    loads: Loads,
    /// What the manager has logged since the last view.
    heard: Option<Arc<Mutex<Vec<String>>>>,
    /// Whether there are lines that those who listen have not been told.
    has_lines: bool,
    /// Who waits for the answer of a service of names, since when, by the number of the question.
    waiting: BTreeMap<u64, (Request, Instant)>,
    questions: u64,
    /// Whether something was asked for that others have to go on with.
    has_asked: bool,
}

/// The fabric as the page shows and changes it.
pub(super) struct FabricView<'a> {
    /// The fabric.
    pub(super) sim: &'a mut Sim,
    /// The IP addresses of its ports.
    pub(super) addresses: &'a Addresses,
    /// The SM in this process.
    pub(super) manager: Option<&'a Manager>,
}

/// The hosts and the block device as the page shows and changes them.
pub(super) struct Scene<'a> {
    pub(super) hosts: &'a mut Hosts,
    /// The block device: its name, its client and server, their hosts.
    pub(super) device: &'static str,
    pub(super) pair: Option<&'a BlockPair>,
    pub(super) ends: &'a [Vec<PortId>; 2],
    /// Where programs find it, and how many use it.
    pub(super) nbd: &'a Path,
    pub(super) programs: usize,
    /// Whether nothing is in flight for programs, those that have gone included.
    pub(super) is_idle: bool,
    pub(super) exercise: &'a mut Exercise,
}

impl Page {
    /// Serves it on a port of the loopback device, 0 for any that is free.
    pub(super) fn start(
        port: u16,
        fabric: Fabric,
        (name, engine, socket): (&str, &str, &str),
    ) -> Result<Self, DaemonError> {
        let web = Web::start(port, files::FILES).map_err(|error| {
            DaemonError::Failed(format!(
                "cannot serve the page at 127.0.0.1:{port}: {error}; --http gives it another port"
            ))
        })?;
        Ok(Self {
            web,
            model: Arc::new(Model::new(fabric, name, engine, socket)),
            states: States::default(),
            loads: Loads::default(),
            heard: None,
            has_lines: false,
            waiting: BTreeMap::new(),
            questions: FIRST_QUESTION,
            has_asked: false,
        })
    }

    /// Returns where it is.
    pub(super) fn url(&self) -> String {
        self.web.url()
    }

    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.web.bell()
    }

    pub(super) fn silence(&self) {
        self.web.silence();
    }

    /// Returns when there is something to do although nobody asks.
    pub(super) fn due(&self) -> Option<Instant> {
        let listeners = self.web.listeners();
        self.has_asked.then_some(Instant::ZERO).or((listeners > 0).then(|| self.states.due()))
    }

    /// Tells those who listen what there is, and answers who has asked.
    pub(super) fn show(&mut self, view: &mut FabricView<'_>, mut scene: Scene<'_>) {
        self.take_lines(view);
        self.has_asked = false;
        while let Some(request) = self.web.poll_request() {
            self.has_asked = true;
            if let Asked::Resolve(resolve) = &request.asked {
                let resolve = resolve.clone();
                self.resolve(view.sim, scene.hosts, &resolve, request);
                continue;
            }
            let answer = self.answer(&request.asked, view, &mut scene);
            request.answer(answer.unwrap_or_else(Answer::Refused));
        }
        if self.web.listeners() == 0 {
            return self.states.forget();
        }
        if view.sim.now() < self.states.due() {
            return;
        }
        let has_to = self.web.has_newcomers() | std::mem::take(&mut self.has_lines);
        if let Some(members) = self.states.look((view.sim, &self.model, view.manager), has_to) {
            self.web.publish(&members);
        }
    }

    /// Takes what the fabric and its manager have logged.
    fn take_lines(&mut self, view: &mut FabricView<'_>) {
        let now = view.sim.now();
        let heard = self.heard.get_or_insert_with(|| {
            view.sim.set_log(LogLevel::Events);
            let heard = Arc::new(Mutex::new(Vec::new()));
            if let Some(manager) = view.manager {
                manager.listen(listener(Arc::clone(&heard)));
            }
            heard
        });
        let heard = std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
        for line in heard {
            self.web.log(now, &format!("manager: {line}"));
            self.has_lines = true;
        }
        for line in condensed(&view.sim.take_log()) {
            // The fabric's lines begin with their time.
            let (at, line) = line.split_once(' ').unwrap_or(("", &line));
            let seconds = at.parse::<f64>().ok();
            let at = seconds.map_or(now, |seconds| Instant::from_nanos((seconds * 1e9) as u64));
            self.web.log(at, line);
            self.has_lines = true;
        }
    }

    fn answer(
        &self,
        asked: &Asked,
        view: &mut FabricView<'_>,
        scene: &mut Scene<'_>,
    ) -> Result<Answer, Refusal> {
        let model = &*self.model;
        let plan = || view.manager.and_then(|manager| manager.shown().plan);
        let said = match *asked {
            Asked::Fabric => model.json(),
            Asked::Path(Way { from, to }) => {
                let nodes = [model.node(from)?, model.node(to)?];
                way::way((view.sim, model, plan().as_deref()), nodes)?
            }
            Asked::Addresses => node::addresses(view.sim, view.addresses),
            Asked::Load => {
                let engine = plan().map_or("", |plan| plan.routing.engine.name());
                return Ok(self.loads.answer(view.sim, &self.model, engine));
            }
            Asked::Node(id) => {
                let places = Places {
                    hosts: scene.hosts,
                    ends: scene.ends,
                    device: scene.device,
                    manager: view.manager,
                    addresses: view.addresses,
                };
                node::node((view.sim, model), &places, model.node(id)?)
            }
            Asked::Names(id) => {
                let port = self.host(scene.hosts, id)?;
                let service = scene.hosts.service(port).expect("there is a host");
                names::names(service, view.sim.now())
            }
            Asked::Device => {
                let names = (scene.device, scene.nbd, scene.programs);
                device::device(view.sim, scene.pair, names)
            }
            Asked::Exercise => json(&scene.exercise.progress()),
            Asked::Link(link) => set_link(view.sim, model.link(link.link)?.0, link.up)?,
            Asked::Start(start) => begin(view.sim.now(), start, scene)?,
            Asked::Resolve(_) => unreachable!("these are answered later"),
        };
        Ok(Answer::Json(said))
    }

    /// Returns the port of the host that a node is.
    fn host(&self, hosts: &Hosts, id: u32) -> Result<PortId, Refusal> {
        let node = self.model.node(id)?;
        let port = self.model.end_port(node).filter(|&port| hosts.has(port));
        port.ok_or_else(|| {
            let name = &self.model.fabric.node(node).name;
            Refusal::not_found(format!("{name} has no service of names here"))
        })
    }

    /// Has a service of names asked.
    fn resolve(&mut self, sim: &mut Sim, hosts: &mut Hosts, what: &Resolve, request: Request) {
        let port = self.host(hosts, what.from);
        let entry = port.and_then(|port| Ok((port, names::question(sim, port, &what.to)?)));
        let (port, entry) = match entry {
            Ok(found) => found,
            Err(refusal) => return request.answer(refusal),
        };
        let number = self.questions;
        self.questions += 1;
        self.waiting.insert(number, (request, sim.now()));
        if let Some(message) = hosts.ask(sim, port, number, vec![entry]) {
            hosts.answered(Reply { port, number, message });
        }
    }

    /// The answer of a service to a question, if it was the page's.
    pub(super) fn take_reply(
        &mut self,
        now: Instant,
        number: u64,
        found: Result<PathRecord, ClientStatus>,
    ) {
        if let Some((request, since)) = self.waiting.remove(&number) {
            let micros = now.since(since).as_secs_f64() * 1e6;
            match names::resolved(found, micros) {
                Ok(json) => request.answer(Answer::Json(json)),
                Err(refusal) => request.answer(refusal),
            }
        }
    }

    /// A host has gone, and what was asked there is not answered any more.
    pub(super) fn forget_questions(&mut self, port: PortId) {
        let (node, model) = (|id: u32| self.model.node(id).ok(), &self.model);
        let is_there = |(_, (request, _)): (&u64, &mut (Request, Instant))| match &request.asked {
            Asked::Resolve(resolve) => {
                node(resolve.from).and_then(|node| model.end_port(node)) == Some(port)
            }
            _ => false,
        };
        let gone = self.waiting.extract_if(.., |number, it| is_there((number, it)));
        for (_, (request, _)) in gone {
            request.answer(Refusal::conflict("the host has gone"));
        }
    }
}

/// Cuts a link at a port or restores it, as the console does.
fn set_link(sim: &mut Sim, port: PortId, up: bool) -> Result<Json, Refusal> {
    let (node, number) = sim.place(port);
    let target = Target { node: sim.node_name(node).to_owned(), port: Some(number) };
    let command = if up { Command::Relink(target) } else { Command::Unlink(target) };
    sim.run(&command).map_err(Refusal::conflict)?;
    Ok(Json::from_static(b"{}"))
}

/// Has the device exercised.
fn begin(now: Instant, Start { seconds }: Start, scene: &mut Scene<'_>) -> Result<Json, Refusal> {
    if !(1..=LONGEST_EXERCISE).contains(&seconds) {
        let error = format!("{seconds} seconds: expected 1 to {LONGEST_EXERCISE}");
        return Err(Refusal::bad(error));
    }
    let name = scene.device;
    let Some(geometry) = scene.pair.and_then(BlockPair::geometry) else {
        return Err(Refusal::conflict(format!("there is no {name} in this fabric")));
    };
    if scene.exercise.is_running() {
        return Err(Refusal::conflict(format!("{name} is exercised already")));
    }
    if !scene.is_idle {
        let error = format!("a program uses {name} over NBD: an exercise would be in its way");
        return Err(Refusal::conflict(error));
    }
    scene.exercise.start(now, geometry.size, Duration::from_secs(seconds.into()));
    Ok(Json::from_static(b"{}"))
}

/// Returns what keeps lines until the next view.
fn listener(heard: Arc<Mutex<Vec<String>>>) -> crate::log::Listener {
    Box::new(move |line| {
        heard.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
    })
}
