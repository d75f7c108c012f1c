//! An ACM service on a umad device, which a preloaded library emulates for a port of the simulator. `ib_acme` is the
//! service's client. OpenSM or ibfabric's subnet manager brings the fabric up.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ib_topology::generate::{Kind as FabricKind, Options as FabricOptions, generate};
use ib_topology::{Fabric, NodeId};
use interop::Running;

use super::{HOSTS, PATIENCE};
use crate::clients::fabrics::write_net;
use crate::clients::manager::{Manager, Options};
use crate::clients::program::Seat;
use crate::clients::server::{Kind, Order, Server};
use crate::clients::stage::socket_name;
use crate::sm::ours::{self, Ours};
use crate::sm::scene::Checked;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The SM of the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagedBy {
    /// A real OpenSM, with the same preloaded library as the ACM service.
    OpenSm,
    /// `ibfabric sm`.
    Ours,
}

/// The programs and files of a run.
#[derive(Debug)]
pub struct Setup<'a> {
    /// The program ibfabric.
    pub ibfabric: &'a Path,
    /// The simulator that runs the fabric.
    pub simulator: &'a Kind,
    /// The library that is preloaded into OpenSM and the service.
    pub preload: &'a Path,
    /// The SM that brings the fabric up.
    pub manager: ManagedBy,
    /// An empty directory for the files of the run.
    pub directory: &'a Path,
}

/// A fabric with an ACM service on one host.
pub struct Scene<'a> {
    setup: &'a Setup<'a>,
    socket: PathBuf,
    /// Results of the checks.
    pub checked: Checked,
    // The fields are dropped in this order, so the simulator ends last.
    service: Running,
    _managers: (Option<Manager>, Option<Ours>),
    server: Box<dyn Server>,
}

impl<'a> Scene<'a> {
    /// Starts the simulator, the SM and the service.
    ///
    /// # Errors
    /// Fails if a program does not start.
    pub fn open(setup: &'a Setup<'a>) -> Result<Self> {
        let kind = FabricKind::parse("fat-tree", &["4", "2"])?;
        let fabric = generate(&kind, &FabricOptions::default())?;
        let Setup { ibfabric, simulator, directory, .. } = *setup;
        let net = directory.join("net");
        write_net(&fabric, &net)?;
        let socket = socket_name();
        let server = simulator.start(&net, directory, &socket)?;
        // The SM runs on the last host.
        let node = name(&fabric, hosts(&fabric).last().ok_or("the fabric has no hosts")?);
        // Some preloaded libraries write sysfs files of the port into the working directory. Therefore the SM and the
        // service have separate directories.
        let at = |part: &str| -> Result<PathBuf> {
            let path = directory.join(part);
            fs::create_dir(&path)?;
            Ok(path)
        };
        let (manager, service) = (at("manager")?, at("service")?);
        let preload = setup.preload.to_owned();
        let seat = Seat { socket: socket.clone(), preload, node, directory: manager.clone() };
        let managers = match setup.manager {
            ManagedBy::OpenSm => {
                (Some(Manager::start(&seat, &manager, &Options::default())?), None)
            }
            ManagedBy::Ours => {
                let options = ours::Options::default();
                let mut ours = Ours::launch(ibfabric, &seat, &manager, &options)?;
                ours.comes_up(PATIENCE)?;
                (None, Some(ours))
            }
        };
        let gid =
            |host: &str| format!("fe80::2:c900:10:{:x}", 1 + u64::from(host.ends_with('2')) * 2);
        let known = format!("{}  {}\n10.1.2.3 {}\n", HOSTS[1], gid(HOSTS[1]), gid(HOSTS[1]));
        let options = format!(
            "addr_prot acm\nroute_prot acm\naddr_preload acm_hosts\naddr_data_file {}\nlog_level 1\n",
            service.join("hosts").display()
        );
        fs::write(service.join("hosts"), known)?;
        fs::write(service.join("ibacm_opts.cfg"), options)?;
        fs::write(service.join("ibacm_addr.cfg"), "own-name ibsim0 1 default\n")?;
        let path = directory.join("acm.sock");
        let mut command = Command::new(ibfabric);
        command.args(["acm", "--umad", "ibsim0:1", "--socket"]).arg(&path);
        command.arg("--config").arg(&service).arg("--log").arg(directory.join("acm.log"));
        command.current_dir(&service);
        seat.dress(&mut command, Some(HOSTS[0]));
        let service = Running::start(command)?;
        service.until("READY", PATIENCE)?;
        let checked = Checked::default();
        Ok(Self { setup, socket: path, checked, service, _managers: managers, server })
    }

    /// Runs `ib_acme` with the given arguments, and returns its output.
    fn ask(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new("ib_acme");
        command.args(words).arg("-S").arg(&self.socket);
        Ok(Running::start(command)?.wait(PATIENCE)?.output)
    }

    fn expect(&mut self, words: &[&str], holds: &[&str]) -> Result<()> {
        let output = self.ask(words)?;
        for text in holds {
            self.checked.check(output.contains(text), || {
                format!("{}: expected {text:?} in {output}", words.join(" "))
            });
        }
        Ok(())
    }

    fn status(&self) -> Result<String> {
        let mut command = Command::new(self.setup.ibfabric);
        command.args(["acm", "ctl", "status", "--socket"]).arg(&self.socket);
        Ok(Running::start(command)?.wait(PATIENCE)?.output)
    }

    /// Waits until the service's status contains the given text.
    fn wait_for_status(&mut self, text: &str) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        let mut status = self.status()?;
        while !status.contains(text) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(200));
            status = self.status()?;
        }
        self.checked.check(status.contains(text), || format!("expected {text:?} in {status}"));
        Ok(())
    }

    /// Checks all queries that need no QPs.
    ///
    /// # Errors
    /// Fails if a program does not end in time.
    pub fn run(&mut self) -> Result<()> {
        let other = HOSTS[1];
        let path = ["dgid: fe80::2:c900:10:3", "sgid: fe80::2:c900:10:1", "return status 0x0"];
        let verified: Vec<&str> = path.into_iter().chain(["SA verification: success"]).collect();
        // The service takes names and addresses of other hosts, and its own names, from files. It takes GIDs and LIDs
        // from the SA.
        self.expect(&["-f", "n", "-d", other, "-v"], &verified)?;
        self.expect(&["-f", "n", "-s", "own-name", "-d", other, "-v"], &verified)?;
        self.expect(&["-f", "i", "-d", "10.1.2.3", "-v"], &verified)?;
        let (sgid, dgid) = ("fe80::2:c900:10:1", "fe80::2:c900:10:3");
        self.expect(&["-f", "g", "-s", sgid, "-d", dgid, "-v"], &verified)?;
        let own = self.ask(&["-f", "n", "-d", "own-name"])?;
        self.checked
            .check(own.contains("hop limit: 0") && own.contains("return status 0x0"), || {
                format!("unexpected response for `own-name`: {own}")
            });
        let lid = |text: &str, key: &str| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(key));
            line.unwrap_or_default().trim().to_owned()
        };
        let found = self.ask(&["-f", "n", "-d", other])?;
        let (slid, dlid) = (lid(&found, "slid:"), lid(&found, "dlid:"));
        self.expect(&["-f", "l", "-s", &slid, "-d", &dlid], &path)?;
        // The port has no UD QPs, so the service cannot query other services for an unknown name.
        self.expect(&["-f", "n", "-d", "nobody"], &["No data available"])?;
        self.expect(&["-e"], &["0x0002c90000100000,1,0xffff,1,ibacmp,own-name"])?;
        let status = self.status()?;
        let log = fs::read_to_string(self.setup.directory.join("acm.log"))?;
        let why = "the port has no UD QPs, which addr_prot acm requires";
        for (what, text) in [
            ("the status", &status),
            ("the log", &log),
            ("the output of the service", &self.service.output()),
        ] {
            self.checked.check(text.contains(why), || {
                format!("{what} does not contain the reason: {text}")
            });
        }
        self.checked.check(log.contains("route_prot sa is used instead of acm"), || log.clone());
        self.changes(&verified)
    }

    /// Unplugs the cable of the service's port and plugs it again. Checks the service's status and answers each time.
    fn changes(&mut self, verified: &[&str]) -> Result<()> {
        let other = HOSTS[1];
        self.server.order(Order::Unlink(HOSTS[0], 1))?;
        self.wait_for_status("pkey 0xffff: out of service")?;
        self.expect(&["-f", "n", "-d", other], &["ib_acm_resolve_name failed"])?;
        self.server.order(Order::Relink(HOSTS[0], 1))?;
        self.wait_for_status("pkey 0xffff: in service")?;
        self.expect(&["-f", "n", "-d", other, "-v"], verified)
    }
}

/// Returns the HCAs of the fabric, in the order of their node IDs.
fn hosts(fabric: &Fabric) -> Vec<NodeId> {
    let hosts = fabric.nodes().filter(|(_, node)| !node.kind.is_switch());
    hosts.map(|(id, _)| id).collect()
}

fn name(fabric: &Fabric, node: &NodeId) -> String {
    fabric.node(*node).name.clone()
}
