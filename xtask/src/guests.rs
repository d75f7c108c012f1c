//! Runs test cases in guests. For each MTU of the link to the guest, one guest runs the cases one after another.

use std::fs;
use std::io::Write as _;
use std::iter;
use std::path::Path;
use std::time::Instant;

use conformance::rxe::{Case, Gear, LINKS, Link, Scene};
use interop::{BootError, Guest, GuestOptions};

use crate::cases::Selection;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The file to which all packets of a guest are captured.
pub(crate) const PACKETS: &str = "packets.pcap";

/// Start of the fault that is reported if the guest has retransmitted exactly one packet.
const STALL: &str = "completer_retry_err has grown by 1,";

/// The message of a perftest program that has completed but could not determine the guest's clock rate.
const NO_CLOCK: &str = "Can't produce a report";

/// How many lines at the end of a fault are printed, in addition to its first line.
const SHOWN: usize = 8;

/// Parameters of the runs in guests.
pub(crate) struct Guests<'a> {
    pub(crate) selection: &'a Selection,
    /// True if the task fails when no guest can run; false if the cases are then skipped.
    pub(crate) require: bool,
    /// Number of runs of each case.
    pub(crate) times: u32,
    /// The tested program; `None` if no case needs it.
    pub(crate) binary: Option<&'a Path>,
}

/// The results of the cases.
#[derive(Default)]
pub(crate) struct GuestResults {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

/// Returns the cases that `--only` selects for at least one MTU. Fails if no case matches.
pub(crate) fn selected_cases(mut list: Vec<Case>, selection: &Selection) -> Result<Vec<Case>> {
    list.retain(|case| LINKS.iter().any(|link| selection.wants(&name(case, *link))));
    if list.is_empty() { Err("no case has that name".into()) } else { Ok(list) }
}

impl Guests<'_> {
    /// Runs the cases in one guest for each of [`LINKS`]. After a guest has stopped, calls `then` with the output
    /// directory of the guest. Returns `None` if no guest can run.
    pub(crate) fn run(
        &self,
        list: &[Case],
        outputs: &Path,
        mut then: impl FnMut(&Path) -> Result<()>,
    ) -> Result<Option<GuestResults>> {
        let mut results = GuestResults::default();
        for link in LINKS {
            let list = list.iter().filter(|case| self.selection.wants(&name(case, link)));
            let list: Vec<&Case> = list.collect();
            if list.is_empty() {
                continue;
            }
            let directory = outputs.join(format!("mtu{}", link.mtu));
            fs::create_dir_all(&directory)?;
            let guest = match boot(link, &directory) {
                Err(error @ BootError::Unavailable(_)) if !self.require => {
                    eprintln!("skipped: {error}");
                    return Ok(None);
                }
                booted => booted?,
            };
            let seconds = guest.boot_time().as_secs_f64();
            eprintln!("a guest with MTU {} has booted in {seconds:.1} s", link.mtu);
            let whole = self.selection.all;
            let gear = Gear { guest: &guest, link, ibfabric: self.binary, whole };
            for case in list.iter().flat_map(|case| iter::repeat_n(*case, self.times as usize)) {
                let verdict = match run_case(case, &gear, &directory)? {
                    Verdict::Again => run_case(case, &gear, &directory)?,
                    verdict => verdict,
                };
                *(if verdict == Verdict::Good {
                    &mut results.passed
                } else {
                    &mut results.failed
                }) += 1;
            }
            // The kernel log cannot be read after a crash of the guest. The console shows the crash.
            let log = guest.kernel_log().unwrap_or_else(|error| error.to_string());
            fs::write(directory.join("kernel-log"), log)?;
            fs::write(directory.join("console"), guest.console())?;
            // The capture file is complete when the guest has stopped.
            drop(guest);
            then(&directory)?;
        }
        Ok(Some(results))
    }
}

fn name(case: &Case, link: Link) -> String {
    format!("{} | MTU {}", case.name, link.mtu)
}

/// Boots a guest with the MTU of a link. The guest's disk supports flush and discard. The guest's packets are captured.
fn boot(link: Link, directory: &Path) -> std::result::Result<Guest, BootError> {
    let disk = directory.join("disk");
    let made = fs::File::create(&disk).and_then(|file| file.set_len(64 << 20));
    made.map_err(|source| BootError::File { path: disk.clone(), source })?;
    let (disk, capture) = (Some(disk), Some(directory.join(PACKETS)));
    Guest::boot(&GuestOptions { mtu: link.mtu, disk, capture, ..GuestOptions::default() })
}

/// The result of a case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Good,
    /// The guest may have caused the fault, so the case is run again and only its second result counts. There are two
    /// such faults:
    /// * The guest has retransmitted one packet. Soft RoCE was seen to do so in the middle of a message, although all
    ///   requested acknowledgements had arrived. (The capture shows whether ibfabric lost a packet instead.)
    /// * A program in the guest could not measure the clock rate, because a guest's clock jumps on a busy machine.
    Again,
    Bad,
}

/// Runs a case, and prints its result.
fn run_case(case: &Case, gear: &Gear<'_>, directory: &Path) -> Result<Verdict> {
    let begun = Instant::now();
    let (transcript, faults, count) = match Scene::open(gear) {
        Ok(mut scene) => {
            case.run(&mut scene);
            (scene.transcript, scene.checked.faults, scene.checked.checks)
        }
        Err(error) => (String::new(), vec![error.to_string()], 0),
    };
    let file = case.name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
    let mut file = fs::OpenOptions::new().create(true).append(true).open(directory.join(file))?;
    file.write_all(transcript.as_bytes())?;
    let good = case.accepts(&faults);
    let stalled = matches!(&faults[..], [fault] if fault.starts_with(STALL));
    let again = stalled || faults.iter().any(|fault| fault.contains(NO_CLOCK));
    let (verdict, word) = match (good, case.wrong.is_some()) {
        (true, false) => (Verdict::Good, "ok     "),
        (true, true) => (Verdict::Good, "noticed"),
        (false, false) if again => (Verdict::Again, "again  "),
        (false, _) => (Verdict::Bad, "FAILED "),
    };
    let seconds = begun.elapsed().as_secs_f64();
    eprintln!("{word} {count:>4} checks {seconds:>5.1} s  {}", name(case, gear.link));
    if let Some(expected) = case.wrong.filter(|_| !good) {
        eprintln!("         expected exactly one fault, which contains {expected:?}");
    }
    for fault in faults.iter().filter(|_| !good) {
        print_fault(fault);
    }
    if verdict == Verdict::Bad {
        let log = gear.guest.kernel_log().unwrap_or_else(|error| error.to_string());
        print_fault(&format!("kernel log of the guest:\n{log}"));
    }
    Ok(verdict)
}

/// Prints the first line and the last lines of a fault. The transcript contains all lines.
fn print_fault(fault: &str) {
    let lines: Vec<&str> = fault.lines().collect();
    let skipped = lines.len().saturating_sub(1 + SHOWN);
    for (at, line) in lines.iter().enumerate().filter(|(at, _)| *at == 0 || *at > skipped) {
        eprintln!("         {line}");
        if at == 0 && skipped > 0 {
            eprintln!("         [{skipped} lines are in the transcript]");
        }
    }
}
