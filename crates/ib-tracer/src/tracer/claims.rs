//! Comparison of the reports of nodes with the SA records.
//!
//! Records are only claims. A difference is proven only if a node's own report contradicts the record.
//! If there is no record, the verdict is "not proven".

use std::collections::BTreeSet;

use ib_types::Guid;

use super::{Step, Tracer, end_of_path};
use crate::fabric_model::{Fact, FactSource};
use crate::fabric_model::{Link, Path, WalkResult};
use crate::path::{Hop, NodeNumber, Stop};
use crate::trace::Verdict;
use crate::tree::{Branch, BranchEnd, Tree};

impl Tracer {
    /// Compares a path according to the reports of the nodes with the SA records. Returns the verdicts on
    /// its hops up to the first difference, and the end of the path.
    pub(super) fn compare(
        &mut self,
        own: (NodeNumber, u8),
        (from, lid): (Option<u16>, u16),
        path: &Path,
    ) -> Result<(Vec<(Hop, Verdict)>, Stop), Step> {
        let claimed = match self.claimed_path(from, lid)? {
            Ok(claimed) => claimed,
            Err(why) => {
                let hops = self.judge(own, Some(lid), path)?;
                return Ok((hops, uncompared(&path.stop, &why)));
            }
        };
        for (place, claim) in claimed.hops.iter().enumerate() {
            let hop = path.hops.get(place).copied();
            let named = self.model.find(self.claims.node(claim.from).guid).first();
            let last = path.hops.last().map(|hop| hop.node).or(named.copied());
            let from = hop.map(|hop| hop.from).or(last).unwrap_or(own.0);
            let is_same = hop.is_some_and(|hop| {
                (self.port_of(&hop), self.model.node(hop.node).guid, hop.enters)
                    == (self.claimed_port(claim), self.claims.node(claim.node).guid, claim.enters)
            });
            if is_same {
                continue;
            }
            let mut hops = self.judge(own, Some(lid), &prefix(path, place))?;
            let (hop, verdict) = match (hop, &path.stop) {
                (Some(hop), _) if self.identity(&hop).is_some() => {
                    (hop, self.verdict(own, &hop, (None, false))?)
                }
                (Some(hop), _) if hop.out == claim.out => {
                    let verdict = self.other_guid(&hop, claim);
                    (hop, verdict.map_or_else(|| self.other_link(hop.from, hop.out), Ok)?)
                }
                (Some(hop), _) => {
                    // If the hop starts at an HCA, which has no table, `holds` is the port of the HCA.
                    let shown = self.link_of(hop.from, claim.out)?;
                    (shown, Verdict::OtherTable { holds: hop.out })
                }
                (None, Stop::NoEntry { .. }) => {
                    (self.link_of(from, claim.out)?, Verdict::OtherTable { holds: 255 })
                }
                (None, Stop::NotHere { .. }) => {
                    (self.link_of(from, claim.out)?, Verdict::OtherTable { holds: 0 })
                }
                (
                    None,
                    Stop::Unlinked { is_down: true, port, .. } | Stop::NotActive { port, .. },
                ) if *port == claim.out => {
                    (self.link_of(from, claim.out)?, self.other_link(from, claim.out)?)
                }
                (None, Stop::Arrived) => {
                    let name = self.claims.name(claim.node);
                    let (Some(last), Some(here)) = (hops.last_mut(), path.hops.last()) else {
                        return Ok((
                            hops,
                            uncompared(&path.stop, &format!("their path leads to {name}")),
                        ));
                    };
                    let here = self.model.name(here.node);
                    let what = format!(
                        "LID {lid} is reported by {here}, but the path in the SA's records does not end there"
                    );
                    if !last.1.is_bad() {
                        last.1 = Verdict::Duplicate { what };
                    }
                    return Ok((hops, Stop::Arrived));
                }
                // The path that the nodes report ends here, for none of the reasons in the arms above.
                (None, stop) => return Ok((hops, stop.clone())),
            };
            hops.push((hop, verdict));
            let why = "the rest of the path differs from the SA's records";
            return Ok((hops, Stop::Uncompared { why: why.to_owned() }));
        }
        let hops = self.judge(own, Some(lid), path)?;
        if claimed.stop != Stop::Arrived && path.stop == Stop::Arrived {
            let claims = &self.claims;
            let name = |number| claims.name(number);
            let why = claimed.stop.describe(claims, (lid, &claimed.hops), &name);
            return Ok((hops, uncompared(&path.stop, &why)));
        }
        Ok((hops, path.stop.clone()))
    }

    /// Returns the path according to the SA records, or the reason why the records contain no path.
    fn claimed_path(&self, from: Option<u16>, lid: u16) -> Result<Result<Path, String>, Step> {
        let claims = &self.claims;
        let Some(own) = claims.own() else {
            return match claims.unreadable.get(&Fact::Own) {
                Some(why) => Ok(Err(why.clone())),
                None => Err(Step::Claim(Fact::Own)),
            };
        };
        let start = match from {
            None => own,
            Some(from) => match claims.walk(own, from) {
                WalkResult::Needs(fact) => return Err(Step::Claim(fact)),
                WalkResult::Ended(path) if path.stop == Stop::Arrived => end_of_path(own, &path),
                WalkResult::Ended(path) => {
                    let name = |number| claims.name(number);
                    return Ok(Err(path.stop.describe(claims, (from, &path.hops), &name)));
                }
            },
        };
        match claims.walk(start, lid) {
            WalkResult::Needs(fact) => Err(Step::Claim(fact)),
            WalkResult::Ended(path) => Ok(Ok(path)),
        }
    }

    /// Returns the link of a port. If no node responds at its far end, both ends are the near port.
    fn link_of(&self, from: NodeNumber, out: u8) -> Result<Hop, Step> {
        match self.model.node(from).links.get(&out) {
            None => Err(Step::Fact(Fact::Link { node: from, port: out })),
            Some(&Link::To(node, enters, _)) => Ok(Hop { from, out, node, enters }),
            Some(Link::Nowhere { .. }) => Ok(Hop { from, out, node: from, enters: out }),
        }
    }

    /// Returns the verdict on the node to which a hop leads, if it has the LID and port of the SA record, but another
    /// GUID.
    fn other_guid(&self, hop: &Hop, claim: &Hop) -> Option<Verdict> {
        let found = self.model.end((hop.node, hop.enters))?;
        let source_route = self.claims.end((claim.node, claim.enters))?;
        let (guid, claimed) = (self.model.node(hop.node).guid, self.claims.node(claim.node).guid);
        let is_same =
            hop.enters == claim.enters && found.lid == source_route.lid && guid != claimed;
        is_same.then(|| Verdict::Inconsistent {
            what: format!(
                "it reports GUID {guid}, the SA has GUID {claimed} for its LID {}",
                found.lid
            ),
        })
    }

    fn other_link(&self, from: NodeNumber, out: u8) -> Result<Verdict, Step> {
        let what = match self.model.node(from).links.get(&out) {
            None => return Err(Step::Fact(Fact::Link { node: from, port: out })),
            Some(&Link::To(node, enters, _)) => {
                format!("it leads to port {enters} of {}", self.model.name(node))
            }
            Some(Link::Nowhere { why, .. }) => format!("no node responds behind it: {why}"),
        };
        Ok(Verdict::OtherLink { what })
    }

    /// Returns the port at the start of a hop: the GUID of its node, and the port number.
    pub(super) fn port_of(&self, hop: &Hop) -> (Guid, u8) {
        (self.model.node(hop.from).guid, hop.out)
    }

    fn claimed_port(&self, hop: &Hop) -> (Guid, u8) {
        (self.claims.node(hop.from).guid, hop.out)
    }

    /// Returns the ports out of which a multicast group is forwarded according to the SA records;
    /// `None` if the client does not compare the records.
    pub(super) fn claimed_tree(
        &self,
        mlid: u16,
    ) -> Result<Option<BTreeSet<(Guid, u8)>>, Vec<Step>> {
        if self.via == FactSource::DirectedRoutes {
            return Ok(None);
        }
        let Some(own) = self.claims.own() else {
            return match self.claims.unreadable.contains_key(&Fact::Own) {
                true => Ok(None),
                false => Err(vec![Step::Claim(Fact::Own)]),
            };
        };
        let grown = Tree::grow(&self.claims, own, mlid)
            .map_err(|facts| facts.into_iter().map(Step::Claim).collect::<Vec<_>>())?;
        Ok(Some(grown.iter().map(|branch| self.claimed_port(&branch.hop)).collect()))
    }

    /// Returns a broken branch for each port out of which a multicast group is forwarded in the SA records, but not by
    /// the switches.
    pub(super) fn missing_branches(
        &self,
        claimed: Option<&BTreeSet<(Guid, u8)>>,
        found: &BTreeSet<(Guid, u8)>,
    ) -> Vec<Branch> {
        let missing = claimed.into_iter().flatten().filter(|port| !found.contains(port));
        let branches = missing.filter_map(|&(guid, out)| {
            let &from = self.model.find(guid).first()?;
            let why =
                "according to the SA's records, the multicast table forwards out of this port";
            Some(Branch {
                hop: Hop { from, out, node: from, enters: out },
                depth: 0,
                end: BranchEnd::Broken(why.to_owned()),
                verdict: Verdict::NotProbed,
            })
        });
        branches.collect()
    }
}

/// Returns the first `count` hops of a path.
fn prefix(path: &Path, count: usize) -> Path {
    let why = String::new();
    Path { hops: path.hops[..count].to_vec(), stop: Stop::Uncompared { why } }
}

/// Returns the end of a path that the nodes report and the SA records do not contain. `stop` is the end that the nodes
/// report.
///
/// If `stop` is `Arrived`, returns `Uncompared` with the reason `why`. Otherwise returns `stop`.
fn uncompared(stop: &Stop, why: &str) -> Stop {
    match stop {
        Stop::Arrived => {
            Stop::Uncompared { why: format!("the SA's records do not have this path: {why}") }
        }
        stop => stop.clone(),
    }
}
