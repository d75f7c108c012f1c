//! Options of the routing engines, and the input files that they name.

use std::path::{Path, PathBuf};

use ib_routing::dump::lfts::Follow;
use ib_routing::{RoutingOptions, Subnet, dump};
use ib_topology::guid_list::{self, GuidEntry};
use ib_types::Guid;

use crate::error::DaemonError;
use crate::input::{bytes, number};

/// Options of the routing engines, with the paths of their input files. Parentheses in a comment contain the engines to
/// which the field is limited.
#[derive(Clone, Debug, Default)]
pub struct EngineFiles {
    /// File with GUIDs of root switches, or of channel adapters (CAs) on root switches (updn, ftree).
    pub root_guids: Option<PathBuf>,
    /// File with port GUIDs of compute nodes (ftree).
    pub cn_guids: Option<PathBuf>,
    /// File with port GUIDs of I/O nodes (ftree).
    pub io_guids: Option<PathBuf>,
    /// Maximum number of reverse hops on paths to I/O nodes (ftree); `None` allows no reverse hops.
    pub max_reverse_hops: Option<u64>,
    /// True if ftree starts the indexing of switches at the roots instead of at the first leaf.
    pub quasi_ftree_indexing: bool,
    /// File with ports that link balancing ignores. Each line has a switch GUID and a port number, or the port GUID of
    /// a CA. A CA stands for the switch port linked to it.
    pub ignore_guids: Option<PathBuf>,
    /// File with port GUIDs. Routes to these ports are computed first, in the order of the lines.
    pub guid_routing_order: Option<PathBuf>,
    /// File with the order in which the ports of a switch are tried. Each line has a switch GUID and the switch's port
    /// numbers.
    pub port_search_ordering: Option<PathBuf>,
    /// File with hop weights of links. Each line has a switch GUID, a port and a weight.
    pub hop_weights: Option<PathBuf>,
    /// File with IDs that order switches of equal rank. Each line has a switch GUID and a number (updn).
    pub ids_guids: Option<PathBuf>,
    /// True if root switches get routes to each other (updn, ftree).
    pub connect_roots: bool,
    /// True if link balancing also counts routes to switches.
    pub port_profile_switch_nodes: bool,
    /// True if the scan of the candidate ports for the least used one starts at a shifted port. The shift is the mean
    /// number of LIDs that each candidate port carries already.
    pub port_shifting: bool,
    /// Seed of the random choice among the least used ports; with 0 or `None` the choice is not random.
    pub scatter_ports: Option<u64>,
    /// True if `scatter_ports` does not apply to routes to the ports in the file `guid_routing_order`.
    pub guid_routing_order_no_scatter: bool,
    /// Lowest VL to use (lash); `None` for 0.
    pub lash_start_vl: Option<u64>,
    /// Number of data VLs that every link supports and the engine may use (lash); `None` for 8.
    pub virtual_lanes: Option<u64>,
    /// File with the LFTs that the engine `file` loads.
    pub lfts: Option<PathBuf>,
    /// File with the LID matrix (hop counts) that the engine `file` loads.
    pub lid_matrix: Option<PathBuf>,
    /// File with earlier LFTs. The engine keeps each entry whose port is still a least-hop port to the destination
    /// (minhop, updn, dor).
    pub keep_lfts: Option<PathBuf>,
}

/// Reads the files that the options name. Warnings about ignored lines are passed to `warn`.
///
/// # Errors
/// Fails if a file cannot be read or parsed.
pub fn read(
    subnet: &Subnet<'_>,
    args: &EngineFiles,
    warn: &dyn Fn(String),
) -> Result<RoutingOptions, DaemonError> {
    let lfts = |path: &Option<PathBuf>| {
        let read =
            |name: &str, bytes: &[u8]| dump::lfts::read(name, bytes, subnet, Follow::AllGuids);
        load_warned(path.as_deref(), read, warn).map(|read| read.map(|read| read.lfts))
    };
    let guids = |path, check: &dyn Fn(Guid) -> Result<(), &'static str>| guids(path, check, warn);
    let port_of_subnet = |guid| match subnet.find_end_port(guid) {
        Some(_) => Ok(()),
        None => Err("the GUID of a port of the subnet"),
    };
    let small =
        |value: u64| u8::try_from(value).expect("the command line accepts only numbers up to 255");
    Ok(RoutingOptions {
        root_guids: guids(args.root_guids.as_deref(), &|guid| {
            let known =
                subnet.fabric().find_guid(guid).is_some() || subnet.find_end_port(guid).is_some();
            known.then_some(()).ok_or("the GUID of a switch, host or port of the subnet")
        })?,
        cn_guids: guids(args.cn_guids.as_deref(), &port_of_subnet)?,
        io_guids: guids(args.io_guids.as_deref(), &port_of_subnet)?,
        max_reverse_hops: args.max_reverse_hops.map_or(0, small),
        quasi_ftree_indexing: args.quasi_ftree_indexing,
        ignored_ports: lines(args.ignore_guids.as_deref(), warn, |entry| {
            ignored_port(subnet, entry)
        })?,
        guid_routing_order: lines(args.guid_routing_order.as_deref(), warn, |entry| {
            let known = subnet.find_end_port(entry.guid);
            known.map(|_| entry.guid).ok_or_else(|| expected(entry, "a port GUID of the subnet"))
        })?,
        port_search_order: lines(args.port_search_ordering.as_deref(), warn, |entry| {
            let highest = highest_port(subnet, entry)?;
            let ports: Option<Vec<u8>> = entry.rest.split_whitespace().map(number).collect();
            let ports = ports.filter(|ports| {
                let mut seen = [false; 256];
                let mut new = |port: u8| !std::mem::replace(&mut seen[usize::from(port)], true);
                !ports.is_empty()
                    && ports.iter().all(|&port| (1..=highest).contains(&port) && new(port))
            });
            let expectation = || format!("different ports of 1 to {highest} after the GUID");
            Ok((entry.guid, ports.ok_or_else(|| expected(entry, &expectation()))?))
        })?,
        hop_weights: lines(args.hop_weights.as_deref(), warn, |entry| {
            let highest = highest_port(subnet, entry)?;
            match words(&entry.rest)[..] {
                [Some(port), Some(weight)] if weight > 0 && (1..=highest).contains(&port) => {
                    Ok((entry.guid, port, weight))
                }
                _ => {
                    let expectation =
                        format!("a port of 1 to {highest} and a weight of 1 to 255 after the GUID");
                    Err(expected(entry, &expectation))
                }
            }
        })?,
        updn_ids: lines(args.ids_guids.as_deref(), warn, |entry| {
            highest_port(subnet, entry)?;
            let id = entry.rest.split_whitespace().next().and_then(number);
            Ok((entry.guid, id.ok_or_else(|| expected(entry, "a number after the GUID"))?))
        })?,
        connect_roots: args.connect_roots,
        count_switch_targets: args.port_profile_switch_nodes,
        port_shifting: args.port_shifting,
        scatter_ports: u32::try_from(args.scatter_ports.unwrap_or(0))
            .expect("the command line accepts only 32-bit numbers"),
        listed_unscattered: args.guid_routing_order_no_scatter,
        lash_start_vl: args.lash_start_vl.map_or(0, small),
        virtual_lanes: args.virtual_lanes.map_or(0, small),
        existing: lfts(&args.keep_lfts)?,
        file_lfts: lfts(&args.lfts)?,
        file_hops: load_warned(
            args.lid_matrix.as_deref(),
            |name, bytes| dump::lid_matrix::read(name, bytes, subnet),
            warn,
        )?,
    })
}

/// Maximum number of individual warnings about one file.
pub(crate) const MOST_WARNINGS: usize = 20;

/// Reads a dump file, for example of LFTs. Passes warnings about skipped lines to `warn`: at most 20 single warnings,
/// and then the number of the others.
///
/// # Errors
/// Fails if the file cannot be read or parsed.
pub fn load_warned<T>(
    path: Option<&Path>,
    read: impl FnOnce(&str, &[u8]) -> Result<dump::Loaded<T>, ib_topology::ParseError>,
    warn: &dyn Fn(String),
) -> Result<Option<T>, DaemonError> {
    let Some(path) = path else { return Ok(None) };
    let name = path.display().to_string();
    let loaded = read(&name, &bytes(path)?).map_err(DaemonError::failed)?;
    let more = loaded.notes.len().saturating_sub(MOST_WARNINGS);
    for note in loaded.notes.into_iter().take(MOST_WARNINGS) {
        warn(format!("{name}: {note}"));
    }
    if more > 0 {
        warn(format!("{name}: {more} more warnings like these"));
    }
    Ok(Some(loaded.value))
}

/// Reads a file of GUIDs. Invalid lines and unknown GUIDs are reported and ignored.
fn guids(
    path: Option<&Path>,
    check: &dyn Fn(Guid) -> Result<(), &'static str>,
    warn: &dyn Fn(String),
) -> Result<Option<Vec<Guid>>, DaemonError> {
    let parse = |entry: &GuidEntry| match check(entry.guid) {
        Ok(()) => Ok(entry.guid),
        Err(expectation) => Err(format!("found {}, expected {expectation}", entry.guid)),
    };
    path.map(|path| lines(Some(path), warn, parse)).transpose()
}

/// Reads a file with a GUID, and possibly values, in each line. Invalid lines are reported and ignored.
fn lines<T>(
    path: Option<&Path>,
    warn: &dyn Fn(String),
    parse: impl Fn(&GuidEntry) -> Result<T, String>,
) -> Result<Vec<T>, DaemonError> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let list = guid_list::parse(&bytes(path)?);
    let mut discarded: Vec<(usize, String)> =
        list.discarded.into_iter().map(|line| (line.line, line.reason)).collect();
    let mut parsed = Vec::new();
    for entry in &list.entries {
        match parse(entry) {
            Ok(value) => parsed.push(value),
            Err(reason) => discarded.push((entry.line, reason)),
        }
    }
    discarded.sort_by_key(|&(line, _)| line);
    let more = discarded.len().saturating_sub(MOST_WARNINGS);
    for (line, reason) in discarded.into_iter().take(MOST_WARNINGS) {
        warn(format!("{}:{line}: {reason}; the line is discarded", path.display()));
    }
    if more > 0 {
        warn(format!("{}: {more} more lines are discarded", path.display()));
    }
    Ok(parsed)
}

/// Returns the error for a line of a GUID list that does not contain `what`.
fn expected(entry: &GuidEntry, what: &str) -> String {
    match entry.rest.as_str() {
        "" => format!("found {} alone, expected {what}", entry.guid),
        rest => format!("found {} and `{rest}`, expected {what}", entry.guid),
    }
}

/// Returns the highest port number of the switch that a line names.
fn highest_port(subnet: &Subnet<'_>, entry: &GuidEntry) -> Result<u8, String> {
    match subnet.find_switch(entry.guid) {
        Some(switch) => Ok(subnet.switch(switch).ports),
        None => Err(format!("found {}, expected the GUID of a switch of the subnet", entry.guid)),
    }
}

/// Parses a switch GUID and a port number, or the port GUID of a CA. A CA stands for the switch port linked to it.
fn ignored_port(subnet: &Subnet<'_>, entry: &GuidEntry) -> Result<(Guid, u8), String> {
    match words(&entry.rest)[..] {
        [Some(port)] => {
            let highest = highest_port(subnet, entry)?;
            let expectation = || format!("a port of 0 to {highest} after the GUID");
            let port = Some(port).filter(|&port| port <= highest);
            Ok((entry.guid, port.ok_or_else(|| expected(entry, &expectation()))?))
        }
        [] => subnet
            .find_end_port(entry.guid)
            .and_then(|id| match subnet.end_port(id).attachment {
                ib_routing::Attachment::Port(switch, port) => {
                    Some((subnet.switch(switch).guid, port))
                }
                ib_routing::Attachment::Management(_) | ib_routing::Attachment::Direct => None,
            })
            .ok_or_else(|| {
                expected(entry, "a switch GUID and a port, or the port GUID of a channel adapter")
            }),
        _ => Err(expected(entry, "a switch GUID and one port")),
    }
}

fn words(text: &str) -> Vec<Option<u8>> {
    text.split_whitespace().map(number).collect()
}
