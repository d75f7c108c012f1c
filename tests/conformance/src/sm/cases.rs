//! The list of cases, with the purpose of each.

use std::path::Path;

use ib_topology::{Fabric, PortId};

use super::beside::Pair;
use super::files::{LINES, Line};
use super::handover::{PLAYS, Play, Who};
use super::scene::{Gear, Outcome, Scene};
use super::up::Expected;
use super::{answers, files, flows, guarded, handover, keys, partitions, plan, records, up};
use crate::clients::fabrics::{ENGINES, FABRICS, Plan, hurt};
use crate::clients::server::Kind;
use crate::clients::stage::StageError;

/// The fabrics that come up beside those of [`FABRICS`].
const MORE: [Plan; 4] = [
    plan("k-ary-n-tree 3 3"),
    plan("xgft 6 1"),
    Plan { drop_links: 0.1, lmc: 1, ..plan("random switches=12 ports=10 hosts=3") },
    Plan { long: true, ..plan("xgft 12,12,24 1,12,12") },
];

/// The fabrics about which everything is asked: one that lacks links, one with an LMC, and more when
/// everything is run.
const ASKED: [Plan; 4] =
    [FABRICS[1], FABRICS[8], Plan { long: true, ..FABRICS[3] }, Plan { long: true, ..FABRICS[4] }];

/// The fabric on which managers meet.
const MEETING: Plan = FABRICS[0];

/// A fabric of more nodes than an answer is to have records.
const CROWD: Plan = plan("xgft 28,36 1,8");

/// What is to be shown.
#[derive(Clone, Copy, Debug)]
pub enum What {
    /// A fabric comes up with an engine.
    Up(Plan, &'static str),
    /// Administration answers as OpenSM's.
    Answers(Plan),
    /// Flows of osmtest pass, and with whole answers more of them.
    Flows(Plan, bool),
    /// The subnet passes from manager to manager.
    Handover(Play),
    /// A port that a key guards at this level is left alone.
    Guarded(Plan, u8),
    /// A long answer arrives whole.
    Records(Plan),
    /// A command line of OpenSM leaves OpenSM's files.
    Files(Line),
    /// A partition file says the same to both.
    Partitions(Plan),
    /// Both programs read the same value from a line of the configuration file, or the line is refused.
    Keys,
}

/// What is wrong on purpose, and has to be noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The tables are compared with those of another engine.
    Engine,
    /// The simulator's fabric lacks a link.
    Link,
    /// Nobody has one of the LIDs that are traced to.
    Lid,
    /// The simulator's fabric lacks a host.
    Host,
    /// Nobody manages.
    Nobody,
    /// The other manager is expected to win.
    Winner,
    /// No port is guarded.
    Unguarded,
    /// The command lines differ.
    Options,
}

/// A case.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What it shows.
    pub what: What,
    /// Whether the simulator is Debian's ibsim; `ibfabric sim` otherwise.
    pub on_ibsim: bool,
    /// What is wrong on purpose.
    pub wrong: Option<Wrong>,
}

impl What {
    const fn plan(&self) -> Plan {
        match self {
            Self::Up(plan, _)
            | Self::Answers(plan)
            | Self::Flows(plan, _)
            | Self::Guarded(plan, _)
            | Self::Records(plan)
            | Self::Partitions(plan) => *plan,
            Self::Handover(_) | Self::Keys => MEETING,
            Self::Files(line) => line.plan,
        }
    }
}

impl Wrong {
    /// Returns what is wrong in a few words, and what is said of it.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Engine => ("tables of another engine", "the tables of ibfabric route"),
            Self::Link => ("a link is missing", "from line"),
            Self::Lid => ("nobody has a LID", "ibtracert misses"),
            Self::Host => ("a host is missing", "are missing"),
            Self::Nobody => ("nobody manages", "not with ours"),
            // Which of the two is met first depends on when ours, which stands by for a moment, is asked.
            Self::Winner => ("the wrong winner", ": sminfo says "),
            Self::Options => ("other options", "is not the same"),
            Self::Unguarded => ("nothing is guarded", "does not name the guarded port"),
        }
    }
}

impl Case {
    /// Returns the case in a few words.
    #[must_use]
    pub fn name(&self) -> String {
        let on = if self.on_ibsim { "ibsim" } else { "ibfabric sim" };
        let plan = self.what.plan().name();
        let mut name = match self.what {
            What::Up(_, engine) => format!("up | {plan} | {engine} | {on}"),
            What::Answers(_) => format!("answers | {plan} | {on}"),
            What::Flows(_, whole) => {
                let library = if whole { "our library" } else { "Debian's library" };
                format!("osmtest | {plan} | {library} | {on}")
            }
            What::Handover(play) => format!("handover | {} | {on}", play.name()),
            What::Guarded(_, level) => format!("guarded port, level {level} | {plan} | {on}"),
            What::Partitions(_) => format!("partitions | {plan} | {on}"),
            What::Keys => "configuration keys".to_owned(),
            What::Records(_) => format!("long answer | {plan} | {on}"),
            What::Files(line) => format!("files | {plan} | {} | {on}", line.options.join(" ")),
        };
        if let Some(wrong) = self.wrong {
            name += " | wrong on purpose: ";
            name += wrong.words().0;
        }
        name
    }

    /// Says whether it mostly waits, so that others can run meanwhile.
    #[must_use]
    pub const fn waits(&self) -> bool {
        matches!(self.what, What::Handover(_))
    }

    /// Returns what has to be said when something is wrong on purpose.
    #[must_use]
    pub fn must_say(&self) -> Option<&'static str> {
        let what = |wrong: Wrong| match (wrong, self.what) {
            (Wrong::Link, What::Up(..)) => "iblinkinfo shows",
            _ => wrong.words().1,
        };
        self.wrong.map(what)
    }

    /// Runs it.
    ///
    /// # Errors
    /// Fails when a program cannot be run, or a manager does not come up.
    pub fn run(&self, gear: &Gear, directory: &Path) -> Outcome {
        let kind = match self.on_ibsim {
            true => Kind::Ibsim,
            false => Kind::Ibfabric(gear.ibfabric.clone()),
        };
        let plan = self.what.plan();
        let whole = plan.fabric().map_err(|error| StageError::Recipe(error.into()))?;
        let mut fabric = whole.clone();
        match self.wrong {
            Some(Wrong::Link) => hurt(&mut fabric),
            Some(Wrong::Host) => lose_host(&mut fabric),
            _ => {}
        }
        let pair = |umad| Pair {
            gear,
            kind: &kind,
            umad,
            fabrics: [&whole, &fabric],
            plan,
            managed: self.wrong != Some(Wrong::Nobody),
            directory,
        };
        match self.what {
            What::Partitions(_) => return partitions::run(gear, &kind, &whole, directory),
            What::Keys => return keys::run(gear, self.wrong == Some(Wrong::Options), directory),
            What::Answers(_) => return answers::run(&pair(&gear.own)),
            What::Files(line) => {
                return files::run(gear, line, self.wrong == Some(Wrong::Options), directory);
            }
            What::Flows(_, complete) => {
                let library = if complete { &gear.own } else { &gear.debian };
                return flows::run(&pair(library));
            }
            _ => {}
        }
        let mut scene = Scene::open(gear, &kind, &fabric, &gear.debian, directory)?;
        match self.what {
            What::Up(_, engine) => {
                let expected = Expected {
                    fabric: &whole,
                    plan,
                    engine: if self.wrong == Some(Wrong::Engine) { "dor" } else { engine },
                    also: (self.wrong == Some(Wrong::Lid)).then_some(49_000),
                };
                up::comes_up(&mut scene, engine, &expected)?;
            }
            What::Handover(mut play) => {
                if self.wrong == Some(Wrong::Winner) {
                    play.master = play.master.other();
                }
                handover::run(&mut scene, plan, play, self.on_ibsim)?;
            }
            What::Guarded(_, level) => guarded::run(&mut scene, plan, level)?,
            What::Records(_) => records::run(&mut scene, &whole)?,
            What::Answers(_)
            | What::Flows(..)
            | What::Files(_)
            | What::Partitions(_)
            | What::Keys => {
                unreachable!("they have no scene, or two")
            }
        }
        Ok(scene.close())
    }
}

/// Pulls the cable of the last HCA.
fn lose_host(fabric: &mut Fabric) {
    let is_adapter = |port: PortId| !fabric.node(fabric.port(port).node).kind.is_switch();
    let port = fabric.links().map(|(a, b)| if is_adapter(a) { a } else { b });
    if let Some(port) = port.filter(|&port| is_adapter(port)).last() {
        fabric.disconnect(port);
    }
}

/// Returns the cases; all of them, or those that do not take long.
#[must_use]
pub fn cases(all: bool) -> Vec<Case> {
    let mut list = Vec::new();
    let mut add = |what: What| {
        for on_ibsim in [true, false] {
            // ibsim 0.10 does not know all speeds, and has no M_Keys.
            let fits = what.plan().fits_ibsim() && !matches!(what, What::Guarded(..));
            // The files and partitions are those on the real ibsim.
            let only_ibsim = matches!(what, What::Files(_) | What::Partitions(_) | What::Keys);
            if if on_ibsim { fits } else { !only_ibsim } {
                list.push(Case { what, on_ibsim, wrong: None });
            }
        }
    };
    for play in PLAYS {
        add(What::Handover(play));
    }
    // What takes long comes first, so that the end is short.
    add(What::Flows(FABRICS[0], true));
    add(What::Flows(Plan { flood: false, ..FABRICS[0] }, false));
    add(What::Flows(FABRICS[8], true));
    for plan in ASKED.into_iter().filter(|plan| all || !plan.long) {
        add(What::Answers(plan));
    }
    for plan in FABRICS.into_iter().chain(MORE).filter(|plan| all || !plan.long) {
        for engine in ENGINES {
            add(What::Up(plan, engine));
        }
    }
    for line in LINES {
        add(What::Files(line));
    }
    add(What::Guarded(FABRICS[0], 1));
    add(What::Guarded(FABRICS[0], guarded::READ));
    add(What::Records(CROWD));
    add(What::Partitions(plan("mesh 2x1 hosts=2")));
    add(What::Keys);
    list
}

/// Returns cases in which something is wrong, which has to be noticed.
#[must_use]
pub fn wrong_cases() -> Vec<Case> {
    let small = Plan { flood: false, ..FABRICS[0] };
    let winner = PLAYS[0];
    debug_assert_eq!(winner.master, Who::Ours);
    let mut list = Vec::new();
    for (what, wrong) in [
        (What::Handover(winner), Wrong::Winner),
        (What::Up(FABRICS[4], "updn"), Wrong::Engine),
        (What::Up(FABRICS[4], "minhop"), Wrong::Link),
        (What::Up(FABRICS[4], "minhop"), Wrong::Lid),
        (What::Answers(FABRICS[1]), Wrong::Link),
        (What::Flows(small, false), Wrong::Nobody),
        (What::Records(CROWD), Wrong::Host),
        (What::Files(LINES[0]), Wrong::Options),
        (What::Keys, Wrong::Options),
    ] {
        list.push(Case { what, on_ibsim: true, wrong: Some(wrong) });
    }
    let what = What::Guarded(small, 0);
    list.push(Case { what, on_ibsim: false, wrong: Some(Wrong::Unguarded) });
    list
}
