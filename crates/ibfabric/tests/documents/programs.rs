//! Finds third-party programs that documents use but that are not installed on this machine.

use std::env;
use std::fs;
use std::path::Path;

/// Programs that are not installed on every machine. If a line needs a missing program, the line and the rest of its
/// block are skipped and counted.
const PROGRAMS: [&str; 35] = [
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
    "ibv_devices",
    "ibv_devinfo",
    "ibv_rc_pingpong",
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

/// Returns true if a command needs FUSE, but FUSE is not available on this machine or in the documents' user namespace.
pub(crate) fn lacks_fuse(command: &str, apart: Option<&[&str]>) -> bool {
    // fusermount3 has no privileges in a user namespace.
    let as_user = apart.is_some_and(|words| words.contains(&"--user"));
    command.contains("rtrs mount ") && (as_user || !Path::new("/dev/fuse").exists())
}

/// Returns the first program that a command needs and that is not installed, if any.
pub(crate) fn missing(command: &str) -> Option<String> {
    if command.contains("libumad2sim.so") && library().is_none() {
        return Some("libumad2sim.so".to_owned());
    }
    called(command)
        .into_iter()
        .find(|program| PROGRAMS.contains(&program.as_str()) && !on_path(program))
}

/// Returns the programs that a command calls by name or by absolute path.
fn called(command: &str) -> Vec<String> {
    // Shell words after which another command begins.
    const BEFORE: [&str; 16] = [
        "|", ";", "&", "&&", "||", "(", "$(", "{", "!", "do", "then", "if", "until", "while",
        "exec", "else",
    ];
    let command = command.replace("$(", " $( ").replace([';', '\n'], " ; ");
    let mut begins = true;
    let mut programs = Vec::new();
    for word in command.split_whitespace() {
        if word.starts_with('#') {
            break;
        }
        let is_assignment = begins && word.contains('=') && !word.starts_with('-');
        if BEFORE.contains(&word) {
            begins = true;
        } else if begins && !is_assignment {
            begins = word.ends_with(')');
            let name = word.rsplit('/').next().unwrap_or(word);
            if !word.contains('/') || word.starts_with('/') {
                programs.push(name.trim_end_matches(')').to_owned());
            }
        }
    }
    programs
}

fn on_path(program: &str) -> bool {
    env::split_paths(&search_path()).any(|directory| directory.join(program).is_file())
}

/// Returns a search path that also contains the directories of programs for root, such as opensm.
pub(crate) fn search_path() -> String {
    format!("{}:/usr/local/sbin:/usr/sbin:/sbin", env::var("PATH").unwrap_or_default())
}

/// Returns the search path of an unprivileged user, for the shell of a document.
pub(crate) fn ordinary_path() -> String {
    let own = env::var("PATH").unwrap_or_default();
    let is_ordinary = |directory: &&str| !directory.trim_end_matches('/').ends_with("/sbin");
    own.split(':').filter(is_ordinary).collect::<Vec<_>>().join(":")
}

/// Returns the path at which Debian installs libumad2sim, if the file exists.
fn library() -> Option<std::path::PathBuf> {
    let directories = fs::read_dir(Path::new("/usr/lib")).ok()?;
    directories
        .flatten()
        .map(|entry| entry.path().join("umad2sim/libumad2sim.so"))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::called;

    #[test]
    fn called_programs_are_found() {
        let line = "A=1 B=$(date) opensm -f x | tee y && ./ours | /usr/sbin/real; until tshark -r z; do sleep 1; done  # fio";
        assert_eq!(called(line), ["date", "opensm", "tee", "real", "tshark", "sleep", "done"]);
        assert_eq!(called("ibfabric gen torus 4x4 --format ibnetdiscover"), ["ibfabric"]);
    }
}
