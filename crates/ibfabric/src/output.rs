//! Standard output: text, JSON, and readers that leave early.

use std::io::{self, BufWriter, Write};

use serde::Serialize;

use crate::failure::Failure;

pub(crate) mod result_file;

/// How a report is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// Where a command's results go.
pub(crate) struct Output(Box<dyn Write>);

impl Output {
    pub(crate) fn stdout() -> Self {
        Self(Box::new(BufWriter::with_capacity(1 << 16, io::stdout())))
    }

    /// Prints a value as one line of JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(value)
            .map_err(|error| Failure::Unusable(format!("cannot make JSON of it: {error}")))?;
        Ok(writeln!(self.0, "{text}")?)
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.0.flush()?)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
