//! Stores that fail: a full disk, a file that is cut off, one that can only be read. Each client gets the number of the
//! error, the log says why once, and others go on.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

use super::command::{Running, ibfabric, text};
use super::{free_port, number};

/// Returns whether processes may have places of their own here.
fn can_mount() -> bool {
    let output = Command::new("unshare").args(["--map-root-user", "--mount", "true"]).output();
    let can = output.is_ok_and(|output| output.status.success());
    if !can {
        eprintln!("skipped: no mounts of an own here");
    }
    can
}

/// A server of devices that fail, and what it says.
struct Broken {
    _running: Running,
    udp: String,
    place: tempfile::TempDir,
}

impl Broken {
    fn start() -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let (path, udp) = (place.path(), free_port());
        for directory in ["small", "fixed"] {
            fs::create_dir(path.join(directory)).expect("room");
        }
        for file in ["gone", "fixed/ro"] {
            fs::write(path.join(file), vec![7; 1 << 20]).expect("room");
        }
        let script = "cd \"$1\" && mount -t tmpfs -o size=1M none small && truncate -s 8M small/full && \
             mount --bind fixed fixed && mount -o remount,bind,ro fixed && \
             exec \"$0\" rtrs serve --listen 127.0.0.1 --udp-port \"$2\" --export full=small/full \
             --export gone=gone --export ro=fixed/ro --export disk0=mem:1M 2>said";
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", script]);
        command.arg(env!("CARGO_BIN_EXE_ibfabric")).arg(path).arg(&udp);
        Self { _running: Running::ready(command), udp, place }
    }

    fn path(&self, name: &str) -> impl AsRef<Path> {
        self.place.path().join(name)
    }

    fn bench(&self, device: &str, words: &[&str]) -> Output {
        let common = ["rtrs", "bench", "--path", "127.0.0.1", "--udp-port", &self.udp];
        let rest = ["--device", device, "--format", "json", "--bs", "64K", "--iodepth", "4"];
        let output = ibfabric(&[&common[..], &rest, words].concat()).output();
        output.expect("the program runs")
    }

    /// Returns how often the server has said something.
    fn said(&self, what: &str) -> usize {
        let said = fs::read_to_string(self.path("said")).expect("a file");
        said.lines().filter(|line| line.ends_with(what)).count()
    }

    /// A device of memory works as ever.
    fn others_go_on(&self) {
        let words = ["--rw", "randrw", "--io-size", "4M", "--verify"];
        let output = self.bench("disk0", &words);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(number(&output, "errors"), 0.0);
    }
}

#[test]
fn failing_store_is_logged_once_without_affecting_others() {
    if !can_mount() {
        return;
    }
    let server = Broken::start();
    let (writes, reads) =
        (["--rw", "write", "--io-size", "8M"], ["--rw", "read", "--io-size", "1M"]);

    // A disk that is full.
    for _ in 0..2 {
        let output = server.bench("full", &writes);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        assert!(number(&output, "errors") > 0.0 && text(&output.stderr).contains("ENOSPC"));
    }
    assert_eq!(server.said("full: a write fails: ENOSPC"), 1);
    assert_eq!(number(&server.bench("full", &reads), "errors"), 0.0);
    server.others_go_on();

    // A file that is not there any more.
    assert_eq!(number(&server.bench("gone", &reads), "errors"), 0.0);
    File::options().write(true).open(server.path("gone")).and_then(|it| it.set_len(0)).expect("it");
    for _ in 0..2 {
        let output = server.bench("gone", &reads);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        assert_eq!(number(&output, "errors"), 16.0, "none of it can be read");
        assert!(text(&output.stderr).contains("EIO"), "{}", text(&output.stderr));
    }
    assert_eq!(server.said("gone: a read fails: EIO"), 1);
    server.others_go_on();

    // One that can only be read.
    assert_eq!(server.said("ro: it cannot be written, so it is offered to be read"), 1);
    for _ in 0..2 {
        let output = server.bench("ro", &writes);
        assert_eq!(output.status.code(), Some(2));
        let said = text(&output.stderr);
        assert!(said.contains("the server refuses device ro: EACCES"), "{said}");
        let output = server.bench("none", &reads);
        assert!(text(&output.stderr).contains("the server refuses device none: ENOENT"));
    }
    // The sessions have other names each time.
    assert_eq!(server.said(r#"device "ro" is refused: EACCES"#), 2);
    assert_eq!(server.said(r#"device "none" is refused: ENOENT"#), 2);
    assert_eq!(number(&server.bench("ro", &reads), "errors"), 0.0);
    server.others_go_on();
}
