//! An RTRS server exports a file on a full disk, a truncated file and a read-only file. Clients get error numbers. The
//! server logs each file's failure once, and other devices keep working.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

use super::command::{Running, ibfabric, text};
use super::{free_port, number};

/// Returns true if the system allows mount namespaces.
fn can_mount() -> bool {
    let output = Command::new("unshare").args(["--map-root-user", "--mount", "true"]).output();
    let can = output.is_ok_and(|output| output.status.success());
    if !can {
        eprintln!("skipped: this system allows no mount namespaces");
    }
    can
}

/// A server that exports failing devices, with its directory and log.
struct Broken {
    _running: Running,
    udp: String,
    place: tempfile::TempDir,
}

impl Broken {
    fn start() -> Self {
        let place = tempfile::tempdir().expect("a temporary directory can be created");
        let (path, udp) = (place.path(), free_port());
        for directory in ["small", "fixed"] {
            fs::create_dir(path.join(directory)).expect("the directory can be created");
        }
        for file in ["gone", "fixed/ro"] {
            fs::write(path.join(file), vec![7; 1 << 20]).expect("the file can be written");
        }
        let script = "cd \"$1\" && mount -t tmpfs -o size=1M none small && truncate -s 8M small/full && \
             mount --bind fixed fixed && mount -o remount,bind,ro fixed && \
             exec \"$0\" rtrs serve --listen 127.0.0.1 --udp-port \"$2\" --export full=small/full \
             --export gone=gone --export ro=fixed/ro --export disk0=mem:1M 2>printed";
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
        let rest = ["--device", device, "--json", "--bs", "64K", "--iodepth", "4"];
        let output = ibfabric(&[&common[..], &rest, words].concat()).output();
        output.expect("the program runs")
    }

    /// Returns the number of log lines that contain the given text.
    fn log_lines(&self, what: &str) -> usize {
        let printed = fs::read_to_string(self.path("printed")).expect("the file can be read");
        printed.lines().filter(|line| line.ends_with(what)).count()
    }

    /// Checks that a device in memory still works.
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

    // On a full disk, writes fail with ENOSPC, but reads succeed.
    for _ in 0..2 {
        let output = server.bench("full", &writes);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        assert!(number(&output, "errors") > 0.0 && text(&output.stderr).contains("ENOSPC"));
    }
    assert_eq!(server.log_lines("full: a write failed: ENOSPC"), 1);
    assert_eq!(number(&server.bench("full", &reads), "errors"), 0.0);
    server.others_go_on();

    // After the file is truncated, reads fail with EIO.
    assert_eq!(number(&server.bench("gone", &reads), "errors"), 0.0);
    File::options()
        .write(true)
        .open(server.path("gone"))
        .and_then(|it| it.set_len(0))
        .expect("the file can be truncated");
    for _ in 0..2 {
        let output = server.bench("gone", &reads);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        assert_eq!(number(&output, "errors"), 16.0, "all reads fail");
        assert!(text(&output.stderr).contains("EIO"), "{}", text(&output.stderr));
    }
    assert_eq!(server.log_lines("gone: a read failed: EIO"), 1);
    server.others_go_on();

    // A client that opens a read-only file for writing is refused with EACCES.
    assert_eq!(server.log_lines("ro: the file is not writable: the export is read-only"), 1);
    for _ in 0..2 {
        let output = server.bench("ro", &writes);
        assert_eq!(output.status.code(), Some(2));
        let printed = text(&output.stderr);
        assert!(printed.contains("the server refuses device ro: EACCES"), "{printed}");
        let output = server.bench("none", &reads);
        assert!(text(&output.stderr).contains("the server refuses device none: ENOENT"));
    }
    // The server logs equal lines only once in ten minutes. Each client process has its own session name, so each
    // refusal is logged.
    assert_eq!(server.log_lines(r#"device "ro" was refused: EACCES"#), 2);
    assert_eq!(server.log_lines(r#"device "none" was refused: ENOENT"#), 2);
    assert_eq!(number(&server.bench("ro", &reads), "errors"), 0.0);
    server.others_go_on();
}
