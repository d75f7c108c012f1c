//! `rtrs mount` shows the control files as a file system.

use std::fs;
use std::io::Read as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::command::{Running, ibfabric, text};
use crate::tree::{Busy, FIRST, SECOND, Scene};

/// Returns true if this machine can mount file systems by FUSE. If not, prints the reason.
fn can_mount() -> bool {
    let has_helper = || {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&paths).any(|dir| dir.join("fusermount3").exists())
    };
    let is_root = rustix::process::geteuid().is_root();
    let why = if !Path::new("/dev/fuse").exists() {
        "there is no /dev/fuse"
    } else if !is_root && !has_helper() {
        "fusermount3 is not installed, and only root can mount without it"
    } else {
        return true;
    };
    writeln!(std::io::stderr(), "NOT RUN: files by FUSE: {why}")
        .expect("standard error can be written");
    false
}

/// A running `rtrs mount`, which shows the control files of a scene's client and server.
struct Mounted {
    dir: PathBuf,
    running: Running,
}

impl Mounted {
    fn start(scene: &Scene) -> Self {
        let dir = scene.at("tree");
        fs::create_dir_all(&dir).expect("the directory can be created");
        let [client, server] = ["client", "server"].map(|name| scene.at(name));
        let mut command = ibfabric(&["rtrs", "mount"]);
        command.arg(&dir).arg("--socket").arg(client).arg("--socket").arg(server);
        command.stderr(Stdio::piped());
        Self { dir, running: Running::ready(command) }
    }

    fn read(&self, path: &str) -> Result<String, i32> {
        fs::read_to_string(self.dir.join(path))
            .map_err(|error| error.raw_os_error().expect("the error has an error number"))
    }

    /// Writes a value and a line feed to a control file, as `echo` does.
    fn write(&self, path: &str, value: &str) -> Result<(), i32> {
        let path = self.dir.join(path);
        let file = fs::OpenOptions::new().write(true).truncate(true).open(path);
        let written = file.and_then(|mut file| file.write_all(format!("{value}\n").as_bytes()));
        written.map_err(|error| error.raw_os_error().expect("the error has an error number"))
    }

    fn list(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.dir.join(path)).expect("the directory can be read");
        let name = |entry: std::io::Result<fs::DirEntry>| {
            entry
                .expect("the directory can be read")
                .file_name()
                .into_string()
                .expect("the name is UTF-8")
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }

    fn is_mounted(&self) -> bool {
        let mounts =
            fs::read_to_string("/proc/self/mountinfo").expect("the list of mounts can be read");
        mounts.contains(&format!(" {} ", self.dir.display()))
    }

    /// Stops `rtrs mount` by a signal.
    fn end(&mut self, signal: Signal) -> ExitStatus {
        let pid = Pid::from_child(&self.running.0);
        kill_process(pid, signal).expect("the process exists");
        self.wait()
    }

    fn wait(&mut self) -> ExitStatus {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(status) =
                self.running.0.try_wait().expect("the process is a child of the test")
            {
                return status;
            }
            assert!(Instant::now() < end, "`rtrs mount` does not exit");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Mounted {
    /// Unmounts the file system, also after a failed test.
    fn drop(&mut self) {
        if self.is_mounted() {
            // Sending the signal fails only if the process has already exited.
            kill_process(Pid::from_child(&self.running.0), Signal::TERM).ok();
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

// Error numbers of Linux.
const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const EACCES: i32 = 13;
const EISDIR: i32 = 21;
const EINVAL: i32 = 22;

#[test]
fn control_files_are_mounted() {
    if !can_mount() {
        return;
    }
    let scene = Scene::start();
    let mut tree = Mounted::start(&scene);
    let busy = Busy::start(&scene.at("nbd"));
    assert_eq!(tree.list(""), ["ibtrs-client", "ibtrs-server", "rtrs-client", "rtrs-server"]);
    assert_eq!(
        tree.list("rtrs-client/host-1"),
        ["add_path", "max_reconnect_attempts", "mpath_policy", "paths"]
    );
    let first = format!("ibtrs-client/host-1/paths/{FIRST}");
    let second = format!("rtrs-client/host-1/paths/{SECOND}");
    assert_eq!(tree.read(&format!("{first}/state")), Ok("connected\n".to_owned()));
    assert_eq!(tree.write("ibtrs-client/host-1/add_path", "ip:127.0.0.3,ip:127.0.0.1"), Ok(()));
    assert_eq!(tree.read(&format!("{second}/state")), Ok("connected\n".to_owned()));
    assert_eq!(tree.list("rtrs-server/host-1/paths"), [FIRST, SECOND]);
    assert_eq!(tree.write("ibtrs-client/host-1/mp_policy", "round-robin"), Ok(()));
    assert_eq!(
        tree.read("rtrs-client/host-1/mpath_policy"),
        Ok("round-robin (RR: 0)\n".to_owned())
    );
    assert_eq!(tree.write(&format!("{first}/disconnect"), "1"), Ok(()));
    assert_eq!(tree.read(&format!("{first}/state")), Ok("disconnected\n".to_owned()));
    busy.goes_on();
    let numbers = tree.read(&format!("{second}/stats/rdma")).expect("the file can be read");
    assert_eq!(numbers.split_whitespace().count(), 6, "{numbers}");
    assert!(!numbers.starts_with("0 "), "{numbers}");
    assert_eq!(tree.write(&format!("{first}/remove_path"), "1"), Ok(()));
    assert_eq!(tree.read(&format!("{first}/state")), Err(ENOENT));
    assert_eq!(tree.list("ibtrs-client/host-1/paths"), [SECOND]);

    // Invalid writes to control files fail with error numbers.
    assert_eq!(tree.write(&format!("{second}/disconnect"), "yes"), Err(EINVAL));
    assert_eq!(tree.write(&format!("{second}/state"), "1"), Err(EACCES));
    assert_eq!(tree.write(&format!("{second}/none"), "1"), Err(ENOENT));
    assert_eq!(tree.write(&format!("{second}/stats"), "1"), Err(EISDIR));
    let made =
        fs::write(tree.dir.join("rtrs-client/new"), "1").expect_err("the file cannot be created");
    assert_eq!(made.raw_os_error(), Some(EPERM));
    let removed = fs::remove_file(tree.dir.join(&second).join("state"))
        .expect_err("the file cannot be removed");
    assert_eq!(removed.raw_os_error(), Some(EPERM));
    let long = "1".repeat(5000);
    assert_eq!(tree.write(&format!("{second}/stats/rdma"), &long), Err(EINVAL));
    let metadata = fs::metadata(tree.dir.join(&second).join("state")).expect("the file exists");
    assert!(metadata.permissions().readonly() && metadata.len() == 4096);

    // If an open file is read again, it returns the current values.
    let mut open =
        fs::File::open(tree.dir.join(&second).join("stats/rdma")).expect("the file exists");
    let mut before = String::new();
    open.read_to_string(&mut before).expect("the file can be read");
    busy.goes_on();
    std::io::Seek::rewind(&mut open).expect("the file can be rewound");
    let mut after = String::new();
    open.read_to_string(&mut after).expect("the file can be read");
    assert_ne!(before, after);
    drop(open);
    busy.end();

    // On SIGTERM, `rtrs mount` unmounts the file system.
    assert!(tree.is_mounted());
    assert_eq!(tree.end(Signal::TERM).code(), Some(0));
    assert!(!tree.is_mounted());
    assert_eq!(tree.list(""), [""; 0]);
}

/// Unmounts a directory as an unprivileged user does.
fn unmount(dir: &Path) {
    let is_root = rustix::process::geteuid().is_root();
    let (program, words): (_, &[_]) =
        if is_root { ("umount", &[]) } else { ("fusermount3", &["-u"]) };
    let ended = std::process::Command::new(program).args(words).arg(dir).status();
    assert!(ended.expect("the program runs").success());
}

#[test]
fn mount_ends_by_unmount_or_signal() {
    if !can_mount() {
        return;
    }
    let scene = Scene::start();
    // On SIGINT, `rtrs mount` unmounts the file system although a file is open.
    let mut tree = Mounted::start(&scene);
    let file = tree.dir.join(format!("rtrs-client/host-1/paths/{FIRST}/state"));
    let open = fs::File::open(&file).expect("the file exists");
    assert_eq!(tree.end(Signal::INT).code(), Some(0));
    assert!(!tree.is_mounted() && !file.exists());
    drop(open);
    // If `rtrs mount` is killed, its mount remains. The next `rtrs mount` of this directory reports the mount.
    let mut tree = Mounted::start(&scene);
    assert_eq!(tree.end(Signal::KILL).code(), None);
    let mut again = ibfabric(&["rtrs", "mount"]);
    again.arg(&tree.dir).arg("--socket").arg(scene.at("server"));
    let output = again.output().expect("the program runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("the program of the mounted file system has exited"),
        "{}",
        text(&output.stderr)
    );
    unmount(&tree.dir);
    // If a user unmounts the file system, `rtrs mount` exits.
    let mut tree = Mounted::start(&scene);
    unmount(&tree.dir);
    assert_eq!(tree.wait().code(), Some(0));
    let mut printed = String::new();
    let stderr = tree.running.0.stderr.as_mut().expect("standard error is piped");
    stderr.read_to_string(&mut printed).expect("the output is UTF-8");
    assert!(printed.contains("the file system was unmounted"), "{printed}");
    // When a client or server exits, its files disappear from the mount. `rtrs mount` keeps running.
    let mut tree = Mounted::start(&scene);
    let Scene { dir, server, nbd, .. } = scene;
    drop(nbd);
    assert_eq!(tree.list(""), ["ibtrs-server", "rtrs-server"]);
    drop(server);
    assert_eq!(tree.list(""), [""; 0]);
    assert_eq!(tree.end(Signal::TERM).code(), Some(0));
    drop(dir);
}
