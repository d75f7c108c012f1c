//! The network namespace that a guest shares with programs on the host.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::BootError;

/// Name of the TAP device that connects the namespace to the guest.
pub const TAP: &str = "tap0";

/// A network namespace with a TAP device. When it is dropped, all processes in the namespace are killed, and the
/// namespace is removed with the device.
#[derive(Debug)]
pub(crate) struct Network {
    name: String,
}

/// Prefix of the names of all namespaces. The ID of the process that has created the namespace follows.
const PREFIX: &str = "ibfabric-peer-";

impl Network {
    /// Removes the namespaces of exited processes, and creates a namespace with a unique name.
    pub(crate) fn create(mtu: u32) -> Result<Self, BootError> {
        static LAST: AtomicU32 = AtomicU32::new(0);
        if !Path::new("/dev/net/tun").exists() {
            return Err(BootError::Unavailable("expected /dev/net/tun, found none".into()));
        }
        remove_stale()?;
        let network = loop {
            let number = LAST.fetch_add(1, Ordering::Relaxed);
            let name = format!("{PREFIX}{}-{number}", std::process::id());
            match ip(&["netns", "add", &name], "") {
                Ok(_) => break Self { name },
                // An exited process with the same ID has left this namespace behind.
                Err(BootError::Command { message, .. }) if message.contains("File exists") => {}
                Err(error) => return Err(error),
            }
        };
        // `nodad` avoids the delay of duplicate address detection. No other host exists in this network.
        let setup = format!(
            "link set lo up\n\
             tuntap add {TAP} mode tap\n\
             link set {TAP} mtu {mtu}\n\
             addr add 192.168.77.2/24 dev {TAP}\n\
             addr add fd00:77::2/64 dev {TAP} nodad\n\
             link set {TAP} up\n"
        );
        ip(&["-netns", &network.name, "-batch", "-"], &setup)?;
        // This setting keeps IPv6 addresses while a test sets the link down.
        let keep = format!("echo 1 > /proc/sys/net/ipv6/conf/{TAP}/keep_addr_on_down");
        ip(&["netns", "exec", &network.name, "sh", "-c", &keep], "")?;
        Ok(network)
    }

    /// Returns the name of the namespace.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns a command that runs a program in the namespace. The command has no arguments yet.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // Errors are ignored, because `remove_stale` of a later run removes what is left.
        let Ok(pids) = ip(&["netns", "pids", &self.name], "") else { return };
        for pid in pids.lines().filter_map(|pid| Pid::from_raw(pid.trim().parse().ok()?)) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = ip(&["netns", "del", &self.name], "");
    }
}

/// Removes the namespaces of processes that no longer exist.
fn remove_stale() -> Result<(), BootError> {
    for line in ip(&["netns", "list"], "")?.lines() {
        let name = line.split(' ').next().unwrap_or_default();
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if owner.is_some_and(|owner| !Path::new("/proc").join(owner).exists()) {
            drop(Network { name: name.to_owned() });
        }
    }
    Ok(())
}

/// Runs `ip` with `input` on standard input and returns its standard output.
fn ip(arguments: &[&str], input: &str) -> Result<String, BootError> {
    let command = || format!("ip {}", arguments.join(" "));
    let failed = |message: String| {
        let forbidden = ["not permitted", "ermission denied"];
        match forbidden.iter().any(|text| message.contains(text)) {
            true => BootError::Unavailable(format!(
                "network namespaces and TAP devices need CAP_SYS_ADMIN and CAP_NET_ADMIN, which root has; \
                 `{}` failed: {message}",
                command()
            )),
            false => BootError::Command { command: command(), message },
        }
    };
    let mut child = Command::new("ip");
    child.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = || -> std::io::Result<Output> {
        let mut child = child.spawn()?;
        child.stdin.take().expect("standard input is piped").write_all(input.as_bytes())?;
        child.wait_with_output()
    };
    match { run }() {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(BootError::Unavailable(
            "program `ip` not found; on Debian, install iproute2".into(),
        )),
        Err(error) => Err(failed(error.to_string())),
    }
}
