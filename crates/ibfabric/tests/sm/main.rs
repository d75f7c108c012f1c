//! Runs the SM as a daemon.

mod alarms;
mod lab;
mod start;

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::Duration;

use lab::{Daemon, Lab, PROGRAM, signal, wait_for};

/// Returns the contents of a file in the lab's directory, or an empty text if the file does not exist.
fn file(lab: &Lab, name: &str) -> String {
    fs::read_to_string(lab.path(name)).unwrap_or_default()
}

#[test]
fn daemon_manages_subnet_until_terminated() {
    let lab = Lab::start(&[]);
    let mut daemon = Daemon::start(&lab, &["--log", "log", "--dump-dir", "d", "--cache-dir", "c"]);
    daemon.is_up(1);
    let status = daemon.query(&["status"]);
    assert_eq!(status["state"], "master");
    assert_eq!((&status["up"]["nodes"], &status["up"]["unreachable"]), (&8.into(), &0.into()));
    // SIGHUP and the command `sm ctl sweep` each start a heavy sweep.
    signal(&daemon.child, "HUP");
    daemon.is_up(2);
    assert_eq!(daemon.query(&["sweep"]), serde_json::json!({ "text": "a sweep starts" }));
    daemon.is_up(3);
    // The log is rotated: the file is renamed, and SIGUSR1 makes the SM open a new file.
    fs::rename(lab.path("log"), lab.path("log.1")).expect("the file can be renamed");
    signal(&daemon.child, "USR1");
    wait_for("a new log", || lab.path("log").exists());
    daemon.end();
    let (old, new) = (file(&lab, "log.1"), file(&lab, "log"));
    assert_eq!(old.matches(" 0x02 -> SUBNET UP\n").count(), 3, "{old}");
    assert!(old.contains("Entering MASTER state") && !old.contains("Exiting SM"), "{old}");
    assert!(new.ends_with(" 0x80 -> Exiting SM\n"), "{new}");
    for name in ["lfts.dump", "lid-matrix.dump", "subnet.lst"] {
        assert!(!file(&lab, &format!("d/opensm-{name}")).is_empty(), "{name}");
    }
    assert_eq!(file(&lab, "c/guid2lid").matches("0x").count(), 3 * 8);
}

#[test]
fn routes_use_format_of_opensm_dumps() {
    let lab = Lab::start(&[]);
    let mut daemon = Daemon::start(&lab, &["--dump-dir", "d", "--engine", "updn,minhop"]);
    daemon.is_up(1);
    let routes = daemon.query(&["routes"]);
    assert_eq!(routes["requested"], "updn,minhop");
    let switches = routes["switches"].as_array().expect("the value is a list").clone();
    assert_eq!(switches.len(), 4);
    let mut dump = String::new();
    for switch in &switches {
        let guid = switch["guid"].as_str().expect("the value is a string");
        let output = daemon.ctl(&["routes", guid]);
        let text = String::from_utf8(output.stdout).expect("the output is UTF-8");
        dump += &text;
        dump += &format!("{} lids dumped\n", text.lines().count() - 1);
    }
    daemon.end();
    assert_eq!(file(&lab, "d/opensm-lfts.dump"), dump);
}

#[test]
fn lids_survive_killed_daemon() {
    let lab = Lab::start(&[]);
    let mut daemon = Daemon::start(&lab, &["--cache-dir", "c"]);
    daemon.is_up(1);
    wait_for("the cache", || !file(&lab, "c/neighbors").is_empty());
    daemon.child.kill().expect("the process exists");
    daemon.child.wait().expect("the process can be awaited");
    let before = file(&lab, "c/guid2lid");
    // In a new simulator, the ports have no LIDs. So the SM takes the LIDs from its cache, which this test has changed.
    let moved = before.replacen("0x0001 0x0001", "0x0100 0x0100", 1);
    assert_ne!(before, moved);
    drop(lab.simulator);
    fs::write(lab.place.path().join("c/guid2lid"), &moved).expect("the file can be written");
    let lab = Lab::again(lab.place, &[]);
    let mut daemon = Daemon::start(&lab, &["--cache-dir", "c"]);
    daemon.is_up(1);
    daemon.end();
    assert_eq!(file(&lab, "c/guid2lid"), moved);
    // With --reassign-lids, the SM ignores the cached LIDs, and assigns the LIDs that the killed SM had assigned.
    let mut daemon = Daemon::start(&lab, &["--cache-dir", "c", "--reassign-lids"]);
    daemon.is_up(1);
    daemon.end();
    assert_eq!(file(&lab, "c/guid2lid"), before);
}

#[test]
fn metrics_have_sweeps_and_port_counters() {
    let lab = Lab::start(&[]);
    let port = lab::free_port();
    let address = format!("127.0.0.1:{port}");
    let options = ["--metrics", address.as_str(), "--perf-interval", "1"];
    let mut daemon = Daemon::start(&lab, &options);
    daemon.is_up(1);
    lab.run_command("performanceset \"S-0002c90000200000\"[1] PortCounters.SymbolErrorCounter=7");
    let line = "infiniband_port_symbol_error_total{guid=\"0x0002c90000200000\",port=\"1\",\
                node=\"sw-x0y0\"} 7\n";
    wait_for("the counters", || lab::page(port).contains(line));
    let page = lab::page(port);
    for line in ["ibfabric_sm_state{state=\"master\"} 1\n", "ibfabric_sm_sweeps_total 1\n"] {
        assert!(page.contains(line), "found no {line} in {page}");
    }
    assert!(page.contains("\nibfabric_sm_ports{state=\"active\"} 16\n"), "{page}");
    daemon.end();
}

#[test]
fn pulled_cable_is_routed_around() {
    let lab = Lab::start(&["--sm"]);
    let status = || lab.query_manager(&["status"]);
    assert_eq!(status()["up"]["unreachable"], 0, "the subnet is up when READY is printed");
    let before = status()["sweeps"].as_u64();
    lab.run_command("unlink \"S-0002c90000200000\"[1]");
    wait_for("a sweep", || status()["sweeps"].as_u64() > before);
    assert_eq!((&status()["up"]["unreachable"], &status()["up"]["nodes"]), (&0.into(), &8.into()));
}

#[test]
fn unroutable_fabric_is_not_ready() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    lab::mesh(place.path());
    let socket = format!("ibfabric-sm-unroutable-{}", std::process::id());
    let output = Command::new(PROGRAM)
        .args(["sim", "net", "--sm=updn,no_fallback", "--name", &socket])
        .current_dir(place.path())
        .output()
        .expect("the program can be started");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no root switch"), "{output:?}");
}

#[test]
fn systemd_is_notified() {
    let lab = Lab::start(&[]);
    let socket = UnixDatagram::bind(lab.path("notify")).expect("the path is free");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("the time limit can be set");
    let mut command = lab.command(&[]);
    command.env("NOTIFY_SOCKET", lab.path("notify"));
    let mut daemon = Daemon::of(&lab, command);
    let hear = || {
        let mut bytes = [0; 128];
        let length = socket.recv(&mut bytes).expect("a notification is received");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    assert_eq!(hear(), "READY=1\nSTATUS=The subnet is up");
    daemon.end();
    assert_eq!(hear(), "STOPPING=1");
}

#[test]
fn program_named_opensm_acts_as_opensm() {
    let lab = Lab::start(&[]);
    let opensm = lab.path("opensm");
    symlink(PROGRAM, &opensm).expect("the symbolic link can be created");
    let run = |words: &[&str]| {
        let mut command = Command::new(&opensm);
        command.args(words).current_dir(lab.place.path());
        command.env("OSM_TMP_DIR", lab.path("t")).env("OSM_CACHE_DIR", lab.path("c"));
        fs::create_dir_all(lab.path("t")).expect("the directory can be created");
        let output = command.output().expect("the program can be started");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    fs::write(lab.path("conf"), "lmc 1\nlog_file stdout\nfdr10 2\n")
        .expect("the file can be written");
    let ibsim = format!("--attach={}", lab.socket);
    let (status, output, errors) = run(&["-F", "conf", "-once", "-Rminhop", "-D0x43", &ibsim]);
    assert_eq!(status, Some(0), "{errors}");
    assert!(output.contains(" 0x02 -> SUBNET UP\n"), "{output}");
    assert!(
        errors.contains("conf:3: fdr10: ignored: ibfabric does not support this key"),
        "{errors}"
    );
    assert!(file(&lab, "c/guid2lid").contains(" 0x0002 0x0003\n"));
    for name in ["opensm-subnet.lst", "opensm.fdbs", "opensm.mcfdbs"] {
        assert!(lab.path("t").join(name).exists(), "{name}");
    }
    // Options override the configuration file. Without the log flag 0x40, the SM dumps only `opensm-subnet.lst`.
    fs::remove_dir_all(lab.path("t")).expect("the directory can be removed");
    let (status, ..) = run(&["-F", "conf", "-o", "-l", "0", "-r", "-f", "log", &ibsim]);
    assert_eq!(status, Some(0));
    assert!(!file(&lab, "c/guid2lid").contains("0x0003 0x0004"));
    let names: Vec<_> = fs::read_dir(lab.path("t")).expect("the directory can be read").collect();
    assert_eq!(names.len(), 1);
    // An error about an unsupported or invalid option names the option or its value.
    for (words, expected) in [
        (&["-Y", "policy"][..], "--qos_policy_file: is not supported: "),
        (&["--perfmgr"], "--perfmgr: is not supported: "),
        (&["-l", "9"], "--lmc: found `9`, expected a number of 0 to 7"),
        (
            &["-foo=", "--lo"],
            "--lo: ambiguous option: expected --log_file or --log_limit or --log_prefix",
        ),
        (&["--metrics", "99999"], "found `99999`, expected ADDR:PORT with a port of 1 to 65535"),
        (&["--sm_sl", "3"], "--sm_sl: found `3`, expected 0"),
        (&["-F", "none"], "--config: cannot read none: "),
        (&["-d", "10"], "--debug: 10: found the test mode, expected 1 or 2"),
        (&["-R", "nue"], "`nue` is an engine of OpenSM that is not supported here"),
    ] {
        let (status, output, errors) = run(words);
        assert_eq!((status, output.as_str()), (Some(2), ""), "{words:?}");
        assert!(errors.contains(expected), "{words:?}: {errors}");
    }
    fs::write(lab.path("conf"), "\nlmc 1\nsweep_interval never\n")
        .expect("the file can be written");
    let (status, _, errors) = run(&["-F", "conf", "-o"]);
    assert_eq!(status, Some(2));
    let expected = "conf:3: sweep_interval: found `never`, expected a number of 0 to 86400\n";
    assert_eq!(errors, format!("ibfabric: {expected}"));
    // The SM can read a configuration file that it has written.
    let (status, output, _) = run(&["-c", "new", "-p", "3"]);
    assert_eq!((status, output.as_str()), (Some(0), "wrote the configuration file new\n"));
    // `-g 0` lists the available ports.
    let (status, _, errors) = run(&["-g", "0", &ibsim]);
    assert_eq!(status, Some(2));
    assert!(errors.contains("0x0002c90000100001 node "), "{errors}");
    let (_, output, _) = run(&["--help"]);
    assert!(output.contains("LMC: CA ports get 2^N LIDs: a number of 0 to 7 [default: 0]"));
    assert!(file(&lab, "new").contains("\nsm_priority 3\n"));
    assert_eq!(run(&["-F", "new", "-o", "-f", "log", "--dump_files_dir", "t", &ibsim]).0, Some(0));
}

#[test]
fn partition_file_is_reloaded() {
    let lab = Lab::start(&[]);
    fs::write(lab.path("p"), "Default=0x7fff : ALL=full ;\n").expect("the file can be written");
    let mut daemon = Daemon::start(&lab, &["--pconfig", "p", "--log", "log"]);
    daemon.is_up(1);
    let smps = |daemon: &Daemon| {
        daemon.query(&["status"])["up"]["smps"].as_u64().expect("the value is a number")
    };
    daemon.query(&["sweep"]);
    daemon.is_up(2);
    let unchanged = smps(&daemon);
    let text = "Default=0x7fff : ALL=full ;\nmore=0x10 : ALL=full ;\n";
    fs::write(lab.path("p"), text).expect("the file can be written");
    daemon.query(&["sweep"]);
    daemon.is_up(3);
    assert!(smps(&daemon) > unchanged, "the SM writes the P_Key tables");
    fs::write(lab.path("p"), "Default=nonsense\n").expect("the file can be written");
    daemon.query(&["sweep"]);
    daemon.is_up(4);
    let rejected = daemon.query(&["status"])["rejected"].clone();
    assert!(rejected.as_str().is_some_and(|why| why.starts_with("--pconfig: p:1:")), "{rejected}");
    daemon.end();
    let log = file(&lab, "log");
    assert!(log.contains("; the partitions are unchanged\n") && log.contains("p:1:"), "{log}");
}
