//! Alarms: conditions of the subnet that need the administrator's attention, reported until they are resolved.

use std::fmt;

use ib_routing::EngineKind;
use ib_types::Instant;

use crate::plan::{Plan, TableQuality};

/// A condition of the subnet that needs the administrator's attention.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Alarm {
    /// The forwarding tables in the switches cause credit loops, so the fabric can deadlock under load.
    CreditLoops {
        /// The engine that computed the tables.
        engine: EngineKind,
        /// The number of credit loops.
        loops: usize,
        /// The links of the first credit loop, in the order in which they form the loop.
        first: Vec<String>,
        /// The engine whose tables reach at least as many host pairs as these tables, but without a credit loop; `None`
        /// if no tried engine has such tables.
        avoided_by: Option<EngineKind>,
        /// All engines whose tables were computed and checked.
        tried: Vec<EngineKind>,
    },
    /// With the tables in the switches, some packets do not arrive, although cables connect their source and
    /// destination.
    Unreachable {
        /// Number of unreachable host pairs: a host port, and a LID of another host that packets from the port do not
        /// reach.
        host_pairs: u64,
        /// Number of unreachable pairs of a switch and a LID: packets from the switch do not reach the LID.
        pairs: u64,
        /// The first unreachable pair of a switch and a LID, and the switch at which the packets are lost.
        first: Option<String>,
        /// The engine whose tables reach more host pairs than these tables; `None` if no tried engine has such tables.
        reached_by: Option<EngineKind>,
    },
    /// The SM has no plan for the subnet, so no tables are programmed.
    NoPlan {
        /// The reason.
        reason: String,
    },
}

/// The kinds of [`Alarm`]. At most one alarm of each kind is raised at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum AlarmKind {
    /// [`Alarm::CreditLoops`].
    CreditLoops,
    /// [`Alarm::Unreachable`].
    Unreachable,
    /// [`Alarm::NoPlan`].
    NoPlan,
}

/// A raised alarm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaisedAlarm {
    /// The condition.
    pub alarm: Alarm,
    /// Time at which an alarm of this kind was raised. A change of `alarm` does not change this time.
    pub since: Instant,
}

impl AlarmKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::CreditLoops, Self::Unreachable, Self::NoPlan];

    /// Returns the name of the kind in JSON and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CreditLoops => "credit_loops",
            Self::Unreachable => "unreachable",
            Self::NoPlan => "no_plan",
        }
    }
}

impl Alarm {
    /// Returns the kind of the alarm.
    #[must_use]
    pub const fn kind(&self) -> AlarmKind {
        match self {
            Self::CreditLoops { .. } => AlarmKind::CreditLoops,
            Self::Unreachable { .. } => AlarmKind::Unreachable,
            Self::NoPlan { .. } => AlarmKind::NoPlan,
        }
    }

    /// Returns the alarms to raise after a plan was programmed. `quality` and `first_unreachable` describe the
    /// resulting tables in the switches.
    pub(crate) fn of_plan(
        plan: &Plan,
        quality: TableQuality,
        first_unreachable: Option<&str>,
    ) -> Vec<Self> {
        let mut alarms = Vec::new();
        if quality.credit_loops > 0 {
            alarms.push(Self::CreditLoops {
                engine: plan.routing.engine,
                loops: quality.credit_loops,
                first: plan.first_loop.clone(),
                avoided_by: plan.avoided_by,
                tried: plan.tried.clone(),
            });
        }
        alarms.extend(Self::of_quality(quality, first_unreachable, plan.reached_by));
        alarms
    }

    /// Returns the alarm for unreachable pairs; `None` if there are no such pairs.
    pub(crate) fn of_quality(
        quality: TableQuality,
        first: Option<&str>,
        reached_by: Option<EngineKind>,
    ) -> Option<Self> {
        let is_raised = quality.unreachable > 0 || quality.unreachable_host_pairs > 0;
        is_raised.then(|| Self::Unreachable {
            host_pairs: quality.unreachable_host_pairs,
            pairs: quality.unreachable,
            first: first.map(str::to_owned),
            reached_by,
        })
    }
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreditLoops { engine, loops, first, avoided_by, tried } => {
                let word = if *loops == 1 { "loop" } else { "loops" };
                write!(
                    f,
                    "the {engine} routes have {loops} credit {word}: the fabric can deadlock under \
                     load"
                )?;
                if !first.is_empty() {
                    write!(f, "; the first one: {}", first.join(", "))?;
                }
                match avoided_by {
                    Some(better) => write!(f, "; {better} would avoid it: configure -R {better}"),
                    None => {
                        let tried: Vec<&str> = tried.iter().map(|it| it.name()).collect();
                        write!(f, "; no engine avoids it of those tried: {}", tried.join(", "))
                    }
                }
            }
            Self::Unreachable { host_pairs, pairs, first, reached_by } => {
                write!(
                    f,
                    "{host_pairs} host pairs are unreachable with the forwarding tables in the \
                     switches, although cables connect them ({pairs} pairs of a switch and a LID)"
                )?;
                if let Some(first) = first {
                    write!(f, "; the first one: {first}")?;
                }
                match reached_by {
                    Some(better) => write!(f, "; {better} would reach more"),
                    None => Ok(()),
                }
            }
            Self::NoPlan { reason } => f.write_str(reason),
        }
    }
}
