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
/// The IPv4 address of the programs beside it.
pub const BESIDE_V4: Ipv4Addr = Ipv4Addr::new(192, 168, 77, 2);
/// The IPv6 address of the programs beside it.
pub const BESIDE_V6: Ipv6Addr = Ipv6Addr::new(0xFD00, 0x77, 0, 0, 0, 0, 0, 2);

/// Takes our program, which [`GuestOptions::disk`] is then, into the guest as `ibfabric`.
pub const FROM_DISK: &str =
    "dd if=/dev/vda of=/bin/ibfabric bs=65536 2>/dev/null && chmod +x /bin/ibfabric";

/// What a guest is to be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestOptions {
    /// The MTU of the link in bytes; 1500 gives the path MTU 1024, and 9000 gives 4096.
    pub mtu: u32,
    /// Memory in MiB.
    pub memory: u32,
    /// Processors.
    pub processors: u32,
    /// A file that becomes the guest's `/dev/vda`, written by the guest as it likes.
    pub disk: Option<PathBuf>,
    /// A file to which every packet between the guest and the programs beside it is written, as pcap.
    pub capture: Option<PathBuf>,
    /// How long the guest may take to boot.
    pub limit: Duration,
}

impl Default for GuestOptions {
    fn default() -> Self {
        let limit = Duration::from_secs(120);
        Self { mtu: 1500, memory: 768, processors: 2, disk: None, capture: None, limit }
    }
}

/// A running guest. The emulator and the namespace go when this is dropped.
#[derive(Debug)]
pub struct Guest {
    // In this order: the emulator holds the TAP device, and has its files in the folder.
    port: Arc<Port>,
    _emulator: Emulator,
    network: Network,
    folder: TempDir,
    boot: Duration,
}

/// How long a question to the guest may take.
const QUESTION: Duration = Duration::from_secs(20);

impl Guest {
    /// Boots a guest under plain emulation, in a network namespace of its own.
    ///
    /// The first call on a machine installs packages and builds the image, which takes a minute or two.
    ///
    /// # Errors
    /// [`BootError::Unavailable`] where no guest can run; the others when something failed.
    pub fn boot(options: &GuestOptions) -> Result<Self, BootError> {
        // First what takes no time.
        let network = Network::create(options.mtu)?;
        image::ensure_qemu()?;
        let image = Image::obtain()?;
        let begun = Instant::now();
        let folder = tempfile::Builder::new().prefix("ibfabric-peer-").tempdir();
        let folder = folder.map_err(BootError::file(std::env::temp_dir()))?;
        let address = folder.path().join("port");
        let listener = UnixListener::bind(&address).map_err(BootError::file(&address))?;
        let mut emulator = Emulator::start(&network, &image, options, folder.path())?;
        let (sender, receiver) = mpsc::channel();
        // The emulator connects before the guest's kernel runs.
        let accepted = {
            listener.set_nonblocking(true).map_err(BootError::file(&address))?;
            emulator.until(options.limit, folder.path(), || listener.accept().ok())?.0
        };
        let opened = accepted.set_nonblocking(false).and_then(|()| {
            // When the guest is ready too late, nobody waits for it any more.
            Port::open(accepted, move || sender.send(()).unwrap_or_default())
        });
        let port = opened.map_err(BootError::file(&address))?;
        emulator.until(options.limit, folder.path(), || receiver.try_recv().ok())?;
        Ok(Self { port, _emulator: emulator, network, folder, boot: begun.elapsed() })
    }

    /// Returns how long the guest took to boot.
    #[must_use]
    pub fn boot_time(&self) -> Duration {
        self.boot
    }

    /// Starts a command, which the guest's shell reads. It must be one line.
    ///
    /// # Errors
    /// Fails when it is more than a line or when the guest has gone.
    pub fn start(&self, command: &str) -> Result<Running, RunError> {
        Running::in_guest(&self.port, command)
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    /// Fails as [`Guest::start`] and [`Running::wait`] do; a status that is not 0 is no error.
    pub fn run(&self, command: &str, limit: Duration) -> Result<Finished, RunError> {
        self.start(command)?.wait(limit)
    }

    /// Returns the command that does the same in the guest's namespace, where it has
    /// [`BESIDE_V4`] and [`BESIDE_V6`]. Environment and folder are taken over, standard streams are not.
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

    /// Starts a program in the guest's namespace.
    ///
    /// # Errors
    /// Fails when it cannot be started. A program that does not exist is only known by its status.
    pub fn start_beside(&self, command: &Command) -> Result<Running, RunError> {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        Running::beside(self.beside(command), words.join(" "))
    }

    /// Returns once a program or module of the guest listens at a port of the connection manager.
    ///
    /// # Errors
    /// Fails when nobody does in time.
    pub fn await_listener(&self, port: u16, limit: Duration) -> Result<(), RunError> {
        let end = format!(":{port}");
        self.await_line("rdma resource show cm_id", limit, |line| {
            line.contains(" LISTEN ") && line.split(' ').any(|word| word.ends_with(&end))
        })
    }

    /// Returns once a program of the guest listens at a TCP port, as those that exchange the numbers of
    /// their queue pairs do.
    ///
    /// # Errors
    /// Fails when nobody does in time.
    pub fn await_tcp_listener(&self, port: u16, limit: Duration) -> Result<(), RunError> {
        let end = format!(":{port}");
        self.await_line("netstat -ltn", limit, |line| {
            line.split(' ').any(|word| word.ends_with(&end))
        })
    }

    /// Repeats a command until one of its lines is as wanted.
    fn await_line(
        &self,
        command: &str,
        limit: Duration,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<(), RunError> {
        let end = Instant::now() + limit;
        loop {
            let output = self.ask(command)?;
            if output.lines().any(&wanted) {
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
    /// Fails when they cannot be read.
    pub fn counters(&self) -> Result<BTreeMap<String, u64>, RunError> {
        let folder = "/sys/class/infiniband/rxe0/ports/1/hw_counters";
        let shown = self.ask(&format!("cd {folder} && grep . $(ls | grep -v lifespan)"))?;
        let counter = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        Ok(shown.lines().filter_map(counter).collect())
    }

    /// Returns what the guest's kernel has logged.
    ///
    /// # Errors
    /// Fails when the guest cannot be asked.
    pub fn kernel_log(&self) -> Result<String, RunError> {
        self.ask("dmesg")
    }

    /// Returns the name of the guest's network namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.network.name()
    }

    /// Returns what stands on the guest's console, which is there when the guest is not any more.
    #[must_use]
    pub fn console(&self) -> String {
        console(self.folder.path())
    }

    /// Runs a command that must succeed, and returns its output.
    fn ask(&self, command: &str) -> Result<String, RunError> {
        let Finished { command, status, output, .. } = self.run(command, QUESTION)?;
        if status == 0 { Ok(output) } else { Err(RunError::Failed { command, status, output }) }
    }
}

/// The emulator's process, which is killed when this is dropped.
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
        // A capture has Ethernet frames, without headers of virtio before them.
        let headers = if options.capture.is_some() { ",vnet_hdr=off" } else { "" };
        let tap = format!("tap,id=net,ifname={TAP},script=no,downscript=no{headers}");
        command.args(["-netdev", &tap, "-device", "virtio-net-pci,netdev=net,romfile="]);
        command.args(["-chardev", "socket,id=port,path=port"]);
        // With an ioeventfd, a writer in the guest that finds the queue full may not be woken any more.
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
        // A group of its own: an interrupt from the keyboard ends the guest by ending its host.
        let child = command.current_dir(folder).process_group(0).spawn();
        Ok(Self(child.map_err(BootError::file("ip"))?))
    }

    /// Waits until there is something.
    fn until<T>(
        &mut self,
        limit: Duration,
        folder: &Path,
        mut there: impl FnMut() -> Option<T>,
    ) -> Result<T, BootError> {
        let end = Instant::now() + limit;
        loop {
            if let Some(thing) = there() {
                return Ok(thing);
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
        // It may have ended by itself; then there is nothing to do.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a path as the emulator's options have it, in which a comma is written twice.
fn absolute(path: &Path) -> Result<String, BootError> {
    let absolute = std::path::absolute(path).map_err(BootError::file(path))?;
    Ok(absolute.to_string_lossy().replace(',', ",,"))
}

/// Returns what the emulator and the guest's kernel have said.
fn console(folder: &Path) -> String {
    let read = |name| fs::read(folder.join(name)).unwrap_or_default();
    let all = [read("emulator"), read("console")].concat();
    String::from_utf8_lossy(&all).replace('\r', "")
}
