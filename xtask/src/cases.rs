//! What the chores that run cases have in common: which cases, with which program, and where their outputs are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use conformance::clients::normal::{Allowed, Mask};
use tempfile::TempDir;

use crate::release_binary;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The options of every such chore.
#[derive(clap::Args)]
pub(crate) struct Selection {
    /// Runs only the cases whose name holds this text, or one of these.
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Also runs what takes long: fabrics of up to 3,456 hosts; a GiB of data and ten minutes without any.
    #[arg(long)]
    pub(crate) all: bool,
    /// Keeps the outputs of all programs in this directory; those of a failed run are kept anyway.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Runs this program as ibfabric instead of building it.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

impl Selection {
    /// Says whether the case of this name is to run.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|text| name.contains(text.as_str()))
    }

    /// Returns the program to run as ibfabric.
    pub(crate) fn ibfabric(&self) -> Result<PathBuf> {
        match &self.binary {
            Some(path) => {
                Ok(path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?)
            }
            None => release_binary(),
        }
    }

    /// Makes the place for the outputs.
    pub(crate) fn outputs(&self, prefix: &str) -> Result<Outputs> {
        let scratch = tempfile::Builder::new().prefix(prefix).tempdir()?;
        let directory = self.keep.as_deref().unwrap_or(scratch.path()).to_owned();
        // The log of an earlier run would be taken for this one's.
        if fs::read_dir(&directory).is_ok_and(|mut entries| entries.next().is_some()) {
            let directory = directory.display();
            return Err(format!("{directory}: expected a new or empty directory").into());
        }
        Ok(Outputs { scratch, directory })
    }
}

/// Makes a guest's disk of a program.
pub(crate) fn program_on_disk(program: &Path, disk: &Path) -> Result<()> {
    // Symbols would only take the guest's memory.
    if !Command::new("strip").arg("-o").arg(disk).arg(program).status()?.success() {
        return Err("strip has failed".into());
    }
    let length = fs::metadata(disk)?.len();
    fs::OpenOptions::new().write(true).open(disk)?.set_len(length.next_multiple_of(4096))?;
    Ok(())
}

/// Where the outputs of the programs are.
pub(crate) struct Outputs {
    scratch: TempDir,
    directory: PathBuf,
}

impl Outputs {
    /// Returns the directory.
    pub(crate) fn path(&self) -> &Path {
        &self.directory
    }

    /// Keeps what is there and says where, unless it is kept anyway.
    pub(crate) fn keep(&mut self) {
        if self.directory == self.scratch.path() {
            self.scratch.disable_cleanup(true);
            eprintln!("the outputs are kept in {}", self.directory.display());
        }
    }
}

/// Prints differences that are allowed.
pub(crate) fn list_allowed<'a>(list: impl IntoIterator<Item = &'a Allowed>) {
    for allowed in list {
        let programs = match allowed.programs {
            [] => "all".to_owned(),
            programs => programs.join(", "),
        };
        eprintln!("  {programs}: {}: {}", in_words(allowed.mask), allowed.reason);
    }
}

/// Says what is not compared.
fn in_words(mask: Mask) -> String {
    match mask {
        Mask::Line(text) => format!("lines with `{text}`"),
        Mask::Number(text) => format!("the number after `{text}` unless it is zero"),
        Mask::AnyNumber(text) => format!("the number after `{text}`"),
        Mask::Rest(text) => format!("the line after `{text}`"),
        Mask::Everything => "the whole output".to_owned(),
    }
}
