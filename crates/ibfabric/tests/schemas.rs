//! The output of each command with `--json` is valid against its schema in `docs/schemas`.

use std::collections::BTreeSet;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

mod program;

use program::{Running, ibfabric, text};

/// Makes a schema reject object properties that it does not describe. The published schemas permit such properties, so
/// that clients accept the output of later versions. `is_part` is true if `schema` is combined with a schema that has
/// `properties`.
fn make_strict(schema: &mut Value, is_part: bool) {
    match schema {
        Value::Object(members) => {
            let has_properties = members.contains_key("properties");
            for (key, value) in &mut *members {
                // Schemas in `anyOf`, `oneOf` or `allOf` describe only some properties of the object, so they must not
                // reject the others.
                let are_parts = matches!(&**key, "anyOf" | "oneOf" | "allOf") && has_properties;
                if !matches!(&**key, "enum" | "const" | "required") {
                    make_strict(value, are_parts);
                }
            }
            if has_properties && !is_part {
                members.insert("unevaluatedProperties".to_owned(), false.into());
            }
        }
        Value::Array(members) => members.iter_mut().for_each(|member| make_strict(member, is_part)),
        _ => {}
    }
}

fn schema(name: &str) -> Value {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
    let text = std::fs::read_to_string(directory.join(format!("{name}.json")))
        .unwrap_or_else(|error| panic!("docs/schemas/{name}.json: {error}"));
    let mut schema = serde_json::from_str(&text).expect("schemas are JSON");
    make_strict(&mut schema, false);
    schema
}

fn errors(schema: &Value, instance: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(schema).expect("the schema is valid");
    validator.iter_errors(instance).map(|error| format!("{error}")).collect()
}

/// A directory with a net file, and the names of the schemas against which output was validated.
struct Lab {
    directory: tempfile::TempDir,
    name: String,
    used: BTreeSet<String>,
}

impl Lab {
    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().expect("the path is UTF-8").to_owned()
    }

    fn net(&self) -> String {
        self.path("net")
    }

    fn output(&self, words: &[&str]) -> Output {
        let mut command = ibfabric(words);
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        command.output().expect("the program can be started")
    }

    /// Runs a command with `--json`, and validates each line of its output. Returns the lines.
    fn check(&mut self, schema_name: &str, words: &[&str], status: i32) -> Vec<Value> {
        let output = self.output(&[words, &["--json"]].concat());
        let printed = text(&output.stdout);
        let case = format!("{words:?}: {printed}{}", text(&output.stderr));
        assert_eq!(output.status.code(), Some(status), "{case}");
        self.validate(schema_name, &printed, &case)
    }

    fn validate(&mut self, schema_name: &str, printed: &str, case: &str) -> Vec<Value> {
        let schema = schema(schema_name);
        let lines: Vec<Value> = printed
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{case}")))
            .collect();
        assert!(!lines.is_empty(), "{case}");
        for line in &lines {
            assert_eq!(errors(&schema, line), Vec::<String>::new(), "{schema_name}: {case}");
        }
        self.used.insert(schema_name.to_owned());
        lines
    }

    fn ready(&self, words: &[&str]) -> Running {
        let mut command = ibfabric(words);
        command.current_dir(self.directory.path());
        Running::ready(command)
    }
}

fn free_udp_port() -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a UDP port is free");
    socket.local_addr().expect("the socket is bound").port().to_string()
}

fn free_tcp_port() -> String {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a TCP port is free");
    socket.local_addr().expect("the socket is bound").port().to_string()
}

#[test]
fn strict_schemas_reject_other_output() {
    let schema = schema("rdma-ping");
    let mut good = json!({
        "peer": "127.0.0.1:7174", "pings": 1, "size": 64, "wrong": 0, "us_per_ping": 1.5,
        "retransmits": 0, "icrc_errors": 0,
    });
    assert_eq!(errors(&schema, &good), Vec::<String>::new());
    good["other"] = 1.into();
    assert_eq!(errors(&schema, &good).len(), 1);
    assert!(!errors(&schema, &json!({ "peer": 1 })).is_empty());
}

#[test]
fn json_output_of_every_command_matches_its_schema() {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let name = format!("schemas-{}", std::process::id());
    let mut lab = Lab { directory, name, used: BTreeSet::new() };
    let net = lab.net();
    assert!(lab.output(&["gen", "mesh", "2x2", "hosts=2", "-o", &net]).status.success());
    routing(&mut lab);
    simulated(&mut lab);
    rdma(&mut lab);
    storage(&mut lab);
    lab.check("selftest", &["selftest", &net, "--size", "4M", "--name", &lab.name.clone()], 0);
    let known: BTreeSet<String> =
        ibfabric::schemas::schemas().keys().map(ToString::to_string).collect();
    assert_eq!(lab.used, known);
}

fn routing(lab: &mut Lab) {
    let net = lab.net();
    lab.check("route", &["route", &net, "--metrics", "--dump-dir", "dumps"], 0);
    lab.check("route", &["route", &net, "--engine", "ftree,no_fallback"], 1);
    lab.check("check", &["check", &net, "--lfts", "dumps/opensm-lfts.dump"], 0);
    lab.check("sm", &["sm", "--sim", &net, "--once"], 0);
    lab.check("tracer", &["tracer", "--sim", &net, "--all-pairs", "-v"], 0);
    lab.check("tracer", &["tracer", "--sim", &net, "--mlid", "0xc777"], 1);
}

fn simulated(lab: &mut Lab) {
    let (net, name) = (lab.net(), lab.name.clone());
    let _sim = lab.ready(&["sim", &net, "--sm", "--name", &name]);
    let control = ["sim", "ctl", "--name", &name];
    for command in ["stats", "Attached", "Addresses", "Dump", "Route 1 2"] {
        lab.check("sim-ctl", &[&control[..], &[command]].concat(), 0);
    }
    lab.check("sim-ctl", &[&control[..], &["Unlink no-such-node"]].concat(), 1);
    let manager = format!("{name}-sm");
    let control = ["sm", "ctl", "--name", &manager];
    for (schema, words) in [
        ("sm-ctl-status", &["status"][..]),
        ("sm-ctl-routes", &["routes"]),
        ("sm-ctl-metrics", &["metrics"]),
        ("sm-ctl-sweep", &["sweep"]),
    ] {
        lab.check(schema, &[&control[..], words].concat(), 0);
    }
    let routes = lab.check("sm-ctl-routes", &[&control[..], &["routes"]].concat(), 0);
    let switch =
        routes[0]["switches"][0]["guid"].as_str().expect("the GUID is a string").to_owned();
    lab.check("sm-ctl-routes", &[&control[..], &["routes", &switch]].concat(), 0);
    acm(lab);
}

fn acm(lab: &mut Lab) {
    let name = lab.name.clone();
    let [one, other] = ["1.sock", "2.sock"].map(|socket| lab.path(socket));
    let addresses = lab.check("sim-ctl", &["sim", "ctl", "--name", &name, "Addresses"], 0);
    let nodes: Vec<String> = addresses[0]["data"]
        .as_array()
        .expect("the value is a list")
        .iter()
        .filter_map(|port| port["node"].as_str().map(str::to_owned))
        .collect();
    let serve = |node: &str, socket: &str| {
        lab.ready(&["acm", "--attach", &name, "--node", node, "--socket", socket])
    };
    let (_one, _other) = (serve(&nodes[1], &one), serve(&nodes[2], &other));
    lab.check("acme", &["acme", "-S", &one, "-f", "n", "-d", &nodes[2], "-v"], 0);
    lab.check("acme", &["acme", "-S", &one, "-P", "all", "-e"], 0);
    lab.check("acme", &["acme", "-S", &one, "-e", "9"], 0);
    let none = lab.path("none.sock");
    lab.check("acme", &["acme", "-S", &none, "-f", "n", "-d", &nodes[2]], 2);
    for (schema, words) in [
        ("acm-ctl-status", &["status"][..]),
        ("acm-ctl-cache", &["cache"]),
        ("acm-ctl-metrics", &["metrics"]),
        ("acm-ctl-reload", &["reload"]),
        ("acm-ctl-flush", &["flush"]),
    ] {
        lab.check(schema, &[&["acm", "ctl", "--socket", &one], words].concat(), 0);
    }
}

fn rdma(lab: &mut Lab) {
    let (udp, port, tcp) = (free_udp_port(), free_udp_port(), free_tcp_port());
    let listen = format!("127.0.0.1:{port}");
    let serve = ["rdma", "serve", "--listen", &listen, "--udp-port", &udp, "--rping", "--ucmatose"];
    let server = lab.ready(&serve);
    let id = server.0.id().to_string();
    let own = ["--from", "127.0.0.2", "--udp-port", &udp];
    let program = ["--pid", &id];
    lab.check("rdma-devinfo", &["rdma", "devinfo", "--from", "127.0.0.1", "--udp-port", &udp], 0);
    lab.check("capture-start", &[&["capture", "start", "-w", "server"], &program[..]].concat(), 0);
    let client = |words: &[&'static str], more: &[&str]| -> Vec<String> {
        let all = [&["rdma"], words, &["127.0.0.1"], &own, more].concat();
        all.into_iter().map(str::to_owned).collect()
    };
    for (schema, words) in [
        ("rdma-ping", client(&["ping"], &[])),
        ("rdma-cmatose", client(&["cmatose"], &[])),
        ("rdma-bw", client(&["bw"], &["-p", &port])),
        ("rdma-lat", client(&["lat"], &["-p", &port, "--op", "send", "--pcap", "client"])),
    ] {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        lab.check(schema, &words, 0);
    }
    lab.check("capture-list", &[&["capture", "list"], &program[..]].concat(), 0);
    lab.check(
        "capture-change",
        &[&["capture", "change", "1", "--payload", "0"], &program[..]].concat(),
        0,
    );
    lab.check("capture-stop", &[&["capture", "stop"], &program[..]].concat(), 0);
    lab.check("capture-read", &["capture", "read", "client", "--udp-port", &udp], 0);
    let both = ["capture", "correlate", "client", "server", "--udp-port", &udp, "--messages"];
    lab.check("capture-correlate", &both, 0);
    // Two processes exchange messages.
    let common = ["rdma", "pingpong", "--udp-port", &udp, "-p", &tcp, "--json"];
    let mut one = ibfabric(&[&common[..], &["--from", "127.0.0.3"]].concat());
    let one = one.stdout(Stdio::piped()).spawn().expect("the program can be started");
    let other = [&common[..], &["--from", "127.0.0.4", "127.0.0.3"]].concat();
    let mut printed = String::new();
    for _ in 0..100 {
        let output = lab.output(&other);
        if output.status.success() {
            printed = text(&output.stdout);
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    lab.validate("rdma-pingpong", &printed, "the client of pingpong");
    let output = one.wait_with_output().expect("the process can be awaited");
    lab.validate("rdma-pingpong", &text(&output.stdout), "the server of pingpong");
}

fn storage(lab: &mut Lab) {
    let (udp, control) = (free_udp_port(), lab.path("control"));
    let serve = ["rtrs", "serve", "--listen", "127.0.0.1", "--udp-port", &udp];
    let more = ["--export", "disk0=mem:4M", "--control-socket", &control];
    let _server = lab.ready(&[&serve[..], &more].concat());
    let bench = ["rtrs", "bench", "--path", "127.0.0.2@127.0.0.1", "--udp-port", &udp];
    let more = ["--device", "disk0", "--runtime", "0.2"];
    lab.check("rtrs-bench", &[&bench[..], &more].concat(), 0);
    let own = lab.path("own");
    let socket = lab.path("nbd");
    let nbd = ["nbd", "--path", "127.0.0.2@127.0.0.1", "--udp-port", &udp, "--device", "disk0"];
    let more = ["--session", "one", "--socket", &socket, "--control-socket", &own];
    let _nbd = lab.ready(&[&nbd[..], &more].concat());
    let ctl = ["rtrs", "ctl", "--socket", &own];
    let policy = "rtrs-client/one/mpath_policy";
    lab.check("rtrs-ctl-list", &[&ctl[..], &["list", "rtrs-client/one"]].concat(), 0);
    lab.check("rtrs-ctl-get", &[&ctl[..], &["get", policy]].concat(), 0);
    lab.check("rtrs-ctl-set", &[&ctl[..], &["set", policy, "round-robin"]].concat(), 0);
    lab.check("rtrs-ctl-metrics", &[&ctl[..], &["metrics"]].concat(), 0);
}
