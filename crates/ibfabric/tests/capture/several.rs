//! Tests concurrent captures of one program, and captures that write rotated files.

use super::*;

/// If the limit `filesize` of rotated files is less than the size of their headers, each file still gets at least one
/// packet. The capture can still be stopped.
#[test]
fn tiny_rotated_files_still_have_packets() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let path = place.path().join("a.pcapng").to_str().expect("the path is UTF-8").to_owned();
    let server = Server::start();
    let started = ["-w", &path, "-b", "filesize:1", "-b", "files:50", "-a", "packets:300"];
    server.object(&["start"], &started);
    let client = server.client(500, &["-q", "12"]).output().expect("the program can be started");
    assert!(client.status.success(), "{}", text(&client.stderr));
    let stopped = server.object(&["stop"], &[]);
    check_counts(&stopped);
    let files: Vec<_> = fs::read_dir(place.path())
        .expect("the directory can be read")
        .map(|it| it.expect("the directory can be read").path())
        .collect();
    assert_eq!((files.len(), number(&stopped["captured"])), (50, 300), "{stopped}");
    for file in files {
        assert!(packets(&file).0.values().sum::<u64>() > 0);
    }
}

/// A capture number that exists in only one program selects this program without --pid.
#[test]
fn unique_capture_number_selects_its_program() {
    // Servers of other tests start fewer captures, so the capture with this number is unique on the machine.
    const NUMBER: u64 = 75;
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let path = |name: &str| place.path().join(name).to_str().expect("the path is UTF-8").to_owned();
    let (one, other) = (Server::start(), Server::start());
    let number = NUMBER.to_string();
    for number in 1..=NUMBER {
        let started = other.object(&["start"], &["-w", &path("b"), "--qpn", "77"]);
        if number < NUMBER {
            other.object(&["stop"], &[&started["capture"].to_string()]);
        }
    }
    let changed = ibfabric(&["capture", "change", &number, "--payload", "0"])
        .output()
        .expect("the program can be started");
    assert!(changed.status.success(), "{}", text(&changed.stderr));
    let stopped =
        ibfabric(&["capture", "stop", &number]).output().expect("the program can be started");
    assert!(
        text(&stopped.stdout).contains(&format!("capture {number}: ")),
        "{}",
        text(&stopped.stderr)
    );
    drop(one);
}

/// A capture can wait for a queue pair that another capture includes. It includes the queue pair when the other capture
/// stops. Two captures cannot write the same file.
#[test]
fn concurrent_captures_are_independent() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let path = |name: &str| place.path().join(name).to_str().expect("the path is UTF-8").to_owned();
    let server = Server::start();
    let first = server.object(&["start"], &["-w", &path("a")]);
    assert_eq!(first["waits"], Value::Null, "the capture does not include queue pair 1");
    let output = server.capture(&["start"], &["-w", &path("b"), "--qpn", "1"]);
    let second: Value = serde_json::from_slice(&output.stdout).expect("the text is JSON");
    let printed = text(&output.stderr);
    assert!(
        printed
            .contains("capture 2: all matching queue pairs (1) are already captured by capture 1"),
        "{printed}"
    );
    let output = server.capture(&["start"], &["-w", &path("e"), "--qpn", "0x77"]);
    let printed = text(&output.stderr);
    assert!(printed.contains("capture 3: no queue pair matches at present"), "{printed}");
    server.object(&["stop"], &["3"]);
    let output = server.capture(&["start"], &["-w", &path("a")]);
    let printed = text(&output.stderr);
    assert!(printed.contains("capture 1 is writing to this file"), "{printed}");
    server.object(&["stop"], &[&first["capture"].to_string()]);
    let client = server.client(10, &[]).output().expect("the program can be started");
    assert!(client.status.success(), "{}", text(&client.stderr));
    let stopped = server.object(&["stop"], &[&second["capture"].to_string()]);
    assert!(
        number(&stopped["captured"]) > 4,
        "the MADs of the connection setup are not captured: {stopped}"
    );
    // The number of captures of a program is limited. A list of many captures is sent in several replies.
    for number in 0..64 {
        let file = path(&format!("c{number}"));
        server.object(&["start"], &["-w", &file, "-a", "packets:1", "--qpn", "77"]);
    }
    let output = server.capture(&["start"], &["-w", &path("d")]);
    assert!(text(&output.stderr).contains("64 captures exist"), "{}", text(&output.stderr));
    let listed = server.object(&["list"], &[]);
    assert_eq!(listed["programs"][0]["captures"].as_array().map(Vec::len), Some(64));
    let output = server.capture(&["stop"], &[]);
    assert_eq!(text(&output.stdout).lines().count(), 64);
}
