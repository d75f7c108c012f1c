//! An ACM service reloads its files, rejects files that other users can write, and creates files that only its own
//! user can write.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ib_acm::Address;
use ib_acm::client::{Client, ClientOptions, ResolveOptions, ServiceAddress};

use super::start::{options, path};
use super::{HOSTS, Lab, Running, ibfabric, text};

/// Runs `ibfabric acm ctl` on the service at the given socket. Returns its standard output.
fn ctl(socket: &str, words: &[&str]) -> String {
    let output = ibfabric(&["acm", "ctl"]).args(words).args(["--socket", socket]).output();
    text(&output.expect("the program can be started").stdout)
}

#[test]
fn reload_applies_options_or_names_those_that_need_restart() {
    let lab = Lab::new("again", &[]);
    let known = |name: &str| lab.ctl(&["cache", name])[0]["gid"].as_str().map(str::to_owned);
    lab.resolves(&mut lab.client());
    let gid = known(HOSTS[1]).expect("the cache has the destination");
    let directory = lab.directory.path();
    let hosts = directory.join("hosts");
    let log = directory.join("acm.log");
    let (lock, socket) = (directory.join("acm.pid"), lab.path(4));
    let write = |more: &str| {
        let all = format!("log_file {}\nlock_file {}\n{more}", path(&log), path(&lock));
        fs::write(directory.join("again/ibacm_opts.cfg"), all).expect("the file can be written");
    };
    options(&lab, "again", "");
    write("");
    let mut command = Command::new("sh");
    // With this umask, new files are world-writable by default.
    command.args(["-c", "umask 0; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_ibfabric"), "acm"]);
    let config = directory.join("again");
    command.args(["--attach", &lab.simulator, "--node", "host-2", "--socket", path(&socket)]);
    command.args(["--config", path(&config)]).stdout(Stdio::piped());
    let _service = Running::ready(command);
    for file in [&log, &lock] {
        let mode = fs::metadata(file).expect("the file exists").permissions().mode();
        assert_eq!(mode & 0o022, 0, "{}: found mode {mode:o}", file.display());
    }
    fs::write(&hosts, format!("stored-1 {gid}\n")).expect("the file can be written");
    let named = format!("addr_preload acm_hosts\naddr_data_file {}\n", path(&hosts));
    write(&format!("{named}recv_depth 77\nsa_depth 3\nserver_port 9999\nmax_destinations 50\n"));
    ctl(path(&socket), &["reload"]);
    assert!(ctl(path(&socket), &["cache", "stored-1"]).contains("from a file"));
    let printed = fs::read_to_string(&log).expect("the file can be read");
    let line = "recv_depth: found 77, the service uses 1024 until it is restarted";
    assert_eq!(printed.matches(line).count(), 1, "{printed}");
    // The log names no options that took effect, are unchanged, or are overridden by the command line.
    for key in ["server_port", "sa_depth", "max_destinations", "lock_file", "log_file"] {
        assert!(!printed.contains(&format!("{key}: found")), "{printed}");
    }
    // A changed `log_file` or `lock_file` takes effect only after a restart. A host that was removed from the hosts
    // file is removed from the cache at the reload.
    fs::write(&hosts, format!("stored-2 {gid}\n")).expect("the file can be written");
    let elsewhere = format!("{}-2", path(&log));
    let all = format!("log_file {elsewhere}\nlock_file {}-2\n{named}", path(&lock));
    fs::write(config.join("ibacm_opts.cfg"), all).expect("the file can be written");
    ctl(path(&socket), &["reload"]);
    assert!(ctl(path(&socket), &["cache", "stored-1"]).contains("no cached addresses"));
    assert!(ctl(path(&socket), &["cache", "stored-2"]).contains("from a file"));
    let printed = fs::read_to_string(&log).expect("the file can be read");
    for key in ["log_file", "lock_file"] {
        assert_eq!(printed.matches(&format!("{key}: found")).count(), 1, "{printed}");
    }
    assert!(!fs::exists(elsewhere).expect("the directory can be searched"));
}

#[test]
fn world_writable_address_and_route_files_are_rejected() {
    let lab = Lab::new("trust", &[]);
    let directory = lab.directory.path();
    for (name, keys) in [
        ("hosts", "addr_preload acm_hosts\naddr_data_file"),
        ("routes", "route_preload opensm_full_v1\nroute_data_file"),
    ] {
        let file = directory.join(format!("{name}.data"));
        fs::write(&file, "").expect("the file can be written");
        let mode = |mode| {
            fs::set_permissions(&file, Permissions::from_mode(mode))
                .expect("the mode can be changed");
        };
        let config = options(&lab, name, &format!("{keys} {}\n", path(&file)));
        let socket = directory.join(format!("{name}.sock"));
        let words = ["acm", "--attach", &lab.simulator, "--node", "host-2", "--socket"];
        let words = [&words[..], &[path(&socket), "--config", path(&config)]].concat();
        for bits in [0o666, 0o602, 0o777] {
            mode(bits);
            // If the service accepted the file, it would keep running, and `timeout` would end it.
            let mut command = Command::new("timeout");
            command.args(["30", env!("CARGO_BIN_EXE_ibfabric")]).args(&words);
            let output = command.output().expect("the program can be started");
            assert_eq!(output.status.code(), Some(2), "{name} {bits:o}");
            let printed = text(&output.stderr);
            let why = format!("{}: found mode {bits:03o}, expected a file that only", path(&file));
            assert!(printed.contains(&why), "{printed}");
        }
        // A group-writable file is accepted.
        mode(0o664);
        let words = [&words[..], &["--log", "stderr"]].concat();
        let mut command = ibfabric(&words);
        let printed = directory.join(format!("{name}.printed"));
        command.stderr(fs::File::create(&printed).expect("the file can be created"));
        let _service = Running::ready(command);
        mode(0o666);
        ctl(path(&socket), &["reload"]);
        let printed = fs::read_to_string(printed).expect("the file can be read");
        assert!(printed.contains("the options are unchanged"), "{printed}");
        assert!(
            ctl(path(&socket), &["status"]).contains("address host-2"),
            "the service has lost its address after the reload"
        );
    }
}

#[test]
fn changed_route_file_is_reloaded() {
    let lab = Lab::new("routes", &[]);
    let directory = lab.directory.path();
    let (file, log, socket) = (directory.join("routes"), directory.join("log"), lab.path(4));
    fs::write(&file, "").expect("the file can be written");
    let keys = format!("route_preload opensm_full_v1\nroute_data_file {}\n", path(&file));
    let config = options(&lab, "routes-read", &format!("{keys}log_file {}\n", path(&log)));
    let words = ["acm", "--attach", &lab.simulator, "--node", "host-2", "--socket"];
    let more = [path(&socket), "--config", path(&config)];
    let _service = Running::start(&[&words[..], &more].concat());
    let service = ServiceAddress::Unix(socket.clone());
    let mut client =
        Client::connect(&service, ClientOptions::default()).expect("the server listens");
    let to = Address::name(HOSTS[1]).expect("the name is valid");
    let mut found = || {
        client.resolve(None, &to, ResolveOptions::default()).expect("the host can be resolved").path
    };
    let known = found();
    assert_eq!(known.sl, 0);
    let write = |sl: u8| {
        let text = format!(
            "Channel Adapter {}, base LID {}, \"host-2\", port 1\n{:#06x} : {sl} : 4 : 3\n\
             Channel Adapter {}, base LID {}, \"host-1\", port 1\n{:#06x} : 9 : 4 : 3\n",
            known.sgid.guid(),
            known.slid,
            known.dlid,
            known.dgid.guid(),
            known.dlid,
            known.slid,
        );
        fs::write(&file, text).expect("the file can be written");
    };
    let mut becomes = |sl: u8| {
        let begun = Instant::now();
        while found().sl != sl {
            let printed = fs::read_to_string(&log).expect("the file can be read");
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "the path does not get SL {sl}: {printed}"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    write(5);
    becomes(5);
    // A world-writable file is rejected until its mode is corrected. The log has at most one rejection for each of the
    // two changes of the file: of its mode, and of its content.
    fs::set_permissions(&file, Permissions::from_mode(0o666)).expect("the mode can be changed");
    write(6);
    let why = format!("{}: found mode 666", path(&file));
    let printed = || fs::read_to_string(&log).expect("the file can be read").matches(&why).count();
    let begun = Instant::now();
    while printed() == 0 {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "the log does not contain the rejection"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    becomes(5);
    fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("the mode can be changed");
    becomes(6);
    assert!(printed() <= 2, "{}", printed());
}

/// Runs a shell script in a mount namespace with an empty /run.
///
/// Returns true if the script has succeeded, and the output. Returns `None` if the system allows no such namespace.
fn with_own_run(script: &str, lab: &Lab, config: &str) -> Option<(bool, String)> {
    let prepared = format!("mount -t tmpfs none /run && echo prepared && {{ {script}; }}");
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", &prepared]);
    command.args([env!("CARGO_BIN_EXE_ibfabric"), &lab.simulator, config]);
    let output = command.output().ok()?;
    let printed = format!("{}{}", text(&output.stdout), text(&output.stderr));
    if !text(&output.stdout).starts_with("prepared\n") {
        eprintln!("skipped: this system allows no mount namespace with another /run: {printed}");
        return None;
    }
    Some((output.status.success(), printed))
}

#[test]
fn failed_service_keeps_port_file_of_running_one() {
    let lab = Lab::new("publish", &[]);
    let one = options(&lab, "one", "server_mode loop\nserver_port 6127\nlog_file stderr\n");
    let two = "server_mode loop\nserver_port 6127\nlog_file stderr\nlock_file /run/two.pid\n";
    options(&lab, "two", two);
    let script = "umask 0; trap 'kill $first' EXIT
        \"$0\" acm --attach \"$1\" --node host-2 --config \"$2\" >/run/printed 2>&1 & first=$!
        for i in $(seq 100); do grep -q READY /run/printed && break; sleep 0.1; done
        ls -l /run; test \"$(cat /run/ibacm.port)\" = 6127 || exit 3
        test \"$(stat -c %a /run/ibacm-tcp.port)\" = 644 || exit 4
        \"$0\" acm --attach \"$1\" --node host-2 --config \"$2/../two\" && exit 5
        test \"$(cat /run/ibacm.port)\" = 6127 || exit 6
        kill $first; wait $first; trap - EXIT
        test ! -e /run/ibacm.port || exit 7";
    if let Some((is_good, printed)) = with_own_run(script, &lab, path(&one)) {
        assert!(is_good, "{printed}");
        assert!(printed.contains("cannot listen on 127.0.0.1:6127"), "{printed}");
    }
}

#[test]
fn metrics_count_requests() {
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let mut lab = Lab::new("metrics", &[]);
    drop(lab.services.remove(0));
    let service = lab.serve(0, &["--metrics", &address]);
    lab.services.insert(0, service);
    let mut client = lab.client();
    for _ in 0..3 {
        lab.resolves(&mut client);
    }
    let end = Instant::now() + Duration::from_secs(10);
    let page = loop {
        let page = page(port);
        if page.contains("ibfabric_acm_programs 1\n") || Instant::now() > end {
            break page;
        }
    };
    let (head, body) = page.split_once("\r\n\r\n").expect("the HTTP header ends");
    assert!(head.starts_with("HTTP/1.") && head.contains(" 200 "), "{head}");
    assert!(head.to_lowercase().contains("content-type: text/plain; version=0.0.4"), "{head}");
    let of_endpoint = "{device=\"host-0\",port=\"1\",pkey=\"0xffff\"}";
    let value = |name: &str, labels: &str| {
        let line = format!("ibfabric_acm_{name}{labels} ");
        let values: Vec<&str> = body.lines().filter_map(|it| it.strip_prefix(&line)).collect();
        let [value] = values[..] else { panic!("{line}: found {values:?}: {body}") };
        value.parse::<u64>().expect("the text is a number")
    };
    // The service has resolved all three requests of the client.
    for (name, expected) in [("resolve_total", 3), ("error_total", 0), ("no_data_total", 0)] {
        assert_eq!(value(name, of_endpoint), expected, "{name}");
    }
    let (sent, cached) =
        (value("addr_query_total", of_endpoint), value("addr_cache_total", of_endpoint));
    // Each multicast is an announcement or an address query. Only the first request can need address queries: one query
    // and its two retries.
    let multicasts = value("multicasts_total", "") - value("announcements_total", "");
    assert!(sent == multicasts && sent <= 3 && (2..=3).contains(&cached), "{body}");
    assert_eq!(value("route_query_total", of_endpoint), 1);
    assert_eq!(value("route_cache_total", of_endpoint), 2);
    for (name, expected) in [("programs", 1), ("waiting", 0), ("sa_queries_total", 1)] {
        assert_eq!(value(name, ""), expected, "{name}");
    }
    for name in ["malformed", "unasked", "flooded", "conflicts", "refused"] {
        assert_eq!(value(&format!("{name}_total"), ""), 0, "{name}");
    }
    for name in ["malformed_programs", "crowded_programs"] {
        assert_eq!(value(&format!("{name}_total"), ""), 0, "{name}");
    }
    assert!(value("joins_total", "") >= 1);
    assert_eq!(value("up", of_endpoint), 1);
    assert!(value("known", of_endpoint) >= 1 && value("peers", of_endpoint) >= 1);
    // All metrics have a HELP and a TYPE line.
    for line in body.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().expect("`split` returns at least one part");
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        assert!(body.contains(&format!("# TYPE {name} {kind}\n")), "{name}");
        assert!(body.contains(&format!("# HELP {name} ")), "{name}");
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a TCP port is free");
    listener.local_addr().expect("the socket is bound").port()
}

/// Returns the HTTP response with the metrics.
fn page(port: u16) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("the peer accepts data");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the response is received");
    answer
}
