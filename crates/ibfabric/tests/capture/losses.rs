//! What is missing in a capture, and that it is counted.

use super::*;

#[test]
fn stream_lasts_until_reader_closes_pipe() {
    let server = Server::start();
    let pid = server.pid();
    let words = ["capture", "start", "--pid", &pid, "-w", "-", "--payload", "0"];
    let mut command = ibfabric(&words);
    let mut stream =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut client = server.client(1_000_000, &[]).stdout(Stdio::null()).spawn().expect("it runs");
    let mut output = stream.stdout.take().expect("it is piped");
    let mut start = vec![0; 300_000];
    output.read_exact(&mut start).expect("so much comes");
    let mut file = CaptureFile::new(&start[..], &[]).expect("a capture");
    let mut count = 0;
    while let Ok(Some(_)) = file.next_item() {
        count += 1;
    }
    assert!(count > 1000, "{count}");
    // It stops to read, and the server goes on.
    let messages = || {
        let listed = server.object(&["list"], &[]);
        number(&listed["programs"][0]["qps"][0]["messages"])
    };
    let before = messages();
    wait(|| (messages() > before + 10_000).then_some(()));
    drop(output);
    let mut said = String::new();
    stream.stderr.take().expect("it is piped").read_to_string(&mut said).expect("text");
    let status = stream.wait().expect("it ends");
    assert!(status.success(), "{said}");
    // What was read of it counts as captured.
    let captured =
        said.split_once(" packets captured").and_then(|(before, _)| before.rsplit(' ').next());
    let captured: u64 = captured.and_then(|it| it.parse().ok()).expect("a number");
    assert!(captured > 1000, "{said}");
    assert!(said.contains("Broken pipe") && said.contains("overwritten"), "{said}");
    client.kill().expect("it runs");
    client.wait().expect("it has ended");
    let listed = server.object(&["list"], &[]);
    assert_eq!(listed["programs"][0]["captures"], Value::Array(Vec::new()));
}

/// Many queue pairs at once, with rings that are much too small: for each of them everything is captured or counted,
/// and the file has what is said to be in it. `IBFABRIC_PACKETS` is how many packets there are at least.
#[test]
fn all_lost_packets_are_counted() {
    const QPS: u64 = 16;
    let wanted =
        std::env::var("IBFABRIC_PACKETS").map_or(100_000, |it| it.parse().expect("a number"));
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("a.pcapng");
    let path = file.to_str().expect("a path");
    let server = Server::start();
    server.object(&["start"], &["-w", path, "--payload", "0", "--ring", "65536"]);
    // Each message has two packets.
    let iters = wanted / 2 / QPS + 1;
    let client = server.client(iters, &["-q", &QPS.to_string()]).output().expect("it runs");
    assert!(client.status.success(), "{}", text(&client.stderr));
    let output = ibfabric(&["rdma", "devinfo", "--listen", "127.0.0.1", "--udp-port", &server.udp])
        .args(["--format", "json"])
        .output()
        .expect("it runs");
    let info: Value = serde_json::from_slice(&output.stdout).expect("an object");
    let stopped = server.object(&["stop"], &[]);
    check_counts(&stopped);
    assert!(number(&stopped["received"]) >= wanted, "{stopped}");
    // What the adapter counts itself, whatever is traced.
    assert_eq!(stopped["sent"], info["counters"]["sent_packets"], "{info}");
    assert_eq!(stopped["received"], info["counters"]["received_packets"], "{info}");
    let qps = stopped["qps"].as_array().expect("queue pairs");
    assert_eq!(qps.len() as u64, QPS + 1);
    let (found, remarks) = packets(&file);
    check_losses(&file, &server.udp, &stopped);
    for qp in qps {
        check_counts(qp);
        let name = format!("qp {:#08x}", number(&qp["qpn"]));
        for (way, counts) in [("send", "sent_counts"), ("receive", "received_counts")] {
            let written = found.get(&format!("{name} {way}")).copied().unwrap_or(0);
            assert_eq!(written, number(&qp[counts]["captured"]), "{name} {way}");
        }
    }
    if number(&stopped["overwritten"]) > 0 {
        assert!(remarks.iter().any(|it| it.contains("before this one were overwritten")));
    }
    eprintln!(
        "{} captured, {} overwritten, of {}",
        stopped["captured"],
        stopped["overwritten"],
        number(&stopped["sent"]) + number(&stopped["received"])
    );
}

/// What a file tells to be missing is what `stop` has counted, for each queue pair and direction, and is told once;
/// so it is without what is counted at the end. Its packets are in the order of time.
fn check_losses(file: &Path, udp: &str, stopped: &Value) {
    let path = file.to_str().expect("a path");
    let read = |words: &[&str]| {
        let fixed = ["capture", "read", path, "--udp-port", udp];
        ibfabric(&[&fixed[..], words].concat()).output().expect("it runs")
    };
    let mut lost = BTreeMap::<String, u64>::new();
    let mut last = 0;
    let mut count = 0_u64;
    for line in text(&read(&["--format", "json"]).stdout).lines() {
        let frame: Value = serde_json::from_str(line).expect("an object");
        let name = frame["interface"].as_str().expect("a name").to_owned();
        *lost.entry(name).or_default() += number(&frame["lost"]);
        let time = frame["time"].as_str().expect("a time").replace('.', "");
        let time: u64 = time.parse().expect("a number");
        assert!(time >= last, "frame {} is before the one before it", frame["number"]);
        last = time;
        count += 1;
    }
    let mut told = 0;
    for qp in stopped["qps"].as_array().expect("queue pairs") {
        let name = format!("qp {:#08x}", number(&qp["qpn"]));
        for (way, counts) in [("send", "sent_counts"), ("receive", "received_counts")] {
            let name = format!("{name} {way}");
            let found = lost.get(&name).copied().unwrap_or(0);
            let overwritten = number(&qp[counts]["overwritten"]);
            // What is missing behind the last packet of a direction no packet can tell.
            assert!(found <= overwritten, "{name}: {found} of {overwritten}");
            told += found;
        }
    }
    let all = number(&stopped["overwritten"]);
    assert!(told * 2 >= all, "{told} of {all}");
    let said = text(&read(&["--count", &count.to_string()]).stderr);
    assert!(said.contains(&format!(" {told} missing in the capture")), "{said}");
    let said = text(&read(&[]).stderr);
    assert!(said.contains(&format!(" {all} missing in the capture")), "{said}");
}

/// A named pipe whose reader stops: the program ends when it is told to.
#[test]
fn unread_named_pipe_does_not_block_program() {
    let place = tempfile::tempdir().expect("a directory");
    let pipe = place.path().join("pipe");
    let path = pipe.to_str().expect("a path");
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo runs").success());
    let server = Server::start();
    let output = server.capture(&["start"], &["-w", path]);
    assert_eq!(output.status.code(), Some(2), "nobody reads it yet: {}", text(&output.stderr));
    let reader = rustix::fs::open(
        path,
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK,
        rustix::fs::Mode::empty(),
    )
    .expect("a reader");
    server.object(&["start"], &["-w", path]);
    let client = server.client(5000, &[]).output().expect("it runs");
    assert!(client.status.success(), "{}", text(&client.stderr));
    let before = Instant::now();
    let output = server.capture(&["stop"], &[]);
    assert!(before.elapsed() < Duration::from_secs(10));
    let stopped: Value = serde_json::from_slice(&output.stdout).expect("an object");
    check_counts(&stopped);
    assert!(
        stopped["error"].as_str().is_some_and(|why| why.contains("nobody has read")),
        "{stopped}"
    );
    drop(reader);
}
