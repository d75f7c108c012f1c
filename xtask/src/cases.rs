//! Common parts of tasks that run test cases: selection of cases, tested program, output directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use conformance::clients::normal::{Allowed, Mask};
use tempfile::TempDir;

use crate::{release_artifact, release_binary};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Options of all tasks that run cases.
#[derive(clap::Args)]
pub(crate) struct Selection {
    /// Runs only the cases whose name contains this text. May be repeated.
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Also runs long cases, such as fabrics of up to 3,456 hosts, transfers of 1 GiB, or ten idle minutes.
    #[arg(long)]
    pub(crate) all: bool,
    /// Keeps the output of all programs in this directory. Output of a failed run is always kept.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Tests this program instead of building ibfabric.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

impl Selection {
    /// Returns true if the case with this name is selected.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|text| name.contains(text.as_str()))
    }

    /// Returns true if `--only` selects cases.
    pub(crate) fn is_limited(&self) -> bool {
        !self.only.is_empty()
    }

    /// Returns the program to test.
    pub(crate) fn ibfabric(&self) -> Result<PathBuf> {
        match &self.binary {
            Some(path) => {
                Ok(path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?)
            }
            None => release_binary(),
        }
    }

    /// Returns the program to test. The preload library of `ibfabric run` is in the same directory.
    pub(crate) fn ibfabric_with_library(&self) -> Result<PathBuf> {
        if self.binary.is_none() {
            release_artifact(&["--package", "ib-preload"], "ib_preload")?;
        }
        self.ibfabric()
    }

    /// Creates the output directory.
    pub(crate) fn outputs(&self, prefix: &str) -> Result<Outputs> {
        let scratch = tempfile::Builder::new().prefix(prefix).tempdir()?;
        let directory = self.keep.as_deref().unwrap_or(scratch.path()).to_owned();
        // The directory must be empty, because the log of an earlier run could be mistaken for the log of this run.
        if fs::read_dir(&directory).is_ok_and(|mut entries| entries.next().is_some()) {
            let directory = directory.display();
            return Err(format!("{directory}: expected a new or empty directory").into());
        }
        fs::create_dir_all(&directory)?;
        Ok(Outputs { scratch, directory })
    }
}

/// Creates a guest's disk image that contains only the program, padded to a multiple of 4096 bytes.
pub(crate) fn program_on_disk(program: &Path, disk: &Path) -> Result<()> {
    // Symbols are stripped, because they would use the guest's memory.
    if !Command::new("strip").arg("-o").arg(disk).arg(program).status()?.success() {
        return Err("strip has failed".into());
    }
    let length = fs::metadata(disk)?.len();
    fs::OpenOptions::new().write(true).open(disk)?.set_len(length.next_multiple_of(4096))?;
    Ok(())
}

/// Returns two loopback addresses that depend on the process ID, so that simultaneous processes use different ones.
pub(crate) fn loopback_pair() -> Result<[String; 2]> {
    let [high, low] = u16::try_from(std::process::id() % 0xfe00)?.to_be_bytes();
    Ok([1, 2].map(|last| format!("127.{}.{low}.{last}", high + 1)))
}

/// The directory for the outputs of the programs.
pub(crate) struct Outputs {
    scratch: TempDir,
    directory: PathBuf,
}

impl Outputs {
    /// Returns the path of the output directory.
    pub(crate) fn path(&self) -> &Path {
        &self.directory
    }

    /// Keeps the directory and prints its path. Does nothing if `--keep` names the directory.
    pub(crate) fn keep(&mut self) {
        if self.directory == self.scratch.path() {
            self.scratch.disable_cleanup(true);
            eprintln!("the outputs are in {}", self.directory.display());
        }
    }
}

/// Prints the permitted differences.
pub(crate) fn list_allowed<'a>(list: impl IntoIterator<Item = &'a Allowed>) {
    for allowed in list {
        let programs = match allowed.programs {
            [] => "all".to_owned(),
            programs => programs.join(", "),
        };
        eprintln!("  {programs}: {}: {}", in_words(allowed.mask), allowed.reason);
    }
}

/// Describes the part of an output that is not compared.
fn in_words(mask: Mask) -> String {
    match mask {
        Mask::Line(text) => format!("lines with `{text}`"),
        Mask::Number(text) => format!("the number after `{text}`, unless it is zero"),
        Mask::AnyNumber(text) => format!("the number after `{text}`"),
        Mask::Rest(text) => format!("the rest of the line after `{text}`"),
        Mask::Everything => "the whole output".to_owned(),
    }
}
