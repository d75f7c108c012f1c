//! The kernel and the RAM disk: built once from Debian's packages, then cached.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::error::BootError;

/// What the image is made from.
const RECIPE: &str = include_str!("../guest/build");
const INIT: &str = include_str!("../guest/init");
const ASK: &str = include_str!("../guest/getaddrinfo.c");

/// What a guest boots from.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) kernel: PathBuf,
    pub(crate) ram_disk: PathBuf,
}

/// The emulator.
pub(crate) const QEMU: &str = "qemu-system-x86_64";

impl Image {
    /// Returns the image, after building it when it is not there or was made by another recipe.
    pub(crate) fn obtain() -> Result<Self, BootError> {
        if !cfg!(target_arch = "x86_64") {
            return Err(BootError::Unavailable("guests are made for x86_64 only".into()));
        }
        let cache = folder()?;
        fs::create_dir_all(&cache).map_err(BootError::file(&cache))?;
        // Who comes while another builds waits, and finds it built.
        let path = cache.join("lock");
        let lock = File::create(&path).map_err(BootError::file(&path))?;
        lock.lock().map_err(BootError::file(&path))?;
        let stamp = cache.join("stamp");
        let whole = [RECIPE, INIT, ASK].join("\0");
        let recipe = format!("{:08x}\n", crc32fast::hash(whole.as_bytes()));
        let image = Self { kernel: cache.join("vmlinuz"), ram_disk: cache.join("initrd.gz") };
        let made = fs::read_to_string(&stamp).is_ok_and(|made| made == recipe);
        if !(made && image.kernel.exists() && image.ram_disk.exists()) {
            image.build(&cache)?;
            fs::write(&stamp, recipe).map_err(BootError::file(&stamp))?;
        }
        Ok(image)
    }

    fn build(&self, cache: &Path) -> Result<(), BootError> {
        may_install("the guest's image has to be built from Debian's packages")?;
        let begun = Instant::now();
        eprintln!(
            "interop: building the guest's image in {}, once; it takes a minute or two",
            cache.display()
        );
        let place = cache.join("building");
        if place.exists() {
            fs::remove_dir_all(&place).map_err(BootError::file(&place))?;
        }
        fs::create_dir_all(&place).map_err(BootError::file(&place))?;
        let [recipe, init, ask] = ["build", "init", "ask.c"].map(|name| place.join(name));
        for (path, text) in [(&recipe, RECIPE), (&init, INIT), (&ask, ASK)] {
            fs::write(path, text).map_err(BootError::file(path))?;
        }
        let log = cache.join("build.log");
        let file = File::create(&log).map_err(BootError::file(&log))?;
        let mut child = Command::new("bash")
            .arg(&recipe)
            .args([&place, &init, &ask])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .map_err(BootError::file("bash"))?;
        let said = BufReader::new(child.stdout.take().expect("standard input is piped"));
        for line in said.lines().map_while(Result::ok) {
            eprintln!("interop: {:>5.1} s  {line}", begun.elapsed().as_secs_f64());
        }
        if !child.wait().map_err(BootError::file("bash"))?.success() {
            let tail = tail(&fs::read_to_string(&log).unwrap_or_default(), 20);
            return Err(BootError::Build { log, tail });
        }
        for (name, to) in [("vmlinuz", &self.kernel), ("initrd.gz", &self.ram_disk)] {
            let from = place.join(name);
            fs::rename(&from, to).map_err(BootError::file(from))?;
        }
        fs::remove_dir_all(&place).map_err(BootError::file(&place))?;
        eprintln!("interop: {:>5.1} s  the image is built", begun.elapsed().as_secs_f64());
        Ok(())
    }
}

/// Installs the emulator unless it is there.
pub(crate) fn ensure_qemu() -> Result<(), BootError> {
    if in_path(QEMU) {
        return Ok(());
    }
    may_install(&format!("there is no {QEMU}"))?;
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

/// Fails where packages cannot be installed.
fn may_install(why: &str) -> Result<(), BootError> {
    let missing = match (in_path("apt-get"), rustix::process::geteuid().is_root()) {
        (true, true) => return Ok(()),
        (true, false) => "only root can install packages",
        (false, _) => "there is no apt-get",
    };
    Err(BootError::Unavailable(format!("{why}, and {missing}")))
}

fn in_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Returns where the image is kept.
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
