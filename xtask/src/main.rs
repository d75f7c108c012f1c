//! Development tasks, run as `cargo xtask TASK`.
//!
//! | file | task |
//! |---|---|
//! | `docs.rs` | `man`, `completions`, `schemas`: generate files from the command line, or check the committed files |
//! | `conformance.rs` | `conformance opensm`: routes the same fabrics with OpenSM and ibfabric |
//! | `tshark.rs` | `conformance tshark`: tshark reads capture files with all opcodes, and captures of software HCAs |
//! | `clients.rs` | `conformance ibsim-clients`: runs unmodified ibsim clients on ibsim and on `ibfabric sim` |
//! | `links.rs` | `conformance links`: tests ibfabric's `MadLink`s with real simulators and a real OpenSM |
//! | `sm.rs` | `conformance sm`: runs `ibfabric sm` on both simulators, together with a real OpenSM |
//! | `nbd.rs` | `conformance nbd`: tests NBD clients with ibfabric's block devices |
//! | `rtrs.rs` | `conformance rtrs`: RTRS and RNBD between a guest's kernel and ibfabric |
//! | `perftest.rs` | `conformance perftest`: perftest with `ibfabric run` at both ends |
//! | `rxe.rs` | `conformance rxe`: real RDMA programs on soft RoCE in a guest, and `ibfabric rdma` |
//! | `guests.rs` | runs test cases in guests, for `rtrs.rs` and `rxe.rs` |
//! | `up.rs` | `conformance up`: runs many real programs on `ibfabric up` while links are cut |
//! | `cases.rs` | common parts of tasks that run test cases |
//! | `bench.rs` | `bench routing`: compares the times in which OpenSM and ibfabric compute forwarding tables |
//! | `bench_capture.rs` | `bench capture`: measures how much a capture slows down a program |
//! | `bench_rdma.rs` | `bench rdma`: compares the speed of soft RoCE and of the software HCA in one guest |
//! | `bench_rtrs.rs` | `bench rtrs`: compares block devices of ibfabric, of nbdkit, and of a guest's kernel |
//! | `bench_sim.rs` | `bench sim`: compares the times of OpenSM's bring-up on ibsim and on `ibfabric sim` |
//! | `bench_sm.rs` | `bench sm`: compares the times in which OpenSM and `ibfabric sm` bring a fabric up |
//! | `bench_verbs.rs` | `bench verbs`: compares perftest with `ibfabric run` and `ibfabric rdma` |
//! | `running.rs` | a background process of a task |
//! | `lines.rs` | a test: every `cargo xtask` command in the documents can be parsed |
//! | `figures.rs` | a test: figures that documents quote are those of the benchmarks |
//! | `paths.rs` | `check-paths`: checks that all paths in the documents exist, and that all documents are in the book |
//! | `anchors.rs` | the links and the anchors of a document |
//! | `language.rs` | `check-language`, `sample-language`: counts idioms in comments, messages and documents |
//! | `pictures.rs` | `pictures`: generates the pictures in README.md |
//! | `pyverbs.rs` | `conformance pyverbs`: runs the tests of pyverbs with `ibfabric run`, and on soft RoCE in a guest |
//! | `campaign.rs` | `campaign`: runs the fuzz targets for a given time, or tests with many random faults |
//! | `campaign_sm.rs` | `campaign sm`: checks reachability and credit loops while links are cut |
//! | `campaign_corruption.rs` | `campaign corruption`: a block device over a wire that corrupts packets |
//! | `campaign_rdma.rs` | `campaign rdma`: `ibfabric rdma` between two namespaces over an impaired wire |
//! | `campaign_guest.rs` | `campaign guest`: READs between a guest's kernel and ibfabric over an impaired wire |
//! | `wire.rs` | two network namespaces, connected by TAP devices and an impaired wire |
//! | `miri.rs` | `miri`: runs tests of shared memory under Miri |
//! | `package.rs` | `package`: builds a tarball, a Debian package, a Python wheel and a container image |
//! | `windows.rs` | `windows`: checks that the client of the ACM service builds for Windows |

mod acm;
mod anchors;
mod bench;
mod bench_acm;
mod bench_capture;
mod bench_rdma;
mod bench_rtrs;
mod bench_sim;
mod bench_sm;
mod bench_verbs;
mod book;
mod campaign;
mod campaign_corruption;
mod campaign_guest;
mod campaign_rdma;
mod campaign_sm;
mod cases;
mod clients;
mod commands;
mod conformance;
mod docs;
#[cfg(test)]
mod figures;
mod guests;
mod language;
#[cfg(test)]
mod lines;
mod links;
mod miri;
mod nbd;
mod package;
mod paths;
mod perftest;
mod pictures;
mod pyverbs;
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
#[command(name = "cargo xtask", about = "Development tasks")]
struct Cli {
    #[command(subcommand)]
    chore: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Generates the man pages in docs/man, and the same pages as documents in docs/reference.
    Man {
        /// Writes nothing, but fails if the committed files are out of date.
        #[arg(long)]
        check: bool,
    },
    /// Generates the shell completions in docs/completions.
    Completions {
        /// Writes nothing, but fails if the committed files are out of date.
        #[arg(long)]
        check: bool,
    },
    /// Generates the JSON Schemas of the commands' output in docs/schemas.
    Schemas {
        /// Writes nothing, but fails if the committed files are out of date.
        #[arg(long)]
        check: bool,
    },
    /// Checks that all paths in the documents exist.
    CheckPaths,
    /// Builds the documents as a book with a search, in target/book.
    Book,
    /// Counts idioms in comments, messages and documents. Fails if a file has more idioms than xtask/language.txt
    /// accepts. Also fails if README, a tutorial or a how-to guide has a sentence of more than 30 words.
    CheckLanguage(language::CheckArgs),
    /// Prints random comments and messages, each with its item, for a review by a reader who does not know the code.
    SampleLanguage(language::SampleArgs),
    /// Compares ibfabric with a real peer.
    Conformance {
        #[command(subcommand)]
        peer: Peer,
    },
    /// Benchmarks ibfabric and a real peer, and writes the ratios into docs/benchmarks.md.
    Bench {
        #[command(subcommand)]
        what: Bench,
    },
    /// Runs all fuzz targets, or tests with many random faults.
    Campaign(campaign::Args),
    /// Tests, under Miri, the memory that HCAs and programs share. Skipped if no nightly toolchain has Miri.
    Miri,
    /// Generates the pictures in README.md: of the self-test, and of the web page in a browser
    /// (tests/browser/README.md).
    Pictures,
    /// Builds a tarball with the static program, and other packages.
    Package(package::Args),
    /// Checks that the client of the ACM service builds for Windows; skipped without the target
    /// x86_64-pc-windows-gnu.
    Windows,
}

#[derive(Subcommand)]
enum Peer {
    /// Routes fabrics with OpenSM on ibsim and with ibfabric, and compares all forwarding tables.
    Opensm(conformance::Args),
    /// Writes capture files with all opcodes, and compares the fields that tshark reads.
    Tshark(tshark::Args),
    /// Runs OpenSM, osmtest and infiniband-diags on ibsim and on `ibfabric sim`, and compares their output.
    IbsimClients(clients::Args),
    /// Sends MADs through ibfabric's ibsim and umad clients, on ibsim and on `ibfabric sim`. A real OpenSM is the SM.
    Links,
    /// Runs `ibfabric sm` on ibsim and on `ibfabric sim`. Checks the output of real clients, and handovers from and to
    /// a real OpenSM.
    Sm(sm::Args),
    /// Runs the tracer and its agents on ibsim and on `ibfabric sim`, together with `ibtracert` and `ibping`.
    Tracer(tracer::Args),
    /// Queries ACM services on hosts of a simulated fabric with `ib_acme`, with `ibfabric acme`, and with librdmacm in
    /// a guest.
    Acm(acm::Args),
    /// Boots a Linux guest with soft RoCE. Runs RDMA programs in the guest, and `ibfabric rdma` on the host, with
    /// several MTUs.
    Rxe(rxe::Args),
    /// Runs the tests of pyverbs with `ibfabric run`, over RoCEv2 and on a simulated fabric.
    Pyverbs(pyverbs::Args),
    /// Runs the programs of perftest with `ibfabric run` at both ends, over RoCEv2 and on a simulated fabric. With --all,
    /// runs each program with all transport services and options.
    Perftest(perftest::Args),
    /// Runs qemu-img, nbdcopy, nbdsh, fio and the ext4 tools on a device of `rtrs serve` and `nbd`.
    Nbd(nbd::Args),
    /// Boots a Linux guest with RTRS and RNBD. Runs `ibfabric rtrs` as client and server of the guest's kernel.
    Rtrs(rtrs::Args),
    /// Runs many infiniband-diags programs on `ibfabric up` while links are cut. No program may hang, and no process
    /// may remain.
    Up(up::Args),
}

#[derive(Subcommand)]
enum Bench {
    /// Compares the times in which OpenSM and `ibfabric route` compute the forwarding tables.
    Routing(bench::Args),
    /// Compares OpenSM's time to SUBNET UP on ibsim and on `ibfabric sim`, and the resources of each simulator.
    Sim(bench_sim::Args),
    /// Compares the time to SUBNET UP of OpenSM and `ibfabric sm` on ibsim. Also measures `ibfabric sm` with a
    /// simulated fabric.
    Sm(bench_sm::Args),
    /// Compares the speed of soft RoCE and `ibfabric rdma` in one guest. Runs of both alternate.
    Rdma(bench_rdma::Args),
    /// Compares the speed of perftest with `ibfabric run` and of `ibfabric rdma`. Also measures soft RoCE in a guest.
    Verbs(bench_verbs::Args),
    /// Measures how much a capture slows down a program. Runs with and without a capture alternate.
    Capture(bench_capture::Args),
    /// Compares block devices of `rtrs serve`, of nbdkit and of the Linux kernel's server.
    Rtrs(bench_rtrs::Args),
    /// Counts the SA queries while all hosts resolve the names of all hosts, and measures the request rate of an ACM
    /// service.
    Acm(bench_acm::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().chore {
        Task::Man { check } => docs::man(check),
        Task::Completions { check } => docs::completions(check),
        Task::Schemas { check } => docs::schemas(check),
        Task::CheckPaths => paths::check(),
        Task::Book => book::run(),
        Task::CheckLanguage(args) => language::check(&args),
        Task::SampleLanguage(args) => language::sample(&args),
        Task::Conformance { peer: Peer::Opensm(args) } => conformance::run(&args),
        Task::Conformance { peer: Peer::Tshark(args) } => tshark::run(&args),
        Task::Conformance { peer: Peer::IbsimClients(args) } => clients::run(&args),
        Task::Conformance { peer: Peer::Links } => links::run(),
        Task::Conformance { peer: Peer::Sm(args) } => sm::run(&args),
        Task::Conformance { peer: Peer::Tracer(args) } => tracer::run(&args),
        Task::Conformance { peer: Peer::Acm(args) } => acm::run(&args),
        Task::Conformance { peer: Peer::Rxe(args) } => rxe::run(&args),
        Task::Conformance { peer: Peer::Pyverbs(args) } => pyverbs::run(&args),
        Task::Conformance { peer: Peer::Perftest(args) } => perftest::run(&args),
        Task::Conformance { peer: Peer::Nbd(args) } => nbd::run(&args),
        Task::Conformance { peer: Peer::Rtrs(args) } => rtrs::run(&args),
        Task::Conformance { peer: Peer::Up(args) } => up::run(&args),
        // If `--binary` names the program to measure, the build profile of xtask does not matter.
        Task::Bench { what: Bench::Verbs(args) } if args.binary.is_some() => {
            bench_verbs::run(&args)
        }
        Task::Bench { .. } if cfg!(debug_assertions) => {
            Err("found a debug build, expected a release build: use `cargo xtask bench`".into())
        }
        Task::Bench { what: Bench::Routing(args) } => bench::run(&args),
        Task::Bench { what: Bench::Sim(args) } => bench_sim::run(&args),
        Task::Bench { what: Bench::Sm(args) } => bench_sm::run(&args),
        Task::Bench { what: Bench::Rdma(args) } => bench_rdma::run(&args),
        Task::Bench { what: Bench::Verbs(args) } => bench_verbs::run(&args),
        Task::Bench { what: Bench::Capture(args) } => bench_capture::run(&args),
        Task::Bench { what: Bench::Rtrs(args) } => bench_rtrs::run(&args),
        Task::Bench { what: Bench::Acm(args) } => bench_acm::run(&args),
        Task::Campaign(args) => campaign::run(&args),
        Task::Package(args) => package::run(&args),
        Task::Pictures => pictures::run(),
        Task::Miri => miri::run(),
        Task::Windows => windows::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The result of a task.
type TaskResult = Result<(), Box<dyn std::error::Error>>;

/// Returns the root of the checkout.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask is in the checkout").to_owned()
}

/// Builds the program in release mode and returns its path.
fn release_binary() -> Result<PathBuf, Box<dyn std::error::Error>> {
    release_artifact(&["--package", "ibfabric"], "ibfabric")
}

/// Builds the program for debugging and returns its path.
fn debug_binary() -> Result<PathBuf, Box<dyn std::error::Error>> {
    artifact(&["--package", "ibfabric"], "ibfabric")
}

/// Builds a program or library in release mode and returns its path. If xtask itself is a debug build, builds
/// nothing, so that the workspace is not built twice, and returns the existing file in xtask's own directory.
fn release_artifact(arguments: &[&str], name: &str) -> Result<PathBuf, Box<dyn std::error::Error>> {
    if cfg!(debug_assertions) {
        let program = std::env::current_exe()?;
        let folder = program.parent().ok_or("the path of xtask has no directory")?;
        let files = [name.to_owned(), format!("lib{name}.so"), format!("examples/{name}")];
        let found = files.iter().map(|file| folder.join(file)).find(|file| file.is_file());
        let remedy = "run `cargo build --workspace --bins --lib --examples`";
        return found
            .ok_or_else(|| format!("{name} not found in {}: {remedy}", folder.display()).into());
    }
    artifact(&[&["--release"], arguments].concat(), name)
}

/// Builds a program or library with `cargo build` and returns its path.
fn artifact(arguments: &[&str], name: &str) -> Result<PathBuf, Box<dyn std::error::Error>> {
    cargo_artifact("build", arguments, name)
}

/// Builds a program or library with `cargo build` or `cargo rustc`, and returns its path.
fn cargo_artifact(
    command: &str,
    arguments: &[&str],
    name: &str,
) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = std::process::Command::new(cargo)
        .args([command, "--quiet", "--message-format", "json"])
        .args(arguments)
        .current_dir(root())
        .stderr(std::process::Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("`cargo {command}` of {name} failed").into());
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
        .ok_or_else(|| format!("`cargo {command}` has not reported the path of {name}").into())
}
