//! Tests RTRS devices over an InfiniBand fabric that a separate process simulates. GIDs, addresses or names specify
//! the paths.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use super::command::{Running, ibfabric, text};
use super::number;

/// A fabric file: client and server have a port in each of two rails. Other nodes run the SM and an ACM service.
const RAILS: &str = "\
Switch 5 \"rail-1\"
[1] \"client\"[1]
[2] \"server\"[1]
[3] \"rail-2\"[3]
[4] \"manager\"[1]
[5] \"names\"[1]

Switch 5 \"rail-2\"
[1] \"client\"[2]
[2] \"server\"[2]
[3] \"rail-1\"[3]

caguid=0x1000
Ca 1 \"manager\"
[1] \"rail-1\"[4]

caguid=0x2000
Ca 1 \"names\"
[1] \"rail-1\"[5]

caguid=0x3000
Ca 2 \"client\"
[1] \"rail-1\"[1]
[2] \"rail-2\"[1]

caguid=0x4000
Ca 2 \"server\"
[1] \"rail-1\"[2]
[2] \"rail-2\"[2]
";

/// The GIDs of the server's ports.
const SERVER: [&str; 2] = ["gid:fe80::4001", "gid:fe80::4002"];

struct Lab {
    directory: tempfile::TempDir,
    simulator: String,
    _sim: Running,
    _server: Running,
}

impl Lab {
    /// Starts a simulator with the given script, and an RTRS server at both ports of the node `server`.
    fn new(name: &str, script: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory can be created");
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).expect("the file can be written");
            path.to_str().expect("the path is UTF-8").to_owned()
        };
        let (net, script) = (file("rails.net", RAILS), file("script", script));
        let simulator = format!("rtrs-test-{name}-{}", std::process::id());
        let words = ["sim", &net, "--sm", "--name", &simulator, "--script", &script];
        let sim = Running::ready(ibfabric(&words));
        let serve = ["rtrs", "serve", "--attach", &simulator, "--node", "server"];
        let more = ["--node", "server:2", "--export", "disk0=mem:32M"];
        let server = Running::ready(ibfabric(&[&serve[..], &more].concat()));
        Self { directory, simulator, _sim: sim, _server: server }
    }

    fn bench(&self, words: &[&str]) -> Command {
        let common = ["rtrs", "bench", "--attach", &self.simulator, "--device", "disk0"];
        let load = ["--verify", "--json", "--rw", "randrw", "--bs", "16K"];
        ibfabric(&[&common[..], &load, words].concat())
    }

    /// Writes and reads 4 MiB over the given paths, and checks the data.
    fn transfers(&self, words: &[&str]) -> Output {
        let output = self
            .bench(words)
            .args(["--io-size", "4M"])
            .output()
            .expect("the program can be started");
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        assert_eq!(number(&output, "errors"), 0.0);
        output
    }

    fn refused(&self, words: &[&str]) -> String {
        let output = self
            .bench(words)
            .args(["--io-size", "1M"])
            .output()
            .expect("the program can be started");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        text(&output.stderr)
    }
}

#[test]
fn paths_accept_gids_addresses_and_names() {
    let lab = Lab::new("paths", "");
    let both = ["--node", "client", "--node", "client:2"];
    lab.transfers(&[&both[..], &["--path", SERVER[0], "--path", SERVER[1]]].concat());
    lab.transfers(&[&both[..], &["--path", "server", "--path", "server:2"]].concat());
    // The rails are connected, so a path can lead from the client's second port to the server's first port.
    let across = format!("client:2@{}", SERVER[0]);
    lab.transfers(&[&both[..], &["--path", &across, "--policy", "round-robin"]].concat());
    let own = format!("gid:fe80::3002@{}", SERVER[1]);
    lab.transfers(&[&both[..], &["--path", &own]].concat());

    let why = lab.refused(&["--node", "client", "--path", "nobody"]);
    assert!(why.contains("nobody: expected NODE, NODE:PORT, an address, a GID or a LID"), "{why}");
    let why = lab.refused(&["--node", "client", "--path", "server:1@server"]);
    assert!(
        why.contains("server:1: expected one of the ports of --node before the @: client"),
        "{why}"
    );
    let why = lab.refused(&["--node", "client", "--path", "iwarp:10.0.0.1"]);
    assert!(why.contains("iWARP, which is not supported"), "{why}");
}

#[test]
fn fabric_options_require_attach() {
    let bench = |words: &[&str]| {
        let common = ["rtrs", "bench", "--device", "disk0"];
        let output =
            ibfabric(&[&common[..], words].concat()).output().expect("the program can be started");
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    assert!(bench(&["--path", "server"]).contains("--attach for a name in a simulated fabric"));
    assert!(bench(&["--path", "siw0"]).contains("iWARP, which is not supported"));
    assert!(bench(&["--path", "127.0.0.1", "--node", "client"]).contains("--attach"));
    let serve = ["rtrs", "serve", "--export", "disk0=mem:1M"];
    let serve = |words: &[&str]| {
        let output =
            ibfabric(&[&serve[..], words].concat()).output().expect("the program can be started");
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    assert!(serve(&[]).contains("--listen"));
    assert!(serve(&["--listen", "siw0"]).contains("iWARP, which is not supported"));
    assert!(serve(&["--attach", "x", "--allow", "10.0.0.0/8"]).contains("--allow"));
}

#[test]
fn cut_of_one_of_two_paths_keeps_data_intact() {
    // The client's first link is cut for half a second every two seconds, so at least one cut is within the
    // benchmark's run time.
    let cut =
        |at: u32| format!("at {at}000ms Unlink \"client\"[1]\nat {at}500ms Relink \"client\"[1]\n");
    let script: String = (2..90).step_by(2).map(cut).collect();
    let lab = Lab::new("cut", &script);
    let words =
        ["--node", "client", "--node", "client:2", "--path", "server", "--path", "server:2"];
    let more = ["--runtime", "5", "--iodepth", "16", "--reconnect-delay", "200"];
    let output =
        lab.bench(&[&words[..], &more].concat()).output().expect("the program can be started");
    let printed = text(&output.stderr);
    assert!(output.status.success(), "{printed}");
    assert_eq!(number(&output, "errors"), 0.0);
    assert!(number(&output, "reconnects") > 0.0, "{printed}");
    assert!(printed.contains("the local port of the path has no link"), "{printed}");
    // The slowest request is delayed only until the client detects that the link is cut.
    let latency: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("the text is JSON");
    let slowest = latency["latency_us"]["max"].as_f64().expect("the value is a number");
    assert!(slowest < 5e6, "{slowest} µs");
}

#[test]
fn acm_resolves_names_of_paths() {
    let lab = Lab::new("names", "");
    let path = |name: &str| -> PathBuf { lab.directory.path().join(name) };
    let config = path("config");
    fs::create_dir(&config).expect("the directory can be created");
    let hosts = config.join("hosts");
    fs::write(&hosts, "vault fe80::4002\n").expect("the file can be written");
    let options = format!("addr_preload acm_hosts\naddr_data_file {}\n", hosts.display());
    fs::write(config.join("ibacm_opts.cfg"), options).expect("the file can be written");
    let socket = path("acm.sock");
    let socket = socket.to_str().expect("the path is UTF-8");
    let words = ["acm", "--attach", &lab.simulator, "--node", "names", "--socket", socket];
    let config = ["--config", config.to_str().expect("the path is UTF-8")];
    let _service = Running::ready(ibfabric(&[&words[..], &config].concat()));
    let client = ["--node", "client:2", "--path", "vault"];
    assert!(lab.refused(&client).contains("vault: expected NODE"));
    lab.transfers(&[&client[..], &["--acm", socket]].concat());
}

#[test]
fn nbd_clients_use_a_device_of_simulated_fabric() {
    let lab = Lab::new("nbd", "");
    let socket = lab.directory.path().join("nbd.sock");
    let socket = socket.to_str().expect("the path is UTF-8");
    let words = ["nbd", "--attach", &lab.simulator, "--node", "client", "--path", "server"];
    let more = ["--device", "disk0", "--socket", socket];
    let _nbd = Running::ready(ibfabric(&[&words[..], &more].concat()));
    let mut program = super::Program::connect(socket, "disk0");
    let data: Vec<u8> = (0..200_192_u32).map(|at| (at % 251) as u8).collect();
    assert_eq!(program.request(super::WRITE, 512, &data), Ok(Vec::new()));
    assert_eq!(program.read(512, data.len() as u32), Ok(data));
}
