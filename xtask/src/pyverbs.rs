//! Runs Debian's tests of pyverbs with `ibfabric run`: over RoCEv2, and on a node of a simulated fabric. Compares the
//! results with those of the kernel's soft RoCE, which `guest` has determined.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cases::Selection;
use crate::running::Running;
use crate::{TaskResult, root};

mod guest;

type Failed = Box<dyn std::error::Error>;
type Result<T> = std::result::Result<T, Failed>;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Writes the list of tests that have to pass, instead of comparing the results with it.
    #[arg(long, conflicts_with = "guest")]
    write: bool,
    /// Runs the tests on the kernel's soft RoCE in a guest instead, and writes the list of tests that pass there.
    #[arg(long)]
    guest: bool,
}

/// Directory of the tests in the Debian package python3-pyverbs.
const TESTS: &str = "/usr/share/doc/rdma-core/tests";

/// Debian's Python, to which Debian's pyverbs belongs.
const PYTHON: &str = "/usr/bin/python3";

/// The program that runs the tests.
const RUNNER: &str = include_str!("pyverbs/run.py");

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

/// Tests that pass on soft RoCE but are skipped here: the test, the link layers, and why.
const DIFFERENT: [(&str, &[Layer], &str); 2] = [
    (
        "test_addr.AHTest.test_create_ah_roce",
        &[Layer::Infiniband],
        "the test needs the link layer Ethernet",
    ),
    (
        "test_device.DeviceTest.test_query_gid_ex_bad_flow",
        &Layer::ALL,
        "the test needs an empty entry in the GID table, but the table of the device has one entry, which is in use",
    ),
];

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
    let tests = outputs.path().join("tests");
    unpack(Path::new(TESTS), &tests)?;
    if args.guest {
        return guest::run(&tests, outputs.path()).inspect_err(|_| outputs.keep());
    }
    let binary = args.selection.ibfabric_with_library()?;
    let lab = Lab { binary, directory: outputs.path().to_owned() };
    let mut passed = BTreeMap::<String, Vec<Layer>>::new();
    let mut failed = Vec::new();
    let mut table = String::new();
    for layer in Layer::ALL {
        let results = lab.run(layer)?;
        writeln!(table, "{}: {}", layer.name(), counts(&results))?;
        for (name, Outcome { outcome, reason }) in &results {
            match outcome.as_str() {
                "passed" => passed.entry(name.clone()).or_default().push(layer),
                "skipped" => {}
                _ => match FAILING.iter().find(|(failing, _)| failing == name) {
                    Some((_, why)) => writeln!(table, "    1 failed, as expected: {why}")?,
                    None => failed.push(format!("{name} on {}: {reason}", layer.name())),
                },
            }
        }
        table.push_str(&reasons(&results));
        let on_rxe = guest::passed()?;
        let is_equal = |name: &&String| results.get(*name).is_some_and(|it| it.outcome == "passed");
        let (equal, unequal): (Vec<_>, Vec<_>) = on_rxe.iter().partition(is_equal);
        writeln!(table, "  {} of {} tests that pass on soft RoCE", equal.len(), on_rxe.len())?;
        for name in unequal {
            match DIFFERENT.iter().find(|(test, on, _)| test == name && on.contains(&layer)) {
                Some((.., why)) => writeln!(table, "    {name} is skipped: {why}")?,
                None => failed.push(format!(
                    "{name} passes on soft RoCE, but not with `ibfabric run` on {}",
                    layer.name()
                )),
            }
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

/// Reads the results that the runner has written: one JSON line for each test.
fn parse(text: &str) -> Result<BTreeMap<String, Outcome>> {
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

/// Returns how many tests passed, were skipped, and failed.
fn counts(results: &BTreeMap<String, Outcome>) -> String {
    let count = |kind: &str| results.values().filter(|it| it.outcome == kind).count();
    let [passed, skipped, failed] = ["passed", "skipped", "failed"].map(count);
    format!("{passed} passed, {skipped} skipped, {failed} failed")
}

/// Returns a table of the reasons why tests were skipped.
fn reasons(results: &BTreeMap<String, Outcome>) -> String {
    let mut reasons = BTreeMap::<&str, u32>::new();
    for it in results.values().filter(|it| it.outcome == "skipped") {
        *reasons.entry(&it.reason).or_default() += 1;
    }
    reasons.iter().map(|(reason, count)| format!("  {count:3} skipped: {reason}\n")).collect()
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

/// The program under test, and the directory of its files.
struct Lab {
    binary: PathBuf,
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
            Layer::Infiniband => Some(Running::fat_tree(&self.binary, &self.directory, &name)?),
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
            .arg("run")
            .args(port)
            .args(["--", PYTHON])
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
        parse(&text)
    }
}
