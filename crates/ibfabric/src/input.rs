//! The files that commands read.

use std::io::Read;
use std::path::{Path, PathBuf};

use ib_routing::check::{CheckOptions, CheckReport, Scope, VlMap, check_with};
use ib_routing::dump::lfts::Follow;
use ib_routing::{
    EngineKind, Layers, Lfts, LidOptions, RoutingOptions, Subnet, SubnetOptions, UnknownEntries,
    dump,
};
use ib_topology::guid_list::{self, GuidEntry};
use ib_topology::read::{Included, is_message, read_with};
use ib_topology::{Fabric, name_map};
use ib_types::{Guid, Lmc};

use crate::cli::{EngineArgs, ScopeArg, SubnetArgs};
use crate::failure::{Failure, say};

/// Makes sure that standard input stands for one file at most.
pub(crate) fn one_standard_input<'a>(
    paths: impl IntoIterator<Item = Option<&'a PathBuf>>,
) -> Result<(), Failure> {
    let dashes = paths.into_iter().flatten().filter(|path| path.as_path() == Path::new("-"));
    if dashes.count() > 1 { Err(twice_standard_input()) } else { Ok(()) }
}

/// Makes sure that no file is written that is read, that none is two things at once, and that standard input is read once.
/// Files to write are named with their options; `-` is no file.
pub(crate) fn distinct_files<'a>(
    read: impl IntoIterator<Item = &'a Path>,
    written: impl IntoIterator<Item = (&'a str, &'a Path)>,
) -> Result<(), Failure> {
    let standard = Path::new("-");
    let (dashes, mut seen): (Vec<_>, Vec<_>) = read.into_iter().partition(|&path| path == standard);
    if dashes.len() > 1 {
        return Err(twice_standard_input());
    }
    let same = |one: &Path, other: &Path| match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    };
    for (option, path) in written.into_iter().filter(|&(_, path)| path != standard) {
        if seen.iter().any(|other| same(path, other)) {
            let message = format!("--{option} {}: the file stands for two things", path.display());
            return Err(Failure::Unusable(message));
        }
        seen.push(path);
    }
    Ok(())
}

fn twice_standard_input() -> Failure {
    let message = "`-`, standard input, stands for two files: expected one at most";
    Failure::Unusable(message.to_owned())
}

/// Reads a whole file; `-` is standard input.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let result = if path == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    result
        .map_err(|error| Failure::Unusable(format!("cannot read {}: {error}", path.display())))?;
    Ok(bytes)
}

/// Reads a fabric file, and what it includes.
pub(crate) fn fabric_file(path: &Path) -> Result<Fabric, Failure> {
    let (name, bytes) = (path.display().to_string(), bytes(path)?);
    let fabric = read_with(&name, &bytes, &mut beside).map_err(Failure::unusable)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().zip(1..).map(|(line, number)| (line.trim_ascii_start(), number));
    let messages: Vec<(&str, u32)> = lines.filter(|(line, _)| is_message(line)).collect();
    for (line, number) in messages.iter().take(MOST_WARNINGS) {
        say!("{name}:{number}: ignored the message `{line}`");
    }
    if let Some(more) = messages.len().checked_sub(MOST_WARNINGS + 1) {
        say!("{name}: {} more warnings like these", more + 1);
    }
    Ok(fabric)
}

/// Reads the fabric, and the names for its nodes.
pub(crate) fn fabric(args: &SubnetArgs) -> Result<Fabric, Failure> {
    let mut fabric = fabric_file(&args.fabric)?;
    if let Some(path) = &args.node_name_map {
        let names = name_map::parse(&path.display().to_string(), &bytes(path)?)
            .map_err(Failure::unusable)?;
        fabric.rename(&names);
    }
    Ok(fabric)
}

/// Finds the file of an `include` line beside the file that has the line.
fn beside(including: &str, name: &str) -> Result<Included, String> {
    let path = match Path::new(including).parent() {
        Some(directory) => directory.join(name),
        None => PathBuf::from(name),
    };
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Included { name: path.display().to_string(), bytes })
}

/// Discovers the subnet and assigns its LIDs.
pub(crate) fn subnet<'f>(fabric: &'f Fabric, args: &SubnetArgs) -> Result<Subnet<'f>, Failure> {
    let guid2lid = match &args.guid2lid {
        None => Default::default(),
        Some(path) => dump::lists::read_guid2lid(&path.display().to_string(), &bytes(path)?)
            .map_err(Failure::unusable)?,
    };
    let lids = LidOptions {
        lmc: args.lmc.unwrap_or_else(|| recorded_lmc(fabric)),
        lmc_esp0: args.lmc_esp0,
        reassign: args.reassign_lids,
        guid2lid,
        ..LidOptions::default()
    };
    let subnet = Subnet::discover(fabric, &SubnetOptions { sm_port: args.sm_port, lids })
        .map_err(Failure::unusable)?;
    for note in subnet.lid_notes() {
        match (note.strip_prefix("guid2lid: "), &args.guid2lid) {
            (Some(note), Some(path)) => say!("{}: {note}", path.display()),
            _ => say!("{note}"),
        }
    }
    Ok(subnet)
}

/// Returns the highest LMC that the file records for a channel adapter or router.
fn recorded_lmc(fabric: &Fabric) -> Lmc {
    let adapters = fabric.nodes().filter(|(_, node)| !node.kind.is_switch());
    let ports = adapters.flat_map(|(id, _)| fabric.ports_of(id));
    ports.map(|(_, port)| port.lmc).max().unwrap_or_default()
}

/// Checks tables as the options ask.
pub(crate) fn check(
    subnet: &Subnet<'_>,
    (lfts, unknown): (&Lfts, Option<&UnknownEntries>),
    layers: &Layers,
    args: &SubnetArgs,
) -> Result<CheckReport, Failure> {
    let lanes = load(args.sl2vl.as_deref(), |name, bytes| dump::sl2vl::read(name, bytes, subnet))?;
    let options = CheckOptions {
        scope: match args.scope {
            ScopeArg::Hosts => Scope::Hosts,
            ScopeArg::Management => Scope::Management,
            ScopeArg::Everything => Scope::Everything,
        },
        vl_map: lanes.as_ref().map(|lanes| lanes as &dyn VlMap),
        unknown,
        ..CheckOptions::default()
    };
    Ok(check_with(subnet, lfts, layers, &options))
}

/// Names the options that are set and that none of some engines looks at.
pub(crate) fn unused_options(args: &EngineArgs, engines: &[EngineKind]) -> Vec<&'static str> {
    let mut unused = unused_by(args, engines[0]);
    for &engine in &engines[1..] {
        let also = unused_by(args, engine);
        unused.retain(|option| also.contains(option));
    }
    unused
}

fn unused_by(args: &EngineArgs, engine: EngineKind) -> Vec<&'static str> {
    use EngineKind::{Dor, FatTree, File, Lash, MinHop, UpDown};
    // The file engine fills tables as minhop does when it is given none.
    let fills = match engine {
        MinHop | UpDown | Dor => true,
        File => args.lfts.is_none(),
        FatTree | Lash => false,
    };
    let hops = engine != Lash && (engine != File || args.lid_matrix.is_none());
    let (tree, ranks) = (engine == FatTree, matches!(engine, FatTree | UpDown));
    let options = [
        ("--root-guids", args.root_guids.is_some(), ranks),
        ("--cn-guids", args.cn_guids.is_some(), tree),
        ("--io-guids", args.io_guids.is_some(), tree),
        ("--max-reverse-hops", args.max_reverse_hops > Some(0), tree),
        ("--quasi-ftree-indexing", args.quasi_ftree_indexing, tree),
        ("--ignore-guids", args.ignore_guids.is_some(), fills),
        ("--guid-routing-order", args.guid_routing_order.is_some(), fills),
        ("--port-search-ordering", args.port_search_ordering.is_some(), fills),
        ("--hop-weights", args.hop_weights.is_some(), hops),
        ("--ids-guids", args.ids_guids.is_some(), engine == UpDown),
        ("--connect-roots", args.connect_roots, ranks),
        ("--port-profile-switch-nodes", args.port_profile_switch_nodes, fills),
        ("--port-shifting", args.port_shifting, fills),
        ("--scatter-ports", args.scatter_ports > Some(0), fills),
        (
            "--guid-routing-order-no-scatter",
            args.guid_routing_order_no_scatter,
            fills && args.scatter_ports > Some(0) && args.guid_routing_order.is_some(),
        ),
        ("--lash-start-vl", args.lash_start_vl > Some(0), engine == Lash),
        ("--virtual-lanes", args.virtual_lanes.is_some(), engine == Lash),
        ("--lfts", args.lfts.is_some(), engine == File),
        ("--lid-matrix", args.lid_matrix.is_some(), engine == File),
        ("--keep-lfts", args.keep_lfts.is_some(), fills),
    ];
    let unused = options.into_iter().filter(|&(_, set, used)| set && !used);
    unused.map(|(name, ..)| name).collect()
}

/// Reads every file that the engines' options name; `warn` is told what had to be passed over.
pub(crate) fn routing_options(
    subnet: &Subnet<'_>,
    args: &EngineArgs,
    warn: &dyn Fn(String),
) -> Result<RoutingOptions, Failure> {
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
    let small = |value: u64| u8::try_from(value).expect("the command line admits small numbers");
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
            let wanted = || format!("different ports of 1 to {highest} behind the GUID");
            Ok((entry.guid, ports.ok_or_else(|| expected(entry, &wanted()))?))
        })?,
        hop_weights: lines(args.hop_weights.as_deref(), warn, |entry| {
            let highest = highest_port(subnet, entry)?;
            match words(&entry.rest)[..] {
                [Some(port), Some(weight)] if weight > 0 && (1..=highest).contains(&port) => {
                    Ok((entry.guid, port, weight))
                }
                _ => {
                    let wanted = format!(
                        "a port of 1 to {highest} and a weight of 1 to 255 behind the GUID"
                    );
                    Err(expected(entry, &wanted))
                }
            }
        })?,
        updn_ids: lines(args.ids_guids.as_deref(), warn, |entry| {
            highest_port(subnet, entry)?;
            let id = entry.rest.split_whitespace().next().and_then(number);
            Ok((entry.guid, id.ok_or_else(|| expected(entry, "a number behind the GUID"))?))
        })?,
        connect_roots: args.connect_roots,
        count_switch_targets: args.port_profile_switch_nodes,
        port_shifting: args.port_shifting,
        scatter_ports: u32::try_from(args.scatter_ports.unwrap_or(0))
            .expect("the command line admits 32 bits"),
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

/// Maximum number of warnings about one file that are printed individually.
const MOST_WARNINGS: usize = 20;

/// Reads a file that belongs to the subnet, and says what had to be passed over.
pub(crate) fn load<T>(
    path: Option<&Path>,
    read: impl FnOnce(&str, &[u8]) -> Result<dump::Loaded<T>, ib_topology::ParseError>,
) -> Result<Option<T>, Failure> {
    load_warned(path, read, &|text| say!("{text}"))
}

fn load_warned<T>(
    path: Option<&Path>,
    read: impl FnOnce(&str, &[u8]) -> Result<dump::Loaded<T>, ib_topology::ParseError>,
    warn: &dyn Fn(String),
) -> Result<Option<T>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let name = path.display().to_string();
    let loaded = read(&name, &bytes(path)?).map_err(Failure::unusable)?;
    let more = loaded.notes.len().saturating_sub(MOST_WARNINGS);
    for note in loaded.notes.into_iter().take(MOST_WARNINGS) {
        warn(format!("{name}: {note}"));
    }
    if more > 0 {
        warn(format!("{name}: {more} more warnings like these"));
    }
    Ok(Some(loaded.value))
}

/// Reads a file of GUIDs; lines that are none, or not those that are looked for, are named and
/// discarded.
fn guids(
    path: Option<&Path>,
    check: &dyn Fn(Guid) -> Result<(), &'static str>,
    warn: &dyn Fn(String),
) -> Result<Option<Vec<Guid>>, Failure> {
    let parse = |entry: &GuidEntry| match check(entry.guid) {
        Ok(()) => Ok(entry.guid),
        Err(wanted) => Err(format!("found {}, expected {wanted}", entry.guid)),
    };
    path.map(|path| lines(Some(path), warn, parse)).transpose()
}

/// Reads a file of GUIDs with something behind each; lines that cannot be used are named and
/// discarded.
fn lines<T>(
    path: Option<&Path>,
    warn: &dyn Fn(String),
    parse: impl Fn(&GuidEntry) -> Result<T, String>,
) -> Result<Vec<T>, Failure> {
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

/// Says what a line of a GUID list should have held.
fn expected(entry: &GuidEntry, what: &str) -> String {
    match entry.rest.as_str() {
        "" => format!("found {} alone, expected {what}", entry.guid),
        rest => format!("found {} and `{rest}`, expected {what}", entry.guid),
    }
}

/// Returns the highest port of the switch that a line names.
fn highest_port(subnet: &Subnet<'_>, entry: &GuidEntry) -> Result<u8, String> {
    match subnet.find_switch(entry.guid) {
        Some(switch) => Ok(subnet.switch(switch).ports),
        None => Err(format!("found {}, expected the GUID of a switch of the subnet", entry.guid)),
    }
}

/// Reads a switch GUID and a port, or a port GUID, which stands for the switch port behind it.
fn ignored_port(subnet: &Subnet<'_>, entry: &GuidEntry) -> Result<(Guid, u8), String> {
    match words(&entry.rest)[..] {
        [Some(port)] => {
            let highest = highest_port(subnet, entry)?;
            let wanted = || format!("a port of 0 to {highest} behind the GUID");
            let port = Some(port).filter(|&port| port <= highest);
            Ok((entry.guid, port.ok_or_else(|| expected(entry, &wanted()))?))
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

/// Reads a number as C does with base 0, so that 0x1f is 31.
pub(crate) fn number<T: TryFrom<u64>>(word: &str) -> Option<T> {
    let value = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None if word.len() > 1 && word.starts_with('0') => u64::from_str_radix(word, 8),
        None => word.parse(),
    };
    value.ok().and_then(|value| T::try_from(value).ok())
}
