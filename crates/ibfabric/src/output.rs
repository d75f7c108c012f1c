//! Standard output as text or JSON.

use std::fs::File;
use std::io;
use std::io::{BufWriter, Write};
use std::path::Path;

use ib_types::text::{escaped_lines, is_unsafe};
use serde::Serialize;

use crate::failure::Failure;

pub(crate) use ib_daemons::result_file::{replace, temporary_path};

/// The output format of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Text.
    Text,
    /// JSON.
    Json,
}

impl Format {
    /// Returns the format that the option `--json` selects.
    pub(crate) const fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

/// Standard output, buffered.
pub(crate) struct Output(Box<dyn Write>);

impl Output {
    pub(crate) fn stdout() -> Self {
        Self(Box::new(BufWriter::with_capacity(1 << 16, io::stdout())))
    }

    /// Returns an output that discards everything.
    pub(crate) fn discarding() -> Self {
        Self(Box::new(io::sink()))
    }

    /// Prints a value as one line of JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        Ok(writeln!(self.0, "{}", json_line(value)?)?)
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.0.flush()?)
    }
}

/// Returns a value as one line of JSON that is safe to print on a terminal.
pub(crate) fn json_line(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(value).map_err(|error| {
        Failure::Unusable(format!("cannot convert the result to JSON: {error}"))
    })?;
    // serde_json escapes ASCII control characters only. Other unsafe characters get JSON escapes here.
    let (mut line, mut rest) = (String::with_capacity(text.len()), &text[..]);
    while let Some(at) = rest.find(is_unsafe) {
        let (before, after) = rest.split_at(at);
        let mut characters = after.chars();
        let code = characters.next().map_or(0, u32::from);
        line.push_str(before);
        line.push_str(&format!("\\u{code:04x}"));
        rest = characters.as_str();
    }
    line.push_str(rest);
    Ok(line)
}

impl Write for Output {
    /// Writes text. Control characters other than newline and tab are escaped, since parts of the text may come from a
    /// peer.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !bytes.iter().any(|&byte| byte >= 0x7f || byte < b' ' && !matches!(byte, b'\n' | b'\t'))
        {
            return self.0.write(bytes);
        }
        for chunk in bytes.utf8_chunks() {
            write!(self.0, "{}", escaped_lines(chunk.valid()))?;
            self.0.write_all(chunk.invalid())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes the result file at `path`, which an option names. Replaces an existing file as [`replace`] does.
///
/// # Errors
/// Fails with a message that contains the name of the file.
pub(crate) fn write_result<E: From<io::Error> + std::fmt::Display>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), Failure> {
    replace(path, 0o777, write)
        .map_err(|error| Failure::Unusable(format!("cannot write {}: {error}", path.display())))
}

#[cfg(test)]
mod tests;
