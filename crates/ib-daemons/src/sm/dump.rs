//! OpenSM's dump files, which are written when the subnet is up.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ib_routing::{LidOptions, Subnet, SubnetOptions, dump};
use ib_sm::Plan;
use ib_topology::Fabric;
use ib_types::Guid;

use super::{cache, files};
use crate::log::{INFO, Log};

/// The data from which the dump files are written.
pub(super) struct Dump {
    pub(super) fabric: Arc<Fabric>,
    pub(super) own_port: Guid,
    pub(super) plan: Arc<Plan>,
    pub(super) lids: LidOptions,
    /// The port numbers to which each switch forwards each multicast LID. The keys are the switch's GUID and the LID.
    pub(super) multicast: BTreeMap<Guid, BTreeMap<u16, Vec<u8>>>,
    /// True if all dump files are written, false if only the list of links is written.
    pub(super) all: bool,
}

/// Returns the directory of dump files, and creates it if it does not exist. If the default directory is not writable,
/// returns the current directory.
///
/// # Errors
/// Fails if the configured directory is not writable and is not the default.
pub(super) fn directory(configured: &Path, is_usual: bool, log: &Log) -> Result<PathBuf, String> {
    let shown = configured.display();
    match std::fs::create_dir_all(configured).and_then(|()| cache::probe(configured)) {
        Ok(()) => Ok(configured.to_owned()),
        Err(_) if is_usual => {
            let text =
                format!("cannot write to {shown}; dump files are written to the current directory");
            log.note(INFO, &text);
            Ok(PathBuf::from("."))
        }
        Err(error) => Err(format!("cannot write dump files to {shown}: {error}")),
    }
}

impl Dump {
    /// Writes the dump files.
    ///
    /// # Errors
    /// Returns a message that names the file that could not be written and the reason.
    pub(super) fn write(&self, directory: &Path) -> Result<(), String> {
        // The dump shows the LIDs of the plan, which may differ from the cached LIDs in `self.lids`.
        let guid2lid = self.plan.end_ports.iter().map(|(&guid, &(first, count))| {
            let first = first.get();
            (guid, (first, first + count - 1))
        });
        let lids =
            LidOptions { guid2lid: guid2lid.collect(), reassign: false, ..self.lids.clone() };
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
        dump::subnet_list::write(&mut bytes, &subnet).expect("writing to memory succeeds");
        put("opensm-subnet.lst", &bytes)?;
        if self.all {
            return Err("the routes belong to a larger subnet: only the links are dumped".into());
        }
        Ok(())
    }

    /// Returns the multicast forwarding tables in the output format of `opensm.mcfdbs`.
    fn multicast(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for switch in &self.plan.switches {
            let Some(groups) = self.multicast.get(switch).filter(|groups| !groups.is_empty())
            else {
                continue;
            };
            writeln!(bytes, "\nSwitch {switch}\nLID    : Out Port(s)")
                .expect("writing to memory succeeds");
            for (lid, ports) in groups {
                write!(bytes, "0x{lid:04X} :").expect("writing to memory succeeds");
                for port in ports {
                    write!(bytes, " 0x{port:03X} ").expect("writing to memory succeeds");
                }
                bytes.push(b'\n');
            }
        }
        bytes
    }
}
