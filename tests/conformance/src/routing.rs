//! Fabrics, engines and options whose LFTs must equal OpenSM's.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ib_routing::engine::updn::UpDown;
use ib_routing::subnet::SubnetError;
use ib_routing::{Engine, EngineError, Routing, RoutingOptions, Subnet, SubnetOptions, dump};
use ib_topology::generate::{GenerateError, Kind, Options, generate};
use ib_topology::{Fabric, Format, LinkRate, WriteError, write};
use ib_types::{LinkSpeed, LinkWidth, NodeKind};

mod cases;

pub use cases::{cases, layered};

/// A generated fabric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recipe {
    /// Kind and parameters of the fabric, as for `ibfabric gen`.
    pub kind: &'static str,
    /// Fraction of the links that the generator omits from the fabric.
    pub drop_links: f64,
    /// Fraction of the switches that the generator omits from the fabric.
    pub drop_switches: f64,
    /// Seed that decides which links and switches are omitted.
    pub seed: u64,
}

/// Error while the fabric or the files of a case are prepared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// The generator rejects the parameters.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// The net file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The fabric cannot be converted to a subnet.
    #[error(transparent)]
    Subnet(#[from] SubnetError),
    /// The forwarding tables that are an input of the case cannot be computed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A file of the case cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Recipe {
    /// Generates the fabric.
    ///
    /// # Errors
    /// Fails if the generator rejects the parameters.
    pub fn fabric(&self) -> Result<Fabric, GenerateError> {
        let mut words = self.kind.split(' ');
        let name = words.next().unwrap_or_default();
        let kind = Kind::parse(name, &words.collect::<Vec<_>>())?;
        let rate = LinkRate { width: LinkWidth::X4, speed: LinkSpeed::Hdr };
        let (drop_links, drop_switches) = (self.drop_links, self.drop_switches);
        generate(&kind, &Options { seed: self.seed, rate, drop_links, drop_switches })
    }

    /// Returns a short name of the fabric: its kind, the fractions of omitted links and switches, and the seed.
    #[must_use]
    pub fn name(&self) -> String {
        let mut name = self.kind.to_owned();
        for (what, fraction) in [("links", self.drop_links), ("switches", self.drop_switches)] {
            if fraction > 0.0 {
                write!(name, " -{:.0}% {what} #{}", fraction * 100.0, self.seed)
                    .expect("writing to a string succeeds");
            }
        }
        name
    }
}

/// An option for both OpenSM and ibfabric. If the option names a file, the case also writes the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// `-a`: the roots are the switches of the top level, or the first switch if the fabric has no levels.
    Roots,
    /// `-a`: the only root is the switch of the fabric's first CA. The root GUID file of ibfabric contains the GUID of
    /// this CA. OpenSM documents that a CA's GUID selects its switch, but does not implement this. So the file of
    /// OpenSM contains the GUID of the switch.
    RootsByHost,
    /// `-z`: updn and ftree also compute the routes between switches that they otherwise omit.
    ConnectRoots,
    /// `-i`: at every other switch, load balancing does not count the routes over the first port with a link.
    IgnorePorts,
    /// `-X`: the ports in the file are routed first, in the order of the file. The file lists the ports of every third
    /// CA, the last CA first.
    RoutingOrder,
    /// `-O`: at every other switch, the search for an output port starts at the highest port.
    PortOrder,
    /// `-w`: at every third switch, the second port with a link has a weight of 3 hops.
    Weights,
    /// `-m`: the switch IDs are in the reverse order of the switches' GUIDs.
    Ids,
    /// `--port-shifting`: the scan for the least used port starts at another port for each LID.
    Shift,
    /// `--scatter-ports 77`: the choice among equally used ports is random, with the seed 77.
    Scatter,
    /// `-u`: all CAs except every fifth are compute nodes.
    ComputeNodes,
    /// `-G` and `-H 2`: every fifth CA is an I/O node.
    IoNodes,
    /// The SM runs on the last switch.
    SmOnSwitch,
    /// The SM runs on the last CA.
    SmOnLastHost,
    /// `port_profile_switch_nodes`: routes to switches count in load balancing.
    SwitchTargets,
    /// `lmc_esp0`: the LMC also applies to enhanced switch ports 0.
    EnhancedPort0,
    /// `quasi_ftree_indexing`: ftree starts the indexing of switches at the roots, not at the first leaf.
    QuasiIndexing,
    /// `--scatter-ports 77` with `-X`; the ports listed by `-X` are not randomized.
    ListedUnscattered,
    /// A guid2lid file in which every other port has a LID of 1000 or above. Some LID ranges are too short or too long
    /// for the LMC, and one entry belongs to no port of the fabric.
    KnownLids,
    /// `-U`: the forwarding tables of up/down routing, in a file.
    FileTables,
    /// `-M`: the hop counts of up/down routing, in a file.
    FileMatrix,
}

/// A test case: a fabric, and options for OpenSM and ibfabric.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The fabric.
    pub recipe: Recipe,
    /// The routing engines, as for option `-R`.
    pub engine: &'static str,
    /// The LMC.
    pub lmc: u8,
    /// Further options.
    pub choices: Vec<Choice>,
}

/// The files and arguments of a case.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Path of the net file of ibsim.
    pub net: PathBuf,
    /// Arguments of OpenSM.
    pub opensm: Vec<String>,
    /// Arguments of `ibfabric route`.
    pub ibfabric: Vec<String>,
    /// Name of the node on which OpenSM runs; `None` for the first CA of the net file.
    pub node: Option<String>,
    /// Content of the file guid2lid in OpenSM's cache.
    pub guid2lid: Option<String>,
}

impl Case {
    /// Returns a description of the case in one line.
    #[must_use]
    pub fn name(&self) -> String {
        let mut name = format!("{} | {} | LMC {}", self.recipe.name(), self.engine, self.lmc);
        for choice in &self.choices {
            write!(name, " | {choice:?}").expect("writing to a string succeeds");
        }
        name
    }

    /// Writes the net file and the option files into a directory.
    ///
    /// # Errors
    /// Fails if the fabric cannot be generated or a file cannot be written.
    pub fn prepare(&self, directory: &Path) -> Result<Prepared, RecipeError> {
        fs::create_dir_all(directory)?;
        let fabric = self.recipe.fabric()?;
        let net = directory.join("net");
        write(&fabric, Format::Ibsim, &mut io::BufWriter::new(fs::File::create(&net)?))?;
        let mut arguments = Vec::new();
        arguments.extend(["-R".to_owned(), self.engine.to_owned()]);
        arguments.extend(["-l".to_owned(), self.lmc.to_string()]);
        let mut prepared = Prepared::new(net, arguments);
        for &choice in &self.choices {
            prepared.add(choice, &fabric, directory)?;
        }
        Ok(prepared)
    }
}

impl Prepared {
    /// Creates a prepared case in which OpenSM and ibfabric get the same arguments.
    #[must_use]
    pub fn new(net: PathBuf, arguments: Vec<String>) -> Self {
        let opensm = arguments.clone();
        Self { net, opensm, ibfabric: arguments, node: None, guid2lid: None }
    }

    fn add(
        &mut self,
        choice: Choice,
        fabric: &Fabric,
        directory: &Path,
    ) -> Result<(), RecipeError> {
        let (option, text) = match choice {
            Choice::Roots => ("-a", roots(fabric)),
            Choice::RootsByHost => {
                let host = first_host(fabric);
                self.ibfabric.extend(file(directory, "-a", &format!("{}\n", host.0))?);
                self.opensm.extend(file(directory, "-a", &format!("{}\n", host.1))?);
                return Ok(());
            }
            Choice::ConnectRoots => {
                self.both(&["-z"]);
                return Ok(());
            }
            Choice::IgnorePorts => ("-i", ports_of(fabric, 2, 0, |_, port| format!("{port}"))),
            Choice::RoutingOrder => ("-X", routing_order(fabric)),
            Choice::PortOrder => {
                ("-O", ports_of(fabric, 2, 0, |node, _| format!("{}", node.ports)))
            }
            Choice::Weights => ("-w", ports_of(fabric, 3, 1, |_, port| format!("{port} 3"))),
            Choice::Ids => ("-m", ids(fabric)),
            Choice::Shift => {
                self.both(&["--port-shifting"]);
                return Ok(());
            }
            Choice::Scatter => {
                self.both(&["--scatter-ports", "77"]);
                return Ok(());
            }
            Choice::ComputeNodes => ("-u", hosts(fabric, |index| index % 5 != 4)),
            Choice::IoNodes => {
                self.both(&["-H", "2"]);
                ("-G", hosts(fabric, |index| index % 5 == 4))
            }
            Choice::SmOnSwitch => return self.manager_on(fabric, NodeKind::Switch),
            Choice::SmOnLastHost => return self.manager_on(fabric, NodeKind::ChannelAdapter),
            Choice::SwitchTargets => return self.setting(directory, "port_profile_switch_nodes"),
            Choice::EnhancedPort0 => return self.setting(directory, "lmc_esp0"),
            Choice::QuasiIndexing => return self.setting(directory, "quasi_ftree_indexing"),
            Choice::ListedUnscattered => {
                self.both(&["--scatter-ports", "77", "--guid_routing_order_no_scatter"]);
                ("-X", routing_order(fabric))
            }
            Choice::KnownLids => {
                let known = known_lids(fabric);
                let path = directory.join("guid2lid");
                fs::write(&path, &known)?;
                self.ibfabric.extend(["--guid2lid".to_owned(), path.display().to_string()]);
                self.guid2lid = Some(known);
                return Ok(());
            }
            Choice::FileTables => {
                let (subnet, routing) = up_down(fabric)?;
                ("-U", text(|out| dump::lfts::write(out, &subnet, &routing.lfts))?)
            }
            Choice::FileMatrix => {
                let (subnet, routing) = up_down(fabric)?;
                ("-M", text(|out| dump::lid_matrix::write(out, &subnet, &routing.hops))?)
            }
        };
        let words = file(directory, option, &text)?;
        self.opensm.extend(words.clone());
        self.ibfabric.extend(words);
        Ok(())
    }

    fn both(&mut self, words: &[&str]) {
        for arguments in [&mut self.opensm, &mut self.ibfabric] {
            arguments.extend(words.iter().map(|&word| word.to_owned()));
        }
    }

    /// Sets an option that OpenSM reads only from a configuration file.
    fn setting(&mut self, directory: &Path, name: &str) -> Result<(), RecipeError> {
        self.opensm.extend(file(directory, "-F", &format!("{name} TRUE\n"))?);
        self.ibfabric.push(format!("--{name}"));
        Ok(())
    }

    /// Places the SM on the last node of the given kind.
    fn manager_on(&mut self, fabric: &Fabric, kind: NodeKind) -> Result<(), RecipeError> {
        let (id, node) = fabric
            .nodes()
            .filter(|(_, node)| node.kind == kind)
            .last()
            .expect("generated fabrics have switches and hosts");
        let guid = match kind {
            NodeKind::Switch => node.guid,
            _ => {
                let mut ports = fabric.ports_of(id);
                let linked = ports.find(|(_, port)| port.peer.is_some());
                linked.expect("generated hosts are linked").1.guid
            }
        };
        self.node = Some(node.name.clone());
        self.ibfabric.extend(["--sm-port".to_owned(), guid.to_string()]);
        Ok(())
    }
}

/// Computes up/down routing of a fabric. Fails if the engine detects no roots.
fn up_down(fabric: &Fabric) -> Result<(Subnet<'_>, Routing), RecipeError> {
    let subnet = Subnet::discover(fabric, &SubnetOptions::default())?;
    let routing = UpDown.route(&subnet, &RoutingOptions::default())?;
    Ok((subnet, routing))
}

fn text(write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> io::Result<String> {
    let mut bytes = Vec::new();
    write(&mut bytes)?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

fn known_lids(fabric: &Fabric) -> String {
    let ports = fabric.nodes().flat_map(|(id, node)| {
        let own = node.kind.is_switch();
        fabric.ports_of(id).filter(
            move |(_, port)| {
                if own { port.number == 0 } else { port.peer.is_some() }
            },
        )
    });
    let mut lines = String::from("0x0002c90000999999 0x0bb8 0x0bb8\n\n");
    for (index, (_, port)) in ports.enumerate().filter(|(index, _)| index % 2 == 1) {
        let first = 1024 + 8 * index;
        let last = first + [0, 1, 3, 7][index / 2 % 4];
        writeln!(lines, "{} {first:#06x} {last:#06x}\n", port.guid)
            .expect("writing to a string succeeds");
    }
    lines
}

/// Writes the file of an option. Returns the command-line arguments for this option.
fn file(directory: &Path, option: &str, text: &str) -> io::Result<[String; 2]> {
    let serial = fs::read_dir(directory)?.count();
    let path = directory.join(format!("option{option}-{serial}"));
    fs::write(&path, text)?;
    Ok([option.to_owned(), path.display().to_string()])
}

fn roots(fabric: &Fabric) -> String {
    let switches = || fabric.nodes().filter(|(_, node)| node.kind.is_switch());
    let named = |prefix: &str| -> Vec<String> {
        switches()
            .filter(|(_, node)| node.description.starts_with(prefix))
            .map(|(_, node)| format!("{}\n", node.guid))
            .collect()
    };
    let tops = ["core", "spine"].iter().map(|prefix| named(prefix)).find(|tops| !tops.is_empty());
    tops.unwrap_or_else(|| switches().take(1).map(|(_, node)| format!("{}\n", node.guid)).collect())
        .concat()
}

/// Returns the node GUID of the first CA and the GUID of its switch.
fn first_host(fabric: &Fabric) -> (ib_types::Guid, ib_types::Guid) {
    fabric
        .nodes()
        .filter(|(_, node)| !node.kind.is_switch())
        .find_map(|(id, node)| {
            let (port, _) = fabric.ports_of(id).find(|(_, port)| port.peer.is_some())?;
            Some((node.guid, fabric.node(fabric.peer(port)?.node).guid))
        })
        .expect("generated fabrics have hosts with links")
}

/// Returns a line for the first switch and for each `every`-th switch after it. A line contains the GUID of the switch,
/// and `text` of one of its ports. Among the ports with a link, this port has the index `which`.
fn ports_of(
    fabric: &Fabric,
    every: usize,
    which: usize,
    text: impl Fn(&ib_topology::Node, u8) -> String,
) -> String {
    let switches = fabric.nodes().filter(|(_, node)| node.kind.is_switch());
    switches
        .step_by(every)
        .filter_map(|(id, node)| {
            let mut linked = fabric.ports_of(id).filter(|(_, port)| port.peer.is_some());
            let (_, port) = linked.nth(which)?;
            Some(format!("{} {}\n", node.guid, text(node, port.number)))
        })
        .collect()
}

fn routing_order(fabric: &Fabric) -> String {
    let hosts: Vec<_> =
        fabric.nodes().filter(|(_, node)| node.kind == NodeKind::ChannelAdapter).collect();
    hosts
        .iter()
        .step_by(3)
        .rev()
        .flat_map(|&(id, _)| fabric.ports_of(id))
        .filter(|(_, port)| port.peer.is_some())
        .map(|(_, port)| format!("{}\n", port.guid))
        .collect()
}

fn ids(fabric: &Fabric) -> String {
    let switches = fabric.nodes().filter(|(_, node)| node.kind.is_switch());
    switches
        .enumerate()
        .map(|(index, (_, node))| format!("{} {}\n", node.guid, 1_000_000 - index))
        .collect()
}

fn hosts(fabric: &Fabric, wanted: impl Fn(usize) -> bool) -> String {
    let hosts = fabric.nodes().filter(|(_, node)| node.kind == NodeKind::ChannelAdapter);
    hosts
        .enumerate()
        .filter(|&(index, _)| wanted(index))
        .flat_map(|(_, (id, _))| fabric.ports_of(id))
        .filter(|(_, port)| port.peer.is_some())
        .map(|(_, port)| format!("{}\n", port.guid))
        .collect()
}
