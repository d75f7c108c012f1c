//! Runs `ibfabric` as a process, for the tests of its commands.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

pub(crate) fn ibfabric(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ibfabric"));
    command.args(words);
    command
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A process that is killed at the end of the test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Starts a program and waits until it is ready.
    pub(crate) fn ready(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program runs");
        let mut line = String::new();
        let output = child.stdout.as_mut().expect("standard output is piped");
        BufReader::new(output).read_line(&mut line).expect("the program prints a line");
        assert!(line.starts_with("READY"), "{command:?}: {line}");
        Self(child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Killing the process fails only if it has already exited.
        self.0.kill().ok();
        self.0.wait().expect("the process can be awaited");
    }
}
