//! Checks ibfabric's [`MadLink`] for ibsim's protocol with a real ibsim, its [`MadLink`] for umad with Debian's
//! preloaded library, and its SA queries with a real OpenSM.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ib_ibsim::client::{Attach, IbsimLink, ServerAddress};
use ib_link::{Datagram, Incoming, MadLink, Remote};
use ib_mad::{Client, Request, RequesterConfig, Responder, ResponderConfig, ResponderEvent};
use ib_topology::generate::{Kind as FabricKind, generate};
use ib_topology::{Fabric, LinkRate};
use ib_types::{Guid, LinkSpeed, LinkWidth};
use ib_wire::mad::pm::PortCounters;
use ib_wire::mad::sa::{ComponentMask, NodeRecord, PathRecord, SaHeader};
use ib_wire::mad::sm::{NodeInfo, PhysState, PortInfo};
use ib_wire::mad::{AttributeId, Mad, MadStatus, Method, MgmtClass, TransactionId, smp};

use crate::clients::fabrics::write_net;
use crate::clients::manager::{Manager, Options};
use crate::clients::program::Seat;
use crate::clients::server::{Kind, Server};
use crate::clients::stage::socket_name;
use crate::opensm::first_adapter;

/// The class of the MADs that two clients exchange: ibping's vendor class, which allows RMPP. The simulators themselves
/// do not respond to it, but deliver the requests to a client.
const VENDOR: MgmtClass = MgmtClass(0x32);
const PATIENCE: Duration = Duration::from_secs(20);

type Checked = Result<(), Box<dyn std::error::Error>>;

/// The name of a check, and the function that runs it.
type Check<'a> = (&'static str, fn(&Scene<'a>) -> Checked);

/// Programs and libraries of a run.
pub struct Setup<'a> {
    /// The simulator.
    pub simulator: &'a Kind,
    /// The library that is preloaded into OpenSM and the umad program.
    pub preload: &'a Path,
    /// True if the preloaded library returns all MADs of a response.
    pub complete: bool,
    /// A client program that uses the umad device: the example `umad_node_info`.
    pub umad_program: &'a Path,
    /// A directory for logs.
    pub directory: &'a Path,
}

/// A simulator on which OpenSM is running.
pub struct Scene<'a> {
    setup: &'a Setup<'a>,
    fabric: Fabric,
    socket: String,
    seat: Seat,
    // Fields are dropped from top to bottom, so the simulator ends last.
    _manager: Manager,
    _server: Box<dyn Server>,
}

/// A check and its result.
#[derive(Debug)]
pub struct Report {
    /// The name of the check.
    pub name: &'static str,
    /// The error; `None` if the check has passed.
    pub fault: Option<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            None => write!(f, "{}: ok", self.name),
            Some(fault) => write!(f, "{}: FAILED: {fault}", self.name),
        }
    }
}

impl<'a> Scene<'a> {
    /// Starts the simulator and OpenSM, and returns after SUBNET UP.
    ///
    /// # Errors
    /// Fails if the simulator or OpenSM cannot be started, or if OpenSM does not bring the subnet up.
    pub fn start(setup: &'a Setup<'a>) -> Result<Self, Box<dyn std::error::Error>> {
        let kind = FabricKind::parse("xgft", &["4,4", "1,2"])?;
        let rate = LinkRate { width: LinkWidth::X4, speed: LinkSpeed::Hdr };
        let options = ib_topology::generate::Options { rate, ..Default::default() };
        let fabric = generate(&kind, &options)?;
        let net = setup.directory.join("net");
        write_net(&fabric, &net)?;
        let socket = socket_name();
        let server = setup.simulator.start(&net, setup.directory, &socket)?;
        let text = std::fs::read_to_string(&net)?;
        let node = first_adapter(&text).ok_or("the fabric has no channel adapter")?.to_owned();
        let directory = setup.directory.to_owned();
        let seat =
            Seat { socket: socket.clone(), preload: setup.preload.to_owned(), node, directory };
        let manager = Manager::start(&seat, setup.directory, &Options::default())?;
        Ok(Self { setup, fabric, socket, seat, _manager: manager, _server: server })
    }

    /// Runs all checks.
    #[must_use]
    pub fn check(&self) -> Vec<Report> {
        let checks: [Check<'a>; 6] = [
            ("directed routes reach every port", Self::directed_routes),
            ("every node returns its counters by LID", Self::counters),
            ("OpenSM returns the path between two ports", Self::path),
            ("OpenSM returns all nodes; through Debian's umad library, one of them", Self::table),
            ("two clients exchange messages of up to 100,000 bytes", Self::messages),
            ("the umad link reads the NodeInfo of the local node", Self::umad),
        ];
        let run = |(name, check): Check<'a>| Report {
            name,
            fault: check(self).err().map(|error| error.to_string()),
        };
        checks.into_iter().map(run).collect()
    }

    fn attach(&self, node: &str, is_sm: bool) -> Result<IbsimLink, Box<dyn std::error::Error>> {
        let server = ServerAddress::Name(self.socket.clone());
        let attach = Attach { node: Some(node.to_owned()), is_sm, ..Attach::new(server) };
        Ok(IbsimLink::attach(&attach)?)
    }

    /// Returns the names of the HCAs.
    fn hosts(&self) -> Vec<&str> {
        let nodes = self.fabric.nodes().filter(|(_, node)| !node.kind.is_switch());
        nodes.map(|(_, node)| node.name.as_str()).collect()
    }

    /// Discovers the fabric from a host. Returns its nodes with the LIDs of their end ports.
    fn walk(
        &self,
        link: &mut IbsimLink,
    ) -> Result<BTreeMap<Guid, u16>, Box<dyn std::error::Error>> {
        let mut client = Client::new(RequesterConfig::default());
        let mut lids = BTreeMap::new();
        let (mut paths, mut links) = (vec![Vec::new()], BTreeSet::new());
        while !paths.is_empty() {
            let infos = ask_all::<NodeInfo>(&mut client, link, &paths, |_| 0)?;
            let mut ports = Vec::new();
            for (path, info) in paths.iter().zip(infos) {
                let switch = info.node_type.0 == 2;
                if let Entry::Vacant(entry) = lids.entry(info.node_guid) {
                    entry.insert(0);
                    let first = if switch { 0 } else { info.local_port };
                    let last = if switch { info.num_ports } else { first };
                    ports.extend((first..=last).map(|port| (path.clone(), info, port)));
                }
            }
            let of_ports: Vec<Vec<u8>> = ports.iter().map(|(path, ..)| path.clone()).collect();
            let numbers: Vec<u8> = ports.iter().map(|&(.., port)| port).collect();
            let infos =
                ask_all::<PortInfo>(&mut client, link, &of_ports, |index| numbers[index].into())?;
            paths.clear();
            for ((path, node, number), info) in ports.into_iter().zip(infos) {
                if number == 0 || node.node_type.0 != 2 {
                    lids.insert(node.node_guid, info.lid);
                }
                if number != 0 && info.phys_state == PhysState::LINK_UP {
                    links.insert((node.node_guid, number));
                    // Hosts do not forward packets, so only the ports of switches and of the first host lead to other
                    // nodes.
                    if node.node_type.0 == 2 || path.is_empty() {
                        paths.push(path.into_iter().chain([number]).collect());
                    }
                }
            }
        }
        let (found, expected) = (links.len(), self.fabric.links().count() * 2);
        if found != expected {
            return Err(format!("{found} ports have a link, expected {expected}").into());
        }
        Ok(lids)
    }

    fn directed_routes(&self) -> Checked {
        let mut link = self.attach(self.hosts()[0], false)?;
        let found = self.walk(&mut link)?;
        let expected: BTreeSet<Guid> = self.fabric.nodes().map(|(_, node)| node.guid).collect();
        let found: BTreeSet<Guid> = found.into_keys().collect();
        same("the nodes", &found, &expected)
    }

    fn counters(&self) -> Checked {
        let mut link = self.attach(self.hosts()[1], false)?;
        let lids = self.walk(&mut link)?;
        let mut client = Client::new(RequesterConfig::default());
        let requests = lids.values().map(|&lid| {
            let mut mad = Mad::new(MgmtClass::PERFORMANCE, Method::GET, TransactionId(0));
            let counters = PortCounters { port_select: 1, ..PortCounters::zeroed() };
            mad.set_attribute(&counters);
            Request::new(Remote::gsi(lid), mad)
        });
        let answers = client.call_all(&mut link, requests.collect())?;
        for (lid, answer) in lids.values().zip(answers) {
            let answer = answer.map_err(|failure| format!("LID {lid}: {failure}"))?;
            same("the status", &answer.status(), &MadStatus::OK)?;
            let counters: PortCounters =
                answer.mad().attribute().ok_or("the response has no PortCounters")?;
            if counters.xmit_packets == 0 || counters.rcv_packets == 0 {
                return Err(format!("the counters of LID {lid} have not counted packets").into());
            }
        }
        Ok(())
    }

    fn path(&self) -> Checked {
        let mut link = self.attach(self.hosts()[2], false)?;
        let lids = self.walk(&mut link)?;
        let port = link.port()?;
        let target = *lids.values().max().ok_or("the fabric has no LIDs")?;
        let mut mad = Mad::new(MgmtClass::SUBN_ADM, Method::GET, TransactionId(0));
        let wanted = PathRecord { slid: port.lid, dlid: target, ..PathRecord::zeroed() };
        mad.set_attribute(&wanted);
        let component_mask = ComponentMask::of(&[4, 5]);
        mad.set_sa(&SaHeader { component_mask, ..SaHeader::zeroed() });
        let request = Request::new(Remote::gsi(port.sm_lid), mad);
        let answer = Client::new(RequesterConfig::default()).call(&mut link, request)?;
        same("the status", &answer.status(), &MadStatus::OK)?;
        let found: PathRecord = answer.mad().attribute().ok_or("the response has no PathRecord")?;
        same("the LIDs", &(found.slid, found.dlid), &(port.lid, target))?;
        same("the prefix", &found.dgid.prefix(), &port.gid_prefix)
    }

    fn table(&self) -> Checked {
        let mut link = self.attach(self.hosts()[3], false)?;
        let port = link.port()?;
        let mut mad = Mad::new(MgmtClass::SUBN_ADM, Method::GET_TABLE, TransactionId(0));
        mad.set_attribute_id(AttributeId::NODE_RECORD);
        let request = Request::new(Remote::gsi(port.sm_lid), mad);
        let answer = Client::new(RequesterConfig::default()).call(&mut link, request)?;
        same("the status", &answer.status(), &MadStatus::OK)?;
        let found: BTreeSet<Guid> =
            answer.records::<NodeRecord>().map(|record| record.node_info.node_guid).collect();
        let expected: BTreeSet<Guid> = self.fabric.nodes().map(|(_, node)| node.guid).collect();
        if self.setup.complete {
            return same("the nodes", &found, &expected);
        }
        // Debian's library returns only the first MAD of a response, which contains one node.
        same("the number of nodes", &found.len(), &1)?;
        same(
            "the number of nodes that are not in the fabric",
            &found.difference(&expected).count(),
            &0,
        )
    }

    /// One client sends requests of several lengths. Another client responds with the reversed data.
    fn messages(&self) -> Checked {
        let hosts = self.hosts();
        let mut asker = self.attach(hosts[0], false)?;
        // The responding client sets `IsSM`, because the simulators deliver requests to a client with `IsSM`.
        let mut answerer = self.attach(hosts[hosts.len() - 1], true)?;
        let lid = answerer.port()?.lid;
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| serve(&mut answerer, &done).map_err(|e| e.to_string()));
            let asked = exchange(&mut asker, lid);
            done.store(true, Ordering::Relaxed);
            serving.join().expect("the responding thread does not panic")?;
            asked
        })
    }

    fn umad(&self) -> Checked {
        let host = self.hosts()[5];
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "20"]).arg(self.setup.umad_program).arg("ibsim0");
        self.seat.dress(&mut command, Some(host));
        let output = command.current_dir(self.setup.directory).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let node =
            self.fabric.nodes().find(|(_, node)| node.name == host).ok_or("the host is missing")?.1;
        let guid = format!("{:#018x}", node.guid.0);
        if output.status.success() && text.contains(&guid) {
            Ok(())
        } else {
            Err(format!("expected {guid} in {text:?} {errors:?}").into())
        }
    }
}

/// Queries an attribute at the end of each directed route.
fn ask_all<A: ib_wire::mad::Attribute>(
    client: &mut Client,
    link: &mut IbsimLink,
    paths: &[Vec<u8>],
    modifier: impl Fn(usize) -> u32,
) -> Result<Vec<A>, Box<dyn std::error::Error>> {
    let requests = paths.iter().enumerate().map(|(index, path)| {
        let what = (A::ID, modifier(index));
        let mad = smp::directed_request(Method::GET, TransactionId(0), what, path);
        Request::new(Remote::directed(), mad)
    });
    let answers = client.call_all(link, requests.collect())?;
    let read = |(path, answer): (&Vec<u8>, Result<ib_mad::Message, ib_mad::Failure>)| {
        let answer = answer.map_err(|failure| format!("directed route {path:?}: {failure}"))?;
        let attribute = answer.mad().attribute().filter(|_| answer.status().is_ok());
        Ok(attribute
            .ok_or_else(|| format!("directed route {path:?}: status {}", answer.status()))?)
    };
    paths.iter().zip(answers).map(read).collect()
}

fn exchange(link: &mut IbsimLink, lid: u16) -> Checked {
    let mut client = Client::new(RequesterConfig::default());
    for length in [1, 216, 217, 5_000, 100_000] {
        let data: Vec<u8> = (0..length).map(|at: u32| (at.wrapping_mul(37) >> 3) as u8).collect();
        let mut header = Mad::new(VENDOR, Method::GET_TABLE, TransactionId(0));
        header.set_attribute_id(AttributeId(0x0010));
        header.0[37..40].copy_from_slice(&[0x00, 0x14, 0x05]);
        let request = Request::message(Remote::gsi(lid), header, data.clone());
        let answer =
            client.call(link, request).map_err(|error| format!("{length} bytes: {error}"))?;
        let reversed: Vec<u8> = data.into_iter().rev().collect();
        same("the data", &answer.data(), &&reversed[..])?;
        same("the OUI", &&answer.mad().0[37..40], &&[0x00, 0x14, 0x05][..])?;
    }
    Ok(())
}

fn serve(link: &mut IbsimLink, done: &AtomicBool) -> Checked {
    let mut responder = Responder::new(ResponderConfig::default());
    let end = link.now() + PATIENCE;
    while !done.load(Ordering::Relaxed) && link.now() < end {
        while let Some(incoming) = link.receive()? {
            // This client's port has `IsSM` set, so OpenSM queries its SMInfo. These queries are skipped.
            let for_us = |datagram: &Datagram| datagram.mad.class() == VENDOR;
            if matches!(&incoming, Incoming::Received(datagram) if for_us(datagram)) {
                responder.handle(link.now(), &incoming);
            }
        }
        responder.handle_timeout(link.now());
        while let Some(event) = responder.poll_event() {
            if let ResponderEvent::Request(request) = event {
                let reversed: Vec<u8> = request.data().iter().rev().copied().collect();
                let mut header = *request.mad();
                header.answer(MadStatus::OK);
                responder.respond_message(request.datagram(), header, reversed)?;
            }
        }
        while let Some(datagram) = responder.poll_transmit(link.now()) {
            link.send(&datagram)?;
        }
        let soon = link.now() + Duration::from_millis(20);
        link.wait(responder.poll_timeout().map_or(soon, |at| at.min(soon)))?;
    }
    Ok(())
}

fn same<T: PartialEq + fmt::Debug>(what: &str, found: &T, expected: &T) -> Checked {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what}: found {found:?}, expected {expected:?}").into())
    }
}
