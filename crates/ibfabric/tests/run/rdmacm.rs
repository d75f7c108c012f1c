//! Runs unmodified programs of Debian's rdmacm-utils with `ibfabric run`.

use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use super::program::{ibfabric, text};
use super::{is_installed, on, simulator};

/// Maximum duration of a server and its clients.
const LIMIT: Duration = Duration::from_secs(60);

/// Returns the IPv4 and the IPv6 address of each host of a simulator.
fn addresses(simulator: &str) -> Vec<[String; 2]> {
    let output = ibfabric(&["sim", "ctl", "--name", simulator, "Addresses"]).output();
    let output = text(&output.expect("the program can be started").stdout);
    let addresses = |line: &str| {
        let mut words = line.split_whitespace().skip(2).map(str::to_owned);
        [(); 2].map(|()| words.next().expect("a host has two addresses"))
    };
    output.lines().map(addresses).collect()
}

/// Runs a server and a client, and returns the outputs of both. In `words`, `@` stands for the server's address. A
/// client fails if it starts before the server listens, so it is restarted until it succeeds or the server exits.
fn exchange(ports: [&[&str]; 2], address: &str, words: [&str; 2]) -> [Output; 2] {
    let words = words.map(|words| words.replace('@', address));
    let [server, client] = words.each_ref().map(|it| it.split(' ').collect::<Vec<_>>());
    let mut command = on(ports[0], &server);
    let server = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut server = server.expect("the program can be started");
    let end = Instant::now() + LIMIT;
    let client = loop {
        std::thread::sleep(Duration::from_millis(700));
        let output = on(ports[1], &client).output().expect("the program can be started");
        let is_running = server.try_wait().expect("the process can be awaited").is_none();
        if output.status.success() || !is_running || Instant::now() > end {
            break output;
        }
    };
    while server.try_wait().expect("the process can be awaited").is_none() {
        if Instant::now() > end {
            server.kill().expect("the server is a child of this process");
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    [server.wait_with_output().expect("the process can be awaited"), client]
}

/// Runs a server and a client, both of which have to succeed. Returns what they print.
fn succeed(ports: [&[&str]; 2], address: &str, words: [&str; 2]) -> [String; 2] {
    exchange(ports, address, words).map(|output| {
        let printed = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{words:?} {ports:?}: {}\n{printed}", output.status);
        printed
    })
}

#[test]
fn rping_verifies_its_data_on_both_link_layers() {
    if !is_installed("rping") {
        return;
    }
    let name = format!("run-rping-{}", std::process::id());
    let _simulator = simulator(&name);
    let nodes = ["host-0", "host-7"].map(|node| ["--attach", &name, "--node", node]);
    let [v4, v6] = &addresses(&name)[0];
    let roce = [["--roce", "127.0.1.1"], ["--roce", "127.0.1.2"]];
    let nodes = nodes.each_ref().map(|it| &it[..]);
    let roce = roce.each_ref().map(|it| &it[..]);
    for (ports, any, address) in
        [(nodes, "0.0.0.0", &v4[..]), (nodes, "::", v6), (roce, "@", "127.0.1.1")]
    {
        let server = format!("rping -s -a {any} -C 10 -v -V");
        let printed = succeed(ports, address, [&server, "rping -c -a @ -C 10 -v -V"]);
        for printed in printed {
            assert_eq!(printed.matches("ping data: rdma-ping-").count(), 10, "{printed}");
        }
    }
}

#[test]
fn connections_and_services_work_on_both_link_layers() {
    let name = format!("run-cmatose-{}", std::process::id());
    let _simulator = simulator(&name);
    let nodes = ["host-0", "host-3"].map(|node| ["--attach", &name, "--node", node]);
    let [address, _] = &addresses(&name)[0];
    let roce = [["--roce", "127.0.1.3"], ["--roce", "127.0.1.4"]];
    let nodes = nodes.each_ref().map(|it| &it[..]);
    let roce = roce.each_ref().map(|it| &it[..]);
    for (ports, address) in [(nodes, &address[..]), (roce, "127.0.1.3")] {
        let cases = [
            ["ucmatose -c 4 -C 20", "ucmatose -s @ -c 4 -C 20"],
            ["udaddy -c 2 -C 10", "udaddy -s @ -c 2 -C 10"],
        ];
        for words in cases.into_iter().filter(|[_, words]| is_installed(program_of(words))) {
            for printed in succeed(ports, address, words) {
                assert!(printed.contains("return status 0"), "{words:?}: {printed}");
            }
        }
        let cases = [
            ["rdma_server", "rdma_client -s @"],
            ["rstream -S 1000 -I 10", "rstream -s @ -S 1000 -I 10"],
            ["riostream -S 1000 -I 10", "riostream -s @ -S 1000 -I 10"],
        ];
        for words in cases.into_iter().filter(|[_, words]| is_installed(program_of(words))) {
            succeed(ports, address, words);
        }
    }
}

fn program_of(words: &str) -> &str {
    words.split(' ').next().expect("a split text has a first part")
}

#[test]
fn multicast_messages_arrive_on_a_fabric() {
    if !is_installed("mckey") {
        return;
    }
    let name = format!("run-mckey-{}", std::process::id());
    let _simulator = simulator(&name);
    let hosts = addresses(&name);
    let run = |host: usize, more: &[&str]| {
        let node = format!("host-{host}");
        let words = ["mckey", "-b", &hosts[host][0], "-m", "239.1.1.1", "-C", "5"];
        on(&["--attach", &name, "--node", &node], &[&words, more].concat())
    };
    let receiver = run(0, &[]).stdout(Stdio::piped()).spawn();
    let mut receiver = receiver.expect("the program can be started");
    let end = Instant::now() + LIMIT;
    // Messages that are sent before the receiver has joined the group are lost, so the sender is repeated.
    while receiver.try_wait().expect("the process can be awaited").is_none() {
        assert!(Instant::now() < end || receiver.kill().is_err(), "the receiver does not exit");
        let output = run(3, &["-s"]).output().expect("the program can be started");
        let printed = text(&output.stdout);
        assert!(printed.contains("return status 0"), "{printed}{}", text(&output.stderr));
    }
    let output = receiver.wait_with_output().expect("the process can be awaited");
    let printed = text(&output.stdout);
    assert!(printed.contains("joined dgid: ff12:4001:ffff::f01:101"), "{printed}");
    assert!(
        printed.contains("data transfers complete\ntest complete\nreturn status 0"),
        "{printed}"
    );
}

#[test]
fn connection_without_a_listener_is_rejected() {
    if !is_installed("rping") {
        return;
    }
    let words = ["rping", "-s", "-a", "127.0.1.5", "-p", "7175", "-C", "1"];
    let mut server = on(&["--roce", "127.0.1.5"], &words).spawn().expect("the program starts");
    std::thread::sleep(Duration::from_millis(500));
    let words = ["rping", "-c", "-a", "127.0.1.5", "-C", "1"];
    let output = on(&["--roce", "127.0.1.6"], &words).output().expect("the program starts");
    server.kill().expect("the server is a child of this process");
    server.wait().expect("the process can be awaited");
    assert!(!output.status.success());
    let error = text(&output.stderr);
    // Reason 8 is "invalid service ID".
    assert!(error.contains("RDMA_CM_EVENT_REJECTED, error 8"), "{error}");
}

#[test]
fn second_process_at_a_port_gets_no_connection_manager() {
    let name = format!("run-owner-{}", std::process::id());
    let _simulator = simulator(&name);
    let port = ["--attach", &name, "--node", "host-0"];
    let open = "open(my $file, '+<', '/dev/infiniband/rdma_cm')";
    let first = format!("{open} or die; $| = 1; print \"open\\n\"; <STDIN>;");
    let mut holder = on(&port, &["perl", "-e", &first])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut line = String::new();
    let output = holder.stdout.as_mut().expect("standard output is piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line)
        .expect("the program prints a line");
    let second = format!("{open} and die; print $! + 0, ' ', -c '/dev/infiniband/rdma_cm';");
    let output = on(&port, &["perl", "-e", &second]).output();
    let output = output.expect("the program can be started");
    drop(holder.stdin.take());
    assert!(holder.wait().expect("the process can be awaited").success());
    assert_eq!((&line[..], &text(&output.stdout)[..]), ("open\n", "16 1"));
    let error = text(&output.stderr);
    assert!(error.contains("cannot open rdma_cm"), "{error}");
}
