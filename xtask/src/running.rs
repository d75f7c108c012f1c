//! Background processes of xtask's tasks, which are killed when dropped.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A process that is killed when dropped.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Starts a program, and waits until it prints `READY`.
    pub(crate) fn ready(command: &mut Command) -> Result<Self, Box<dyn std::error::Error>> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or("the output is not piped")?;
        // From here on, the process is killed if an error occurs.
        let running = Self(child);
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        if line.starts_with("READY") {
            Ok(running)
        } else {
            Err(format!("{command:?} is not ready: {line}").into())
        }
    }
}

impl Running {
    /// Starts `ibfabric sim` of a fat tree with a subnet manager. The fabric file is written into `directory`.
    pub(crate) fn fat_tree(
        ibfabric: &Path,
        directory: &Path,
        name: &str,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let net = directory.join("fabric.net");
        let made =
            Command::new(ibfabric).args(["gen", "fat-tree", "4", "-o"]).arg(&net).status()?;
        if !made.success() {
            return Err(format!("ibfabric gen: {made}").into());
        }
        let mut command = Command::new(ibfabric);
        Self::ready(command.arg("sim").arg(&net).args(["--name", name, "--sm", "--mtu", "4096"]))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // An error is ignored, because the process may have exited.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
