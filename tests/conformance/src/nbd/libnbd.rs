//! libnbd's own tests, compiled from Debian's source. Most of them start nbdkit. A program that replaces nbdkit
//! connects them to devices of `ibfabric nbd`.
//!
//! Tests of nbdkit's own features are excluded: plugins and filters, the old handshake, TLS, the metadata context
//! `base:allocation`, and exports without a minimum block size. The load tests need such exports, because they use
//! offsets that are not multiples of a sector. Also excluded is the test that expects `EINVAL` for a discard on a
//! read-only device, because ibfabric returns `EPERM` as the protocol requires.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Checked, Running, output_of};

/// The tests that start nbdkit.
const STARTING: [&str; 17] = [
    "closure-lifetimes",
    "errors-bad-cookie",
    "errors-client-oversize",
    "errors-client-unadvertised-cmd",
    "errors-client-unaligned",
    "errors-client-unknown-flags",
    "errors-client-zerosize",
    "errors-connect-twice",
    "errors-not-negotiating",
    "errors-notify-not-blocked",
    "errors-pread-structured",
    "errors-server-unaligned",
    "errors-server-unknown-flags",
    "errors-server-zerosize",
    "opt-abort",
    "pread-initialize",
    "shutdown-flags",
];

/// Sizes of the devices that the tests use, in bytes. The device of a single sector is read-only.
const SIZES: [u64; 5] = [512, 1024, 1 << 20, 2 << 20, 68_157_440];

/// Downloads libnbd's source, and installs the packages that its tests need. Returns the directory of the source.
///
/// # Errors
/// Fails if the source or a package cannot be downloaded.
pub fn fetch(directory: &Path) -> io::Result<PathBuf> {
    let script = include_str!("../../libnbd/fetch");
    let output = Command::new("bash").args(["-c", script, "fetch"]).arg(directory).output()?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(io::Error::other(why));
    }
    Ok(PathBuf::from(said))
}

/// Runs the tests in the given directory. `port` is a UDP port that is free on loopback.
///
/// # Errors
/// Fails if a program cannot be started.
pub fn run(source: &Path, program: &Path, directory: &Path, port: u16) -> io::Result<Checked> {
    let mut lab = Lab { source, directory, checked: Checked::default(), sockets: Vec::new() };
    let udp = port.to_string();
    let mut serve = Command::new(program);
    serve.args(["rtrs", "serve", "--listen", "127.0.0.1", "--udp-port", &udp]);
    serve.args(SIZES.iter().flat_map(|size| ["--export".into(), format!("d{size}=mem:{size}")]));
    let (_serve, _) = Running::start(&mut serve)?;
    for (number, size) in SIZES.iter().enumerate() {
        let mut nbd = Command::new(program);
        let path = format!("127.0.0.{}@127.0.0.1", number + 2);
        nbd.args(["nbd", "--udp-port", &udp, "--path", &path, "--device", &format!("d{size}")]);
        nbd.arg("--socket").arg(directory.join(size.to_string()));
        if *size == 512 {
            nbd.arg("--read-only");
        }
        let (running, ready) = Running::start(&mut nbd)?;
        lab.checked.check(ready == "READY", || format!("the first line of nbd is {ready:?}"));
        lab.sockets.push(running);
    }
    let bin = directory.join("bin");
    std::fs::create_dir_all(&bin)?;
    lab.output_of(
        Command::new("install").args(["-m", "755", "/dev/stdin"]).arg(bin.join("nbdkit")),
        include_str!("../../libnbd/stand-in"),
    )?;
    for test in STARTING {
        let compiled = lab.compile(test, &[])?;
        lab.output_of(&mut Command::new(compiled), "")?;
    }
    let bridge = format!(r#""STDIO", "UNIX-CONNECT:{}""#, directory.join("1048576").display());
    let params = format!("-DSERVER_PARAMS={bridge}");
    let compiled = lab.compile("../interop/interop", &["-DSERVER=\"socat\"", &params])?;
    lab.output_of(&mut Command::new(compiled), "")?;
    Ok(lab.checked)
}

struct Lab<'a> {
    source: &'a Path,
    directory: &'a Path,
    checked: Checked,
    /// The `ibfabric nbd` processes, one for each device.
    sockets: Vec<Running>,
}

impl Lab<'_> {
    /// Compiles a test. Returns the path of the program.
    fn compile(&mut self, test: &str, options: &[&str]) -> io::Result<PathBuf> {
        let tests = self.source.join("tests");
        let file = tests.join(test).with_extension("c");
        let program = self.directory.join(file.file_stem().unwrap_or_default());
        std::fs::write(self.directory.join("config.h"), "")?;
        let mut compiler = Command::new("gcc");
        compiler.args(["-D_GNU_SOURCE", "-I"]).arg(self.directory).arg("-o").arg(&program);
        compiler.arg("-I").arg(self.source.join("common/include")).arg(&file);
        compiler.arg(tests.join("requires.c")).args(options).arg("-lnbd");
        self.output_of(&mut compiler, "")?;
        Ok(program)
    }

    /// Runs a program with the given input. The program must succeed.
    fn output_of(&mut self, command: &mut Command, input: &str) -> io::Result<()> {
        let others = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{others}", self.directory.join("bin").display()));
        command.env("SOCKETS", self.directory).current_dir(self.directory);
        output_of(&mut self.checked, command, input)?;
        Ok(())
    }
}
