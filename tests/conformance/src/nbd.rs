//! NBD clients on a device that `ibfabric rtrs serve` stores and `ibfabric nbd` exports: `qemu-img`, `nbdinfo`,
//! `nbdcopy`, `nbdsh`, `fio`, and the tools of ext4.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub mod libnbd;

/// Size of the device in bytes, which is also the size of the copied images.
const SIZE: u64 = 96 << 20;
const IMAGE: usize = 40 << 20;

/// Time limit of a program that a case runs, such as qemu-img or fio.
const LIMIT: Duration = Duration::from_secs(120);

/// The required programs, and the Debian packages that contain them.
pub const PROGRAMS: [(&str, &str); 7] = [
    ("qemu-img", "qemu-utils"),
    ("nbdinfo", "libnbd-bin"),
    ("nbdcopy", "libnbd-bin"),
    ("nbdsh", "python3-libnbd"),
    ("fio", "fio"),
    ("mke2fs", "e2fsprogs"),
    ("e2fsck", "e2fsprogs"),
];

/// A test case: whether the device is stored in a file or in memory, whether the programs connect over TCP or a Unix
/// socket, and the number of RTRS paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Name of the case.
    pub name: &'static str,
    in_file: bool,
    over_tcp: bool,
    paths: usize,
}

/// The cases.
pub const CASES: [Case; 3] = [
    Case { name: "memory, a Unix socket", in_file: false, over_tcp: false, paths: 1 },
    Case { name: "a file, a Unix socket, two paths", in_file: true, over_tcp: false, paths: 2 },
    Case { name: "a file, TCP", in_file: true, over_tcp: true, paths: 1 },
];

/// Results of a case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Number of checks.
    pub checks: usize,
    /// The failed checks.
    pub faults: Vec<String>,
}

impl Checked {
    fn check(&mut self, is_good: bool, what: impl FnOnce() -> String) {
        self.checks += 1;
        if !is_good {
            self.faults.push(what());
        }
    }
}

/// A process that is killed when dropped.
struct Running(Child);

impl Running {
    /// Starts a program. Returns the process and the first line of its output.
    fn start(command: &mut Command) -> io::Result<(Self, String)> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        let output = child.stdout.as_mut().expect("standard output is a pipe");
        BufReader::new(output).read_line(&mut line)?;
        Ok((Self(child), line.trim().to_owned()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // An error is ignored, because the process may have ended.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Runs a program with the given input. The program must succeed within the time limit. Returns its output.
fn output_of(checked: &mut Checked, command: &mut Command, input: &str) -> io::Result<String> {
    let mut output = tempfile::tempfile()?;
    let mut given = tempfile::tempfile()?;
    given.write_all(input.as_bytes())?;
    given.rewind()?;
    command.stdin(given).stdout(output.try_clone()?).stderr(output.try_clone()?);
    let mut child = Running(command.spawn()?);
    let end = Instant::now() + LIMIT;
    let status = loop {
        match child.0.try_wait()? {
            Some(status) => break status.to_string(),
            None if Instant::now() > end => {
                break format!("not ended within {} s", LIMIT.as_secs());
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let mut said = Vec::new();
    output.rewind()?;
    output.read_to_end(&mut said)?;
    let said = String::from_utf8_lossy(&said).into_owned();
    checked.check(status == "exit status: 0", || format!("{command:?}: {status}: {said}"));
    Ok(said)
}

/// An exported device, and the environment of the programs that use it.
struct Lab<'a> {
    directory: &'a Path,
    uri: String,
    checked: Checked,
}

/// Runs a case in the given directory. `port` is a UDP port that is free on loopback.
///
/// # Errors
/// Fails if a program cannot be started.
pub fn run(case: &Case, program: &Path, directory: &Path, port: u16) -> io::Result<Checked> {
    let udp = port.to_string();
    let store = if case.in_file {
        let file = directory.join("disk");
        fs::File::create(&file)?.set_len(SIZE)?;
        file.display().to_string()
    } else {
        format!("mem:{SIZE}")
    };
    let mut serve = Command::new(program);
    serve.args(["rtrs", "serve", "--listen", "127.0.0.1", "--udp-port", &udp, "--export"]);
    let (_serve, ready) = Running::start(serve.arg(format!("disk0={store}")))?;
    let mut checked = Checked::default();
    checked.check(ready == "READY", || format!("the first line of rtrs serve is {ready:?}"));
    let mut nbd = Command::new(program);
    nbd.args(["nbd", "--udp-port", &udp, "--device", "disk0"]);
    nbd.args((0..case.paths).flat_map(|_| ["--path", "127.0.0.1"]));
    let socket = directory.join("nbd.sock");
    match case.over_tcp {
        true => nbd.args(["--listen", "127.0.0.1:0"]),
        false => nbd.arg("--socket").arg(&socket),
    };
    let (_nbd, ready) = Running::start(&mut nbd)?;
    checked.check(ready.starts_with("READY"), || format!("the first line of nbd is {ready:?}"));
    let uri = match ready.strip_prefix("READY ") {
        Some(uri) => uri.to_owned(),
        None => format!("nbd+unix:///disk0?socket={}", socket.display()),
    };
    let mut lab = Lab { directory, uri, checked };
    lab.describe()?;
    lab.convert()?;
    lab.copy()?;
    lab.verify()?;
    lab.change()?;
    lab.file_system()?;
    Ok(lab.checked)
}

impl Lab<'_> {
    /// Runs a program that must succeed. Returns its output.
    fn output_of(&mut self, words: &[&str]) -> io::Result<String> {
        let mut command = Command::new(words[0]);
        // Debian's nbdsh runs the first python3 in `PATH`, and needs Debian's python3. So Debian's directories come
        // first.
        let others = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("/usr/bin:/usr/sbin:/bin:/sbin:{others}"));
        command.args(&words[1..]).current_dir(self.directory);
        output_of(&mut self.checked, &mut command, "")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn same(&mut self, one: &str, other: &str) -> io::Result<()> {
        let is_same = fs::read(self.path(one))? == fs::read(self.path(other))?;
        self.checked.check(is_same, || format!("{one} and {other} differ"));
        Ok(())
    }

    fn describe(&mut self) -> io::Result<()> {
        let uri = self.uri.clone();
        let told = self.output_of(&["nbdinfo", &uri])?;
        for line in [
            format!("export-size: {SIZE} "),
            "can_flush: true".into(),
            "can_fua: true".into(),
            "can_multi_conn: true".into(),
            "can_trim: true".into(),
            "can_zero: true".into(),
            "can_df: true".into(),
            "is_read_only: false".into(),
            "block_size_minimum: 512".into(),
            "block_size_maximum: 33554432".into(),
        ] {
            self.checked.check(told.contains(&line), || {
                format!("expected {line:?} from nbdinfo, found {told}")
            });
        }
        let told = self.output_of(&["nbdinfo", "--size", &uri])?;
        self.checked.check(told.trim() == SIZE.to_string(), || {
            format!("expected {SIZE} as the size, found {told}")
        });
        let list = uri.replacen("/disk0", "/", 1);
        let told = self.output_of(&["nbdinfo", "--list", &list])?;
        self.checked.check(told.contains("export=\"disk0\""), || {
            format!("expected disk0 in the list, found {told}")
        });
        Ok(())
    }

    fn convert(&mut self) -> io::Result<()> {
        let uri = self.uri.clone();
        // The image contains data, and ranges of zeros between them.
        let mut image = vec![0; SIZE as usize];
        let mut state = 88_172_645_463_325_252_u64;
        for chunk in image[..IMAGE].chunks_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            chunk.copy_from_slice(&state.to_le_bytes()[..chunk.len()]);
        }
        image[8 << 20..16 << 20].fill(0);
        fs::write(self.path("image"), &image)?;
        self.output_of(&["qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", "image", &uri])?;
        let told =
            self.output_of(&["qemu-img", "compare", "-f", "raw", "-F", "raw", "image", &uri])?;
        self.checked.check(told.contains("identical"), || told);
        self.output_of(&["qemu-img", "convert", "-f", "raw", "-O", "qcow2", &uri, "image.qcow2"])?;
        let told = self.output_of(&["qemu-img", "compare", "-F", "raw", "image.qcow2", &uri])?;
        self.checked.check(told.contains("identical"), || told);
        Ok(())
    }

    fn copy(&mut self) -> io::Result<()> {
        let uri = self.uri.clone();
        self.output_of(&["nbdcopy", &uri, "back"])?;
        self.same("image", "back")?;
        let many = ["--connections=4", "--requests=64", "--request-size=1048576", "--flush"];
        self.output_of(&[&["nbdcopy"], &many[..], &["image", &uri]].concat())?;
        self.output_of(&["nbdcopy", "--synchronous", &uri, "back"])?;
        self.same("image", "back")
    }

    fn verify(&mut self) -> io::Result<()> {
        let uri = format!("--uri={}", self.uri);
        let common = ["fio", "--name=v", "--ioengine=nbd", &uri, "--size=64M", "--verify=crc32c"];
        for how in [
            &["--rw=randwrite", "--bsrange=512-1M", "--bs_unaligned=0", "--iodepth=16"][..],
            &["--rw=randrw", "--bs=4k", "--iodepth=32", "--io_size=32M"],
            &["--rw=write", "--bs=256k", "--iodepth=8", "--fsync=16"],
        ] {
            let told = self
                .output_of(&[&common[..], &["--do_verify=1", "--verify_fatal=1"], how].concat())?;
            self.checked.check(told.contains("err= 0"), || {
                format!("expected `err= 0` from fio {how:?}: {told}")
            });
        }
        Ok(())
    }

    /// Tests discards, writes of zeros, flushes and invalid reads.
    fn change(&mut self) -> io::Result<()> {
        let uri = self.uri.clone();
        let script = "\
h.pwrite(b'x' * 65536, 0, nbd.CMD_FLAG_FUA)
h.trim(4096, 4096, nbd.CMD_FLAG_FUA)
h.zero(4096, 16384)
h.zero(512, 32768, nbd.CMD_FLAG_NO_HOLE)
h.flush()
b = h.pread(65536, 0)
z = bytes(4096)
assert b[:4096] == b'x' * 4096 and b[8192:16384] == b'x' * 8192
assert b[4096:8192] == z and b[16384:20480] == z and b[32768:33280] == z[:512]
for offset, length in [(h.get_size(), 512), (1, 512), (0, 100)]:
    h.set_strict_mode(0)
    try:
        h.pread(length, offset)
    except nbd.Error as error:
        assert error.errno == 'EINVAL', error
    else:
        assert False, (offset, length)
print('as it should be')";
        let told = self.output_of(&["nbdsh", "-u", &uri, "-c", script])?;
        self.checked.check(told.contains("as it should be"), || told);
        Ok(())
    }

    fn file_system(&mut self) -> io::Result<()> {
        let uri = self.uri.clone();
        let tree = self.path("tree");
        fs::create_dir_all(tree.join("deep/er"))?;
        for number in 0..200_u32 {
            let bytes: Vec<u8> = (0..number * 371).map(|at| (at * number) as u8).collect();
            fs::write(tree.join(format!("deep/er/{number}")), bytes)?;
        }
        fs::File::create(self.path("ext4"))?.set_len(SIZE)?;
        self.output_of(&["mke2fs", "-q", "-t", "ext4", "-d", "tree", "ext4"])?;
        self.output_of(&["nbdcopy", "--flush", "ext4", &uri])?;
        fs::remove_file(self.path("back"))?;
        self.output_of(&["nbdcopy", &uri, "back"])?;
        self.output_of(&["e2fsck", "-f", "-n", "back"])?;
        self.same("ext4", "back")
    }
}
