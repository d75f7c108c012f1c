//! Input files of commands.

use std::path::{Path, PathBuf};

use ib_routing::check::{CheckOptions, CheckReport, Scope, VlMap, check_with};
use ib_routing::{
    EngineKind, Layers, Lfts, LidOptions, Subnet, SubnetOptions, UnknownEntries, dump,
};
use ib_topology::{Fabric, name_map};
use ib_types::Lmc;

pub(crate) use ib_daemons::input::number;
use ib_daemons::routing_files::load_warned;

use crate::cli::routing::{EngineArgs, ScopeArg, SubnetArgs};
use crate::failure::{Failure, note};

/// Fails if `-`, standard input, is used for more than one file.
pub(crate) fn one_standard_input<'a>(
    paths: impl IntoIterator<Item = Option<&'a PathBuf>>,
) -> Result<(), Failure> {
    let dashes = paths.into_iter().flatten().filter(|path| path.as_path() == Path::new("-"));
    if dashes.count() > 1 { Err(twice_standard_input()) } else { Ok(()) }
}

/// Fails if a written file is also read or written for another option, or if standard input is used for more
/// than one file. `written` contains pairs of an option's name and its file. Pairs with the file `-`, standard
/// output, are not checked.
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
            let message = format!("--{option} {}: the file is used twice", path.display());
            return Err(Failure::Unusable(message));
        }
        seen.push(path);
    }
    Ok(())
}

fn twice_standard_input() -> Failure {
    let message = "`-`, standard input, is used for two files: expected at most one";
    Failure::Unusable(message.to_owned())
}

/// Reads a whole file; `-` is standard input.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    Ok(ib_daemons::input::bytes(path)?)
}

/// Reads a fabric file with its includes.
pub(crate) fn fabric_file(path: &Path) -> Result<Fabric, Failure> {
    Ok(ib_daemons::input::fabric_file(path)?)
}

/// Reads the fabric and the node name map.
pub(crate) fn fabric(args: &SubnetArgs) -> Result<Fabric, Failure> {
    let mut fabric = fabric_file(&args.fabric)?;
    if let Some(path) = &args.node_name_map {
        let names = name_map::parse(&path.display().to_string(), &bytes(path)?)
            .map_err(Failure::unusable)?;
        fabric.rename(&names);
    }
    Ok(fabric)
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
            (Some(note), Some(path)) => note!("{}: {note}", path.display()),
            _ => note!("{note}"),
        }
    }
    Ok(subnet)
}

/// Returns the highest LMC of an HCA or router port in the file.
fn recorded_lmc(fabric: &Fabric) -> Lmc {
    let hosts = fabric.nodes().filter(|(_, node)| !node.kind.is_switch());
    let ports = hosts.flat_map(|(id, _)| fabric.ports_of(id));
    ports.map(|(_, port)| port.lmc).max().unwrap_or_default()
}

/// Checks forwarding tables as specified by the options.
pub(crate) fn check(
    subnet: &Subnet<'_>,
    (lfts, unknown): (&Lfts, Option<&UnknownEntries>),
    layers: &Layers,
    args: &SubnetArgs,
) -> Result<CheckReport, Failure> {
    let vls = load(args.sl2vl.as_deref(), |name, bytes| dump::sl2vl::read(name, bytes, subnet))?;
    let options = CheckOptions {
        scope: match args.scope {
            ScopeArg::Hosts => Scope::Hosts,
            ScopeArg::Management => Scope::Management,
            ScopeArg::Everything => Scope::Everything,
        },
        vl_map: vls.as_ref().map(|vls| vls as &dyn VlMap),
        unknown,
        ..CheckOptions::default()
    };
    Ok(check_with(subnet, lfts, layers, &options))
}

/// Returns the options that are set although none of the engines uses them.
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
    // If --lfts is not set, the file engine computes tables like minhop.
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

/// Reads a file that describes the subnet, and prints which parts of the file are ignored.
pub(crate) fn load<T>(
    path: Option<&Path>,
    read: impl FnOnce(&str, &[u8]) -> Result<dump::Loaded<T>, ib_topology::ParseError>,
) -> Result<Option<T>, Failure> {
    Ok(load_warned(path, read, &|text| note!("{text}"))?)
}
