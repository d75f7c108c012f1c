//! Result files are always complete. After an error or a signal, the previous file is unchanged, and no temporary
//! file remains.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use tempfile::TempDir;

#[expect(dead_code, reason = "these tests use only a part of the module")]
mod program;

use program::ibfabric;

const FORMER: &str = "former result";

/// Returns the sorted names of the files in a directory.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the directory can be read");
    let mut names: Vec<_> = entries
        .map(|entry| {
            entry.expect("the directory can be read").file_name().to_string_lossy().into_owned()
        })
        .collect();
    names.sort();
    names
}

/// Runs a command line with a file size limit of 1 KiB. A write beyond the limit fails, or SIGXFSZ kills the process.
fn on_full_disk(folder: &Path, setup: &str, words: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_ibfabric");
    let script = format!("{setup} ulimit -f 1; exec '{program}' {words}");
    Command::new("bash")
        .args(["-c", &script])
        .current_dir(folder)
        .output()
        .expect("the program can be started")
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary directory can be created");
    let gen_small = ["gen", "xgft", "4,4", "1,4", "-o"];
    let made = ibfabric(&gen_small)
        .arg(folder.path().join("net"))
        .status()
        .expect("the program can be started");
    assert!(made.success());
    folder
}

/// Command lines that write more than 1 KiB to the file `result`.
const WRITERS: [&str; 2] = ["gen xgft 8,8 1,8 -o result", "route net --html result"];

#[test]
fn full_disk_keeps_former_result() {
    for words in WRITERS {
        let folder = folder();
        fs::write(folder.path().join("result"), FORMER).expect("the file can be written");
        let output = on_full_disk(folder.path(), "trap '' XFSZ;", words);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}: {stderr}");
        assert!(stderr.contains("cannot write result: File too large"), "{words}: {stderr}");
        let kept = fs::read_to_string(folder.path().join("result")).expect("the file exists");
        assert_eq!(kept, FORMER, "{words}");
        assert_eq!(names(folder.path()), ["net", "result"], "{words}");
    }
}

#[test]
fn signal_removes_temporary_files() {
    for words in [WRITERS[0], WRITERS[1], "route net --dump-dir dumps"] {
        let folder = folder();
        fs::write(folder.path().join("result"), FORMER).expect("the file can be written");
        fs::create_dir(folder.path().join("dumps")).expect("the directory can be created");
        let output = on_full_disk(folder.path(), "", words);
        // SIGXFSZ kills the process, or the process exits because a write fails.
        assert!(!output.status.success(), "{words}: {output:?}");
        let kept = fs::read_to_string(folder.path().join("result")).expect("the file exists");
        assert_eq!(kept, FORMER, "{words}");
        assert_eq!(names(folder.path()), ["dumps", "net", "result"], "{words}");
        let dumps = names(&folder.path().join("dumps"));
        assert!(dumps.iter().all(|name| !name.ends_with(".tmp")), "{dumps:?}");
    }
}

#[test]
fn full_disk_ends_log_with_its_last_whole_line() {
    let folder = folder();
    let words = "sm --sim net --once --log log -D 0xff";
    let output = on_full_disk(folder.path(), "trap '' XFSZ;", words);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let error = "cannot write the log log: File too large (os error 27)";
    assert_eq!(stderr.matches(error).count(), 1, "{stderr}");
    let log = fs::read_to_string(folder.path().join("log")).expect("the file can be read");
    assert!((1..=1024).contains(&log.len()) && log.ends_with('\n'), "{log}");
    assert!(log.lines().all(|line| line.contains(" -> ")), "{log}");
    // The SM brings the subnet up although it cannot write its log.
    assert!(String::from_utf8_lossy(&output.stdout).contains("24 nodes"), "{output:?}");
}

#[test]
fn unwritten_cache_and_dumps_are_errors_of_sm_once() {
    for option in ["--cache-dir kept", "--dump-dir kept"] {
        let folder = folder();
        let words = format!("sm --sim net --once --log log {option}");
        // The log fits into the file size limit, but the cache or a dump does not.
        let output = on_full_disk(folder.path(), "trap '' XFSZ; ulimit -f 1;", &words);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{option}: {stderr}");
        assert!(stderr.contains("kept/"), "{option}: {stderr}");
        assert!(stderr.contains("File too large"), "{option}: {stderr}");
    }
    let folder = folder();
    fs::write(folder.path().join("kept"), "a file").expect("the file can be written");
    let output = ibfabric(&["sm", "--sim", "net", "--once", "--cache-dir", "kept"])
        .current_dir(folder.path())
        .output()
        .expect("the program can be started");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(
        stderr.matches("cannot write the LID cache in kept: File exists").count(),
        1,
        "{stderr}"
    );
}

#[test]
fn interrupted_gen_leaves_former_or_whole_result() {
    let folder = tempfile::tempdir().expect("a temporary directory can be created");
    let result = folder.path().join("result");
    let mut interrupted = 0;
    // On a fast machine, the file can be complete before the signal, so runs are repeated.
    for wait in [0, 2, 5, 10].into_iter().cycle().take(40) {
        if interrupted == 4 {
            break;
        }
        fs::write(&result, FORMER).expect("the file can be written");
        let mut command = ibfabric(&["gen", "xgft", "35,35,35", "1,35,35", "-o"]);
        let mut child = command.arg(&result).spawn().expect("the program can be started");
        let end = Instant::now() + Duration::from_secs(60);
        while names(folder.path()).len() == 1 && Instant::now() < end {
            if child.try_wait().expect("the process is a child of the test").is_some() {
                break;
            }
        }
        std::thread::sleep(Duration::from_millis(wait));
        let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
        let term = rustix::process::Signal::TERM;
        let _ = rustix::process::kill_process(pid.expect("the process ID is valid"), term);
        let status = child.wait().expect("the process can be awaited");
        assert_eq!(names(folder.path()), ["result"], "no temporary file remains");
        let text = fs::read_to_string(&result).expect("the file exists");
        if status.success() {
            assert_ne!(text, FORMER);
        } else {
            assert_eq!(text, FORMER);
            interrupted += 1;
        }
    }
    assert!(interrupted > 0, "a run is interrupted while it writes");
}
