//! Tests `rtrs ctl` and the metrics of servers and clients. `rtrs ctl` shows statistics and controls paths.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::Server;
use crate::command::{Running, ibfabric, text};
use crate::program::{Program, WRITE};

pub(crate) const FIRST: &str = "ip:127.0.0.2@ip:127.0.0.1";
pub(crate) const SECOND: &str = "ip:127.0.0.3@ip:127.0.0.1";

/// An RTRS server, and an NBD server that is connected to it.
pub(crate) struct Scene {
    pub(crate) dir: TempDir,
    pub(crate) server: Server,
    pub(crate) nbd: Running,
    ports: [u16; 2],
}

impl Scene {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be created");
        let at = |name: &str| dir.path().join(name).to_str().expect("the path is UTF-8").to_owned();
        let ports = [free_tcp_port(), free_tcp_port()];
        let [first, second] = ports.map(|port| format!("127.0.0.1:{port}"));
        let server = Server::start(&[
            "--export",
            "disk0=mem:16M",
            "--control-socket",
            &at("server"),
            "--metrics",
            &first,
        ]);
        let nbd = server.nbd(
            &at("nbd"),
            &["--session", "host-1", "--control-socket", &at("client"), "--metrics", &second],
        );
        Self { dir, server, nbd, ports }
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs `rtrs ctl` on the control socket with this name in the test's directory.
    pub(crate) fn ctl(&self, socket: &str, words: &[&str]) -> Output {
        let socket = self.at(socket);
        let common = ["rtrs", "ctl", "--socket", socket.to_str().expect("the path is UTF-8")];
        ibfabric(&[&common[..], words].concat()).output().expect("the program runs")
    }

    pub(crate) fn get(&self, path: &str) -> String {
        let output = self.ctl("client", &["get", path]);
        assert!(output.status.success(), "{path}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Returns the contents of the client's control file `file` for the path `path` of the session `host-1`.
    pub(crate) fn of(&self, path: &str, file: &str) -> String {
        self.get(&format!("rtrs-client/host-1/paths/{path}/{file}"))
    }

    pub(crate) fn set(&self, path: &str, value: &str) {
        let output = self.ctl("client", &["set", path, value]);
        assert!(output.status.success(), "{path}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "");
    }

    pub(crate) fn set_of(&self, path: &str, file: &str) {
        self.set(&format!("rtrs-client/host-1/paths/{path}/{file}"), "1");
    }

    pub(crate) fn list(&self, socket: &str, path: &str) -> Vec<String> {
        let output = self.ctl(socket, &["list", path]);
        assert!(output.status.success(), "{path}: {}", text(&output.stderr));
        text(&output.stdout).lines().map(str::to_owned).collect()
    }
}

fn free_tcp_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a TCP port is free");
    listener.local_addr().expect("the socket is bound").port()
}

/// An NBD client that continuously writes data and reads it back.
pub(crate) struct Busy {
    ends: Arc<AtomicBool>,
    rounds: Arc<std::sync::atomic::AtomicU64>,
    thread: JoinHandle<()>,
}

impl Busy {
    pub(crate) fn start(socket: &Path) -> Self {
        let mut program = Program::connect(socket.to_str().expect("the path is UTF-8"), "disk0");
        let ends = Arc::new(AtomicBool::new(false));
        let rounds = Arc::new(std::sync::atomic::AtomicU64::new(0));
        let (flag, count) = (Arc::clone(&ends), Arc::clone(&rounds));
        let thread = std::thread::spawn(move || {
            while !flag.load(Ordering::SeqCst) {
                let round = count.fetch_add(1, Ordering::SeqCst) + 1;
                let data: Vec<u8> = (0..65_536_u64).map(|at| (at * 7 + round) as u8).collect();
                let offset = round % 100 * 65_536;
                assert_eq!(program.request(WRITE, offset, &data), Ok(Vec::new()));
                assert!(program.read(offset, 65_536) == Ok(data), "other data in round {round}");
            }
        });
        Self { ends, rounds, thread }
    }

    /// Waits until ten more rounds have started. A round writes a block and reads it back.
    pub(crate) fn goes_on(&self) {
        let before = self.rounds.load(Ordering::SeqCst);
        let end = Instant::now() + Duration::from_secs(20);
        while self.rounds.load(Ordering::SeqCst) < before + 10 {
            assert!(Instant::now() < end, "requests make no progress");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn end(self) {
        self.ends.store(true, Ordering::SeqCst);
        self.thread.join().expect("data read equals data written");
    }
}

/// Waits until `is_so` returns true. `what` describes this condition for the error message.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < end, "expected in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn paths_are_shown_and_changed_in_use() {
    let scene = Scene::start();
    let busy = Busy::start(&scene.at("nbd"));
    // A control client that sends no request or reads no replies does not block other clients.
    let silent = UnixStream::connect(scene.at("client")).expect("the server listens");
    let mut slow = UnixStream::connect(scene.at("client")).expect("the server listens");
    slow.write_all("\"metrics\"\n".repeat(1000).as_bytes()).expect("the peer accepts data");
    assert_eq!(scene.list("client", ""), ["ibtrs-client/", "rtrs-client/"]);
    assert_eq!(scene.list("server", "/"), ["ibtrs-server/", "rtrs-server/"]);
    assert_eq!(scene.list("client", "rtrs-client/host-1/paths"), [format!("{FIRST}/")]);
    assert_eq!(scene.of(FIRST, "state"), "connected\n");
    assert_eq!(scene.of(FIRST, "hca_name"), "lo\n");
    assert_eq!(scene.of(FIRST, "hca_port"), "1\n");
    assert_eq!(scene.of(FIRST, "src_addr"), "ip:127.0.0.2\n");

    // After a second path is added, both paths carry requests.
    scene.set("ibtrs-client/host-1/add_path", "ip:127.0.0.3,ip:127.0.0.1");
    assert_eq!(scene.of(SECOND, "state"), "connected\n");
    assert_eq!(scene.list("server", "ibtrs-server/host-1/paths").len(), 2);
    scene.set("rtrs-client/host-1/mpath_policy", "rr");
    assert_eq!(scene.get("ibtrs-client/host-1/mp_policy"), "round-robin (0)\n");
    wait_until("requests take the second path", || {
        busy.goes_on();
        // The client's reads and writes alternate, and so do the paths. So the second path may carry only reads or only
        // writes. `stats/rdma` starts with the counts of reads, bytes read, writes and bytes written.
        !scene.of(SECOND, "stats/rdma").starts_with("0 0 0 0 ")
    });
    // The GID of a RoCEv2 port contains the port's IP address. So these GIDs specify the path `SECOND`, which exists
    // already.
    let gids = "gid:::ffff:127.0.0.3@gid:::ffff:127.0.0.1";
    let again = scene.ctl("client", &["set", "rtrs-client/host-1/add_path", gids]);
    assert!(text(&again.stderr).contains("(EEXIST)"), "{}", text(&again.stderr));

    // While one path is disconnected, the other path carries all requests.
    scene.set_of(FIRST, "disconnect");
    assert_eq!(scene.of(FIRST, "state"), "disconnected\n");
    busy.goes_on();
    scene.set_of(FIRST, "reconnect");
    assert_eq!(scene.of(FIRST, "state"), "connected\n");
    assert_eq!(scene.of(FIRST, "stats/reconnects"), "1 0\n");
    scene.set_of(FIRST, "remove_path");
    let gone = scene.ctl("client", &["get", &format!("rtrs-client/host-1/paths/{FIRST}/state")]);
    assert!(text(&gone.stderr).contains("(ENOENT)"), "{}", text(&gone.stderr));
    busy.goes_on();

    // If no path is connected, requests wait until a path is reconnected.
    scene.set_of(SECOND, "disconnect");
    assert_eq!(scene.list("server", "rtrs-server"), [""; 0]);
    let before = busy.rounds.load(Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(300));
    assert!(
        busy.rounds.load(Ordering::SeqCst) <= before + 1,
        "requests completed while no path was connected"
    );
    scene.set_of(SECOND, "reconnect");
    busy.goes_on();

    // If the server disconnects a path, the client reconnects it.
    let server = format!("rtrs-server/host-1/paths/{SECOND}/disconnect");
    let output = scene.ctl("server", &["set", &server, "1"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    wait_until("the path is connected again", || scene.of(SECOND, "stats/reconnects") == "2 0\n");
    busy.goes_on();
    busy.end();
    drop((silent, slow));

    // Counters match the requests, and can be reset.
    let far = format!("ibtrs-server/host-1/paths/{SECOND}/stats/rdma");
    let words = |text: String| -> Vec<u64> {
        text.split_whitespace().map(|word| word.parse().expect("the text is a number")).collect()
    };
    let served = words(text(&scene.ctl("server", &["get", &far]).stdout));
    assert!(served[0] > 0 && served[3] > served[2] * 65_536 && served[4] == 0, "{served:?}");
    let near = words(scene.of(SECOND, "stats/rdma"));
    assert!(near[0] >= served[0] && near[4] == 0, "{near:?}");
    let old = format!("ibtrs-client/host-1/paths/{SECOND}/stats");
    let entries = scene.get(&format!("{old}/sg_entries"));
    let counted = entries.lines().skip(1).flat_map(|line| {
        words(line.split_once(' ').expect("the line contains a space").1.to_owned())
    });
    let with_data = counted.sum::<u64>();
    assert!(with_data > 0 && with_data <= near[0] + near[2], "{entries}");
    let slowest = scene.get(&format!("{old}/rdma_lat"));
    assert!(slowest.lines().count() == 19 && !slowest.ends_with("ms: 0 0\n"), "{slowest}");
    scene.set(&format!("{old}/rdma"), "0");
    assert_eq!(scene.of(SECOND, "stats/rdma"), "0 0 0 0 0 0\n");
    assert_ne!(scene.of(SECOND, "stats/reconnects"), "0 0\n");
    scene.set(&format!("{old}/reset_all"), "0");
    assert_eq!(scene.of(SECOND, "stats/reconnects"), "0 0\n");
}

#[test]
fn invalid_requests_return_error_numbers() {
    let scene = Scene::start();
    let path = |file: &str| format!("rtrs-client/host-1/paths/{FIRST}/{file}");
    let wrong = |words: &[&str], expected: &str| {
        let output = scene.ctl("client", words);
        let printed = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {printed}");
        assert!(printed.contains(expected), "{words:?}: {printed}");
        assert_eq!(text(&output.stdout), "");
    };
    wrong(&["get", "rtrs-client/host-2/add_path"], "(ENOENT)");
    wrong(&["get", "../../etc/passwd"], "(ENOENT)");
    wrong(&["get", "rtrs-client/host-1/../host-1/add_path"], "(ENOENT)");
    wrong(&["get", "rtrs-client"], "(EISDIR)");
    wrong(&["list", &path("state")], "(ENOTDIR)");
    wrong(&["set", &path("state"), "1"], "the file is read-only (EACCES)");
    wrong(&["set", &path("disconnect"), "yes"], "found `yes`, expected 1 (EINVAL)");
    wrong(&["set", &path("stats/rdma"), "-1"], "found `-1`, expected 0 or 1 (EINVAL)");
    let attempts = "rtrs-client/host-1/max_reconnect_attempts";
    wrong(&["set", attempts, "10000"], "expected -1 to 9999 (EINVAL)");
    let add = "rtrs-client/host-1/add_path";
    wrong(&["set", add, "127.0.0.1"], "(EINVAL)");
    wrong(&["set", add, "gid:fe80::1@gid:::ffff:127.0.0.1"], "(EINVAL)");
    wrong(&["set", add, "ip:127.0.0.3@ip:::1"], "(EINVAL)");
    wrong(&["set", add, "ip:127.0.0.1@ip:127.0.0.1"], "source and destination are the same HCA");
    wrong(&["set", add, "ip:203.0.113.77@ip:127.0.0.1"], "no network interface has the address");
    // The invalid requests have changed nothing. Valid requests take effect.
    assert_eq!(scene.list("client", "rtrs-client/host-1/paths").len(), 1);
    scene.set(attempts, "-1");
    scene.set(attempts, "5");
    assert_eq!(scene.get(attempts), "5\n");
    let json = scene.ctl("client", &["--json", "get", attempts]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("the text is JSON");
    assert_eq!((&json["path"], &json["value"]), (&attempts.into(), &"5\n".into()));

    let unusable = |output: Output, expected: &str| {
        let printed = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(printed.contains(expected), "{printed}");
    };
    unusable(scene.ctl("none", &["list"]), "no program with RTRS listens at");
    // A second server cannot use the same control socket.
    let taken = scene.at("server");
    let taken = taken.to_str().expect("the path is UTF-8");
    let again = ibfabric(&[
        "rtrs",
        "serve",
        "--listen",
        "127.0.0.1",
        "--udp-port",
        "0",
        "--export",
        "a=mem:1M",
        "--control-socket",
        taken,
    ]);
    unusable({ again }.output().expect("the program runs"), taken);
    let dir = scene.at("none");
    let mount = ["rtrs", "mount", dir.to_str().expect("the path is UTF-8"), "--socket", taken];
    unusable(ibfabric(&mount).output().expect("the program runs"), "expected a directory");
    let mount = ["rtrs", "mount", "/tmp", "--socket", "/nowhere/control"];
    unusable(ibfabric(&mount).output().expect("the program runs"), "/nowhere/control");
}

#[test]
fn bench_accepts_new_path_while_running() {
    let server = Server::start(&["--export", "disk0=mem:16M"]);
    let dir = tempfile::tempdir().expect("a temporary directory can be created");
    let socket = dir.path().join("control");
    let socket = socket.to_str().expect("the path is UTF-8");
    let bench = ibfabric(&[
        "rtrs",
        "bench",
        "--path",
        "127.0.0.1",
        "--udp-port",
        &server.udp,
        "--device",
        "disk0",
        "--session",
        "bench",
        "--control-socket",
        socket,
        "--rw",
        "randrw",
        "--verify",
        "--runtime",
        "3",
        "--json",
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("the program runs");
    let ctl = |words: &[&str]| {
        let common = ["rtrs", "ctl", "--socket", socket];
        ibfabric(&[&common[..], words].concat()).output().expect("the program runs")
    };
    wait_until("the first path is connected", || {
        let state = format!("rtrs-client/bench/paths/{FIRST}/state");
        text(&ctl(&["get", &state]).stdout) == "connected\n"
    });
    let added = ctl(&["set", "rtrs-client/bench/add_path", "ip:127.0.0.3,ip:127.0.0.1"]);
    assert!(added.status.success(), "{}", text(&added.stderr));
    let removed = ctl(&["set", &format!("rtrs-client/bench/paths/{FIRST}/remove_path"), "1"]);
    assert!(removed.status.success(), "{}", text(&removed.stderr));
    wait_until("the second path carries requests", || {
        let rdma = ctl(&["get", &format!("ibtrs-client/bench/paths/{SECOND}/stats/rdma")]);
        !text(&rdma.stdout).starts_with("0 0 ")
    });
    let output = bench.wait_with_output().expect("the process can be awaited");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!Path::new(socket).exists(), "the program has not removed its socket");
}

#[test]
fn metrics_of_both_sides_are_served() {
    let scene = Scene::start();
    let busy = Busy::start(&scene.at("nbd"));
    busy.goes_on();
    busy.end();
    let page = |port: u16| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("the peer accepts data");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("the response is received");
        page
    };
    let value = |page: &str, name: &str| -> f64 {
        let start = format!("{name}{{session=\"host-1\",path=\"{FIRST}\"}} ");
        let line = page.lines().find_map(|line| line.strip_prefix(&start));
        line.unwrap_or_else(|| panic!("found no {name} in {page}"))
            .parse()
            .expect("the text is a number")
    };
    let [server, client] = scene.ports.map(page);
    assert_eq!(value(&client, "ibfabric_rtrs_client_path_up"), 1.0);
    for (name, least) in [("writes_total", 10.0), ("write_bytes_total", 655_360.0)] {
        let near = value(&client, &format!("ibfabric_rtrs_client_{name}"));
        assert_eq!(near, value(&server, &format!("ibfabric_rtrs_server_{name}")));
        assert!(near >= least, "{name} is {near}, expected at least {least}");
    }
    let shown = scene.ctl("server", &["metrics"]);
    assert!(server.ends_with(&text(&shown.stdout)), "{}", text(&shown.stdout));
}

#[test]
fn paths_between_gids_are_added_and_named() {
    let dir = tempfile::tempdir().expect("a temporary directory can be created");
    let at = |name: &str| dir.path().join(name).to_str().expect("the path is UTF-8").to_owned();
    let made = ibfabric(&["gen", "fat-tree", "4", "-o", &at("fabric.net")]).status();
    assert!(made.expect("the program runs").success());
    let name = format!("rtrs-tree-{}", std::process::id());
    let fabric = at("fabric.net");
    let _sim = Running::ready(ibfabric(&["sim", &fabric, "--name", &name, "--sm"]));
    let _server = Running::ready(ibfabric(&[
        "rtrs",
        "serve",
        "--attach",
        &name,
        "--node",
        "host-1",
        "--export",
        "disk0=mem:16M",
        "--control-socket",
        &at("server"),
    ]));
    let _nbd = Running::ready(ibfabric(&[
        "nbd",
        "--attach",
        &name,
        "--node",
        "host-5",
        "--node",
        "host-6",
        "--path",
        "host-5@host-1",
        "--device",
        "disk0",
        "--socket",
        &at("nbd"),
        "--session",
        "five",
        "--control-socket",
        &at("client"),
    ]));
    let ctl = |socket: &str, words: &[&str]| {
        let socket = at(socket);
        let common = ["rtrs", "ctl", "--socket", &socket];
        ibfabric(&[&common[..], words].concat()).output().expect("the program runs")
    };
    let printed = |output: Output| {
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let paths = "ibtrs-client/five/paths";
    let listed = printed(ctl("client", &["list", paths]));
    let first = listed.trim_end().trim_end_matches('/').to_owned();
    assert!(first.starts_with("gid:fe80::") && first.contains("@gid:fe80::"), "{first}");
    let of = |path: &str, file: &str| {
        printed(ctl("client", &["get", &format!("{paths}/{path}/{file}")]))
    };
    assert_eq!(of(&first, "hca_name"), "H-0002c9000010000a\n");
    assert_eq!(of(&first, "hca_port"), "1\n");
    let (_, server) = first.split_once('@').expect("the path contains an @");
    assert_eq!(of(&first, "dst_addr"), format!("{server}\n"));
    // Adds a path from the client's second node, host-6, to the server port of the first path. GIDs specify both ends.
    let add = "ibtrs-client/five/add_path";
    let busy = Busy::start(&dir.path().join("nbd"));
    let ends = format!("gid:fe80::2:c900:10:d,{server}");
    printed(ctl("client", &["set", add, &ends]));
    let both = printed(ctl("client", &["list", paths]));
    let second = both.lines().map(|line| line.trim_end_matches('/')).find(|path| *path != first);
    let second = second.unwrap_or_else(|| panic!("found no second path in {both}"));
    assert_eq!(of(second, "hca_name"), "H-0002c9000010000c\n");
    assert_eq!(of(second, "state"), "connected\n");
    printed(ctl("client", &["set", &format!("{paths}/{first}/remove_path"), "1"]));
    busy.goes_on();
    busy.end();
    let far = printed(ctl("server", &["list", "rtrs-server/five/paths"]));
    assert_eq!(far, format!("{second}/\n"));
    let nowhere = ctl("client", &["set", add, "gid:fe80::dead"]);
    assert!(text(&nowhere.stderr).contains("(EHOSTUNREACH)"), "{}", text(&nowhere.stderr));
}
