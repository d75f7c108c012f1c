//! The list of test cases.

use std::path::Path;

use ib_topology::{Fabric, PortId};

use super::files::{LINES, Line};
use super::handover::{PLAYS, Play, Who};
use super::pair::Pair;
use super::scene::{Gear, Outcome, Scene};
use super::up::Expected;
use super::{answers, files, flows, guarded, handover, keys, partitions, plan, records, up};
use crate::clients::fabrics::{ENGINES, FABRICS, Plan, hurt};
use crate::clients::server::Kind;
use crate::clients::stage::StageError;

/// More fabrics for the bring-up, in addition to [`FABRICS`].
const MORE: [Plan; 4] = [
    plan("k-ary-n-tree 3 3"),
    plan("xgft 6 1"),
    Plan { drop_links: 0.1, lmc: 1, ..plan("random switches=12 ports=10 hosts=3") },
    Plan { long: true, ..plan("xgft 12,12,24 1,12,12") },
];

/// The fabrics on which the SA is queried. Links are omitted in the first one, and the LMC of the second one is 2. The
/// other two are used only in a complete run.
const ASKED: [Plan; 4] =
    [FABRICS[1], FABRICS[8], Plan { long: true, ..FABRICS[3] }, Plan { long: true, ..FABRICS[4] }];

/// The fabric on which handovers are tested.
const MEETING: Plan = FABRICS[0];

/// A fabric with more nodes than [`records::RECORDS`].
const MANY_HOSTS: Plan = plan("xgft 28,36 1,8");

/// The subject that a case tests, with its parameters.
#[derive(Clone, Copy, Debug)]
pub enum CaseKind {
    /// The SM brings up a fabric with the given engine.
    Up(Plan, &'static str),
    /// The SA of `ibfabric sm` responds like OpenSM's.
    Answers(Plan),
    /// osmtest flows pass. If the second field is true, the umad library returns all MADs of a response, and more flows
    /// run.
    Flows(Plan, bool),
    /// OpenSM and `ibfabric sm` elect a master. After the master is killed, the standby SM takes over.
    Handover(Play),
    /// The SM does not configure a port whose M_Key has this protection level.
    Guarded(Plan, u8),
    /// A client receives a long response completely.
    Records(Plan),
    /// An OpenSM command line writes the same files with ibfabric as with OpenSM.
    Files(Line),
    /// A partition file has the same effect in OpenSM and `ibfabric sm`.
    Partitions(Plan),
    /// OpenSM and `ibfabric sm` read the same value from a line of opensm.conf, or `ibfabric sm` rejects the line.
    Keys,
}

/// A deliberate error that the case must detect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedError {
    /// The tables are compared with those of a different engine.
    Engine,
    /// The simulator's fabric lacks one link that the case expects.
    Link,
    /// One of the LIDs to trace is not assigned.
    Lid,
    /// The simulator's fabric lacks one host that the case expects.
    Host,
    /// `ibfabric sm` ends before the clients run.
    NoSm,
    /// The case expects the wrong SM to become master.
    Master,
    /// No port has an M_Key, but the case expects a port with an M_Key.
    NoMKey,
    /// ibfabric gets a command line or configuration line that differs from OpenSM's.
    Options,
}

/// A case.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The subject of the case.
    pub what: CaseKind,
    /// True if the simulator is Debian's ibsim, false if it is `ibfabric sim`.
    pub on_ibsim: bool,
    /// The deliberate error; `None` if the case must pass.
    pub wrong: Option<InjectedError>,
}

impl CaseKind {
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

impl InjectedError {
    /// Returns a description of the deliberate error, and the text that a fault reported by the case must contain.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Engine => ("tables of another engine", "the tables of ibfabric route"),
            Self::Link => ("a link is missing", "first difference at line"),
            Self::Lid => ("an unassigned LID", "ibtracert misses"),
            Self::Host => ("a host is missing", "are missing"),
            Self::NoSm => ("no SM", "fails with ibfabric sm"),
            // The case expects that OpenSM remains master, but `ibfabric sm` becomes master after a short time. If the
            // case sees `ibfabric sm` as standby before that, it reports that OpenSM is not master. Otherwise, it
            // reports that `ibfabric sm` is not standby. Both faults contain `: sminfo prints `.
            Self::Master => ("the wrong master", ": sminfo prints "),
            Self::Options => ("other options", "differs"),
            Self::NoMKey => ("no M_Key", "expected the guarded port"),
        }
    }
}

impl Case {
    /// Returns the name of the case.
    #[must_use]
    pub fn name(&self) -> String {
        let on = if self.on_ibsim { "ibsim" } else { "ibfabric sim" };
        let plan = self.what.plan().name();
        let mut name = match self.what {
            CaseKind::Up(_, engine) => format!("up | {plan} | {engine} | {on}"),
            CaseKind::Answers(_) => format!("answers | {plan} | {on}"),
            CaseKind::Flows(_, whole) => {
                let library = if whole { "ibfabric's library" } else { "Debian's library" };
                format!("osmtest | {plan} | {library} | {on}")
            }
            CaseKind::Handover(play) => format!("handover | {} | {on}", play.name()),
            CaseKind::Guarded(_, level) => format!("guarded port, level {level} | {plan} | {on}"),
            CaseKind::Partitions(_) => format!("partitions | {plan} | {on}"),
            CaseKind::Keys => "configuration keys".to_owned(),
            CaseKind::Records(_) => format!("long response | {plan} | {on}"),
            CaseKind::Files(line) => format!("files | {plan} | {} | {on}", line.options.join(" ")),
        };
        if let Some(wrong) = self.wrong {
            name += " | deliberate error: ";
            name += wrong.words().0;
        }
        name
    }

    /// Returns true if the case mostly waits. The test runner runs each such case in an additional thread.
    #[must_use]
    pub const fn waits(&self) -> bool {
        matches!(self.what, CaseKind::Handover(_))
    }

    /// Returns the text that a reported fault must contain, if the case has a deliberate error.
    #[must_use]
    pub fn must_say(&self) -> Option<&'static str> {
        let what = |wrong: InjectedError| match (wrong, self.what) {
            (InjectedError::Link, CaseKind::Up(..)) => "iblinkinfo shows",
            _ => wrong.words().1,
        };
        self.wrong.map(what)
    }

    /// Runs the case.
    ///
    /// # Errors
    /// Fails if a program cannot be started, or if an SM does not come up.
    pub fn run(&self, gear: &Gear, directory: &Path) -> Outcome {
        let kind = match self.on_ibsim {
            true => Kind::Ibsim,
            false => Kind::Ibfabric(gear.ibfabric.clone()),
        };
        let plan = self.what.plan();
        let whole = plan.fabric().map_err(|error| StageError::Recipe(error.into()))?;
        let mut fabric = whole.clone();
        match self.wrong {
            Some(InjectedError::Link) => hurt(&mut fabric),
            Some(InjectedError::Host) => lose_host(&mut fabric),
            _ => {}
        }
        let pair = |umad| Pair {
            gear,
            kind: &kind,
            umad,
            fabrics: [&whole, &fabric],
            plan,
            managed: self.wrong != Some(InjectedError::NoSm),
            directory,
        };
        match self.what {
            CaseKind::Partitions(_) => return partitions::run(gear, &kind, &whole, directory),
            CaseKind::Keys => {
                return keys::run(gear, self.wrong == Some(InjectedError::Options), directory);
            }
            CaseKind::Answers(_) => return answers::run(&pair(&gear.own)),
            CaseKind::Files(line) => {
                return files::run(
                    gear,
                    line,
                    self.wrong == Some(InjectedError::Options),
                    directory,
                );
            }
            CaseKind::Flows(_, complete) => {
                let library = if complete { &gear.own } else { &gear.debian };
                return flows::run(&pair(library));
            }
            _ => {}
        }
        let mut scene = Scene::open(gear, &kind, &fabric, &gear.debian, directory)?;
        match self.what {
            CaseKind::Up(_, engine) => {
                let expected = Expected {
                    fabric: &whole,
                    plan,
                    engine: if self.wrong == Some(InjectedError::Engine) { "dor" } else { engine },
                    also: (self.wrong == Some(InjectedError::Lid)).then_some(49_000),
                };
                up::comes_up(&mut scene, engine, &expected)?;
            }
            CaseKind::Handover(mut play) => {
                if self.wrong == Some(InjectedError::Master) {
                    play.master = play.master.other();
                }
                handover::run(&mut scene, plan, play, self.on_ibsim)?;
            }
            CaseKind::Guarded(_, level) => guarded::run(&mut scene, plan, level)?,
            CaseKind::Records(_) => records::run(&mut scene, &whole)?,
            CaseKind::Answers(_)
            | CaseKind::Flows(..)
            | CaseKind::Files(_)
            | CaseKind::Partitions(_)
            | CaseKind::Keys => {
                unreachable!("`run` has already returned for these cases")
            }
        }
        Ok(scene.close())
    }
}

/// Disconnects the last HCA.
fn lose_host(fabric: &mut Fabric) {
    let is_adapter = |port: PortId| !fabric.node(fabric.port(port).node).kind.is_switch();
    let port = fabric.links().map(|(a, b)| if is_adapter(a) { a } else { b });
    if let Some(port) = port.filter(|&port| is_adapter(port)).last() {
        fabric.disconnect(port);
    }
}

/// Returns the cases. If `all` is false, omits the cases with a fabric whose [`Plan::long`] is true.
#[must_use]
pub fn cases(all: bool) -> Vec<Case> {
    let mut list = Vec::new();
    let mut add = |what: CaseKind| {
        for on_ibsim in [true, false] {
            // ibsim 0.10 does not support all speeds, and does not support M_Keys.
            let fits = what.plan().fits_ibsim() && !matches!(what, CaseKind::Guarded(..));
            // Cases that test files that the SM writes, partition files or keys of `opensm.conf` run only on the real ibsim.
            let only_ibsim =
                matches!(what, CaseKind::Files(_) | CaseKind::Partitions(_) | CaseKind::Keys);
            if if on_ibsim { fits } else { !only_ibsim } {
                list.push(Case { what, on_ibsim, wrong: None });
            }
        }
    };
    for play in PLAYS {
        add(CaseKind::Handover(play));
    }
    // Long cases start first, so that none of them runs alone at the end.
    add(CaseKind::Flows(FABRICS[0], true));
    add(CaseKind::Flows(Plan { flood: false, ..FABRICS[0] }, false));
    add(CaseKind::Flows(FABRICS[8], true));
    for plan in ASKED.into_iter().filter(|plan| all || !plan.long) {
        add(CaseKind::Answers(plan));
    }
    for plan in FABRICS.into_iter().chain(MORE).filter(|plan| all || !plan.long) {
        for engine in ENGINES {
            add(CaseKind::Up(plan, engine));
        }
    }
    for line in LINES {
        add(CaseKind::Files(line));
    }
    add(CaseKind::Guarded(FABRICS[0], 1));
    add(CaseKind::Guarded(FABRICS[0], guarded::READ));
    add(CaseKind::Records(MANY_HOSTS));
    add(CaseKind::Partitions(plan("mesh 2x1 hosts=2")));
    add(CaseKind::Keys);
    list
}

/// Returns the cases with a deliberate error.
#[must_use]
pub fn wrong_cases() -> Vec<Case> {
    let small = Plan { flood: false, ..FABRICS[0] };
    let winner = PLAYS[0];
    debug_assert_eq!(winner.master, Who::Ours);
    let mut list = Vec::new();
    for (what, wrong) in [
        (CaseKind::Handover(winner), InjectedError::Master),
        (CaseKind::Up(FABRICS[4], "updn"), InjectedError::Engine),
        (CaseKind::Up(FABRICS[4], "minhop"), InjectedError::Link),
        (CaseKind::Up(FABRICS[4], "minhop"), InjectedError::Lid),
        (CaseKind::Answers(FABRICS[1]), InjectedError::Link),
        (CaseKind::Flows(small, false), InjectedError::NoSm),
        (CaseKind::Records(MANY_HOSTS), InjectedError::Host),
        (CaseKind::Files(LINES[0]), InjectedError::Options),
        (CaseKind::Keys, InjectedError::Options),
    ] {
        list.push(Case { what, on_ibsim: true, wrong: Some(wrong) });
    }
    let what = CaseKind::Guarded(small, 0);
    list.push(Case { what, on_ibsim: false, wrong: Some(InjectedError::NoMKey) });
    list
}
