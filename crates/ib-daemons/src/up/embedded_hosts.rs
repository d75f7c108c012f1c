//! The hosts of `up`, for the self-test and the page. Each has an ACM service. Some are the client or the server of the
//! block device.

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ib_acm::{Address, ServiceConfig};
use ib_cm::{PortSpace, ServiceId};
use ib_nbd::Export as NbdExport;
use ib_sim::{Addresses, Sim};
use ib_storage::nbd::{NbdAddress, NbdServer};
use ib_storage::rtrs::BlockEvent;
use ib_topology::{Fabric, PortId};
use ib_types::Instant;
use ib_wire::mad::sa::PathRecord;

use super::config::{SelfTestConfig, Task, UpConfig};
use super::load_generator::LoadGenerator;
use super::page::{FabricView, Page, Scene};
use super::path_request::{destination, path_of};
use super::record::{Record, Target};
use super::self_test::{SelfTest, SelfTestContext};
use crate::error::{DaemonError, Verdict};
use crate::message::counted;
use crate::message::say;
use crate::own_capture::{self, Tracing};
use crate::up::hosts::{BlockPair, Hosts, PORT, PairEvent, PairOptions, Reply};

/// Name of the block device.
const DEVICE: &str = "disk0";

/// Maximum number of outstanding requests to the block device.
const DEPTH: u16 = 64;

/// Time limit of each stage of the start: links become active, paths are resolved, the block device is connected.
const STAGE_TIMEOUT: Duration = Duration::from_secs(60);

/// Interval at which the fabric is searched for ports without a host.
const SEARCH_INTERVAL: Duration = Duration::from_secs(1);

/// The stages in which the hosts and the block device are started.
enum Stage {
    /// No hosts are added yet.
    Empty,
    /// The paths of the block device are being resolved. Entry N is the path of resolve request N; `None` until the
    /// response arrives.
    Resolving(Vec<Option<PathRecord>>),
    /// The paths of the block device are being connected.
    Connecting,
    Ready,
}

/// The embedded hosts of a fabric. They are added when the SM has configured their ports. Then some of them become the
/// client and the server of the block device.
pub(super) struct EmbeddedHosts {
    hosts: Hosts,
    /// Ports that HCAs of other processes use.
    away: BTreeSet<PortId>,
    /// Ports of the block device's hosts: those of the client, then those of the server.
    ends: [Vec<PortId>; 2],
    pair: Option<BlockPair>,
    programs: Option<NbdServer>,
    record: Option<Record>,
    /// The captures of the hosts' HCAs; `None` during a self-test, which captures the packets itself.
    tracing: Option<Tracing<Hosts>>,
    stage: Stage,
    self_test: Option<SelfTest>,
    page: Option<Page>,
    load_generator: LoadGenerator,
    lines: VecDeque<String>,
    /// Time at which the present stage of the start times out.
    deadline: Instant,
    /// Time at which hosts are added even if the SM has not activated links; `None` before the first check of the
    /// links.
    managed_until: Option<Instant>,
    /// Time of the next search for ports that have no host.
    look: Instant,
    /// The NBD socket of the block device; `None` during a self-test.
    nbd: Option<PathBuf>,
    write: Option<Target>,
    payload: u16,
    size: u64,
    seed: [u8; 32],
    socket: String,
}

impl EmbeddedHosts {
    pub(super) fn new(
        config: &UpConfig,
        fabric: Fabric,
        page: Option<Page>,
    ) -> Result<Self, DaemonError> {
        if config.size == 0 || !config.size.is_multiple_of(512) {
            let size = config.size;
            return Err(DaemonError::Failed(format!(
                "--size {size}: expected a multiple of 512 bytes, at least 512"
            )));
        }
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&config.seed.to_le_bytes());
        let (self_test, capture, nbd) = match &config.task {
            Task::SelfTest(self_test) => (Some(self_test), None, None),
            Task::Serve { capture, nbd, .. } => (None, capture.as_ref(), Some(nbd.clone())),
        };
        let target = |config: &SelfTestConfig| match &config.pcap {
            Some(path) => Target::named(path.clone()),
            None => Target::in_memory(),
        };
        let write = self_test.map(target).transpose()?;
        let engines = config.engine.clone();
        let mut hosts = Hosts::new(service_config(), seed);
        let tracing = match self_test {
            Some(_) => None,
            None => {
                let captures = hosts.captures().map_err(DaemonError::failed)?;
                Some(Tracing::start(capture, captures, &mut hosts)?)
            }
        };
        Ok(Self {
            hosts,
            tracing,
            away: BTreeSet::new(),
            ends: [Vec::new(), Vec::new()],
            pair: None,
            programs: None,
            record: None,
            stage: Stage::Empty,
            self_test: self_test.map(|test| SelfTest::new(fabric, engines, test.is_json)),
            page,
            load_generator: LoadGenerator::default(),
            lines: VecDeque::new(),
            deadline: Instant::NEVER,
            managed_until: None,
            look: Instant::ZERO,
            nbd,
            write,
            payload: self_test.map_or(0, |test| test.payload),
            size: config.size,
            seed: seed.map(|byte| !byte),
            socket: config.socket.clone(),
        })
    }

    /// Adds a host at each HCA port with a LID that neither an embedded host nor another process uses.
    fn populate(&mut self, sim: &mut Sim, addresses: &Addresses) -> Result<(), DaemonError> {
        self.look = sim.now() + SEARCH_INTERVAL;
        let ports: Vec<PortId> = addresses.iter().map(|(port, _)| port).collect();
        for port in ports {
            let is_free = !self.hosts.has(port) && !self.away.contains(&port);
            if !is_free || sim.link_port(port).lid == 0 {
                continue;
            }
            let (node, _) = sim.place(port);
            let mut names: Vec<Address> = Address::name(sim.node_name(node)).into_iter().collect();
            names.extend(addresses.of(port).iter().map(|&address| Address::from(address)));
            self.hosts.add(sim, port, names).map_err(DaemonError::failed)?;
        }
        Ok(())
    }

    /// Returns true once the SM has activated the links of two hosts, or of the only host. Also returns true after a
    /// timeout, because an external SM may start later. Each port then gets its host when it has a LID.
    fn is_managed(&mut self, sim: &Sim, addresses: &Addresses) -> bool {
        let ends = addresses.iter().filter_map(|(port, _)| Some((port, sim.peer(port)?)));
        let (mut linked, mut active) = (0, 0);
        for (port, peer) in ends {
            linked += 1;
            active += usize::from(sim.is_active(port, peer));
        }
        let now = sim.now();
        let until = *self.managed_until.get_or_insert(now + STAGE_TIMEOUT);
        self.look = now + SEARCH_INTERVAL;
        active >= linked.min(2) || now >= until
    }

    /// Adds hosts. Selects the block device's client hosts and server hosts, and starts to resolve the paths between
    /// them.
    fn begin(&mut self, sim: &mut Sim, addresses: &Addresses) -> Result<(), DaemonError> {
        self.populate(sim, addresses)?;
        let ports: Vec<PortId> = self.hosts.ports().collect();
        self.print_line(format!("names: ACM services at {}", counted(ports.len(), "host")));
        let paths = match ports.len() {
            0 | 1 => 0,
            2 | 3 => 1,
            _ => 2,
        };
        self.ends = [ports[..paths].to_vec(), ports[ports.len() - paths..].to_vec()];
        for place in 0..paths {
            let to = Address::Gid(sim.link_port(self.ends[1][place]).gid());
            let (from, entries) = (self.ends[0][place], vec![destination(&to)]);
            if let Some(message) = self.hosts.request(sim, from, place as u64, entries) {
                self.hosts.queue_reply(Reply { port: from, number: place as u64, message });
            }
        }
        self.stage = Stage::Resolving(vec![None; paths]);
        self.deadline = sim.now() + STAGE_TIMEOUT;
        if paths == 0 {
            self.print_line(format!("{DEVICE}: none, because a block device needs two hosts"));
            self.get_ready(sim);
        }
        Ok(())
    }

    /// Connects the block device over the resolved paths.
    fn connect(&mut self, sim: &Sim, paths: &[PathRecord]) -> Result<(), DaemonError> {
        if let Some(write) = self.write.take() {
            let ports = self.ends.concat();
            let service = ServiceId::port(PortSpace::IB, PORT).0;
            let place = (sim, &mut self.hosts);
            self.record = Some(Record::start(write, self.payload, place, &ports, service)?);
        }
        let options = PairOptions {
            device: DEVICE.to_owned(),
            size: self.size,
            depth: DEPTH,
            hosts: self.ends.clone(),
            seed: self.seed,
        };
        let mut pair = BlockPair::new(&mut self.hosts, options).map_err(DaemonError::failed)?;
        for (place, path) in paths.iter().enumerate() {
            pair.add_path(sim.now(), &mut self.hosts, place, path).map_err(DaemonError::failed)?;
        }
        self.pair = Some(pair);
        self.stage = Stage::Connecting;
        self.deadline = sim.now() + STAGE_TIMEOUT;
        Ok(())
    }

    /// Once the RTRS client has opened the block device, exports it to NBD clients.
    fn offer(&mut self, sim: &Sim) -> Result<(), DaemonError> {
        let Some(&geometry) = self.pair.as_ref().and_then(BlockPair::geometry) else {
            return Ok(());
        };
        let export = NbdExport {
            name: DEVICE.to_owned(),
            description: "block device of a simulated fabric".to_owned(),
            geometry,
            preferred: 4096,
        };
        let Some(nbd) = self.nbd.clone() else {
            self.get_ready(sim);
            return Ok(());
        };
        let server = NbdServer::listen(&NbdAddress::Unix(nbd.clone()), Arc::new([export]));
        self.programs = Some(server.map_err(|error| {
            DaemonError::Failed(format!("{error}; --nbd selects another socket"))
        })?);
        let name = |port: &PortId| sim.node_name(sim.place(*port).0).to_owned();
        let ends = self.ends.clone().map(|ports| ports.iter().map(name).collect::<Vec<_>>());
        let [from, to] = ends.map(|names| names.join(" and "));
        let (mib, paths) = (self.size >> 20, self.ends[0].len());
        let paths = counted(paths, "path");
        self.print_line(format!("{DEVICE}: {mib} MiB at {to}, used by {from} over {paths}"));
        self.print_line(format!("{DEVICE}: NBD at {}", nbd.display()));
        self.get_ready(sim);
        Ok(())
    }

    /// Handles a block device that cannot be connected. A self-test continues without it. If no self-test runs, returns
    /// an error.
    fn lack_device(&mut self, sim: &Sim, why: String) -> Result<(), DaemonError> {
        let Some(self_test) = &mut self.self_test else {
            return Err(DaemonError::Failed(format!("{DEVICE}: {why}")));
        };
        self_test.lack_device(why);
        self.pair = None;
        self.get_ready(sim);
        Ok(())
    }

    /// Queues a line for standard output. During a self-test only its results are printed, so the line is dropped.
    fn print_line(&mut self, line: String) {
        if self.self_test.is_none() {
            self.lines.push_back(line);
        }
    }

    fn get_ready(&mut self, sim: &Sim) {
        self.stage = Stage::Ready;
        self.deadline = Instant::NEVER;
        if let Some(self_test) = &mut self.self_test {
            self_test.begin(sim);
            return;
        }
        if let Some(page) = &self.page {
            self.lines.push_back(format!("page: {}", page.url()));
        }
        let name = &self.socket;
        self.lines.push_back("try:".to_owned());
        let ports: Vec<PortId> = self.hosts.ports().collect();
        let pairs = format!("ibfabric tracer --attach {name} --all-pairs");
        // The example command uses a port that the block device does not use.
        let free = ports.iter().find(|port| !self.ends.iter().flatten().any(|end| end == *port));
        let adapter = free.map(|&port| {
            let node = sim.node_name(sim.place(port).0);
            format!("ibfabric rdma devinfo --attach {name} --node '{node}'")
        });
        let device = self
            .nbd
            .as_ref()
            .map(|nbd| format!("nbdinfo 'nbd+unix:///{DEVICE}?socket={}'", nbd.display()));
        let commands = [
            Some(format!("ibfabric sim ctl --name {name} stats")),
            Some(format!("ibfabric sm ctl --name {name}-sm status")),
            Some(pairs).filter(|_| ports.len() > 1),
            adapter,
            device.filter(|_| self.programs.is_some()),
        ];
        self.lines.extend(commands.into_iter().flatten().map(|command| format!("  {command}")));
        self.lines.push_back("running until Ctrl-C or SIGTERM".to_owned());
    }

    /// Passes each response of an ACM service to its requester: the start of the block device, the self-test or the
    /// page.
    fn take_replies(&mut self, sim: &Sim) -> Result<bool, DaemonError> {
        let mut moved = false;
        while let Some(reply) = self.hosts.poll_reply() {
            moved = true;
            let found = path_of(&reply.message);
            match (&mut self.stage, &mut self.self_test) {
                (Stage::Resolving(paths), _) => match found {
                    Ok(path) => paths[reply.number as usize] = Some(path),
                    Err(status) => {
                        self.lack_device(sim, format!("cannot resolve a path: {status}"))?;
                    }
                },
                (_, Some(self_test)) => self_test.take_reply(reply.number, found),
                _ => {
                    if let Some(page) = &mut self.page {
                        page.take_reply(sim.now(), reply.number, found);
                    }
                }
            }
        }
        Ok(moved)
    }

    /// Continues with the next stage of the start if the present one is complete.
    fn advance(&mut self, sim: &mut Sim, addresses: &Addresses) -> Result<(), DaemonError> {
        match &self.stage {
            Stage::Empty => {
                if self.is_managed(sim, addresses) {
                    self.begin(sim, addresses)?;
                }
            }
            Stage::Resolving(paths) => {
                if let Some(paths) = paths.iter().copied().collect::<Option<Vec<_>>>() {
                    self.connect(sim, &paths)?;
                }
            }
            Stage::Connecting => self.offer(sim)?,
            Stage::Ready => {}
        }
        if sim.now() >= self.deadline {
            let seconds = STAGE_TIMEOUT.as_secs();
            self.lack_device(sim, format!("not connected after {seconds} s"))?;
        }
        if sim.now() >= self.look {
            self.populate(sim, addresses)?;
        }
        Ok(())
    }

    /// Writes captured packets to the file. If this fails, the capture stops and the fabric keeps running; a self-test
    /// fails instead.
    fn write_record(&mut self, sim: &Sim) -> Result<(), DaemonError> {
        let Some(record) = &mut self.record else { return Ok(()) };
        match record.work(sim, &mut self.hosts) {
            Err(error) if self.self_test.is_none() => {
                say!("{}: the capture stops, the fabric keeps running", error.into_message());
                own_capture::note_failure();
                if let Some(record) = self.record.take() {
                    record.abandon(&mut self.hosts);
                }
                Ok(())
            }
            result => result,
        }
    }

    /// Prints failed requests of the block device.
    fn log_failures(&mut self) {
        let Some(pair) = &mut self.pair else { return };
        while let Some(event) = pair.poll_event() {
            if let PairEvent::Server(BlockEvent::Failed { device, operation, errno }) = event {
                say!("{device}: a {operation} failed: {errno}");
            }
        }
    }

    /// Does all work that is due now; returns true if there was any. If this process runs an SM, the subnet must be up.
    pub(super) fn work(
        &mut self,
        sim: &mut Sim,
        addresses: &Addresses,
    ) -> Result<bool, DaemonError> {
        self.advance(sim, addresses)?;
        let mut moved = self.hosts.work(sim);
        moved |= self.take_replies(sim)?;
        if let Some(pair) = &mut self.pair {
            moved |= pair.work(sim, &mut self.hosts).map_err(DaemonError::failed)?;
            if let Some(programs) = self.programs.as_mut().filter(|_| self.self_test.is_none()) {
                moved |= if self.load_generator.is_running() {
                    let is_interrupted = programs.connections() > 0;
                    self.load_generator.work(sim.now(), pair, is_interrupted)
                        | programs.progress_without()
                } else {
                    programs.progress(pair)
                };
            }
        }
        self.log_failures();
        self.write_record(sim)?;
        if let (Some(self_test), Stage::Ready) = (&mut self.self_test, &self.stage) {
            let (hosts, pair, record) = (&mut self.hosts, &mut self.pair, &mut self.record);
            moved |= self_test.work(&mut SelfTestContext {
                sim,
                hosts,
                pair,
                record,
                ends: &self.ends,
            })?;
            self.lines.extend(std::iter::from_fn(|| self_test.poll_line()));
        }
        Ok(moved)
    }

    /// Returns the time at which [`EmbeddedHosts::work`] must be called even without input.
    pub(super) fn due(&self) -> Option<Instant> {
        let pair = self.pair.as_ref().and_then(BlockPair::poll_timeout);
        let record = self.record.as_ref().map(Record::due);
        let self_test = self.self_test.as_ref().and_then(SelfTest::due);
        let page = self.page.as_ref().and_then(Page::due);
        let own =
            [self.hosts.poll_timeout(), pair, record, self_test, page, self.load_generator.due()];
        own.into_iter().flatten().chain([self.deadline, self.look]).min()
    }

    /// Must be called when the HCA of a port may have received packets, so that they are processed.
    pub(super) fn notify_received(&mut self, port: PortId) {
        self.hosts.notify_received(port);
    }

    /// Returns the file descriptors that are readable when requests of browsers or of capture clients are queued.
    pub(super) fn wakeups(&self) -> Vec<BorrowedFd<'_>> {
        self.page.as_ref().map(Page::bell).into_iter().chain(self.hosts.bell()).collect()
    }

    /// Makes the file descriptors of [`EmbeddedHosts::wakeups`] unreadable until further requests are queued.
    pub(super) fn reset_wakeups(&mut self) {
        self.hosts.silence();
        if let Some(page) = &self.page {
            page.silence();
        }
    }

    /// Answers API requests, and publishes the state of the fabric to the clients that listen for it.
    pub(super) fn show(&mut self, mut view: FabricView<'_>) -> Result<(), DaemonError> {
        let (Some(page), Some(nbd)) = (&mut self.page, &self.nbd) else { return Ok(()) };
        let scene = Scene {
            hosts: &mut self.hosts,
            device: DEVICE,
            pair: self.pair.as_ref(),
            ends: &self.ends,
            nbd,
            programs: self.programs.as_ref().map_or(0, NbdServer::connections),
            is_idle: self.programs.as_ref().is_none_or(NbdServer::is_idle),
            load_generator: &mut self.load_generator,
        };
        page.show(&mut view, scene);
        Ok(())
    }

    /// Removes the host of a port, so that an HCA of another process can use the port. If the host has to remain,
    /// returns the reason.
    pub(super) fn yield_port(&mut self, sim: &mut Sim, port: PortId) -> Result<(), String> {
        if self.ends.iter().flatten().any(|&end| end == port) {
            return Err(format!("{DEVICE} uses this port; --node selects another node"));
        }
        if self.self_test.is_some() {
            return Err("the self-test needs its host".to_owned());
        }
        self.hosts.remove(sim, port);
        if let Some(page) = &mut self.page {
            page.cancel_requests(port);
        }
        self.away.insert(port);
        Ok(())
    }

    /// Allows a port to have a host again, after the HCA of another process has detached.
    pub(super) fn reclaim_port(&mut self, port: PortId) {
        self.away.remove(&port);
        self.look = Instant::ZERO;
    }

    /// Returns the NBD server of the block device, if clients may use it now.
    pub(super) fn nbd_server(&mut self) -> Option<&mut NbdServer> {
        self.programs.as_mut()
    }

    /// Returns true once hosts and block device can be used.
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.stage, Stage::Ready) && self.self_test.is_none()
    }

    /// Returns the next line for standard output.
    pub(super) fn poll_line(&mut self) -> Option<String> {
        self.lines.pop_front()
    }

    /// Returns true if [`EmbeddedHosts::verdict`] will return a verdict.
    pub(super) fn has_verdict(&self) -> bool {
        self.self_test.is_some()
    }

    /// Returns the verdict of the self-test once it has finished.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        self.self_test.as_ref()?.ended()
    }

    /// Finishes the captures and the capture file; fails if a self-test was interrupted.
    pub(super) fn close(&mut self, sim: &mut Sim) -> Result<(), DaemonError> {
        if let Some(tracing) = &mut self.tracing {
            tracing.finish(&mut self.hosts);
        }
        if let Some(record) = &mut self.record {
            record.finish(sim, &mut self.hosts)?;
        }
        match self.self_test {
            Some(_) => Err(DaemonError::Interrupted("the self-test was interrupted".to_owned())),
            None => Ok(()),
        }
    }
}

/// Returns the configuration of the hosts' ACM services. They send no announcements and have small caches.
fn service_config() -> ServiceConfig {
    ServiceConfig { announcements: 0, max_destinations: 128, ..ServiceConfig::default() }
}
