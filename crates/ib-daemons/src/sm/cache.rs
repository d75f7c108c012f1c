//! Cache files in OpenSM's formats: LIDs, M_Keys and neighbours of ports. The SM reads the LIDs when it starts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ib_routing::dump::lists;
use ib_topology::Fabric;
use ib_types::Guid;

use super::files::{self, Job};
use super::shared::lock;

/// First and last LID of each port. The key is the port GUID.
pub(super) type Lids = BTreeMap<Guid, (u16, u16)>;

/// The cache directory, and the LIDs that its files contain.
pub(super) struct Cache {
    /// LIDs of all ports, including ports that have left the subnet.
    pub(super) lids: Lids,
    /// The files that the SM writes; `None` if the cache cannot be written or is not configured.
    store: Option<Arc<Store>>,
}

/// The files of the cache directory.
struct Store {
    directory: PathBuf,
    /// The text that was last written to each file, by file name.
    written: Mutex<BTreeMap<&'static str, String>>,
}

const LIDS: &str = "guid2lid";
const KEYS: &str = "guid2mkey";
const NEIGHBORS: &str = "neighbors";

impl Cache {
    /// Opens the cache directory and reads the cached LIDs. Creates the directory if it does not exist. Errors are
    /// passed to `warn`, and the SM continues without the cache.
    pub(super) fn open(directory: Option<&Path>, warn: &mut dyn FnMut(String)) -> Self {
        let mut cache = Self { lids: Lids::new(), store: None };
        let Some(directory) = directory else { return cache };
        let shown = directory.display();
        match std::fs::create_dir_all(directory).and_then(|()| probe(directory)) {
            Ok(()) => {
                let (directory, written) = (directory.to_owned(), Mutex::default());
                cache.store = Some(Arc::new(Store { directory, written }));
            }
            Err(error) => {
                warn(format!("cannot write the LID cache in {shown}: {error}; LIDs are not kept"));
            }
        }
        let path = directory.join(LIDS);
        match std::fs::read(&path) {
            Ok(bytes) => match lists::read_cached_guid2lid(&path.display().to_string(), &bytes) {
                Ok((lids, errors)) => {
                    for error in errors {
                        warn(format!("{error}; the line is dropped"));
                    }
                    shared(&path, &bytes, &lids).into_iter().for_each(warn);
                    cache.lids = lids;
                }
                Err(error) => warn(format!("{error}; the cached LIDs are ignored")),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => warn(format!("cannot read {}: {error}", path.display())),
        }
        cache
    }

    /// Returns true if the results of sweeps are written to the cache directory.
    pub(super) const fn is_kept(&self) -> bool {
        self.store.is_some()
    }

    /// Stores the result of a sweep: the LIDs of each port, the M_Key that all ports have, and the links.
    ///
    /// Returns the job that writes the files whose text has changed; `None` if the cache cannot be written or is not
    /// configured.
    pub(super) fn keep(&mut self, now: Lids, m_key: u64, fabric: &Arc<Fabric>) -> Option<Job> {
        self.lids.extend(&now);
        let (store, fabric) = (Arc::clone(self.store.as_ref()?), Arc::clone(fabric));
        let all = self.lids.clone();
        Some(Box::new(move || store.write(&all, &now, m_key, &fabric)))
    }
}

impl Store {
    /// Writes the files that have changed; returns error messages.
    fn write(&self, all: &Lids, now: &Lids, m_key: u64, fabric: &Fabric) -> Vec<String> {
        let mut texts = [(LIDS, String::new()), (KEYS, String::new()), (NEIGHBORS, String::new())];
        for (guid, (first, last)) in all {
            writeln!(texts[0].1, "{guid} {first:#06x} {last:#06x}\n")
                .expect("writing to memory succeeds");
        }
        for guid in now.keys() {
            writeln!(texts[1].1, "{guid} {m_key:#018x}\n").expect("writing to memory succeeds");
        }
        let end = |port| {
            let port = fabric.port(port);
            let node = fabric.node(port.node);
            // In the cache, all ports of a switch have the GUID of port 0.
            let guid = if node.kind.is_switch() {
                fabric.port_id(port.node, 0).map_or(node.guid, |id| fabric.port(id).guid)
            } else {
                port.guid
            };
            (guid, port.number)
        };
        for (one, other) in fabric.links() {
            let directions = [(end(one), end(other)), (end(other), end(one))];
            // Each link gives two lines, one for each direction. A loopback plug connects a port with itself: both
            // lines would be the same, so only one is written.
            let count = if one == other { 1 } else { 2 };
            for ((guid, port), (peer, peer_port)) in directions.into_iter().take(count) {
                writeln!(texts[2].1, "{guid}:{port} {peer}:{peer_port}\n")
                    .expect("writing to memory succeeds");
            }
        }
        let mut failed = Vec::new();
        let mut written = lock(&self.written);
        for (name, text) in texts {
            if written.get(name) == Some(&text) {
                continue;
            }
            let path = self.directory.join(name);
            match files::replace(&path, text.as_bytes()) {
                Ok(()) => drop(written.insert(name, text)),
                Err(error) => failed.push(format!("cannot write {}: {error}", path.display())),
            }
        }
        failed
    }
}

/// Returns a warning for each line that gives a port a LID of another port.
fn shared(path: &Path, bytes: &[u8], lids: &Lids) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let line = |guid: Guid| {
        let is_it = |line: &str| {
            let first = line.split_whitespace().next();
            first.and_then(|word| word.parse().ok()) == Some(guid)
        };
        text.lines().position(is_it).map_or(0, |at| at + 1)
    };
    let mut owners: BTreeMap<u16, Guid> = BTreeMap::new();
    let mut warnings = Vec::new();
    for (&guid, &(first, last)) in lids {
        let other = (first..=last).find_map(|lid| Some((lid, *owners.get(&lid)?)));
        if let Some((lid, other)) = other {
            warnings.push(format!(
                "{}:{}: found LID {lid:#06x} of port {guid}, which port {other} also has in line {}; \
                 the line is ignored",
                path.display(),
                line(guid),
                line(other)
            ));
        } else {
            owners.extend((first..=last).map(|lid| (lid, guid)));
        }
    }
    warnings
}

/// Checks that files can be created in the given directory.
pub(super) fn probe(directory: &Path) -> std::io::Result<()> {
    let path = directory.join(format!(".{}.tmp", std::process::id()));
    std::fs::File::create(&path)?;
    std::fs::remove_file(path)
}

#[cfg(test)]
mod tests;
