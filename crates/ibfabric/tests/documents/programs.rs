//! Programs of others that documents use, which not every machine has.

use std::env;
use std::fs;
use std::path::Path;

/// Programs that a line may want. Where one is not there, the line and the rest of its block are left out, and counted.
const PROGRAMS: [&str; 32] = [
    "capinfos",
    "curl",
    "fio",
    "fusermount3",
    "ib_acme",
    "ibacm",
    "ibaddr",
    "iblinkinfo",
    "ibnetdiscover",
    "ibping",
    "ibportstate",
    "ibqueryerrors",
    "ibroute",
    "ibsim",
    "ibtracert",
    "man",
    "mergecap",
    "mpirun",
    "nbdcopy",
    "nbdinfo",
    "nbdsh",
    "opensm",
    "osmtest",
    "perfquery",
    "qemu-img",
    "qemu-io",
    "rping",
    "saquery",
    "sminfo",
    "smpquery",
    "ss",
    "tshark",
];

/// What of a command is not on this machine.
pub(crate) fn missing(command: &str) -> Option<String> {
    let words = command.split(|letter: char| !letter.is_alphanumeric() && !"-_./".contains(letter));
    for word in words {
        if PROGRAMS.contains(&word) && !on_path(word) {
            return Some(word.to_owned());
        }
        if word.ends_with("libumad2sim.so") && library().is_none() {
            return Some("libumad2sim.so".to_owned());
        }
    }
    None
}

fn on_path(program: &str) -> bool {
    env::split_paths(&search_path()).any(|directory| directory.join(program).is_file())
}

/// Returns where programs are looked for: those of the system's manager too, such as opensm, which users may not have there.
pub(crate) fn search_path() -> String {
    let own = env::var("PATH").unwrap_or_default();
    format!("{own}:/usr/local/sbin:/usr/sbin:/sbin")
}

/// Returns Debian's library by which clients attach to ibsim.
fn library() -> Option<std::path::PathBuf> {
    let directories = fs::read_dir(Path::new("/usr/lib")).ok()?;
    directories
        .flatten()
        .map(|entry| entry.path().join("umad2sim/libumad2sim.so"))
        .find(|path| path.is_file())
}
