//! Decides which forwarding tables are programmed.
//!
//! Reachability outranks a possible deadlock. Tables that serve more host pairs are preferred to
//! tables that serve fewer. Among tables that serve the same pairs, those without a credit loop are
//! preferred. Remaining ties go to the engine that comes first in the list.

/// Quality of forwarding tables on the subnet with its current cabling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableQuality {
    /// Pairs of a host port and another host's LID whose packets do not arrive.
    pub unreachable_host_pairs: u64,
    /// Pairs of a switch and a LID whose packets do not arrive.
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

    /// Returns the order of reachability: smaller is better.
    const fn lost(&self) -> (u64, u64) {
        (self.unreachable_host_pairs, self.unreachable)
    }

    /// Returns the order of preference: smaller is better.
    const fn rank(&self) -> ((u64, u64), bool) {
        (self.lost(), self.credit_loops > 0)
    }
}

/// The tables that a routing engine computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) quality: TableQuality,
    /// True if the configuration lists the engine. Other engines are only recommended.
    pub(crate) is_configured: bool,
}

/// The tables in the switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InUse {
    pub(crate) quality: TableQuality,
    /// True if every switch holds tables, and every port has the LIDs that they were computed for.
    pub(crate) is_complete: bool,
}

/// The choice of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Program the tables of a candidate, given by its index.
    Candidate(usize),
    /// Keep the tables in the switches.
    InUse,
    /// Program no tables: every candidate has a credit loop, and the configuration requires deadlock freedom.
    Refuse,
}

/// An alarm that the tables in the switches raise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableAlarm {
    /// The tables have a credit loop. Holds the candidate that reaches as many pairs without a loop, if any.
    CreditLoops { avoided_by: Option<usize> },
    /// The tables lose packets of pairs that cables connect. Holds the candidate that reaches the most pairs, if
    /// these are more.
    Unreachable { reached_by: Option<usize> },
}

/// The choice of tables, and the alarms that result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) choice: Choice,
    /// Quality of the resulting tables in the switches; `None` if the switches hold no tables.
    pub(crate) quality: Option<TableQuality>,
    /// The alarms. A candidate that they name was not programmed: the configuration does not allow it.
    pub(crate) alarms: Vec<TableAlarm>,
}

/// Decides which tables are programmed.
///
/// `candidates` are in the order of the engine list. With `requires_deadlock_free`, tables that have
/// a credit loop are never programmed.
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
