//! The log, in the lines that OpenSM writes: time, thread, level, text.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ib_types::text::escaped_message;
use jiff::ZonedDateTime;

use crate::message::say;

/// Something is wrong.
pub const ERROR: u8 = 0x01;
/// Something has happened.
pub const INFO: u8 = 0x02;
/// What is of less interest.
pub const VERBOSE: u8 = 0x04;
/// What the manager is doing, step by step.
pub const DEBUG: u8 = 0x08;
/// Every datagram.
pub const FRAMES: u8 = 0x20;
/// The dumps are written.
pub const ROUTING: u8 = 0x40;
/// What is always logged.
pub const SYSTEM: u8 = 0x80;

/// The word for standard output in place of a file.
const STDOUT: &str = "stdout";

/// The one for standard error, which OpenSM does not have.
pub const STDERR: &str = "stderr";

/// A log; clones write to the same one, from any thread.
#[derive(Clone)]
pub struct Log {
    flags: u8,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    /// True if a line could not be written to the file since it was opened: the file ends with its last whole line.
    is_cut: bool,
    /// True if that ever happened.
    has_failed: bool,
    /// The size in bytes at which the file begins again; 0 for none.
    limit: u64,
    target: Target,
    /// Whether what is always logged is also said on standard output, as OpenSM does.
    echoes: bool,
    /// Who is told each line, too.
    listener: Option<Listener>,
}

/// Is told the text of each line.
pub type Listener = Box<dyn FnMut(&str) + Send>;

enum Target {
    /// Errors only, as every command says them.
    Messages,
    Stdout,
    Stderr,
    File {
        path: PathBuf,
        file: File,
        size: u64,
    },
}

/// How a log is opened.
pub struct LogOptions<'o> {
    /// The levels that are logged.
    pub flags: u8,
    /// In MB; 0 for none.
    pub limit: u32,
    /// `None` for errors on standard error only.
    pub file: Option<&'o Path>,
    /// Whether the file is one that nobody named: it gives way when it cannot be opened.
    pub is_default: bool,
    /// True if the file is emptied first.
    pub erases: bool,
    /// True if lines of level [`SYSTEM`] are also printed on standard output.
    pub echoes: bool,
}

impl Log {
    /// Opens a log.
    ///
    /// # Errors
    /// Fails when a file that was named cannot be opened.
    pub fn open(options: &LogOptions<'_>) -> Result<Self, String> {
        let target = match options.file {
            None => Target::Messages,
            Some(path) if path == Path::new(STDOUT) => Target::Stdout,
            Some(path) if path == Path::new(STDERR) => Target::Stderr,
            Some(path) => match open(path, options.erases) {
                Ok((file, size)) => Target::File { path: path.to_owned(), file, size },
                Err(error) if options.is_default => {
                    say!("cannot log to {}: {error}; logging here instead", path.display());
                    Target::Stderr
                }
                Err(error) => return Err(format!("cannot log to {}: {error}", path.display())),
            },
        };
        let limit = u64::from(options.limit) << 20;
        let (is_cut, has_failed) = (false, false);
        let echoes = options.echoes;
        let inner = Inner { is_cut, has_failed, limit, target, echoes, listener: None };
        Ok(Self { flags: options.flags, inner: Arc::new(Mutex::new(inner)) })
    }

    /// Returns true when a level is logged.
    pub const fn has(&self, level: u8) -> bool {
        self.flags & level != 0
    }

    /// Has somebody told each line that is logged from now on.
    pub fn listen(&self, listener: Listener) {
        lock(&self.inner).listener = Some(listener);
    }

    /// Has other levels logged from now on.
    pub const fn set_flags(&mut self, flags: u8) {
        self.flags = flags;
    }

    /// Opens the file again: the old one was renamed.
    pub fn reopen(&self) {
        let mut inner = lock(&self.inner);
        if let Target::File { path, file, size } = &mut inner.target {
            match open(path, false) {
                Ok(new) => {
                    (*file, *size) = new;
                    inner.is_cut = false;
                }
                Err(error) => say!("cannot log to {} again: {error}", path.display()),
            }
        }
    }

    /// Returns true if lines are missing in the file because they could not be written.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        lock(&self.inner).has_failed
    }

    /// Says what is to be known at the start, on standard error and in the log.
    pub fn note(&self, level: u8, text: &str) {
        say!("{text}");
        self.line_unless_said(level, text);
    }

    /// Logs what is said on standard error as well, unless that is where the log goes.
    pub fn line_unless_said(&self, level: u8, text: &str) {
        let is_said = matches!(lock(&self.inner).target, Target::Messages | Target::Stderr);
        if !is_said {
            self.line(level, text);
        }
    }

    /// Logs a line of a level, if that is wanted.
    pub fn line(&self, level: u8, text: &str) {
        if self.flags == 0 || (level != SYSTEM && !self.has(level)) {
            return;
        }
        lock(&self.inner).line(level, text);
    }
}

impl Inner {
    fn line(&mut self, level: u8, text: &str) {
        let text = &*escaped_message(text);
        if level == SYSTEM && self.echoes && !matches!(self.target, Target::Stdout) {
            // Whoever does not listen misses nothing that is not in the log.
            let _ = write!(io::stdout(), "{text}\n\n");
        }
        if let Some(listener) = &mut self.listener {
            listener(text);
        }
        let line = || format!("{} -> {text}\n", prefix(&ZonedDateTime::now(), level));
        match &mut self.target {
            Target::Messages if level == ERROR => say!("{text}"),
            Target::Messages => {}
            Target::Stdout => drop(io::stdout().write_all(line().as_bytes())),
            Target::Stderr => drop(io::stderr().write_all(line().as_bytes())),
            Target::File { .. } if self.is_cut => {}
            Target::File { path, file, size } => {
                let line = line();
                if self.limit > 0 && *size + line.len() as u64 > self.limit {
                    *size = if file.set_len(0).is_ok() { 0 } else { *size };
                }
                match write_line(file, line.as_bytes()) {
                    Ok(()) => *size += line.len() as u64,
                    Err(error) => {
                        (self.is_cut, self.has_failed) = (true, true);
                        say!(
                            "cannot write the log {}: {error}; it ends with its last whole line",
                            path.display()
                        );
                    }
                }
            }
        }
    }
}

/// Appends a line. If the disk is full, removes the part of the line that was written.
fn write_line(file: &mut File, line: &[u8]) -> io::Result<()> {
    let mut written = 0;
    while written < line.len() {
        let error = match file.write(&line[written..]) {
            Ok(0) => io::ErrorKind::WriteZero.into(),
            Ok(count) => {
                written += count;
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => error,
        };
        if written > 0 {
            // A device has no size.
            let size = file.metadata().map_or(0, |found| found.len());
            if let Some(whole) = size.checked_sub(written as u64) {
                file.set_len(whole).ok();
            }
        }
        return Err(error);
    }
    Ok(())
}

fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a file to be appended to; returns its size, too.
fn open(path: &Path, erases: bool) -> io::Result<(File, u64)> {
    // Whatever the mask of new files is, nobody but the owner can write it.
    let file = OpenOptions::new().create(true).append(true).mode(0o644).open(path)?;
    let found = file.metadata()?;
    let mode = found.permissions().mode() & 0o777;
    // One that everybody could write before is the owner's and the group's from now on; devices are as they are.
    if found.is_file() && mode & 0o002 != 0 {
        let expected = "expected a file that only its owner and group can write";
        file.set_permissions(Permissions::from_mode(mode & !0o002)).map_err(|error| {
            let why = format!("found mode {mode:03o}, {expected}, and cannot change it: {error}");
            io::Error::new(error.kind(), why)
        })?;
        say!(
            "{}: found mode {mode:03o}, {expected}: it is {:03o} now",
            path.display(),
            mode & !0o002
        );
    }
    if erases {
        file.set_len(0)?;
    }
    let size = file.metadata()?.len();
    Ok((file, size))
}

/// Returns the prefix of a line: `Nov 21 15:55:51 586460 [0001F2A3] 0x02`.
fn prefix(time: &ZonedDateTime, level: u8) -> String {
    let time = time.strftime("%b %d %H:%M:%S %6f");
    let process = std::process::id();
    format!("{time} [{process:08X}] {level:#04x}")
}

#[cfg(test)]
mod tests;
