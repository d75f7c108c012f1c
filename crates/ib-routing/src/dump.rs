//! Writers and readers of OpenSM's dump files.
//!
//! | file | module |
//! |---|---|
//! | `opensm-lfts.dump` | [`lfts`] |
//! | `opensm-lid-matrix.dump` | [`lid_matrix`] |
//! | `opensm.fdbs` | [`fdbs`] |
//! | `opensm-subnet.lst` | [`subnet_list`] |
//! | `opensm-sl2vl.dump` (read only) | [`sl2vl`] |
//! | `ibfabric-levels.dump` | [`levels`] (only ibfabric has this file: OpenSM has no file of path SLs) |
//! | `guid2lid`, `opensm-ftree-ca-order.dump`, `opensm-updn-roots.dump` | [`lists`] |

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::engine::{EngineKind, Routing};
use crate::subnet::Subnet;

pub mod fdbs;
pub mod levels;
pub mod lfts;
pub mod lid_matrix;
pub mod lists;
pub mod sl2vl;
pub mod subnet_list;

/// Name of the file of service levels, which is written only for layered engines.
const LEVELS: &str = "ibfabric-levels.dump";

/// The contents of a dump file that was read, and warnings about skipped lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded<T> {
    /// The contents.
    pub value: T,
    /// Warnings for the user, one sentence each.
    pub notes: Vec<String>,
}

/// Error of writing the dumps.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct DumpError {
    /// The file or directory that cannot be written.
    pub path: PathBuf,
    /// The error that the operating system returned.
    pub source: io::Error,
}

/// Writes all dumps that OpenSM would write for this routing into a directory. Creates the directory if it is missing.
///
/// Each file is written under a temporary name and then renamed. Before a file is written, `begin` is called with its
/// name. Returns the names of the files.
///
/// # Errors
/// Fails if a file cannot be written; later files are not written then.
pub fn write_all(
    directory: &Path,
    subnet: &Subnet<'_>,
    routing: &Routing,
    begin: &dyn Fn(&'static str),
) -> Result<Vec<&'static str>, DumpError> {
    std::fs::create_dir_all(directory)
        .map_err(|source| DumpError { path: directory.to_owned(), source })?;
    let mut written = Vec::new();
    let mut put = |name: &'static str, write: &dyn Fn(&mut dyn Write) -> io::Result<()>| {
        begin(name);
        written.push(name);
        let path = directory.join(name);
        replace_file(&path, write).map_err(|source| DumpError { path, source })
    };
    put("opensm-lfts.dump", &|out| lfts::write(out, subnet, &routing.lfts))?;
    put("opensm-lid-matrix.dump", &|out| lid_matrix::write(out, subnet, &routing.hops))?;
    put("opensm.fdbs", &|out| fdbs::write(out, subnet, routing))?;
    put("opensm-subnet.lst", &|out| subnet_list::write(out, subnet))?;
    put("guid2lid", &|out| lists::write_guid2lid(out, subnet))?;
    if routing.layers.is_uniform() {
        // An existing file of service levels is removed, because it belongs to the tables of an earlier run.
        let stale = directory.join(LEVELS);
        match std::fs::remove_file(&stale) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(DumpError { path: stale, source });
            }
            _ => {}
        }
    } else {
        put(LEVELS, &|out| levels::write(out, subnet, &routing.layers))?;
    }
    if routing.engine == EngineKind::FatTree {
        put("opensm-ftree-ca-order.dump", &|out| {
            lists::write_ca_order(out, subnet, &routing.ca_order)
        })?;
    }
    if routing.engine == EngineKind::UpDown {
        put("opensm-updn-roots.dump", &|out| lists::write_roots(out, subnet, &routing.roots))?;
    }
    Ok(written)
}

fn replace_file(path: &Path, write: &dyn Fn(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let result = File::create(&temporary).and_then(|file| {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        write(&mut out)?;
        out.flush()
    });
    let result = result.and_then(|()| std::fs::rename(&temporary, path));
    if result.is_err() {
        // The caller gets the error of writing, so an error of removing the file is ignored.
        let _ = std::fs::remove_file(&temporary);
    }
    result
}

/// Returns the text after a LID in OpenSM's dumps: node type, port GUID and description of the node that has the LID.
fn owner_text(subnet: &Subnet<'_>, lid: u16) -> Option<String> {
    let id = subnet.lid_owner(lid)?;
    let node = subnet.end_port_node(id);
    let guid = subnet.end_port(id).guid;
    Some(format!("{} portguid {guid}: '{}'", node.kind, node.description))
}

#[cfg(test)]
mod tests;
