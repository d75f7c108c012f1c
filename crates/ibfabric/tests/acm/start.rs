//! Startup of an ACM service: its ports, sockets passed by systemd, the lock file, and messages.

use std::fs;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ib_acm::Address;
use ib_acm::client::{Client, ClientOptions, ResolveOptions, ServiceAddress};
use ib_wire::acm::ClientStatus;

use super::{HOSTS, Lab, Running, answer, destination, ibfabric, text};

/// Writes the options file of a service. Returns the directory of the file.
pub(super) fn options(lab: &Lab, name: &str, options: &str) -> PathBuf {
    let directory = lab.directory.path().join(name);
    fs::create_dir_all(&directory).expect("the directory can be created");
    fs::write(directory.join("ibacm_opts.cfg"), options).expect("the file can be written");
    directory
}

pub(super) fn path(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

#[test]
fn second_service_with_same_lock_is_rejected() {
    let lab = Lab::new("lock", &[]);
    let lock = lab.directory.path().join("acm.pid");
    let config = options(&lab, "locked", &format!("lock_file {}\n", lock.display()));
    let (one, other) = (lab.path(5), lab.path(6));
    let place = ["acm", "--attach", &lab.simulator, "--node", "host-2", "--config", path(&config)];
    let first = Running::start(&[&place[..], &["--socket", path(&one)]].concat());
    let owner = fs::read_to_string(&lock).expect("the file can be read");
    assert_eq!(owner.trim(), first.0.id().to_string());
    let second = || ibfabric(&[&place[..], &["--socket", path(&other)]].concat()).output();
    let refused = second().expect("the program can be started");
    assert_eq!(refused.status.code(), Some(2));
    let printed = text(&refused.stderr);
    let whose = format!("another ACM service is running, process {}", first.0.id());
    assert!(printed.contains(&whose) && printed.contains(path(&lock)), "{printed}");
    assert_eq!(fs::read_to_string(&lock).expect("the file can be read"), owner);
    // If a service was killed, the next service takes over the lock file, regardless of the file's contents.
    first.signal("KILL");
    drop(first);
    let next = Running::start(&[&place[..], &["--socket", path(&other)]].concat());
    assert_eq!(
        fs::read_to_string(&lock).expect("the file can be read").trim(),
        next.0.id().to_string()
    );
}

#[test]
fn systemd_sockets_are_served_and_kept() {
    let lab = Lab::new("inherited", &[]);
    let place = lab.directory.path().join("handed.sock");
    let listener = UnixListener::bind(&place).expect("the socket path is free");
    let lock = lab.directory.path().join("handed.pid");
    let config = options(&lab, "handed", &format!("lock_file {}\n", lock.display()));
    // Like systemd, the shell passes the socket as file descriptor 3. LISTEN_PID is the process ID of the shell, which
    // `exec` keeps for the service.
    let words = "exec \"$0\" acm --attach \"$1\" --node host-2 --config \"$2\" --systemd";
    let start = |stdin: Stdio, before: &str| {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{before} {words}"));
        command.arg(env!("CARGO_BIN_EXE_ibfabric")).args([&lab.simulator, path(&config)]);
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    // A client connects before the service has started.
    let mut early = UnixStream::connect(&place).expect("the socket exists");
    early.write_all(&destination("host-2")).expect("the peer accepts data");
    let handed = OwnedFd::from(listener.try_clone().expect("the descriptor can be duplicated"));
    let before = "exec 3<&0 </dev/null; export LISTEN_PID=$$ LISTEN_FDS=1;";
    let service = Running::ready(start(handed.into(), before));
    let (header, _) = answer(&mut early).expect("the response is received");
    assert_eq!(header.status, ClientStatus::SUCCESS);
    let status = ibfabric(&["acm", "ctl", "status", "--socket", path(&place)]).output();
    assert!(text(&status.expect("the program can be started").stdout).contains("address host-2"));
    service.signal("TERM");
    let mut service = service;
    assert!(service.0.wait().expect("the process can be awaited").success());
    assert!(place.exists(), "the service has removed the socket that systemd passed");
    drop(listener);
    // If LISTEN_PID is another process ID or is missing, the sockets are ignored.
    for before in ["", "export LISTEN_PID=1 LISTEN_FDS=1;"] {
        let output = start(Stdio::null(), before).output().expect("the program can be started");
        assert_eq!(output.status.code(), Some(2));
        let printed = text(&output.stderr);
        assert!(printed.contains("LISTEN_FDS names none"), "{printed}");
    }
}

#[test]
fn service_survives_exit_of_one_of_two_simulators() {
    let lab = Lab::new("places", &[]);
    let net = lab.directory.path().join("other.net");
    let guids = ["switchguid=0x7000\nSwitch 4 \"rack\"\n[1] \"far-0\"[1]\n[2] \"far-1\"[1]\n"];
    let hosts = (0..2).map(|host| {
        format!("\ncaguid=0x71{host}0\nCa 1 \"far-{host}\"\n[1] \"rack\"[{}]\n", host + 1)
    });
    let whole: String = guids.into_iter().map(str::to_owned).chain(hosts).collect();
    fs::write(&net, whole).expect("the file can be written");
    let simulator = format!("{}-far", lab.simulator);
    let sim = Running::start(&["sim", path(&net), "--sm", "--name", &simulator]);
    let far = lab.path(8);
    let far_place = ["acm", "--attach", &simulator, "--node", "far-1", "--socket", path(&far)];
    let _far =
        Running::start(&[&far_place[..], &["--config", path(lab.directory.path())]].concat())
            .in_service(&far, 1);
    let socket = lab.path(9);
    let both = ["--attach", &lab.simulator, "--node", "host-2", "--attach", &simulator];
    let rest = ["--node", "far-0", "--socket", path(&socket), "--log", "stderr"];
    let words = [&["acm"][..], &both, &rest, &["--config", path(lab.directory.path())]].concat();
    let service = Running::start(&words).in_service(&socket, 2);
    let address = ServiceAddress::Unix(socket.clone());
    let mut client =
        Client::connect(&address, ClientOptions::default()).expect("the server listens");
    let mut resolve = |from: Option<&str>, to: &str| {
        let name = |name| Address::name(name).expect("the name is valid");
        let from = from.map(name);
        client.resolve(from.as_ref(), &name(to), ResolveOptions::default())
    };
    // If a request names a source, the path starts at the port of the source. If not, the path starts at the port whose
    // fabric has the destination.
    let near = resolve(None, HOSTS[1]).expect("the first fabric has the host").path;
    let other = resolve(None, "far-1").expect("the second fabric has the host").path;
    assert_ne!(near.sgid, other.sgid);
    assert_eq!(
        resolve(Some("host-2"), HOSTS[1]).expect("the host can be resolved").path.sgid,
        near.sgid
    );
    assert_eq!(
        resolve(Some("far-0"), "far-1").expect("the host can be resolved").path.sgid,
        other.sgid
    );
    assert!(resolve(Some("host-2"), "far-1").is_err(), "the fabrics are not connected");
    // After one simulator has exited, the service still serves the other fabric.
    drop(sim);
    let end = Instant::now() + Duration::from_secs(20);
    let count = || {
        let output = ibfabric(&["acm", "ctl", "status", "--socket", path(&socket)]).output();
        text(&output.expect("the program can be started").stdout).matches(" port 1 pkey").count()
    };
    while count() > 1 {
        assert!(Instant::now() < end, "the port of the exited simulator is still listed");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(resolve(None, HOSTS[1]).expect("the host can be resolved").path.sgid, near.sgid);
    assert!(resolve(Some("far-0"), "far-1").is_err());
    drop(service);
}

#[test]
fn log_has_events_and_ineffective_options_once() {
    let lab = Lab::new("stderr", &[]);
    let keys = "log_file stderr\numad_debug_level 3\nprovider_lib_path /opt/lib\n\
                provider ibacmp default\n";
    let config = options(&lab, "keys", keys);
    let socket = lab.path(4);
    let mut command = ibfabric(&["acm", "--attach", &lab.simulator, "--node", "host-2"]);
    command.args(["--socket", path(&socket), "--config", path(&config)]);
    command
        .stderr(fs::File::create(config.join("printed")).expect("the file can be created"))
        .stdout(Stdio::piped());
    let service = Running::ready(command);
    service.signal("HUP");
    let printed = || fs::read_to_string(config.join("printed")).expect("the file can be read");
    let end = Instant::now() + Duration::from_secs(20);
    while !printed().contains("the files were read again")
        || !printed().contains("in service, in 1")
    {
        assert!(Instant::now() < end, "{}", printed());
        std::thread::sleep(Duration::from_millis(50));
    }
    let note = "without effect: umad_debug_level, provider_lib_path, provider: ";
    assert_eq!(printed().matches(note).count(), 1, "{}", printed());
}

#[test]
fn missing_local_port_is_named() {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let socket = directory.path().join("acm.sock");
    let config = path(directory.path());
    for place in ["--umad=none_9:1", "--umad=none_9"] {
        let words = ["acm", place, "--socket", path(&socket), "--config", config];
        let output = ibfabric(&words).output().expect("the program can be started");
        assert_eq!(output.status.code(), Some(2));
        // On a machine without InfiniBand, the error names the missing directory.
        let printed = text(&output.stderr);
        let why = ["no device none_9", "/sys/class/infiniband_mad"];
        assert!(why.iter().any(|why| printed.contains(why)), "{printed}");
    }
    let words = ["acm", "--umad=mlx5_0:x", "--socket", path(&socket), "--config", config];
    let output = ibfabric(&words).output().expect("the program can be started");
    assert!(text(&output.stderr).contains("--umad mlx5_0:x: expected DEV or DEV:PORT"));
    let words = ["acm", "--umad", "--socket", path(&socket), "--config", "/nowhere"];
    let output = ibfabric(&words).output().expect("the program can be started");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--config: /nowhere is not a directory"));
}

/// Relative and absolute paths of a service's socket select the same control socket.
#[test]
fn relative_socket_paths_belong_to_working_directory() {
    let lab = Lab::new("relative", &[]);
    let folder = |name: &str| {
        let folder = lab.directory.path().join(name);
        fs::create_dir(&folder).expect("the directory can be created");
        folder
    };
    let (one, other) = (folder("one"), folder("other"));
    let lock = format!("lock_file {}\n", lab.directory.path().join("relative.pid").display());
    let config = options(&lab, "config", &lock);
    let mut service = ibfabric(&["acm", "--attach", &lab.simulator, "--node", "host-2"]);
    service.args(["--config", path(&config), "--socket", "acm.sock"]).current_dir(&one);
    let _running = Running::ready(service);
    let status = |folder: &Path, socket: &str| {
        let mut command = ibfabric(&["acm", "ctl", "--socket", socket, "status"]);
        command.current_dir(folder).output().expect("the program can be started")
    };
    let socket = one.join("acm.sock");
    for (folder, socket) in
        [(&one, "acm.sock"), (&other, "../one/acm.sock"), (&other, path(&socket))]
    {
        let output = status(folder, socket);
        assert_eq!(output.status.code(), Some(0), "{socket}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains("host-2"), "{socket}");
    }
    let output = status(&other, "acm.sock");
    assert_eq!(output.status.code(), Some(2), "a service is found in the other directory");
}
