//! OpenSM's dump files of a subnet that is up.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use ib_routing::{LidOptions, Subnet, SubnetOptions, dump};
use ib_sm::Plan;
use ib_topology::Fabric;
use ib_types::Guid;

use super::files;
use crate::failure::say;

/// What there is to dump.
pub(super) struct Dump {
    pub(super) fabric: Arc<Fabric>,
    pub(super) own_port: Guid,
    pub(super) plan: Arc<Plan>,
    pub(super) lids: LidOptions,
    /// The ports of each multicast LID, by switch.
    pub(super) multicast: BTreeMap<Guid, BTreeMap<u16, Vec<u8>>>,
    /// Whether all is written, and not only the list of links.
    pub(super) all: bool,
}

/// Writes dumps in a thread of its own, the newest one.
pub(super) struct Dumper {
    jobs: Option<Sender<Dump>>,
    thread: Option<JoinHandle<()>>,
}

impl Dumper {
    /// Starts the thread. Without the right to write the directory the current one serves, if
    /// nobody named it.
    pub(super) fn start(directory: &Path, is_default: bool) -> std::io::Result<Self> {
        let mut directory = directory.to_owned();
        if is_default && !is_writable(&directory) {
            let shown = directory.display();
            say!("cannot write to {shown}; dump files go to the current directory");
            directory = PathBuf::from(".");
        }
        let (jobs, received) = channel::<Dump>();
        let write = move || {
            while let Ok(mut job) = received.recv() {
                while let Ok(newer) = received.try_recv() {
                    job = newer;
                }
                if let Err(error) = job.write(&directory) {
                    say!("{error}");
                }
            }
        };
        let thread = std::thread::Builder::new().name("dumps".to_owned()).spawn(write)?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Has a dump written.
    pub(super) fn write(&self, dump: Dump) {
        if let Some(jobs) = &self.jobs {
            // The thread ends with this.
            let _ = jobs.send(dump);
        }
    }
}

impl Drop for Dumper {
    /// Waits until everything is written.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn is_writable(directory: &Path) -> bool {
    let path = directory.join(format!(".ibfabric.{}.tmp", std::process::id()));
    let made = std::fs::File::create(&path).is_ok();
    made && std::fs::remove_file(path).is_ok()
}

impl Dump {
    fn write(&self, directory: &Path) -> Result<(), String> {
        // The LIDs are those of the plan, whatever the ports had before.
        let guid2lid = self.plan.end_ports.iter().map(|(&guid, &(first, count))| {
            let first = first.get();
            (guid, (first, first + count - 1))
        });
        let lids = LidOptions { guid2lid: guid2lid.collect(), reassign: false, ..self.lids.clone() };
        let options = SubnetOptions { sm_port: Some(self.own_port), lids };
        let subnet = Subnet::discover(&self.fabric, &options)
            .map_err(|error| format!("no dump files: {error}"))?;
        let put = |name: &str, bytes: &[u8]| {
            let path = directory.join(name);
            files::replace(&path, bytes)
                .map_err(|error| format!("cannot write {}: {error}", path.display()))
        };
        let switches = subnet.switches().iter().map(|switch| switch.guid);
        let is_whole = switches.eq(self.plan.switches.iter().copied());
        if self.all && is_whole {
            dump::write_all(directory, &subnet, &self.plan.routing, &|_| {})
                .map_err(|error| error.to_string())?;
            return put("opensm.mcfdbs", &self.multicast());
        }
        let mut bytes = Vec::new();
        dump::subnet_list::write(&mut bytes, &subnet).expect("memory takes everything");
        put("opensm-subnet.lst", &bytes)?;
        if self.all {
            return Err("the routes are those of a larger subnet: only its links are dumped".into());
        }
        Ok(())
    }

    /// Returns the multicast forwarding tables as `opensm.mcfdbs` has them.
    fn multicast(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for switch in &self.plan.switches {
            let Some(groups) = self.multicast.get(switch).filter(|groups| !groups.is_empty())
            else {
                continue;
            };
            writeln!(bytes, "\nSwitch {switch}\nLID    : Out Port(s)").expect("memory");
            for (lid, ports) in groups {
                write!(bytes, "0x{lid:04X} :").expect("memory");
                for port in ports {
                    write!(bytes, " 0x{port:03X} ").expect("memory");
                }
                bytes.push(b'\n');
            }
        }
        bytes
    }
}
