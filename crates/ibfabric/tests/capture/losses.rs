//! Captures count the packets that are missing in their files.

use super::*;

#[test]
fn stream_lasts_until_reader_closes_pipe() {
    let server = Server::start();
    let pid = server.pid();
    let words = ["capture", "start", "--pid", &pid, "-w", "-", "--payload", "0"];
    let mut command = ibfabric(&words);
    let mut stream = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut client = server
        .client(1_000_000, &[])
        .stdout(Stdio::null())
        .spawn()
        .expect("the program can be started");
    let mut output = stream.stdout.take().expect("standard output is piped");
    let mut start = vec![0; 300_000];
    output.read_exact(&mut start).expect("the program prints 300,000 bytes");
    let mut file = CaptureFile::new(&start[..], &[]).expect("the file is a capture");
    let mut count = 0;
    while let Ok(Some(_)) = file.next_item() {
        count += 1;
    }
    assert!(count > 1000, "{count}");
    // The test no longer reads from the pipe, but the server continues to exchange messages with the client.
    let messages = || {
        let listed = server.object(&["list"], &[]);
        number(&listed["programs"][0]["qps"][0]["messages"])
    };
    let before = messages();
    wait(|| (messages() > before + 10_000).then_some(()));
    drop(output);
    let mut printed = String::new();
    stream
        .stderr
        .take()
        .expect("standard error is piped")
        .read_to_string(&mut printed)
        .expect("the output is UTF-8");
    let status = stream.wait().expect("the process can be awaited");
    assert!(status.success(), "{printed}");
    // Packets that were written before the reader closed the pipe count as captured.
    let captured =
        printed.split_once(" packets captured").and_then(|(before, _)| before.rsplit(' ').next());
    let captured: u64 = captured.and_then(|it| it.parse().ok()).expect("a number is printed");
    assert!(captured > 1000, "{printed}");
    assert!(printed.contains("Broken pipe") && printed.contains("overwritten"), "{printed}");
    client.kill().expect("the process exists");
    client.wait().expect("the process can be awaited");
    let listed = server.object(&["list"], &[]);
    assert_eq!(listed["programs"][0]["captures"], Value::Array(Vec::new()));
}

/// Checks that each packet is captured or counted as overwritten, although 16 queue pairs use very small ring buffers.
/// For each queue pair and direction, the file has to contain as many packets as `capture stop` reports as captured.
///
/// The environment variable `IBFABRIC_PACKETS` sets how many packets the server receives at least [default: 100,000].
#[test]
fn all_lost_packets_are_counted() {
    const QPS: u64 = 16;
    let least = std::env::var("IBFABRIC_PACKETS")
        .map_or(100_000, |it| it.parse().expect("the text is a number"));
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let file = place.path().join("a.pcapng");
    let path = file.to_str().expect("the path is UTF-8");
    let server = Server::start();
    server.object(&["start"], &["-w", path, "--payload", "0", "--buffer-size", "65536"]);
    // Each message has two packets.
    let iters = least / 2 / QPS + 1;
    let client = server
        .client(iters, &["-q", &QPS.to_string()])
        .output()
        .expect("the program can be started");
    assert!(client.status.success(), "{}", text(&client.stderr));
    let output = ibfabric(&["rdma", "devinfo", "--from", "127.0.0.1", "--udp-port", &server.udp])
        .args(["--json"])
        .output()
        .expect("the program can be started");
    let info: Value = serde_json::from_slice(&output.stdout).expect("the text is JSON");
    let stopped = server.object(&["stop"], &[]);
    check_counts(&stopped);
    assert!(number(&stopped["received"]) >= least, "{stopped}");
    // The HCA counts packets itself, independent of captures.
    assert_eq!(stopped["sent"], info["counters"]["sent_packets"], "{info}");
    assert_eq!(stopped["received"], info["counters"]["received_packets"], "{info}");
    let qps = stopped["qps"].as_array().expect("the value is a list");
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

/// Compares the drop counts of the packets in `file` with the counts of overwritten packets in `stopped`. `stopped` is
/// the report of `capture stop`.
///
/// - For each queue pair and direction, the sum of the drop counts does not exceed the number of overwritten packets.
/// - If `capture read` stops before the statistics at the end of the file, it prints the sum of all drop counts.
/// - If `capture read` also reads the statistics, it prints the total number of overwritten packets.
/// - The packets are ordered by time.
fn check_losses(file: &Path, udp: &str, stopped: &Value) {
    let path = file.to_str().expect("the path is UTF-8");
    let read = |words: &[&str]| {
        let fixed = ["capture", "read", path, "--udp-port", udp];
        ibfabric(&[&fixed[..], words].concat()).output().expect("the program can be started")
    };
    let mut lost = BTreeMap::<String, u64>::new();
    let mut last = 0;
    let mut count = 0_u64;
    for line in text(&read(&["--json"]).stdout).lines() {
        let frame: Value = serde_json::from_str(line).expect("the text is JSON");
        let name = frame["interface"].as_str().expect("the value is a string").to_owned();
        *lost.entry(name).or_default() += number(&frame["lost"]);
        let time = frame["time"].as_str().expect("the frame has a time").replace('.', "");
        let time: u64 = time.parse().expect("the text is a number");
        assert!(time >= last, "frame {} is earlier than the preceding frame", frame["number"]);
        last = time;
        count += 1;
    }
    let mut dropped = 0;
    for qp in stopped["qps"].as_array().expect("the value is a list") {
        let name = format!("qp {:#08x}", number(&qp["qpn"]));
        for (way, counts) in [("send", "sent_counts"), ("receive", "received_counts")] {
            let name = format!("{name} {way}");
            let found = lost.get(&name).copied().unwrap_or(0);
            let overwritten = number(&qp[counts]["overwritten"]);
            // The drop count of a packet is the number of overwritten packets since the preceding captured packet.
            // Packets that are overwritten after the last captured packet are in no drop count.
            assert!(found <= overwritten, "{name}: drop counts {found}, overwritten {overwritten}");
            dropped += found;
        }
    }
    let all = number(&stopped["overwritten"]);
    assert!(dropped * 2 >= all, "drop counts {dropped}, overwritten {all}");
    let printed = text(&read(&["--count", &count.to_string()]).stderr);
    assert!(printed.contains(&format!(" {dropped} missing in the capture")), "{printed}");
    let printed = text(&read(&[]).stderr);
    assert!(printed.contains(&format!(" {all} missing in the capture")), "{printed}");
}

/// If the reader of a named pipe stops reading, the capture can still be stopped.
#[test]
fn unread_named_pipe_does_not_block_program() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let pipe = place.path().join("pipe");
    let path = pipe.to_str().expect("the path is UTF-8");
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo runs").success());
    let server = Server::start();
    let output = server.capture(&["start"], &["-w", path]);
    assert_eq!(
        output.status.code(),
        Some(2),
        "the capture has started without a reader: {}",
        text(&output.stderr)
    );
    let reader = rustix::fs::open(
        path,
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK,
        rustix::fs::Mode::empty(),
    )
    .expect("the pipe can be opened for reading");
    server.object(&["start"], &["-w", path]);
    let client = server.client(5000, &[]).output().expect("the program can be started");
    assert!(client.status.success(), "{}", text(&client.stderr));
    let before = Instant::now();
    let output = server.capture(&["stop"], &[]);
    assert!(before.elapsed() < Duration::from_secs(10));
    let stopped: Value = serde_json::from_slice(&output.stdout).expect("the text is JSON");
    check_counts(&stopped);
    assert!(
        stopped["error"].as_str().is_some_and(|why| why.contains("the reader has not read")),
        "{stopped}"
    );
    drop(reader);
}
