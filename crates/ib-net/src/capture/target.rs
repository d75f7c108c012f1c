//! Where a capture goes: a file, several files one after the other, or a stream that somebody reads.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{FileType, OFlags};
use serde::{Deserialize, Serialize};

use super::date;

/// How much of a capture is in one file, and how many files are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotation {
    /// A file has so many bytes, or a packet more.
    pub bytes: Option<u64>,
    /// It has the packets of so long.
    pub duration: Option<Duration>,
    /// It has so many packets.
    pub packets: Option<u64>,
    /// Only so many files are kept: the oldest goes when there is one more.
    pub files: Option<usize>,
}

impl Rotation {
    /// Returns whether there is ever a second file.
    #[must_use]
    pub const fn happens(&self) -> bool {
        self.bytes.is_some() || self.duration.is_some() || self.packets.is_some()
    }
}

/// Where a capture goes.
#[derive(Debug)]
pub enum Target {
    /// A file, which is made, or cut to nothing.
    File(PathBuf),
    /// Files in the place of one, with a number and the time in their names.
    Files(PathBuf, Rotation),
    /// What was opened already, such as a pipe. Who does not read it stops nobody: meanwhile packets are
    /// written over.
    Stream(OwnedFd),
}

/// Why a capture has ended where it is.
#[derive(Debug, thiserror::Error)]
#[error("{name}: byte {offset}: {source}")]
pub struct TargetError {
    /// The file.
    pub name: String,
    /// How many bytes of it are there: whole packets.
    pub offset: u64,
    /// What the system said.
    pub source: io::Error,
}

/// A file or stream that is open.
#[derive(Debug)]
pub(super) struct Output {
    target: Target,
    file: Option<File>,
    /// Whether writing to it may have to wait for a reader.
    is_slow: bool,
    name: PathBuf,
    /// What is in the file.
    offset: u64,
    packets: u64,
    since: SystemTime,
    /// The files that are there, how many there were, and what was written to all.
    files: VecDeque<PathBuf>,
    count: u64,
    bytes: u64,
}

impl Output {
    pub(super) fn open(target: Target) -> Result<Self, TargetError> {
        let mut this = Self {
            target,
            file: None,
            is_slow: false,
            name: PathBuf::new(),
            offset: 0,
            packets: 0,
            since: SystemTime::now(),
            files: VecDeque::new(),
            count: 0,
            bytes: 0,
        };
        this.next()?;
        Ok(this)
    }

    /// Begins the next file; of a stream there is one only.
    pub(super) fn next(&mut self) -> Result<(), TargetError> {
        (self.offset, self.packets, self.since) = (0, 0, SystemTime::now());
        self.count += 1;
        let opened = match &self.target {
            Target::File(path) => {
                self.name.clone_from(path);
                File::create(path).map(|file| (file, false))
            }
            Target::Files(path, _) => {
                self.name = numbered(path, self.count, self.since);
                File::create(&self.name).map(|file| (file, false))
            }
            Target::Stream(stream) => {
                self.name = "the stream".into();
                open_stream(stream)
            }
        };
        let (file, is_slow) = opened.map_err(|error| self.failed(error))?;
        (self.file, self.is_slow) = (Some(file), is_slow);
        if let Target::Files(_, Rotation { files: most, .. }) = self.target {
            self.files.push_back(self.name.clone());
            while most.is_some_and(|most| self.files.len() > most.max(1)) {
                // Somebody else may have taken it away.
                fs::remove_file(self.files.pop_front().expect("there are some")).ok();
            }
        }
        Ok(())
    }

    /// Returns how many bytes and packets the file may still have.
    pub(super) fn room(&self) -> (u64, u64) {
        let Target::Files(_, rotation) = &self.target else { return (u64::MAX, u64::MAX) };
        let left = |most: Option<u64>, there: u64| {
            most.map_or(u64::MAX, |most| most.saturating_sub(there).max(1))
        };
        (left(rotation.bytes, self.offset), left(rotation.packets, self.packets))
    }

    /// Returns whether the next file is to begin.
    pub(super) fn is_full(&self) -> bool {
        let Target::Files(_, rotation) = &self.target else { return false };
        let is_over = |most: Option<u64>, there: u64| most.is_some_and(|most| there >= most);
        is_over(rotation.bytes, self.offset)
            || is_over(rotation.packets, self.packets)
            || rotation.duration.is_some_and(|most| {
                SystemTime::now().duration_since(self.since).is_ok_and(|there| there >= most)
            })
    }

    /// Writes whole blocks, with so many packets in them, as far as that can be done now; what is done is taken away
    /// from `bytes`.
    pub(super) fn write(&mut self, bytes: &mut Pending) -> Result<(), TargetError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        while !bytes.is_empty() {
            let part = bytes.rest();
            match file.write(part) {
                Ok(0) => return Err(self.failed(ErrorKind::WriteZero.into())),
                Ok(written) => {
                    bytes.done += written;
                    self.offset += written as u64;
                    self.bytes += written as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if self.is_slow && error.kind() == ErrorKind::WouldBlock => {
                    return Ok(());
                }
                Err(error) => {
                    // A part of a block is of no use to anybody.
                    let whole = self.offset - bytes.done as u64;
                    if !self.is_slow && file.set_len(whole).is_ok() {
                        self.offset = whole;
                    }
                    return Err(self.failed(error));
                }
            }
        }
        self.packets += std::mem::take(&mut bytes.packets);
        Ok(())
    }

    fn failed(&self, source: io::Error) -> TargetError {
        let name = self.name.display().to_string();
        TargetError { name, offset: self.offset, source }
    }

    /// Returns the name of the file that is written.
    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    /// Returns how many files there were, and how many bytes were written to them.
    pub(super) const fn written(&self) -> (u64, u64) {
        (self.count, self.bytes)
    }
}

/// What is on its way to a target.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) bytes: Vec<u8>,
    pub(super) packets: u64,
    done: usize,
}

impl Pending {
    pub(super) const fn is_empty(&self) -> bool {
        self.done == self.bytes.len()
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.done..]
    }

    /// Forgets what is done.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.done = 0;
    }
}

/// Returns a stream in a form in which writing to it never waits, and whether it may have to.
fn open_stream(stream: &OwnedFd) -> io::Result<(File, bool)> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(stream)?.st_mode);
    if kind == FileType::Fifo {
        // Others have the same pipe open; for them it stays as it is.
        let path = format!("/proc/self/fd/{}", stream.as_raw_fd());
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut options = OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
        return Ok((options.write(true).open(path)?, true));
    }
    if kind == FileType::Socket {
        let own = File::from(stream.try_clone()?);
        rustix::io::ioctl_fionbio(own.as_fd(), true)?;
        return Ok((own, true));
    }
    Ok((File::from(stream.try_clone()?), false))
}

/// Returns the name of one of several files: `a.pcapng` becomes `a_00001_20260131235959.pcapng`, as dumpcap does it;
/// the time is that of UTC.
fn numbered(path: &Path, number: u64, time: SystemTime) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let date = date::compact(time);
    let mut name = format!("{stem}_{number:05}_{date}");
    if let Some(extension) = path.extension() {
        name.push('.');
        name.push_str(&extension.to_string_lossy());
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests;
