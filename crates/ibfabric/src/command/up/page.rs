//! The page of the fabric: what browsers are told, and what they may change.
//!
//! | module | holds |
//! |---|---|
//! | `files` | the files of the page |
//! | `model` | what never changes of the fabric, and the numbers of nodes and links |
//! | `state` | what changes all the time |
//! | `way` | the way from a node to another one |

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};

use ib_net::web::{Answer, Asked, Json, Link, Refusal, Web};
use ib_sim::{Command, LogLevel, Sim, Target};
use ib_topology::{Fabric, PortId};
use ib_types::Instant;

use crate::command::sim::Look;
use crate::failure::Failure;

mod files;
mod model;
mod state;
mod way;

use model::Model;
use state::States;

/// The page.
pub(super) struct Page {
    web: Web,
    model: Arc<Model>,
    states: States,
    /// What the manager has logged since the last look.
    heard: Option<Arc<Mutex<Vec<String>>>>,
    /// Whether there are lines that those who listen have not been told.
    has_lines: bool,
}

impl Page {
    /// Serves it on a port of the loopback device, 0 for any that is free.
    pub(super) fn start(
        port: u16,
        fabric: Fabric,
        (name, engine, socket): (&str, &str, &str),
    ) -> Result<Self, Failure> {
        let web = Web::start(port, files::FILES).map_err(|error| {
            Failure::Unusable(format!(
                "cannot serve the page at 127.0.0.1:{port}: {error}; --http gives it another port"
            ))
        })?;
        let model = Arc::new(Model::new(fabric, name, engine, socket));
        Ok(Self { web, model, states: States::default(), heard: None, has_lines: false })
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
        (self.web.listeners() > 0).then(|| self.states.due())
    }

    /// Tells those who listen what there is, and answers who has asked.
    pub(super) fn look(&mut self, look: &mut Look<'_>) {
        self.take_lines(look);
        while let Some(request) = self.web.poll_request() {
            let answer = self.answer(&request.asked, look);
            request.answer(answer.unwrap_or_else(Answer::Refused));
        }
        if self.web.listeners() == 0 {
            return self.states.forget();
        }
        if look.sim.now() < self.states.due() {
            return;
        }
        let has_to = self.web.has_newcomers() | std::mem::take(&mut self.has_lines);
        if let Some(members) = self.states.look((look.sim, &self.model, look.manager), has_to) {
            self.web.publish(&members);
        }
    }

    /// Takes what the fabric and its manager have logged.
    fn take_lines(&mut self, look: &mut Look<'_>) {
        let now = look.sim.now();
        let heard = self.heard.get_or_insert_with(|| {
            look.sim.set_log(LogLevel::Events);
            let heard = Arc::new(Mutex::new(Vec::new()));
            if let Some(manager) = look.manager {
                manager.listen(listener(Arc::clone(&heard)));
            }
            heard
        });
        let heard = std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
        for line in heard {
            self.web.log(now, &format!("manager: {line}"));
            self.has_lines = true;
        }
        for line in look.sim.take_log().lines() {
            // The fabric's lines begin with their time.
            let (at, line) = line.split_once(' ').unwrap_or(("", line));
            let at = at.parse::<f64>().map_or(now, |seconds| Instant::from_nanos((seconds * 1e9) as u64));
            self.web.log(at, line);
            self.has_lines = true;
        }
    }

    fn answer(&self, asked: &Asked, look: &mut Look<'_>) -> Result<Answer, Refusal> {
        match asked {
            Asked::Fabric => Ok(Answer::Json(self.model.json())),
            Asked::Path(ends) => {
                let nodes = [self.model.node(ends.from)?, self.model.node(ends.to)?];
                let plan = look.manager.and_then(|manager| manager.shown().plan);
                way::way((look.sim, &self.model, plan.as_deref()), nodes).map(Answer::Json)
            }
            Asked::Link(Link { link, up }) => {
                let (port, _) = self.model.link(*link)?;
                set_link(look.sim, port, *up).map(Answer::Json)
            }
            _ => Err(Refusal::not_found("not yet")),
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

/// Returns what keeps lines until the next look.
fn listener(heard: Arc<Mutex<Vec<String>>>) -> crate::command::log::Listener {
    Box::new(move |line| {
        heard.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
    })
}
