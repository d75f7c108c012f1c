//! Decides which forwarding tables the SM programs.
//!
//! Reachability is more important than freedom from deadlocks. Tables that reach more host pairs are preferred. Among
//! tables that reach equally many pairs, those without a credit loop are preferred. If tables are still equal, those of
//! the engine that comes first in the engine list are preferred.

/// Quality of forwarding tables, on the subnet with its current cabling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableQuality {
    /// Number of unreachable host pairs: a host port, and a LID of another host that packets from the port do not
    /// reach.
    pub unreachable_host_pairs: u64,
    /// Number of unreachable pairs of a switch and a LID: packets from the switch do not reach the LID.
    pub unreachable: u64,
    /// Number of credit loops: cycles of links whose buffers can wait for each other indefinitely.
    pub credit_loops: usize,
}

impl TableQuality {
    /// Returns true if all packets arrive and no deadlock is possible.
    pub(crate) const fn is_sound(&self) -> bool {
        self.reaches_all() && self.credit_loops == 0
    }

    const fn reaches_all(&self) -> bool {
        self.unreachable == 0 && self.unreachable_host_pairs == 0
    }

    /// Returns the key by which reachability is compared: smaller is better.
    const fn lost(&self) -> (u64, u64) {
        (self.unreachable_host_pairs, self.unreachable)
    }

    /// Returns the key by which tables are compared: reachability first, then credit loops. Smaller is better.
    const fn rank(&self) -> ((u64, u64), bool) {
        (self.lost(), self.credit_loops > 0)
    }
}

/// The tables that one routing engine has computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) quality: TableQuality,
    /// True if the configuration lists the engine. Engines that it does not list can only be recommended.
    pub(crate) is_configured: bool,
}

/// The tables that are currently in the switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InUse {
    pub(crate) quality: TableQuality,
    /// True if every switch has tables, and every port still has the LIDs for which the tables were computed.
    pub(crate) is_complete: bool,
}

/// The choice of the tables to program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Program the tables of a candidate, given by its index.
    Candidate(usize),
    /// Keep the tables in the switches.
    InUse,
    /// Program no tables, because every candidate has a credit loop and the configuration requires deadlock freedom.
    Refuse,
}

/// An alarm about the tables that the switches hold after the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableAlarm {
    /// The tables have a credit loop. Holds the index of the best candidate that has no loop and reaches at least as
    /// many pairs; `None` if there is no such candidate.
    CreditLoops { avoided_by: Option<usize> },
    /// The tables lose packets between ports that cables connect. Holds the index of the candidate that reaches the
    /// most pairs; `None` if no candidate reaches more pairs than the tables.
    Unreachable { reached_by: Option<usize> },
}

/// The choice of the tables to program, and the resulting alarms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) choice: Choice,
    /// Quality of the tables that the switches hold after the decision; `None` if they hold no tables.
    pub(crate) quality: Option<TableQuality>,
    /// The alarms. The configuration does not allow the SM to program the candidates that the alarms name.
    pub(crate) alarms: Vec<TableAlarm>,
}

/// Decides which tables the SM programs.
///
/// `candidates` are in the order of the engine list. If `requires_deadlock_free` is set, tables with a credit loop are
/// never programmed.
pub(crate) fn decide(
    in_use: Option<InUse>,
    candidates: &[Candidate],
    requires_deadlock_free: bool,
) -> Decision {
    let may_have = |quality: &TableQuality| !requires_deadlock_free || quality.credit_loops == 0;
    let best = |is_eligible: &dyn Fn(&Candidate) -> bool| {
        let eligible = candidates.iter().enumerate().filter(|(_, it)| is_eligible(it));
        eligible.min_by_key(|(_, it)| it.quality.rank())
    };
    let new = best(&|it| it.is_configured && may_have(&it.quality));
    let old = in_use.filter(|it| it.is_complete && may_have(&it.quality));
    let (choice, quality) = match (new, old) {
        (Some((_, new)), Some(old)) if old.quality.rank() < new.quality.rank() => {
            (Choice::InUse, Some(old.quality))
        }
        (Some((number, new)), _) => (Choice::Candidate(number), Some(new.quality)),
        (None, Some(old)) => (Choice::InUse, Some(old.quality)),
        (None, None) => (Choice::Refuse, in_use.map(|it| it.quality)),
    };
    let number = |found: Option<(usize, &Candidate)>| found.map(|(number, _)| number);
    let mut alarms = Vec::new();
    if let Some(now) = quality.filter(|now| now.credit_loops > 0) {
        let avoids = |it: &TableQuality| it.credit_loops == 0 && it.lost() <= now.lost();
        let avoided_by = number(best(&|it| avoids(&it.quality)));
        alarms.push(TableAlarm::CreditLoops { avoided_by });
    }
    if let Some(now) = quality.filter(|now| !now.reaches_all()) {
        let reached_by = number(best(&|it| it.quality.lost() < now.lost()));
        alarms.push(TableAlarm::Unreachable { reached_by });
    }
    Decision { choice, quality, alarms }
}

#[cfg(test)]
mod tests;
