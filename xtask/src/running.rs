//! A program that runs beside a chore, and ends with it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

/// A program that ends with this one.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Starts a program and waits until it says that it is ready.
    pub(crate) fn ready(command: &mut Command) -> Result<Self, Box<dyn std::error::Error>> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or("its output is piped")?;
        // Whoever fails from here on ends it.
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
        // It may have ended by itself.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
