//! The paths to trace.

use std::path::Path;

use ib_link::Remote;
use ib_link::{LinkPort, MadLink};
use ib_mad::{Client, Request, RequesterConfig, Timing};
use ib_tracer::Target;
use ib_types::{Gid, NodeKind};
use ib_wire::mad::sa::NodeRecord;
use ib_wire::mad::{AttributeId, Mad, Method, MgmtClass, TransactionId};

use crate::cli::tracer::{EndArg, TracerArgs};
use crate::failure::Failure;
use crate::input;

/// The source of a path (`None` for the local port), and its destination.
pub(super) type Pair = (Option<Target>, Target);

/// The paths to trace.
pub(super) enum Pairs {
    Listed(Vec<Pair>),
    /// All paths between these LIDs.
    All(Vec<u16>),
}

impl Pairs {
    /// Returns an iterator over the paths. The paths between all LIDs are computed one by one and not stored,
    /// since large fabrics have many of them.
    pub(super) fn iter(&self) -> PairsIter<'_> {
        PairsIter { pairs: self, next: 0 }
    }
}

/// An iterator over the paths to trace.
pub(super) struct PairsIter<'a> {
    pairs: &'a Pairs,
    next: usize,
}

impl Iterator for PairsIter<'_> {
    type Item = Pair;

    fn next(&mut self) -> Option<Pair> {
        match self.pairs {
            Pairs::Listed(pairs) => {
                let pair = pairs.get(self.next).copied()?;
                self.next += 1;
                Some(pair)
            }
            Pairs::All(lids) => loop {
                let (from, to) = (self.next / lids.len(), self.next % lids.len());
                let from = *lids.get(from)?;
                self.next += 1;
                if from != lids[to] {
                    return Some((Some(Target::Lid(from)), Target::Lid(lids[to])));
                }
            },
        }
    }
}

/// Returns the paths to trace, from the command line.
pub(super) fn pairs(
    args: &TracerArgs,
    link: &mut dyn MadLink,
    own: &LinkPort,
) -> Result<Pairs, Failure> {
    if let Some(path) = &args.pairs {
        return Ok(Pairs::Listed(read(path, own)?));
    }
    if args.all_pairs {
        return Ok(Pairs::All(hosts(args, link, own)?));
    }
    let from = args.from.map(|end| target(end, own));
    let to = match (args.lid, args.dgid) {
        (Some(lid), _) => Target::Lid(lid as u16),
        (None, Some(gid)) => Target::Gid(gid),
        (None, None) => {
            unreachable!("the command line has a unicast destination")
        }
    };
    let mut pairs = vec![(from, to)];
    if args.reverse {
        pairs.push((Some(to), from.unwrap_or(Target::Lid(own.lid))));
    }
    Ok(Pairs::Listed(pairs))
}

fn target(end: EndArg, own: &LinkPort) -> Target {
    match end {
        EndArg::Lid(lid) => Target::Lid(lid),
        EndArg::Gid(gid) => Target::Gid(gid),
        EndArg::Guid(guid) => Target::Gid(Gid::new(own.gid_prefix, guid)),
    }
}

/// Reads the paths of a file. Each line has a source and a destination.
fn read(path: &Path, own: &LinkPort) -> Result<Vec<Pair>, Failure> {
    let name = path.display();
    let bytes = input::bytes(path)?;
    let mut pairs = Vec::new();
    for (line, text) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        let failed = |what: String| Failure::Unusable(format!("{name}:{line}: {what}"));
        let text = std::str::from_utf8(text)
            .map_err(|_| failed("found bytes that are not UTF-8".to_owned()))?;
        let text = text.split('#').next().unwrap_or_default();
        let words: Vec<&str> = text.split_whitespace().collect();
        let end = |word: &str| {
            let end = word.parse::<EndArg>();
            end.map(|end| target(end, own)).map_err(|error| failed(format!("'{word}': {error}")))
        };
        match words[..] {
            [] => {}
            [from, to] => pairs.push((Some(end(from)?), end(to)?)),
            _ => {
                let words = words.len();
                return Err(failed(format!(
                    "found {words} words, expected the two ends of a path"
                )));
            }
        }
    }
    if pairs.is_empty() {
        return Err(Failure::Unusable(format!("{name}: found no pairs, expected at least one")));
    }
    Ok(pairs)
}

/// Queries the SA for the LIDs of all ports of HCAs and routers.
fn hosts(args: &TracerArgs, link: &mut dyn MadLink, own: &LinkPort) -> Result<Vec<u16>, Failure> {
    let failed = |why: String| {
        Failure::Unusable(format!(
            "--all-pairs: the query of the SA at the SM's LID failed: {why}; the query needs a running SM"
        ))
    };
    let mut mad = Mad::new(MgmtClass::SUBN_ADM, Method::GET_TABLE, TransactionId(0));
    mad.set_attribute_id(AttributeId::NODE_RECORD);
    let remote = Remote { sl: own.sm_sl, ..Remote::gsi(own.sm_lid) };
    let request = Request::new(remote, mad).with_timing(timing(args));
    let config = RequesterConfig { tag: 2, ..RequesterConfig::default() };
    let answer =
        Client::new(config).call(link, request).map_err(|error| failed(error.to_string()))?;
    if !answer.status().is_ok() {
        return Err(failed(answer.status().to_string()));
    }
    let hosts = answer.records::<NodeRecord>().filter(|record| {
        record.node_info.node_type.kind().is_some_and(|kind| kind != NodeKind::Switch)
    });
    let lids: Vec<u16> = hosts.map(|record| record.lid).filter(|&lid| lid != 0).collect();
    if lids.len() < 2 {
        return Err(failed(format!("found {} LIDs, expected two or more", lids.len())));
    }
    Ok(lids)
}

/// Returns the timeout and the number of retries of requests.
pub(super) fn timing(args: &TracerArgs) -> Timing {
    let timeout = std::time::Duration::from_millis(args.response_timeout.into());
    Timing { timeout, retries: args.retries, ..Timing::default() }
}
