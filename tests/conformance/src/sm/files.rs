//! If `ibfabric` is called `opensm`, the same command line writes the same files as OpenSM, on the real ibsim.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ib_topology::Fabric;

use super::plan;
use super::scene::{Gear, Outcome, Scene};
use crate::clients::fabrics::Plan;
use crate::clients::server::Kind;
use crate::clients::stage::StageError;

/// A command line of an SM, and the fabric that the SM manages.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// The fabric.
    pub plan: Plan,
    /// The options of this command line, in addition to the options that all command lines contain.
    pub options: &'static [&'static str],
}

/// The command lines with which OpenSM and ibfabric are started, and their fabrics.
pub const LINES: [Line; 7] = [
    Line { plan: plan("mesh 3x3 hosts=2"), options: &["-R", "minhop"] },
    Line { plan: plan("mesh 3x3 hosts=2"), options: &["-Rdor", "-l1"] },
    Line { plan: plan("mesh 3x3 hosts=2"), options: &["--port-shifting", "--lmc=2"] },
    Line { plan: plan("mesh 3x3 hosts=2"), options: &["-R", "minhop", "-scatter-ports", "7"] },
    Line { plan: plan("fat-tree 8"), options: &["-routing_engine", "ftree,minhop", "-r"] },
    Line { plan: plan("xgft 4,4,4 1,2,2"), options: &["-R", "ftree"] },
    Line { plan: plan("xgft 4,4,4 1,2,2"), options: &["-R", "updn,minhop", "-z"] },
];

/// Files that ibfabric must write byte for byte like OpenSM. Both programs must write the first [`ALWAYS`] files. Each
/// other file must be written by both or by neither.
const DUMPS: [&str; 7] = [
    "opensm-lfts.dump",
    "opensm-lid-matrix.dump",
    "opensm.fdbs",
    "opensm-subnet.lst",
    "opensm.mcfdbs",
    "opensm-updn-roots.dump",
    "opensm-ftree-ca-order.dump",
];

/// The number of files in [`DUMPS`] that every engine writes.
const ALWAYS: usize = 4;

/// Files in which OpenSM and ibfabric must write the same lines. The order of the lines may differ, because OpenSM
/// writes them in the order of a hash table.
const CACHE: [&str; 3] = ["guid2lid", "guid2mkey", "neighbors"];

/// Runs OpenSM and ibfabric with the same command line, and compares their files. If `wrong` is true, ibfabric gets a
/// different command line.
///
/// # Errors
/// Fails if a program cannot be started.
pub fn run(gear: &Gear, line: Line, wrong: bool, directory: &Path) -> Outcome {
    fs::create_dir_all(directory)?;
    let directory = directory.canonicalize()?;
    let program = directory.join("opensm");
    symlink(&gear.ibfabric, &program)?;
    let fabric = line.plan.fabric().map_err(|error| StageError::Recipe(error.into()))?;
    let other: &[&str] = if wrong { &["-R", "dor", "-l", "1"] } else { line.options };
    let real = leave(gear, &fabric, Path::new("opensm"), line.options, &directory.join("real"))?;
    let ours = leave(gear, &fabric, &program, other, &directory.join("ours"))?;
    let (mut checked, real) = real;
    let (own, ours) = ours;
    checked.checks += own.checks;
    checked.faults.extend(own.faults);
    for (number, name) in DUMPS.into_iter().enumerate() {
        let (theirs, own) = (read(&real, name)?, read(&ours, name)?);
        let there = number >= ALWAYS || theirs.is_some();
        checked.check(there && theirs == own, || differ(name, &real, &ours));
    }
    for name in CACHE {
        let lines = |place: &Path| -> io::Result<Option<BTreeSet<String>>> {
            Ok(read(place, name)?.map(|text| text.lines().map(str::to_owned).collect()))
        };
        let (theirs, own) = (lines(&real)?, lines(&ours)?);
        checked.check(theirs.is_some() && theirs == own, || differ(name, &real, &ours));
    }
    Ok(checked)
}

/// Starts ibsim and runs an SM on it until the SM ends. Returns the directory with the SM's files.
fn leave(
    gear: &Gear,
    fabric: &Fabric,
    program: &Path,
    options: &[&str],
    place: &Path,
) -> Result<(super::scene::Checked, PathBuf), StageError> {
    let mut scene = Scene::open(gear, &Kind::Ibsim, fabric, &gear.debian, place)?;
    let seat = &scene.seat;
    let files = seat.directory.clone();
    let status = Command::new(program)
        .args(["-o", "--maxsmps", "32", "-D", "0x43", "-f", "osm.log"])
        .args(options)
        .current_dir(&files)
        .env("LD_PRELOAD", &seat.preload)
        .env("IBSIM_SOCKNAME", &seat.socket)
        .env("SIM_HOST", &seat.node)
        .env("OSM_TMP_DIR", &files)
        .env("OSM_CACHE_DIR", &files)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    let shown = || format!("{} {}: {status}", program.display(), options.join(" "));
    scene.check(status.success(), shown);
    Ok((scene.close(), files))
}

fn read(place: &Path, name: &str) -> io::Result<Option<String>> {
    match fs::read_to_string(place.join(name)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn differ(name: &str, real: &Path, ours: &Path) -> String {
    let at = |place: &Path| place.join(name).display().to_string();
    format!("{name} differs: compare {} with {}", at(real), at(ours))
}
