//! `ib_acme` and librdmacm as clients of ibfabric's ACM service, on hosts of a simulated fabric.
//!
//! Two services resolve each other's names over the fabric. Each command line is run with Debian's `ib_acme` and with
//! `ibfabric acme`. Outputs and exit statuses must be equal, and the output must contain the lines that the test case
//! expects.
//!
//! [`guest`] tests librdmacm, which needs a kernel with RDMA.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use interop::{RunError, Running};

use crate::sm::scene::Checked;

pub mod guest;
pub mod umad;

/// Time limit for a program to become ready or to respond.
const PATIENCE: Duration = Duration::from_secs(30);

/// The kind and parameters of the fabric, as for `ibfabric gen`.
const FABRIC: [&str; 3] = ["fat-tree", "4", "2"];
/// Node names of two hosts of the fabric.
const HOSTS: [&str; 2] = ["H-0002c90000100000", "H-0002c90000100002"];

/// The name and the addresses of a host, as the ACM service on this host reports them.
#[derive(Clone, Debug, Default)]
struct Names {
    name: String,
    v4: String,
    v6: String,
}

/// A fabric with ACM services on two hosts.
pub struct Scene {
    ibfabric: PathBuf,
    sockets: [PathBuf; 2],
    names: [Names; 2],
    /// Results of the checks.
    pub checked: Checked,
    _running: Vec<Running>,
}

impl Scene {
    /// Starts a simulated fabric, and an ACM service on each of two hosts. Their files are written to the given
    /// directory.
    ///
    /// # Errors
    /// Fails if a program does not start.
    pub fn open(ibfabric: &Path, directory: &Path) -> Result<Self, RunError> {
        let net = directory.join("fabric.net");
        let simulator = format!("acm-conformance-{}", std::process::id());
        let program = || Command::new(ibfabric);
        let mut generate = program();
        generate.arg("gen").args(FABRIC).arg("-o").arg(&net);
        Running::start(generate)?.wait(PATIENCE)?;
        let mut sim = program();
        sim.arg("sim").arg(&net).args(["--sm", "--name", &simulator]);
        let sim = Running::start(sim)?;
        sim.until("READY", PATIENCE)?;
        let mut running = vec![sim];
        let sockets = [1, 2].map(|number| directory.join(format!("{number}.sock")));
        for (host, socket) in HOSTS.into_iter().zip(&sockets) {
            let mut service = program();
            service
                .args(["acm", "--attach", &simulator, "--node", host])
                .arg("--socket")
                .arg(socket);
            let service = Running::start(service)?;
            service.until("READY", PATIENCE)?;
            running.push(service);
        }
        let (checked, names) = (Checked::default(), Default::default());
        let ibfabric = ibfabric.to_owned();
        let mut this = Self { ibfabric, sockets, names, checked, _running: running };
        for number in 0..2 {
            this.names[number] = this.learn(number)?;
        }
        Ok(this)
    }

    /// Queries a service for the names and addresses of its own host.
    fn learn(&self, number: usize) -> Result<Names, RunError> {
        let output = self.ask("ib_acme", &[], &["-e"], number)?.1;
        let row = output.lines().nth(1).unwrap_or_default();
        let mut words = row.split(',').skip(6).map(str::to_owned);
        let mut next = || words.next().unwrap_or_default();
        Ok(Names { name: next(), v4: next(), v6: next() })
    }

    /// Runs a program as a client of a service. Returns its exit status and output.
    fn ask(
        &self,
        program: &str,
        before: &[&str],
        words: &[&str],
        service: usize,
    ) -> Result<(u8, String), RunError> {
        let mut command = Command::new(program);
        command.args(before).args(words).arg("-S").arg(&self.sockets[service]);
        let finished = Running::start(command)?.wait(PATIENCE)?;
        Ok((finished.status, finished.output))
    }

    /// Runs a command line with Debian's `ib_acme` and with `ibfabric acme`, and compares their outputs and exit
    /// statuses.
    fn both(&mut self, words: &[&str], holds: &[&str]) -> Result<(), RunError> {
        let (status, theirs) = self.ask("ib_acme", &[], words, 0)?;
        let ibfabric = self.ibfabric.display().to_string();
        let (own_status, ours) = self.ask(&ibfabric, &["acme"], words, 0)?;
        let line = words.join(" ");
        self.checked.check(theirs == ours, || {
            format!("{line}: ib_acme prints\n{theirs}ibfabric acme prints\n{ours}")
        });
        self.checked.check(status == own_status, || {
            format!("{line}: ib_acme exits with status {status}, ibfabric acme with {own_status}")
        });
        for text in holds {
            self.checked.check(theirs.contains(text), || {
                format!("{line}: expected {text:?} in the output of ib_acme:\n{theirs}")
            });
        }
        Ok(())
    }

    /// Checks all kinds of queries.
    ///
    /// # Errors
    /// Fails if a program does not end in time.
    pub fn run(&mut self) -> Result<(), RunError> {
        let [one, other] = self.names.clone();
        let names = [&one.name, &other.name, &other.v4, &other.v6];
        self.checked.check(names.iter().all(|name| !name.is_empty()), || {
            format!("expected names and addresses from the services, found {names:?}")
        });
        let path = ["dgid: fe80::2:c900:10:3", "sgid: fe80::2:c900:10:1", "return status 0x0"];
        let found: Vec<&str> = path.into_iter().chain(["dlid: ", "pkey: 0xffff"]).collect();
        // Queries by name, IPv4, IPv6, LID and GID, with and without a source address.
        for (format, from, to) in
            [("n", &one.name, &other.name), ("i", &one.v4, &other.v4), ("i", &one.v6, &other.v6)]
        {
            self.both(&["-f", format, "-s", from, "-d", to], &found)?;
            self.both(&["-f", format, "-d", to, "-v"], &["SA verification: success"])?;
        }
        self.both(&["-d", &other.v4], &found)?;
        let (sgid, dgid) = ("fe80::2:c900:10:1", "fe80::2:c900:10:3");
        self.both(&["-f", "g", "-s", sgid, "-d", dgid, "-v"], &["SA verification: success"])?;
        self.both(&["-f", "l", "-s", "1", "-d", "5"], &["Path information"])?;
        let upper = other.name.to_uppercase();
        self.both(&["-f", "n", "-d", &upper], &found)?;
        self.both(&["-f", "n", "-d", &other.name, "-c", "-C", "3"], &found)?;
        self.both(&["-f", "n", "-d", &one.name], &["hop limit: 0", "packet lifetime: 0"])?;
        // Queries of unknown and invalid addresses.
        self.both(&["-f", "n", "-d", "nobody", "-c"], &["No data available"])?;
        self.both(&["-f", "n", "-d", "nobody"], &["Connection timed out"])?;
        self.both(&["-f", "n", "-s", "nobody", "-d", &other.name], &["Cannot assign"])?;
        self.both(&["-f", "l", "-s", "1", "-d", "777"], &["ib_acm_resolve_path failed"])?;
        let several = format!("{}[0-2]", &one.name[..one.name.len() - 1]);
        self.both(&["-f", "n", "-d", &several, "-c"], &["No data available"])?;
        // ib_acme prints the counters (-P) and the endpoints (-e) of the service.
        for words in
            [&["-P"][..], &["-P", "col"], &["-P", "1"], &["-P", "9"], &["-e"], &["-e", "9"]]
        {
            self.both(words, &["return status 0x0"])?;
        }
        // ib_acme accepts both options in any order.
        for words in [&["-e", "-P"][..], &["-P", "-e"]] {
            self.both(words, &["Error Count"])?;
        }
        let counted = self.ask("ib_acme", &[], &["-P", "col"], 0)?.1;
        let count = |name: &str| {
            let line = counted.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(" : ").parse::<u64>().ok()
        };
        self.checked.check(count("Resolve Count").is_some_and(|count| count > 30), || {
            format!("expected more than 30 resolutions:\n{counted}")
        });
        self.checked.check(count("No Data") == Some(4), || {
            format!("expected `No Data` 4 times:\n{counted}")
        });
        Ok(())
    }
}
