//! Output files of captures and records. After a write error, a file ends with its last complete line or block.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ib_control::capture::create_alone;

use crate::error::DaemonError;

/// Size in bytes at which the buffer is written to the file.
const PART: usize = 64 << 10;

/// A buffered output file. It consists of parts: lines, or blocks of a pcapng file.
pub(super) struct Sink {
    out: Out,
    path: PathBuf,
    /// Size of the file in bytes.
    offset: u64,
    pending: Vec<u8>,
    /// Offsets in `pending` at which the complete parts end.
    ends: Vec<usize>,
}

enum Out {
    File(File),
    Stream(Box<dyn Write>),
}

impl Sink {
    /// Creates or truncates a file. If the path is `-`, the output goes to `stream`.
    pub(super) fn create(path: &Path, stream: impl Write + 'static) -> Result<Self, DaemonError> {
        let out = if path == Path::new("-") {
            Out::Stream(Box::new(stream))
        } else {
            let file = create_alone(path, File::options().write(true));
            Out::File(file.map_err(|error| {
                DaemonError::Failed(format!("cannot write {}: {error}", path.display()))
            })?)
        };
        let (pending, ends) = (Vec::new(), Vec::new());
        Ok(Self { out, path: path.to_owned(), offset: 0, pending, ends })
    }

    /// Returns the path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Marks the end of a line or pcapng block. Writes the buffer if it has at least [`PART`] bytes.
    ///
    /// # Errors
    /// Fails if the buffer is full and cannot be written.
    pub(super) fn end_part(&mut self) -> io::Result<()> {
        self.ends.push(self.pending.len());
        if self.pending.len() >= PART { self.flush() } else { Ok(()) }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend(bytes);
        Ok(bytes.len())
    }

    /// Writes the buffer. If this fails, a file is truncated to its last complete part.
    fn flush(&mut self) -> io::Result<()> {
        let Self { out, offset, pending, ends, .. } = self;
        let mut written = 0;
        let result = loop {
            let rest = &pending[written..];
            if rest.is_empty() {
                break Ok(());
            }
            let result = match out {
                Out::File(file) => file.write(rest),
                Out::Stream(stream) => stream.write(rest),
            };
            match result {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        if let (Err(_), Out::File(file)) = (&result, &mut *out) {
            written = ends.iter().copied().take_while(|end| *end <= written).last().unwrap_or(0);
            // `set_len` fails on a character device, which cannot be truncated. The error is ignored.
            file.set_len(*offset + written as u64).ok();
        }
        *offset += written as u64;
        pending.clear();
        ends.clear();
        match (result, out) {
            (Ok(()), Out::Stream(stream)) => stream.flush(),
            (result, _) => result,
        }
    }
}
