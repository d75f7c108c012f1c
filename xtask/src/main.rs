//! The project's own chores, run as `cargo xtask CHORE`.
//!
//! | file | chore |
//! |---|---|
//! | `docs.rs` | `man`, `completions`: made from the command line, and checked against what is committed |
//! | `conformance.rs` | `conformance opensm`: the same question to OpenSM and to ibfabric |
//! | `tshark.rs` | `conformance tshark`: capture files of every operation code and of adapters, read by tshark |
//! | `clients.rs` | `conformance ibsim-clients`: unmodified clients of ibsim, on ibsim and on `ibfabric sim` |
//! | `links.rs` | `conformance links`: our own links on a real ibsim and with a real OpenSM |
//! | `sm.rs` | `conformance sm`: our subnet manager on both simulators, beside a real OpenSM |
//! | `nbd.rs` | `conformance nbd`: programs that use block devices over NBD |
//! | `rtrs.rs` | `conformance rtrs`: the kernel's RTRS and RNBD in a guest, and ours beside it |
//! | `rxe.rs` | `conformance rxe`: real RDMA programs on the kernel's soft RoCE in a guest, and ours beside it |
//! | `guests.rs` | what the two before have in common |
//! | `up.rs` | `conformance up`: a crowd of real programs on `ibfabric up` while links are cut |
//! | `cases.rs` | what the chores that run cases have in common |
//! | `bench.rs` | `bench routing`: both timed in one run, the ratios written into `docs/benchmarks.md` |
//! | `bench_capture.rs` | `bench capture`: a program that is captured and the same that is not, in turn |
//! | `bench_rdma.rs` | `bench rdma`: soft RoCE and our adapter, in turn in one guest |
//! | `bench_rtrs.rs` | `bench rtrs`: our block devices and nbdkit's, and Linux' own in a guest, in turn |
//! | `bench_sim.rs` | `bench sim`: OpenSM's bring-up on ibsim and on `ibfabric sim`, in turn |
//! | `bench_sm.rs` | `bench sm`: OpenSM's bring-up and ours on ibsim, in turn, and ours in process |
//! | `running.rs` | a program that runs beside a chore |
//! | `lines.rs` | a test: every line of `cargo xtask` in the documents is a command line |
//! | `paths.rs` | `check-paths`: every path that the documents name exists |
//! | `language.rs` | `check-language`, `sample-language`: idioms of comments, messages and documents |
//! | `pictures.rs` | `pictures`: what README shows |
//! | `campaign.rs` | `campaign`: the fuzz targets, each for as long as asked; discoveries among random faults |
//! | `campaign_sm.rs` | `campaign sm`: reachability and credit loops, beside a walk through the tables |
//! | `campaign_corruption.rs` | `campaign corruption`: a block device over a wire that corrupts packets |
//! | `campaign_rdma.rs` | `campaign rdma`: `ibfabric rdma` between two namespaces over an impaired wire |
//! | `campaign_guest.rs` | `campaign guest`: READs of the kernel of a Linux guest, and of ours from it, over an impaired wire |
//! | `wire.rs` | two network namespaces, joined by TAP devices and an impaired wire |
//! | `miri.rs` | `miri`: the tests of memory that adapters and programs share, under Miri |
//! | `deb.rs` | `deb`: the package for Debian |
//! | `windows.rs` | `windows`: the client of ACM's service, checked for Windows |

mod acm;
mod bench;
mod bench_acm;
mod bench_capture;
mod bench_rdma;
mod bench_rtrs;
mod bench_sim;
mod bench_sm;
mod campaign;
mod campaign_corruption;
mod campaign_guest;
mod campaign_rdma;
mod campaign_sm;
mod cases;
mod clients;
mod conformance;
mod deb;
mod docs;
mod guests;
mod language;
#[cfg(test)]
mod lines;
mod links;
mod miri;
mod nbd;
mod paths;
mod pictures;
mod rtrs;
mod running;
mod rxe;
mod sm;
mod tracer;
mod tshark;
mod up;
mod windows;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own chores")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Writes the man pages into docs/man.
    Man {
        /// Fails when what is committed is not up to date, and writes nothing.
        #[arg(long)]
        check: bool,
    },
    /// Writes the shells' completions into docs/completions.
    Completions {
        /// Fails when what is committed is not up to date, and writes nothing.
        #[arg(long)]
        check: bool,
    },
    /// Checks that every path which README and ARCHITECTURE name exists.
    CheckPaths,
    /// Counts idioms in comments, messages and documents; fails if a file has more of them than xtask/language.txt accepts.
    CheckLanguage(language::CheckArgs),
    /// Prints comments and messages that a seed chooses, to be read by somebody who does not know the code.
    SampleLanguage(language::SampleArgs),
    /// Compares ibfabric with a real peer.
    Conformance {
        #[command(subcommand)]
        peer: Peer,
    },
    /// Times ibfabric beside a real peer and writes the ratios into docs/benchmarks.md.
    Bench {
        #[command(subcommand)]
        what: Bench,
    },
    /// Runs every fuzz target, which needs cargo-fuzz and a nightly toolchain, or many discoveries of
    /// fabrics with random faults, with and without subnet managers.
    Campaign(campaign::Args),
    /// Runs the tests of memory that adapters and programs share under Miri, which needs a nightly
    /// toolchain with it; skipped without.
    Miri,
    /// Takes README's pictures: of the tour, and of the page in a browser (tests/browser/README.md).
    Pictures,
    /// Makes the package for Debian, which needs `cargo install cargo-deb`.
    Deb,
    /// Checks that the client of ACM's service builds for Windows, which needs the target
    /// x86_64-pc-windows-gnu; skipped without.
    Windows,
}

#[derive(Subcommand)]
enum Peer {
    /// Routes the same fabrics with OpenSM on ibsim and compares every table.
    Opensm(conformance::Args),
    /// Writes capture files of every operation code and compares what tshark reads in them.
    Tshark(tshark::Args),
    /// Runs OpenSM, osmtest and infiniband-diags on ibsim and on `ibfabric sim` and compares what
    /// they say.
    IbsimClients(clients::Args),
    /// Runs ibfabric's links on a real ibsim, under Debian's umad library and with a real OpenSM, and
    /// on `ibfabric sim`.
    Links,
    /// Runs ibfabric's subnet manager on ibsim and on `ibfabric sim`: what real clients find, what
    /// they are answered, and how it passes the subnet to a real OpenSM and takes it.
    Sm(sm::Args),
    /// Runs our tracer and its agents on ibsim and on `ibfabric sim`, beside `ibtracert` and `ibping`.
    Tracer(tracer::Args),
    /// Has a real `ib_acme` and ours ask our service of IB ACM at hosts of a simulated fabric, and librdmacm in a guest.
    Acm(acm::Args),
    /// Boots a Linux guest with soft RoCE and runs RDMA programs in it and beside it, on links of several MTUs.
    Rxe(rxe::Args),
    /// Has qemu-img, nbdcopy, nbdsh, fio and the tools of ext4 use a device of `rtrs serve` that `nbd` offers.
    Nbd(nbd::Args),
    /// Boots a Linux guest with RTRS and RNBD and runs ours beside it, as client and as server.
    Rtrs(rtrs::Args),
    /// Has many of infiniband-diags ask `ibfabric up` at once while links are cut: nothing may hang or be left behind.
    Up(up::Args),
}

#[derive(Subcommand)]
enum Bench {
    /// OpenSM's interval from `building routing` to `tables configured` against `ms.route`.
    Routing(bench::Args),
    /// OpenSM's time to SUBNET UP on ibsim and on `ibfabric sim`, and what each simulator uses.
    Sim(bench_sim::Args),
    /// OpenSM's time to SUBNET UP on ibsim against ours, and ours on a fabric in its own process.
    Sm(bench_sm::Args),
    /// The kernel's soft RoCE and `ibfabric rdma`, in turn in one guest.
    Rdma(bench_rdma::Args),
    /// A program that is captured and the same that is not, in turn.
    Capture(bench_capture::Args),
    /// Block devices of `rtrs serve`, beside those of nbdkit and of Linux' own server.
    Rtrs(bench_rtrs::Args),
    /// How often subnet administration is asked where everyone resolves everyone, and how fast a service answers.
    Acm(bench_acm::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().chore {
        Chore::Man { check } => docs::man(check),
        Chore::Completions { check } => docs::completions(check),
        Chore::CheckPaths => paths::check(),
        Chore::CheckLanguage(args) => language::check(&args),
        Chore::SampleLanguage(args) => language::sample(&args),
        Chore::Conformance { peer: Peer::Opensm(args) } => conformance::run(&args),
        Chore::Conformance { peer: Peer::Tshark(args) } => tshark::run(&args),
        Chore::Conformance { peer: Peer::IbsimClients(args) } => clients::run(&args),
        Chore::Conformance { peer: Peer::Links } => links::run(),
        Chore::Conformance { peer: Peer::Sm(args) } => sm::run(&args),
        Chore::Conformance { peer: Peer::Tracer(args) } => tracer::run(&args),
        Chore::Conformance { peer: Peer::Acm(args) } => acm::run(&args),
        Chore::Conformance { peer: Peer::Rxe(args) } => rxe::run(&args),
        Chore::Conformance { peer: Peer::Nbd(args) } => nbd::run(&args),
        Chore::Conformance { peer: Peer::Rtrs(args) } => rtrs::run(&args),
        Chore::Conformance { peer: Peer::Up(args) } => up::run(&args),
        Chore::Bench { .. } if cfg!(debug_assertions) => {
            Err("what is measured is built for release: `cargo xtask bench`".into())
        }
        Chore::Bench { what: Bench::Routing(args) } => bench::run(&args),
        Chore::Bench { what: Bench::Sim(args) } => bench_sim::run(&args),
        Chore::Bench { what: Bench::Sm(args) } => bench_sm::run(&args),
        Chore::Bench { what: Bench::Rdma(args) } => bench_rdma::run(&args),
        Chore::Bench { what: Bench::Capture(args) } => bench_capture::run(&args),
        Chore::Bench { what: Bench::Rtrs(args) } => bench_rtrs::run(&args),
        Chore::Bench { what: Bench::Acm(args) } => bench_acm::run(&args),
        Chore::Campaign(args) => campaign::run(&args),
        Chore::Deb => deb::run(),
        Chore::Pictures => pictures::run(),
        Chore::Miri => miri::run(),
        Chore::Windows => windows::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What a chore ends with.
type Chored = Result<(), Box<dyn std::error::Error>>;

/// Returns the root of the checkout.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies in the checkout").to_owned()
}

/// Builds the program in release mode and returns its path.
fn release_binary() -> Result<PathBuf, Box<dyn std::error::Error>> {
    release_artifact(&["--package", "ibfabric"], "ibfabric")
}

/// Builds the program for debugging and returns its path.
fn debug_binary() -> Result<PathBuf, Box<dyn std::error::Error>> {
    artifact(&["--package", "ibfabric"], "ibfabric")
}

/// Builds something in release mode and returns the path of the program or library of that name. Where this program itself
/// was built for debugging, it takes what was built beside it, which saves building everything twice.
fn release_artifact(arguments: &[&str], name: &str) -> Result<PathBuf, Box<dyn std::error::Error>> {
    if cfg!(debug_assertions) {
        let place = std::env::current_exe()?;
        let place = place.parent().ok_or("this program lies nowhere")?;
        let files = [name.to_owned(), format!("lib{name}.so"), format!("examples/{name}")];
        let found = files.iter().map(|file| place.join(file)).find(|file| file.is_file());
        let how = "`cargo build --workspace --bins --lib --examples` builds it";
        return found.ok_or_else(|| format!("{} has no {name}: {how}", place.display()).into());
    }
    artifact(&[&["--release"], arguments].concat(), name)
}

/// Builds something and returns the path of the program or library of that name.
fn artifact(arguments: &[&str], name: &str) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = std::process::Command::new(cargo)
        .args(["build", "--quiet"])
        .args(arguments)
        .args(["--message-format", "json"])
        .current_dir(root())
        .stderr(std::process::Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("{name} does not build").into());
    }
    let is_shared = |path: &&str| path.ends_with(".so");
    String::from_utf8(output.stdout)?
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| {
            let files = message["filenames"].as_array().into_iter().flatten();
            let library = files.filter_map(|file| file.as_str()).find(is_shared);
            message["executable"].as_str().or(library).map(PathBuf::from)
        })
        .ok_or_else(|| format!("cargo names no file of {name}").into())
}
