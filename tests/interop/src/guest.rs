//! Boots a guest, and runs commands in it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::channel::Port;
use crate::error::{BootError, RunError};
use crate::image::{self, Image};
use crate::network::{Network, TAP};
use crate::running::{Finished, Running};

/// The guest's IPv4 address.
pub const GUEST_V4: Ipv4Addr = Ipv4Addr::new(192, 168, 77, 1);
/// The guest's IPv6 address.
pub const GUEST_V6: Ipv6Addr = Ipv6Addr::new(0xFD00, 0x77, 0, 0, 0, 0, 0, 1);
/// Programs on the host have this IPv4 address in the guest's network namespace.
pub const BESIDE_V4: Ipv4Addr = Ipv4Addr::new(192, 168, 77, 2);
/// Programs on the host have this IPv6 address in the guest's network namespace.
pub const BESIDE_V6: Ipv6Addr = Ipv6Addr::new(0xFD00, 0x77, 0, 0, 0, 0, 0, 2);

/// Command that copies the `ibfabric` binary from the guest's disk. The binary must be at offset 0 of the image file
/// [`GuestOptions::disk`].
pub const FROM_DISK: &str =
    "dd if=/dev/vda of=/bin/ibfabric bs=65536 2>/dev/null && chmod +x /bin/ibfabric";

/// Options of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestOptions {
    /// The MTU of the link in bytes. 1500 results in a path MTU of 1024, and 9000 in 4096.
    pub mtu: u32,
    /// Memory of the guest in MiB.
    pub memory: u32,
    /// Number of processors of the guest.
    pub processors: u32,
    /// Image file of the guest's disk `/dev/vda`. The guest can write to the disk.
    pub disk: Option<PathBuf>,
    /// Path of a pcap file, to which all packets between the guest and programs on the host are written.
    pub capture: Option<PathBuf>,
    /// Time limit for the guest to boot.
    pub limit: Duration,
}

impl Default for GuestOptions {
    fn default() -> Self {
        let limit = Duration::from_secs(120);
        Self { mtu: 1500, memory: 768, processors: 2, disk: None, capture: None, limit }
    }
}

/// A running guest. When it is dropped, the emulator is killed and the network namespace is removed.
#[derive(Debug)]
pub struct Guest {
    // The fields are dropped in this order: the emulator before the network and the folder, because the emulator uses
    // the TAP device and files in the folder.
    port: Arc<Port>,
    _emulator: Emulator,
    network: Network,
    folder: TempDir,
    boot: Duration,
}

/// Time limit of a short command, such as reading counters.
const COMMAND_LIMIT: Duration = Duration::from_secs(20);

impl Guest {
    /// Boots a guest in a network namespace of its own, with an emulated processor.
    ///
    /// The first call on a machine installs packages and builds the image, which takes a minute or two.
    ///
    /// # Errors
    /// Fails with [`BootError::Unavailable`] if this machine cannot run guests. Other errors report which step has
    /// failed.
    pub fn boot(options: &GuestOptions) -> Result<Self, BootError> {
        // Steps that can fail quickly come first, because building the image may take two minutes.
        let network = Network::create(options.mtu)?;
        image::ensure_qemu()?;
        let image = Image::obtain()?;
        let start = Instant::now();
        let folder = tempfile::Builder::new().prefix("ibfabric-peer-").tempdir();
        let folder = folder.map_err(BootError::file(std::env::temp_dir()))?;
        let address = folder.path().join("port");
        let listener = UnixListener::bind(&address).map_err(BootError::file(&address))?;
        let mut emulator = Emulator::start(&network, &image, options, folder.path())?;
        let (sender, receiver) = mpsc::channel();
        // The emulator connects before the guest's kernel runs, so a connection does not mean that the guest is ready.
        let accepted = {
            listener.set_nonblocking(true).map_err(BootError::file(&address))?;
            emulator.until(options.limit, folder.path(), || listener.accept().ok())?.0
        };
        let opened = accepted.set_nonblocking(false).and_then(|()| {
            // Sending fails if the guest becomes ready after the time limit, when the receiver no longer exists. This
            // error is ignored.
            Port::open(accepted, move || sender.send(()).unwrap_or_default())
        });
        let port = opened.map_err(BootError::file(&address))?;
        emulator.until(options.limit, folder.path(), || receiver.try_recv().ok())?;
        Ok(Self { port, _emulator: emulator, network, folder, boot: start.elapsed() })
    }

    /// Returns how long the guest took to boot.
    #[must_use]
    pub fn boot_time(&self) -> Duration {
        self.boot
    }

    /// Starts a command, which is a single line for the guest's shell.
    ///
    /// # Errors
    /// Fails if the command has a line break or if the guest has exited.
    pub fn start(&self, command: &str) -> Result<Running, RunError> {
        Running::in_guest(&self.port, command)
    }

    /// Runs a command and waits for its exit. A status other than 0 is not an error.
    ///
    /// # Errors
    /// Fails like [`Guest::start`] and [`Running::wait`].
    pub fn run(&self, command: &str, limit: Duration) -> Result<Finished, RunError> {
        self.start(command)?.wait(limit)
    }

    /// Returns a command that runs a host program in the guest's network namespace. The program's addresses in this
    /// namespace are [`BESIDE_V4`] and [`BESIDE_V6`].
    ///
    /// The new command has the environment and working directory of `command`, but not its standard streams.
    #[must_use]
    pub fn beside(&self, command: &Command) -> Command {
        let mut beside = self.network.command(command.get_program());
        beside.args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => beside.env(name, value),
                None => beside.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            beside.current_dir(folder);
        }
        beside
    }

    /// Starts a host program in the guest's namespace.
    ///
    /// # Errors
    /// Fails if `ip netns exec` cannot be started. If the program does not exist, the exit status is not 0.
    pub fn start_beside(&self, command: &Command) -> Result<Running, RunError> {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        Running::on_host(self.beside(command), words.join(" "))
    }

    /// Waits until a program or kernel module of the guest listens on a port of the RDMA CM.
    ///
    /// # Errors
    /// Fails if the time limit expires.
    pub fn await_listener(&self, port: u16, limit: Duration) -> Result<(), RunError> {
        let end = format!(":{port}");
        self.await_line("rdma resource show cm_id", limit, |line| {
            line.contains(" LISTEN ") && line.split(' ').any(|word| word.ends_with(&end))
        })
    }

    /// Waits until a program in the guest listens on a TCP port. For example, `ibv_rc_pingpong` exchanges QPNs over
    /// TCP.
    ///
    /// # Errors
    /// Fails if the time limit expires.
    pub fn await_tcp_listener(&self, port: u16, limit: Duration) -> Result<(), RunError> {
        let end = format!(":{port}");
        self.await_line("netstat -ltn", limit, |line| {
            line.split(' ').any(|word| word.ends_with(&end))
        })
    }

    /// Repeats a command until `is_match` returns true for a line of its output.
    fn await_line(
        &self,
        command: &str,
        limit: Duration,
        is_match: impl Fn(&str) -> bool,
    ) -> Result<(), RunError> {
        let end = Instant::now() + limit;
        loop {
            let output = self.run_checked(command)?;
            if output.lines().any(&is_match) {
                return Ok(());
            }
            if Instant::now() >= end {
                let (command, what) = (command.to_owned(), "show a listener".to_owned());
                return Err(RunError::Timeout { command, what, limit, output });
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Returns the counters of the guest's rxe device by name, such as `retry_exceeded_err`.
    ///
    /// # Errors
    /// Fails if the counters cannot be read.
    pub fn counters(&self) -> Result<BTreeMap<String, u64>, RunError> {
        let folder = "/sys/class/infiniband/rxe0/ports/1/hw_counters";
        let shown = self.run_checked(&format!("cd {folder} && grep . $(ls | grep -v lifespan)"))?;
        let counter = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        Ok(shown.lines().filter_map(counter).collect())
    }

    /// Returns the kernel log of the guest.
    ///
    /// # Errors
    /// Fails if `dmesg` cannot be run in the guest.
    pub fn kernel_log(&self) -> Result<String, RunError> {
        self.run_checked("dmesg")
    }

    /// Returns the name of the guest's network namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.network.name()
    }

    /// Returns the output of the guest's console, also after the guest has exited.
    #[must_use]
    pub fn console(&self) -> String {
        console(self.folder.path())
    }

    /// Runs a short command that must succeed, and returns its output.
    fn run_checked(&self, command: &str) -> Result<String, RunError> {
        let Finished { command, status, output, .. } = self.run(command, COMMAND_LIMIT)?;
        if status == 0 { Ok(output) } else { Err(RunError::Failed { command, status, output }) }
    }
}

/// The emulator's process, which is killed on drop.
#[derive(Debug)]
struct Emulator(Child);

impl Emulator {
    fn start(
        network: &Network,
        image: &Image,
        options: &GuestOptions,
        folder: &Path,
    ) -> Result<Self, BootError> {
        let mut command = network.command(image::QEMU);
        command.args(["-accel", "tcg,thread=multi", "-cpu", "max"]);
        command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        command.arg("-m").arg(options.memory.to_string());
        command.arg("-smp").arg(options.processors.to_string());
        command.arg("-kernel").arg(&image.kernel).arg("-initrd").arg(&image.ram_disk);
        let line = format!("console=ttyS0 quiet panic=-1 mtu={}", options.mtu);
        command.args(["-append", &line, "-serial", "file:console"]);
        // If virtio headers are off, the capture file contains plain Ethernet frames.
        let headers = if options.capture.is_some() { ",vnet_hdr=off" } else { "" };
        let tap = format!("tap,id=net,ifname={TAP},script=no,downscript=no{headers}");
        command.args(["-netdev", &tap, "-device", "virtio-net-pci,netdev=net,romfile="]);
        command.args(["-chardev", "socket,id=port,path=port"]);
        // If the serial port used an ioeventfd, a guest process that finds the virtqueue full might never be woken.
        command.args(["-device", "virtio-serial-pci,ioeventfd=off"]);
        command.args(["-device", "virtserialport,chardev=port,nr=1"]);
        if let Some(disk) = &options.disk {
            let options = "format=raw,if=virtio,cache=writeback,discard=unmap";
            command.arg("-drive").arg(format!("file={},{options}", absolute(disk)?));
        }
        if let Some(capture) = &options.capture {
            let file = absolute(capture)?;
            command.args(["-object", &format!("filter-dump,id=dump,netdev=net,file={file}")]);
        }
        let path = folder.join("emulator");
        let log = File::create(&path).map_err(BootError::file(&path))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // The emulator gets its own process group, so Ctrl-C does not reach it. Drop kills the emulator.
        let child = command.current_dir(folder).process_group(0).spawn();
        Ok(Self(child.map_err(BootError::file("ip"))?))
    }

    /// Waits until `poll` returns a value. Fails if the emulator exits or the time limit expires.
    fn until<T>(
        &mut self,
        limit: Duration,
        folder: &Path,
        mut poll: impl FnMut() -> Option<T>,
    ) -> Result<T, BootError> {
        let end = Instant::now() + limit;
        loop {
            if let Some(value) = poll() {
                return Ok(value);
            }
            if let Some(status) = self.0.try_wait().map_err(BootError::file(image::QEMU))? {
                return Err(BootError::Ended {
                    status,
                    console: image::tail(&console(folder), 30),
                });
            }
            if Instant::now() >= end {
                return Err(BootError::Silent {
                    limit,
                    console: image::tail(&console(folder), 30),
                });
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // An error is ignored, because the emulator may have exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the absolute path in the syntax of the emulator's options, in which commas are doubled.
fn absolute(path: &Path) -> Result<String, BootError> {
    let absolute = std::path::absolute(path).map_err(BootError::file(path))?;
    Ok(absolute.to_string_lossy().replace(',', ",,"))
}

/// Returns the output of the emulator and of the guest's kernel.
fn console(folder: &Path) -> String {
    let read = |name| fs::read(folder.join(name)).unwrap_or_default();
    let all = [read("emulator"), read("console")].concat();
    String::from_utf8_lossy(&all).replace('\r', "")
}
