//! Lines of opensm.conf. OpenSM and `ibfabric sm` read the same value from a line, or `ibfabric sm` rejects the line.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::scene::{Checked, Gear, Outcome};

/// How OpenSM and `ibfabric sm` are expected to read a line of opensm.conf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// OpenSM and `ibfabric sm` write the same value to the configuration file that option `-c` names.
    Same,
    /// OpenSM uses a different value or its default. `ibfabric sm` reports the line and exits with status 2.
    Refused,
}
use Reading::{Refused, Same};

/// The lines of opensm.conf as bytes, and how the programs must read them.
pub const LINES: &[(&[u8], Reading)] = &[
    (b"sweep_interval 5", Same),
    (b"  sweep_interval\t5 \r", Same),
    (b"sweep_interval 5 # seconds", Same),
    (b"sweep_interval 5#", Same),
    (b"sweep_interval 5 # \xe9", Same),
    (b"sweep_interval \"5\"", Same),
    (b"sweep_interval '5' # seconds", Same),
    (b"sweep_interval 0x10", Same),
    (b"sweep_interval 010", Same),
    (b"sweep_interval +5", Same),
    (b"m_key 10 # decimal", Same),
    (b"log_file x.log # the log", Same),
    (b"log_file \"x.log\" # the log", Same),
    (b"log_file x.log#y", Same),
    (b"log_file \"x.log#y\"", Same),
    (b"log_file \"x.log'", Same),
    (b"log_file x.log y", Same),
    (b"connect_roots TRUE # a comment", Same),
    (b"connect_roots \"TRUE\"", Same),
    (b"part_enforce 'out' # a comment", Same),
    (b"routing_engine \"updn,minhop\" # a comment", Same),
    (b"qos_vlarb_high '0:4,1:8' # a comment", Same),
    (b"lmc 7", Same),
    (b"connect_roots true", Refused),
    (b"connect_roots 1", Refused),
    (b"connect_roots \" TRUE \"", Refused),
    (b"connect_roots", Refused),
    (b"part_enforce BOTH", Refused),
    (b"part_enforce", Refused),
    (b"sweep_interval=5", Refused),
    (b"sweep_interval = 5", Refused),
    (b"sweep_interval", Refused),
    (b"sweep_interval # 5", Refused),
    (b"sweep_interval 08", Refused),
    (b"sweep_interval 5x", Refused),
    (b"sweep_interval -1", Refused),
    (b"sweep_interval 4294967296", Refused),
    (b"log_file", Refused),
    (b"log_file \"\"", Refused),
    (b"log_file = x.log", Refused),
    (b"log_file x\xe9", Refused),
    (b"lmc 8", Refused),
    (b"sm_priority 16", Refused),
    (b"m_key_protection_level 4", Refused),
    (b"subnet_timeout 32", Refused),
    (b"packet_life_time 32", Refused),
    (b"qos_max_vls 16", Refused),
    (b"qos_high_limit 256", Refused),
    (b"qos_vlarb_high 15:4", Refused),
    (b"qos_sl2vl 0,1", Refused),
];

/// Runs both programs with each line, and compares the configurations that they write.
///
/// # Errors
/// Fails if a program cannot be started.
pub fn run(gear: &Gear, wrong: bool, directory: &Path) -> Outcome {
    fs::create_dir_all(directory)?;
    let directory = directory.canonicalize()?;
    let ours = directory.join("opensm");
    symlink(&gear.ibfabric, &ours)?;
    let mut checked = Checked::default();
    for &(line, reading) in LINES {
        let shown = line.escape_ascii();
        let (_, real) = write(Path::new("/usr/sbin/opensm"), line, &directory)?;
        let ours_of = if wrong { b"sweep_interval 7".as_slice() } else { line };
        let (output, own) = write(&ours, ours_of, &directory)?;
        let key = line.split(|byte| b" \t=".contains(byte)).find(|word| !word.is_empty());
        let key = String::from_utf8_lossy(key.unwrap_or_default()).trim().to_owned();
        let of = |text: &str| {
            let of = |line: &str| line.strip_prefix(&key)?.strip_prefix(' ').map(str::to_owned);
            text.lines().find_map(of)
        };
        match reading {
            Same => {
                let (real, own) = (of(&real), of(&own));
                checked.check(real.is_some() && real == own, || {
                    format!("`{shown}` differs: opensm reads {real:?}, ibfabric sm reads {own:?}")
                });
            }
            Refused => {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                let refused = output.status.code() == Some(2) && said.contains("in.conf:1: ");
                checked.check(refused, || {
                    format!("`{shown}` differs: expected an error, found {said}")
                });
            }
        }
    }
    Ok(checked)
}

/// Runs a program with a configuration file of one line. Returns the result, and the configuration that the program has
/// written.
fn write(program: &Path, line: &[u8], directory: &Path) -> io::Result<(Output, String)> {
    let (input, written) = (directory.join("in.conf"), directory.join("out.conf"));
    fs::write(&input, [line, b"\n"].concat())?;
    match fs::remove_file(&written) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut command = Command::new(program);
    command.current_dir(directory).args(["-F", "in.conf", "-c", "out.conf"]).stdin(Stdio::null());
    let output = command.output()?;
    Ok((output, fs::read_to_string(&written).unwrap_or_default()))
}
