//! Runs Debian's tests of pyverbs with `ibfabric run`: over RoCEv2, and on a node of a simulated fabric.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cases::Selection;
use crate::{TaskResult, release_artifact, root};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Writes the list of tests that have to pass, instead of comparing the results with it.
    #[arg(long)]
    write: bool,
}

/// Directory of the tests in the Debian package python3-pyverbs.
const TESTS: &str = "/usr/share/doc/rdma-core/tests";

/// The program that runs the tests.
const RUNNER: &str = include_str!("pyverbs.py");

/// The tests that have to pass, by link layer.
const EXPECTED: &str = "tests/conformance/pyverbs.txt";

const EXPECTED_HEAD: &str = "\
# Tests of pyverbs (Debian's python3-pyverbs 44.0) that pass with `ibfabric run`, and the link layers on which they pass.
# Written by: cargo xtask conformance pyverbs --write
";

/// Tests that fail, and why.
const FAILING: [(&str, &str); 1] = [(
    "test_qpex.QpExTestCase.test_qp_ex_rc_atomic_write",
    "librxe offers ATOMIC WRITE, which neither ibfabric nor the soft RoCE of Linux 6.1 implements",
)];

/// Maximum duration of the tests on one link layer.
const LIMIT: Duration = Duration::from_secs(300);

/// A link layer, in the words of IBTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Layer {
    Ethernet,
    Infiniband,
}

impl Layer {
    const ALL: [Self; 2] = [Self::Ethernet, Self::Infiniband];

    const fn name(self) -> &'static str {
        match self {
            Self::Ethernet => "ethernet",
            Self::Infiniband => "infiniband",
        }
    }
}

/// The result of a test.
struct Outcome {
    outcome: String,
    reason: String,
}

pub(crate) fn run(args: &Args) -> TaskResult {
    let mut outputs = args.selection.outputs("pyverbs-")?;
    let binary = args.selection.ibfabric()?;
    let library = release_artifact(&["--package", "ib-preload"], "ib_preload")?;
    let tests = outputs.path().join("tests");
    unpack(Path::new(TESTS), &tests)?;
    let lab = Lab { binary, library, directory: outputs.path().to_owned() };
    let mut passed = BTreeMap::<String, Vec<Layer>>::new();
    let mut failed = Vec::new();
    let mut table = String::new();
    for layer in Layer::ALL {
        let results = lab.run(layer)?;
        let count = |kind: &str| results.values().filter(|it| it.outcome == kind).count();
        writeln!(
            table,
            "{}: {} passed, {} skipped, {} failed",
            layer.name(),
            count("passed"),
            count("skipped"),
            count("failed")
        )?;
        let mut reasons = BTreeMap::<&str, u32>::new();
        for (name, Outcome { outcome, reason }) in &results {
            match outcome.as_str() {
                "passed" => passed.entry(name.clone()).or_default().push(layer),
                "skipped" => *reasons.entry(reason).or_default() += 1,
                _ => match FAILING.iter().find(|(failing, _)| failing == name) {
                    Some((_, why)) => writeln!(table, "    1 failed, as expected: {why}")?,
                    None => failed.push(format!("{name} on {}: {reason}", layer.name())),
                },
            }
        }
        for (reason, count) in reasons {
            writeln!(table, "  {count:3} skipped: {reason}")?;
        }
    }
    eprint!("{table}");
    for failure in &failed {
        eprintln!("failed: {failure}");
    }
    if args.write {
        let mut text = EXPECTED_HEAD.to_owned();
        for (name, layers) in &passed {
            let layers: Vec<&str> = layers.iter().map(|layer| layer.name()).collect();
            writeln!(text, "{name} {}", layers.join(" "))?;
        }
        fs::write(root().join(EXPECTED), text)?;
        eprintln!("wrote {EXPECTED}");
    } else {
        for (name, layer) in expected()? {
            if !passed.get(&name).is_some_and(|layers| layers.contains(&layer)) {
                failed.push(name.clone());
                eprintln!(
                    "failed: {name} is listed in {EXPECTED}, but has not passed on {}",
                    layer.name()
                );
            }
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    outputs.keep();
    Err(format!("pyverbs: {} failures", failed.len()).into())
}

/// Reads the list of tests that have to pass.
fn expected() -> Result<Vec<(String, Layer)>> {
    let text = fs::read_to_string(root().join(EXPECTED))?;
    let mut list = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        for word in words {
            let layer = Layer::ALL.into_iter().find(|layer| layer.name() == word);
            let layer = layer.ok_or_else(|| format!("{EXPECTED}: unknown link layer {word}"))?;
            list.push((name.to_owned(), layer));
        }
    }
    Ok(list)
}

/// Copies the tests into a directory and decompresses them.
fn unpack(from: &Path, to: &Path) -> Result<()> {
    let missing = |error| format!("{}: {error}; install python3-pyverbs", from.display());
    let entries = fs::read_dir(from).map_err(missing)?;
    // The tests become the package `tests`. They also import `args_parser` without a package, so this module is copied
    // twice.
    let package = to.join("tests");
    fs::create_dir_all(&package)?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().ok_or("a directory entry has no name")?.to_string_lossy();
        match name.strip_suffix(".gz") {
            Some(name) => {
                let file = File::create(package.join(name))?;
                let status = Command::new("gunzip").arg("-c").arg(&path).stdout(file).status()?;
                if !status.success() {
                    return Err(format!("gunzip {}: {status}", path.display()).into());
                }
            }
            None if path.is_file() => drop(fs::copy(&path, package.join(&*name))?),
            None => {}
        }
    }
    fs::copy(package.join("args_parser.py"), to.join("args_parser.py"))?;
    Ok(())
}

/// The programs under test, and the directory of their files.
struct Lab {
    binary: PathBuf,
    library: PathBuf,
    directory: PathBuf,
}

impl Lab {
    /// Runs all tests on a link layer.
    fn run(&self, layer: Layer) -> Result<BTreeMap<String, Outcome>> {
        let results = self.directory.join(format!("{}.json", layer.name()));
        let runner = self.directory.join("run.py");
        fs::write(&runner, RUNNER)?;
        let name = format!("pyverbs-{}", std::process::id());
        let _simulator = match layer {
            Layer::Infiniband => Some(self.simulator(&name)?),
            Layer::Ethernet => None,
        };
        let port = match layer {
            Layer::Ethernet => vec!["--roce", "127.0.0.1"],
            Layer::Infiniband => vec!["--attach", &name, "--node", "host-1"],
        };
        // The tests over RoCEv2 run in a new network namespace. The tests over InfiniBand run in the namespace of this
        // task, because the simulator listens there.
        let mut command = match layer {
            Layer::Ethernet => {
                let mut command = Command::new("unshare");
                command.args(["--map-root-user", "--net", "sh", "-c"]);
                command.args(["ip link set lo up; exec \"$@\"", "sh"]).arg(&self.binary);
                command
            }
            Layer::Infiniband => Command::new(&self.binary),
        };
        let log = File::create(self.directory.join(format!("{}.log", layer.name())))?;
        command
            .args(["run", "--library"])
            .arg(&self.library)
            .args(port)
            // Debian's pyverbs belongs to Debian's Python.
            .args(["--", "/usr/bin/python3"])
            .args([&runner, &self.directory.join("tests"), &results])
            .args(["--dev", "rxe0"])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let mut child =
            command.spawn().map_err(|error| format!("cannot start the tests: {error}"))?;
        let until = Instant::now() + LIMIT;
        while child.try_wait()?.is_none() {
            if Instant::now() > until {
                child.kill()?;
                child.wait()?;
                return Err(format!("the tests have not ended within {LIMIT:?}").into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let text = fs::read_to_string(&results)
            .map_err(|error| format!("{}: {error}; no test was run", results.display()))?;
        let mut found = BTreeMap::new();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line)?;
            let text = |field: &str| line[field].as_str().unwrap_or_default().to_owned();
            let reason = text("reason").lines().last().unwrap_or_default().to_owned();
            let name = text("name").trim_start_matches("tests.").to_owned();
            found.insert(name, Outcome { outcome: text("outcome"), reason });
        }
        Ok(found)
    }

    /// Starts a simulator of a fat tree with a subnet manager.
    fn simulator(&self, name: &str) -> Result<Simulator> {
        let net = self.directory.join("fabric.net");
        let made =
            Command::new(&self.binary).args(["gen", "fat-tree", "4", "-o"]).arg(&net).status()?;
        if !made.success() {
            return Err(format!("ibfabric gen: {made}").into());
        }
        let mut command = Command::new(&self.binary);
        command.arg("sim").arg(&net).args(["--name", name, "--sm", "--mtu", "4096"]);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().expect("standard output is piped");
        let simulator = Simulator(child);
        let mut line = String::new();
        io::BufRead::read_line(&mut io::BufReader::new(output), &mut line)?;
        match line.starts_with("READY") {
            true => Ok(simulator),
            false => Err("ibfabric sim has not printed READY".into()),
        }
    }
}

/// A running simulator. It is killed when this value is dropped.
struct Simulator(Child);

impl Drop for Simulator {
    fn drop(&mut self) {
        // The simulator may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
