//! RDMA programs in a guest with the kernel's soft RoCE, and ours beside it. What came and went is read by `ibfabric
//! capture read` and by tshark, where it is installed.

use std::fs;
use std::io::Write as _;
use std::iter;
use std::path::{Path, PathBuf};
use std::time::Instant;

use conformance::rxe::cases::cases;
use conformance::rxe::{Case, Gear, LINKS, Link, Scene};
use interop::{BootError, Guest, GuestOptions};

use crate::cases::Selection;
use crate::{Chored, tshark};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Runs cases in which something is wrong, each of which must fail and say what.
    #[arg(long, conflicts_with = "all")]
    self_test: bool,
    /// Fails where no guest can run, instead of skipping all cases.
    #[arg(long)]
    require: bool,
    /// Runs every case this often in one guest, for what goes wrong rarely.
    #[arg(long, value_name = "N", default_value = "1")]
    times: u32,
}

/// The file of all packets of a guest.
const PACKETS: &str = "packets.pcap";

/// How the fault of a guest begins that has repeated one packet.
const STALL: &str = "completer_retry_err has grown by 1,";

/// How many of the last lines of a fault are shown.
const SHOWN: usize = 8;

/// How many differences between two readers of it are shown.
const MOST: usize = 20;

pub(crate) fn run(Args { selection, self_test, require, times }: &Args) -> Chored {
    let mut list = cases(*self_test);
    list.retain(|case| LINKS.iter().any(|link| selection.wants(&name(case, *link))));
    if list.is_empty() {
        return Err("no case has that name".into());
    }
    let mut outputs = selection.outputs("rxe-")?;
    let mut ibfabric: Option<PathBuf> = None;
    let (mut passed, mut failed) = (0, 0);
    let mut compared = tshark::Compared::default();
    for link in LINKS {
        let list: Vec<&Case> =
            list.iter().filter(|case| selection.wants(&name(case, link))).collect();
        if list.is_empty() {
            continue;
        }
        let directory = outputs.path().join(format!("mtu{}", link.mtu));
        fs::create_dir_all(&directory)?;
        let guest = match boot(link, &directory) {
            Err(error @ BootError::Unavailable(_)) if !require => {
                eprintln!("skipped: {error}");
                return Ok(());
            }
            booted => booted?,
        };
        let seconds = guest.boot_time().as_secs_f64();
        eprintln!("a guest with MTU {} has booted in {seconds:.1} s", link.mtu);
        if ibfabric.is_none() && list.iter().any(|case| case.ours) {
            ibfabric = Some(selection.ibfabric()?);
        }
        let gear = Gear { guest: &guest, link, ibfabric: ibfabric.as_deref() };
        for case in list.iter().flat_map(|case| iter::repeat_n(*case, *times as usize)) {
            let verdict = match run_case(case, &gear, &directory)? {
                Verdict::Stalled => run_case(case, &gear, &directory)?,
                verdict => verdict,
            };
            *(if verdict == Verdict::Good { &mut passed } else { &mut failed }) += 1;
        }
        // A guest that has crashed says so on its console only.
        let log = guest.kernel_log().unwrap_or_else(|error| error.to_string());
        fs::write(directory.join("kernel-log"), log)?;
        fs::write(directory.join("console"), guest.console())?;
        // What it has captured is whole when it has ended.
        drop(guest);
        if let Some(binary) = ibfabric.as_deref().filter(|_| tshark::is_installed()) {
            compared.file(binary, &directory.join(PACKETS), &[])?;
        }
    }
    if compared.files() > 0 {
        compared.say();
        if compared.packets() == 0 {
            compared.faults.push("no packet of RDMA was captured".to_owned());
        }
        failed += usize::from(!compared.faults.is_empty());
        for fault in compared.faults.iter().take(MOST) {
            eprintln!("         {fault}");
        }
    }
    if failed > 0 {
        outputs.keep();
    }
    eprintln!("{passed} passed, {failed} failed");
    if failed > 0 { Err("a case with the kernel's soft RoCE failed".into()) } else { Ok(()) }
}

pub(crate) fn name(case: &Case, link: Link) -> String {
    format!("{} | MTU {}", case.name, link.mtu)
}

/// Boots the guest of a link. It has a disk, which knows of flushing and discarding, and its packets are captured.
pub(crate) fn boot(link: Link, directory: &Path) -> Result<Guest, BootError> {
    let disk = directory.join("disk");
    let made = fs::File::create(&disk).and_then(|file| file.set_len(64 << 20));
    made.map_err(|source| BootError::File { path: disk.clone(), source })?;
    let (disk, capture) = (Some(disk), Some(directory.join(PACKETS)));
    Guest::boot(&GuestOptions { mtu: link.mtu, disk, capture, ..GuestOptions::default() })
}

/// How a case went.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Good,
    /// All is well but that the guest has repeated one packet; the case is run once more, and that run counts. Soft RoCE
    /// did so once, in the middle of a message, when all that it had asked an acknowledgement for was acknowledged. A
    /// rare loss of ours would look the same here: the packets that are kept tell them apart.
    Stalled,
    Bad,
}

/// Runs a case and says how it went.
pub(crate) fn run_case(
    case: &Case,
    gear: &Gear<'_>,
    directory: &Path,
) -> Result<Verdict, std::io::Error> {
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
    let stalled =
        case.wrong.is_none() && matches!(&faults[..], [fault] if fault.starts_with(STALL));
    let (verdict, word) = match (good, case.wrong.is_some()) {
        (true, false) => (Verdict::Good, "ok     "),
        (true, true) => (Verdict::Good, "noticed"),
        (false, _) if stalled => (Verdict::Stalled, "stalled"),
        (false, _) => (Verdict::Bad, "FAILED "),
    };
    let seconds = begun.elapsed().as_secs_f64();
    eprintln!("{word} {count:>4} checks {seconds:>5.1} s  {}", name(case, gear.link));
    if let Some(expected) = case.wrong.filter(|_| !good) {
        eprintln!("         expected one fault, with {expected:?}");
    }
    for fault in faults.iter().filter(|_| !good) {
        say(fault);
    }
    if verdict == Verdict::Bad {
        let log = gear.guest.kernel_log().unwrap_or_else(|error| error.to_string());
        say(&format!("the guest's kernel said:\n{log}"));
    }
    Ok(verdict)
}

/// Says a fault: of a long one its first line and how it ends. The transcript has it whole.
fn say(fault: &str) {
    let lines: Vec<&str> = fault.lines().collect();
    let skipped = lines.len().saturating_sub(1 + SHOWN);
    for (at, line) in lines.iter().enumerate().filter(|(at, _)| *at == 0 || *at > skipped) {
        eprintln!("         {line}");
        if at == 0 && skipped > 0 {
            eprintln!("         [{skipped} lines are in the transcript]");
        }
    }
}
