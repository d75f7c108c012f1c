//! Background processes of xtask's tasks, which are killed when dropped.

use std::io::{BufRead as _, BufReader};
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

impl Drop for Running {
    fn drop(&mut self) {
        // An error is ignored, because the process may have exited.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
