//! The guest's kernel and RAM disk, which are built once from Debian's packages and then cached.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::error::BootError;

/// Sources of the image: the build script, the guest's first process, and the program `rdma-getaddrinfo`.
const RECIPE: &str = include_str!("../guest/build");
const INIT: &str = include_str!("../guest/init");
const GETADDRINFO: &str = include_str!("../guest/getaddrinfo.c");

/// Paths of a guest's kernel and RAM disk.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) kernel: PathBuf,
    pub(crate) ram_disk: PathBuf,
}

/// Program name of the emulator.
pub(crate) const QEMU: &str = "qemu-system-x86_64";

impl Image {
    /// Returns the paths of the guest's kernel and RAM disk. Builds both first if they do not exist or their sources
    /// have changed.
    pub(crate) fn obtain() -> Result<Self, BootError> {
        if !cfg!(target_arch = "x86_64") {
            return Err(BootError::Unavailable(
                "expected an x86_64 machine, because guests run only on this architecture".into(),
            ));
        }
        let cache = folder()?;
        fs::create_dir_all(&cache).map_err(BootError::file(&cache))?;
        // If another process is building the image, waits until it has finished.
        let path = cache.join("lock");
        let lock = File::create(&path).map_err(BootError::file(&path))?;
        lock.lock().map_err(BootError::file(&path))?;
        let stamp = cache.join("stamp");
        let sources = [RECIPE, INIT, GETADDRINFO].join("\0");
        let checksum = format!("{:08x}\n", crc32fast::hash(sources.as_bytes()));
        let image = Self { kernel: cache.join("vmlinuz"), ram_disk: cache.join("initrd.gz") };
        let is_current = fs::read_to_string(&stamp).is_ok_and(|stamp| stamp == checksum);
        if !(is_current && image.kernel.exists() && image.ram_disk.exists()) {
            image.build(&cache)?;
            fs::write(&stamp, checksum).map_err(BootError::file(&stamp))?;
        }
        Ok(image)
    }

    /// Builds the image from Debian's packages.
    fn build(&self, cache: &Path) -> Result<(), BootError> {
        require_apt("the guest's image has to be built from Debian's packages")?;
        let start = Instant::now();
        eprintln!(
            "interop: building the guest's image in {}; this happens only once and takes a minute or two",
            cache.display()
        );
        let stage = cache.join("building");
        if stage.exists() {
            fs::remove_dir_all(&stage).map_err(BootError::file(&stage))?;
        }
        fs::create_dir_all(&stage).map_err(BootError::file(&stage))?;
        let [recipe, init, program] = ["build", "init", "ask.c"].map(|name| stage.join(name));
        for (path, text) in [(&recipe, RECIPE), (&init, INIT), (&program, GETADDRINFO)] {
            fs::write(path, text).map_err(BootError::file(path))?;
        }
        let log = cache.join("build.log");
        let file = File::create(&log).map_err(BootError::file(&log))?;
        let mut child = Command::new("bash")
            .arg(&recipe)
            .args([&stage, &init, &program])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .map_err(BootError::file("bash"))?;
        let output = BufReader::new(child.stdout.take().expect("standard output is piped"));
        for line in output.lines().map_while(Result::ok) {
            eprintln!("interop: {:>5.1} s  {line}", start.elapsed().as_secs_f64());
        }
        if !child.wait().map_err(BootError::file("bash"))?.success() {
            let tail = tail(&fs::read_to_string(&log).unwrap_or_default(), 20);
            return Err(BootError::Build { log, tail });
        }
        for (name, to) in [("vmlinuz", &self.kernel), ("initrd.gz", &self.ram_disk)] {
            let from = stage.join(name);
            fs::rename(&from, to).map_err(BootError::file(from))?;
        }
        fs::remove_dir_all(&stage).map_err(BootError::file(&stage))?;
        eprintln!("interop: {:>5.1} s  the image is built", start.elapsed().as_secs_f64());
        Ok(())
    }
}

/// Installs the emulator if it is not installed.
pub(crate) fn ensure_qemu() -> Result<(), BootError> {
    if in_path(QEMU) {
        return Ok(());
    }
    require_apt(&format!("{QEMU} is not installed"))?;
    eprintln!("interop: installing qemu-system-x86, about 60 MB");
    for arguments in ["update -qq", "install -y -qq --no-install-recommends qemu-system-x86"] {
        let mut command = Command::new("apt-get");
        command.args(arguments.split(' ')).env("DEBIAN_FRONTEND", "noninteractive");
        let output = command.stdin(Stdio::null()).output().map_err(BootError::file("apt-get"))?;
        if !output.status.success() {
            let message = tail(&String::from_utf8_lossy(&output.stderr), 20);
            return Err(BootError::Command { command: format!("apt-get {arguments}"), message });
        }
    }
    Ok(())
}

/// Fails if this process cannot install Debian packages. `why` states why packages are needed.
fn require_apt(why: &str) -> Result<(), BootError> {
    let obstacle = match (in_path("apt-get"), rustix::process::geteuid().is_root()) {
        (true, true) => return Ok(()),
        (true, false) => "only root can install packages",
        (false, _) => "apt-get is not installed",
    };
    Err(BootError::Unavailable(format!("{why}, but {obstacle}")))
}

/// Returns true if a program is in a directory of `PATH`.
fn in_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Returns the directory of the cached image.
fn folder() -> Result<PathBuf, BootError> {
    let named = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")));
    named("IBFABRIC_PEER_CACHE")
        .or_else(|| Some(cache()?.join("ibfabric/kernel-peer")))
        .ok_or_else(|| BootError::Unavailable("neither HOME nor IBFABRIC_PEER_CACHE is set".into()))
}

/// Returns the last lines of a text.
pub(crate) fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
