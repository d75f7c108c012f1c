//! Log files in OpenSM's format. Each line has the time, the process ID, the level and the text.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ib_types::text::escaped_message;
use jiff::ZonedDateTime;

use crate::message::{note, say};

/// Log level of errors.
pub const ERROR: u8 = 0x01;
/// Log level of events.
pub const INFO: u8 = 0x02;
/// Log level of less important events.
pub const VERBOSE: u8 = 0x04;
/// Log level of the SM's stages, such as discovery and configuration of the subnet.
pub const DEBUG: u8 = 0x08;
/// Log level of MADs.
pub const FRAMES: u8 = 0x20;
/// Log flag: the SM writes all dump files.
pub const ROUTING: u8 = 0x40;
/// Level of lines that are always logged.
pub const SYSTEM: u8 = 0x80;

/// File name that stands for standard output.
const STDOUT: &str = "stdout";

/// File name that stands for standard error. OpenSM has no such name.
pub const STDERR: &str = "stderr";

/// A log. Its clones write to the same file, from any thread.
#[derive(Clone)]
pub struct Log {
    flags: u8,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    /// True if a write failed since the file was opened. Then no more lines are written: the file ends with its last
    /// complete line.
    is_cut: bool,
    /// True if any write to the log file has failed. Failed writes to standard output and standard error are ignored.
    has_failed: bool,
    /// Size in bytes at which the file is truncated; 0 for no limit.
    limit: u64,
    target: Target,
    /// True if lines of level [`SYSTEM`] are also printed on standard output, as OpenSM does.
    echoes: bool,
    /// Callback for each logged line, in addition to `target`.
    listener: Option<Listener>,
}

/// Callback that receives the text of each logged line.
pub type Listener = Box<dyn FnMut(&str) + Send>;

enum Target {
    /// Only errors are logged, as messages on standard error.
    Messages,
    Stdout,
    Stderr,
    File {
        path: PathBuf,
        file: File,
        size: u64,
    },
}

/// Options of a log.
pub struct LogOptions<'o> {
    /// Enabled log levels, as bits.
    pub flags: u8,
    /// Size in MB at which the file is truncated; 0 for no limit.
    pub limit: u32,
    /// The log file; if `None`, only errors are logged, on standard error.
    pub file: Option<&'o Path>,
    /// True if the log file is a default. If it cannot be opened, standard error replaces it.
    pub is_default: bool,
    /// True if an existing file is truncated when it is opened.
    pub erases: bool,
    /// True if lines of level [`SYSTEM`] are also printed on standard output.
    pub echoes: bool,
}

impl Log {
    /// Opens a log.
    ///
    /// # Errors
    /// Fails if the log file cannot be opened, unless it is the default log file: then standard error replaces it.
    pub fn open(options: &LogOptions<'_>) -> Result<Self, String> {
        let target = match options.file {
            None => Target::Messages,
            Some(path) if path == Path::new(STDOUT) => Target::Stdout,
            Some(path) if path == Path::new(STDERR) => Target::Stderr,
            Some(path) => match open(path, options.erases) {
                Ok((file, size)) => Target::File { path: path.to_owned(), file, size },
                Err(error) if options.is_default => {
                    say!("cannot log to {}: {error}; logging on standard error", path.display());
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

    /// Returns true if lines of this level are logged.
    pub const fn has(&self, level: u8) -> bool {
        self.flags & level != 0
    }

    /// Sets a callback that receives all further lines.
    pub fn listen(&self, listener: Listener) {
        lock(&self.inner).listener = Some(listener);
    }

    /// Changes which log levels are enabled.
    pub const fn set_flags(&mut self, flags: u8) {
        self.flags = flags;
    }

    /// Opens the log file again, after log rotation has renamed the old file.
    pub fn reopen(&self) {
        let mut inner = lock(&self.inner);
        if let Target::File { path, file, size } = &mut inner.target {
            match open(path, false) {
                Ok(new) => {
                    (*file, *size) = new;
                    inner.is_cut = false;
                }
                Err(error) => say!("cannot reopen the log {}: {error}", path.display()),
            }
        }
    }

    /// Returns true if a write to the log file has failed, so that lines are missing in the file.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        lock(&self.inner).has_failed
    }

    /// Prints a message on standard error and logs it.
    pub fn note(&self, level: u8, text: &str) {
        say!("{text}");
        self.line_unless_said(level, text);
    }

    /// Logs a line that was already printed on standard error, unless the log itself goes to standard error.
    pub fn line_unless_said(&self, level: u8, text: &str) {
        let is_printed = matches!(lock(&self.inner).target, Target::Messages | Target::Stderr);
        if !is_printed {
            self.line(level, text);
        }
    }

    /// Logs a line if its level is enabled.
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
            // A failure is ignored: standard output may be closed, and the line is also in the log.
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
                            "cannot write the log {}: {error}; the log ends with its last complete line",
                            path.display()
                        );
                    }
                }
            }
        }
    }
}

/// Appends a line. If writing fails, for example because the disk is full, removes the part that was written.
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
            // A character device has size 0, so `checked_sub` fails and the device is not truncated.
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

/// Opens a file for appending; returns the file and its size.
fn open(path: &Path, erases: bool) -> io::Result<(File, u64)> {
    // Only the owner can write a new file, whatever the umask is.
    let file = OpenOptions::new().create(true).append(true).mode(0o644).open(path)?;
    let found = file.metadata()?;
    let mode = found.permissions().mode() & 0o777;
    // If other users can write a regular file, this permission is removed. Devices are unchanged.
    if found.is_file() && mode & 0o002 != 0 {
        let expected = "expected a file that only its owner and group can write";
        file.set_permissions(Permissions::from_mode(mode & !0o002)).map_err(|error| {
            let why = format!("found mode {mode:03o}, {expected}, and cannot change it: {error}");
            io::Error::new(error.kind(), why)
        })?;
        note!(
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

/// Returns the prefix of a log line, such as `Nov 21 15:55:51 586460 [0001F2A3] 0x02`.
fn prefix(time: &ZonedDateTime, level: u8) -> String {
    let time = time.strftime("%b %d %H:%M:%S %6f");
    let process = std::process::id();
    format!("{time} [{process:08X}] {level:#04x}")
}

#[cfg(test)]
mod tests;
