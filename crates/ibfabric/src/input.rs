//! The files that commands read.

use std::io::Read;
use std::path::{Path, PathBuf};

use ib_routing::{LidOptions, RoutingOptions, Subnet, SubnetOptions, dump};
use ib_topology::guid_list::{self, GuidEntry};
use ib_topology::read::{Included, read_with};
use ib_topology::{Fabric, name_map};
use ib_types::{Guid, Lmc};

use crate::cli::{EngineArgs, SubnetArgs};
use crate::failure::{Failure, say};

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

/// Reads the fabric, and the names for its nodes.
pub(crate) fn fabric(args: &SubnetArgs) -> Result<Fabric, Failure> {
    let name = args.fabric.display().to_string();
    let mut fabric =
        read_with(&name, &bytes(&args.fabric)?, &mut beside).map_err(Failure::unusable)?;
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
    };
    let subnet = Subnet::discover(fabric, &SubnetOptions { sm_port: args.sm_port, lids })
        .map_err(Failure::unusable)?;
    for note in subnet.lid_notes() {
        say!("{note}");
    }
    Ok(subnet)
}

/// Returns the highest LMC that the file records for a channel adapter or router.
fn recorded_lmc(fabric: &Fabric) -> Lmc {
    let adapters = fabric.nodes().filter(|(_, node)| !node.kind.is_switch());
    let ports = adapters.flat_map(|(id, _)| fabric.ports_of(id));
    ports.map(|(_, port)| port.lmc).max().unwrap_or_default()
}

/// Reads every file that the engines' options name.
pub(crate) fn routing_options(
    subnet: &Subnet<'_>,
    args: &EngineArgs,
) -> Result<RoutingOptions, Failure> {
    let lfts = |path: &Option<PathBuf>| {
        load(path.as_deref(), |name, bytes| dump::lfts::read(name, bytes, subnet))
    };
    Ok(RoutingOptions {
        root_guids: guids(args.root_guids.as_deref())?,
        cn_guids: guids(args.cn_guids.as_deref())?,
        io_guids: guids(args.io_guids.as_deref())?,
        max_reverse_hops: args.max_reverse_hops,
        quasi_ftree_indexing: args.quasi_ftree_indexing,
        ignored_ports: lines(args.ignore_guids.as_deref(), |entry| ignored_port(subnet, entry))?,
        guid_routing_order: guids(args.guid_routing_order.as_deref())?.unwrap_or_default(),
        port_search_order: lines(args.port_search_ordering.as_deref(), |entry| {
            let ports: Option<Vec<u8>> = entry.rest.split_whitespace().map(number).collect();
            let ports = ports.filter(|ports| !ports.is_empty());
            Ok((entry.guid, ports.ok_or("port numbers behind the GUID of a switch")?))
        })?,
        hop_weights: lines(args.hop_weights.as_deref(), |entry| {
            let expected = "a port and a weight of 1 to 255 behind the GUID of a switch";
            match words(&entry.rest)[..] {
                [Some(port), Some(weight)] if weight > 0 => Ok((entry.guid, port, weight)),
                _ => Err(expected),
            }
        })?,
        updn_ids: lines(args.ids_guids.as_deref(), |entry| {
            let id = entry.rest.split_whitespace().next().and_then(number);
            Ok((entry.guid, id.ok_or("a number behind the GUID of a switch")?))
        })?,
        connect_roots: args.connect_roots,
        count_switch_targets: args.port_profile_switch_nodes,
        port_shifting: args.port_shifting,
        scatter_ports: args.scatter_ports,
        lash_start_vl: args.lash_start_vl,
        virtual_lanes: args.virtual_lanes,
        existing: lfts(&args.keep_lfts)?,
        file_lfts: lfts(&args.lfts)?,
        file_hops: load(args.lid_matrix.as_deref(), |name, bytes| {
            dump::lid_matrix::read(name, bytes, subnet)
        })?,
    })
}

/// Reads a file that belongs to the subnet, and says what had to be passed over.
pub(crate) fn load<T>(
    path: Option<&Path>,
    read: impl FnOnce(&str, &[u8]) -> Result<dump::Loaded<T>, ib_topology::ParseError>,
) -> Result<Option<T>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let name = path.display().to_string();
    let loaded = read(&name, &bytes(path)?).map_err(Failure::unusable)?;
    for note in loaded.notes {
        say!("{name}: {note}");
    }
    Ok(Some(loaded.value))
}

/// Reads a file of GUIDs; lines that are none are named and discarded.
fn guids(path: Option<&Path>) -> Result<Option<Vec<Guid>>, Failure> {
    path.map(|path| lines(Some(path), |entry| Ok(entry.guid))).transpose()
}

/// Reads a file of GUIDs with something behind each; lines without it are named and discarded.
fn lines<T>(
    path: Option<&Path>,
    parse: impl Fn(&GuidEntry) -> Result<T, &'static str>,
) -> Result<Vec<T>, Failure> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let list = guid_list::parse(&bytes(path)?);
    let discard = |line: usize, reason: String| {
        say!("{}:{line}: {reason}; the line is discarded", path.display());
    };
    for line in list.discarded {
        discard(line.line, line.reason);
    }
    let parsed = list.entries.iter().filter_map(|entry| match parse(entry) {
        Ok(value) => Some(value),
        Err(expected) => {
            discard(entry.line, format!("found `{}`, expected {expected}", entry.rest));
            None
        }
    });
    Ok(parsed.collect())
}

/// Reads a switch GUID and a port, or a port GUID, which stands for the switch port behind it.
fn ignored_port(subnet: &Subnet<'_>, entry: &GuidEntry) -> Result<(Guid, u8), &'static str> {
    match words(&entry.rest)[..] {
        [Some(port)] => Ok((entry.guid, port)),
        [] => subnet
            .find_end_port(entry.guid)
            .and_then(|id| match subnet.end_port(id).attachment {
                ib_routing::Attachment::Port(switch, port) => {
                    Some((subnet.switch(switch).guid, port))
                }
                ib_routing::Attachment::Management(_) | ib_routing::Attachment::Direct => None,
            })
            .ok_or("a switch GUID and a port, or the port GUID of a channel adapter"),
        _ => Err("one port behind the GUID of a switch"),
    }
}

fn words(text: &str) -> Vec<Option<u8>> {
    text.split_whitespace().map(number).collect()
}

/// Reads a number as C does with base 0, so that 0x1f is 31.
fn number<T: TryFrom<u64>>(word: &str) -> Option<T> {
    let value = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None if word.len() > 1 && word.starts_with('0') => u64::from_str_radix(word, 8),
        None => word.parse(),
    };
    value.ok().and_then(|value| T::try_from(value).ok())
}
