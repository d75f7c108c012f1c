//! Where a capture goes: a file, several files one after the other, or a stream that somebody reads.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions, TryLockError};
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
    /// A file has at most so many bytes, statistics included, but always one packet.
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

impl Target {
    /// Returns the file, or what the names of several are made from.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) | Self::Files(path, _) => Some(path),
            Self::Stream(_) => None,
        }
    }
}

/// Why a capture has ended where it is, or has not begun.
#[derive(Debug, thiserror::Error)]
#[error("{}", match .offset {
    Some(offset) => format!("{name}: byte {offset}: {source}"),
    None => format!("cannot create {name}: {source}"),
})]
pub struct TargetError {
    /// The file.
    pub name: String,
    /// How many bytes of it are there: whole packets. Nothing is where it could not be opened.
    pub offset: Option<u64>,
    /// What the system said.
    pub source: io::Error,
}

/// A file or stream that is open.
#[derive(Debug)]
pub(super) struct Output {
    target: Target,
    file: Option<File>,
    /// Whether writing to it may have to wait for a reader, and whether it has to be asked first.
    is_slow: bool,
    is_paced: bool,
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
            is_paced: false,
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
                create(path)
            }
            Target::Files(path, _) => {
                self.name = numbered(path, self.count, self.since);
                create(&self.name)
            }
            Target::Stream(stream) => {
                self.name = "the stream".into();
                open_stream(stream)
            }
        };
        let (file, pace) = opened.map_err(|source| TargetError {
            name: self.name.display().to_string(),
            offset: None,
            source,
        })?;
        (self.is_slow, self.is_paced) = (pace != Pace::Any, pace == Pace::Asked);
        self.file = Some(file);
        if let Target::Files(_, Rotation { files: most, .. }) = self.target {
            self.files.push_back(self.name.clone());
            while most.is_some_and(|most| self.files.len() > most.max(1)) {
                // Somebody else may have taken it away.
                fs::remove_file(self.files.pop_front().expect("there are some")).ok();
            }
        }
        Ok(())
    }

    /// Returns how many packets the file may still have.
    pub(super) fn room(&self) -> u64 {
        let Target::Files(_, rotation) = &self.target else { return u64::MAX };
        rotation.packets.map_or(u64::MAX, |most| most.saturating_sub(self.packets).max(1))
    }

    /// Returns how many bytes each file may have.
    pub(super) const fn limit(&self) -> Option<u64> {
        match &self.target {
            Target::Files(_, rotation) => rotation.bytes,
            Target::File(_) | Target::Stream(_) => None,
        }
    }

    /// Returns true if there can be another file.
    pub(super) const fn has_next(&self) -> bool {
        matches!(self.target, Target::Files(..))
    }

    /// Returns whether the next file is to begin, apart from its bytes.
    pub(super) fn is_full(&self) -> bool {
        let Target::Files(_, rotation) = &self.target else { return false };
        if self.packets == 0 {
            // One that has nothing but its head is not full, however short files are to be.
            return false;
        }
        rotation.packets.is_some_and(|most| self.packets >= most)
            || rotation.duration.is_some_and(|most| {
                SystemTime::now().duration_since(self.since).is_ok_and(|there| there >= most)
            })
    }

    /// Writes whole blocks, with so many packets in them, as far as that can be done now; what is done is taken away
    /// from `bytes`.
    pub(super) fn write(&mut self, bytes: &mut Pending) -> Result<(), TargetError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        // A full disk may take a block where it does not take many.
        let mut is_full = false;
        while !bytes.is_empty() {
            let mut part = bytes.rest();
            if is_full {
                let end = block_ends(&bytes.bytes).find(|end| *end > bytes.done);
                part = &part[..end.map_or(part.len(), |end| (end - bytes.done).min(part.len()))];
            }
            if self.is_paced {
                // So much a pipe that can be written to takes at once.
                part = &part[..part.len().min(PIPE_BUF)];
                if !is_writable(file) {
                    return Ok(());
                }
            }
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
                Err(error) if error.kind() == ErrorKind::StorageFull && !is_full => is_full = true,
                Err(error) => {
                    // Readers of the file refuse a part of a block.
                    let ends = block_ends(&bytes.bytes).take_while(|end| *end <= bytes.done);
                    let part = bytes.done - ends.last().unwrap_or(0);
                    let whole = self.offset - part as u64;
                    let is_own = !matches!(self.target, Target::Stream(_)) && !self.is_slow;
                    if is_own && file.set_len(whole).is_ok() {
                        self.offset = whole;
                        self.bytes -= part as u64;
                        bytes.done -= part;
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
        TargetError { name, offset: Some(self.offset), source }
    }

    /// Returns the name of the file that is written.
    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    /// Returns how many bytes of the file are written.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns how many files there were, and how many bytes were written to them.
    pub(super) const fn written(&self) -> (u64, u64) {
        (self.count, self.bytes)
    }
}

/// How a file is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// It takes everything.
    Any,
    /// It says when it takes no more.
    Refusing,
    /// It would wait, and so has to be asked before.
    Asked,
}

/// How much is written to a pipe in one piece.
const PIPE_BUF: usize = 4096;

/// Makes a file, or opens a named pipe that somebody reads.
fn create(path: &Path) -> io::Result<(File, Pace)> {
    let mut options = OpenOptions::new();
    options.write(true);
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, NONBLOCK);
    let file = create_alone(path, &mut options)?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
    let pace = if kind == FileType::Fifo { Pace::Refusing } else { Pace::Any };
    Ok((file, pace))
}

/// Creates a file, or empties it, unless another program or capture writes it: then it stays as it is.
///
/// The lock is that of `flock`, until the file is closed. Pipes and devices have none.
///
/// # Errors
/// Fails with [`ErrorKind::ResourceBusy`] if another one writes the file, and if it cannot be opened.
pub fn create_alone(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options.create(true).truncate(false).open(path)?;
    if file.metadata()?.is_file() {
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let what = "another capture or program writes it, expected a file of its own";
                return Err(io::Error::new(ErrorKind::ResourceBusy, what));
            }
            // A file system without locks.
            Err(TryLockError::Error(_)) => {}
        }
        file.set_len(0)?;
    }
    Ok(file)
}

/// Returns where each of a run of pcapng blocks ends.
fn block_ends(blocks: &[u8]) -> impl Iterator<Item = usize> {
    let mut end = 0;
    std::iter::from_fn(move || {
        let length = blocks.get(end + 4..end + 8)?.try_into().ok()?;
        // A block has at least its head and its length at the end.
        end += (u32::from_le_bytes(length) as usize).max(12);
        Some(end)
    })
}

const NONBLOCK: i32 = OFlags::NONBLOCK.bits().cast_signed();

/// Returns whether a pipe takes something now, or nobody reads it any more.
fn is_writable(file: &File) -> bool {
    let mut files = [ib_os::poll::watched(file.as_fd(), true)];
    files[0].events = libc::POLLOUT;
    ib_os::poll::wait_any(&mut files, 0).is_ok() && files[0].revents != 0
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

    /// Returns how many bytes the target has taken.
    pub(super) const fn done(&self) -> usize {
        self.done
    }

    /// Forgets what is done.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.done = 0;
    }
}

/// Returns a stream in a form in which writing to it never waits.
fn open_stream(stream: &OwnedFd) -> io::Result<(File, Pace)> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(stream)?.st_mode);
    if kind == FileType::Fifo {
        // Others have the same pipe open; for them it stays as it is.
        let path = format!("/proc/self/fd/{}", stream.as_raw_fd());
        let mut options = OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, NONBLOCK);
        return match options.write(true).open(path) {
            Ok(file) => Ok((file, Pace::Refusing)),
            // It is another user's, who has handed it over.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                Ok((File::from(stream.try_clone()?), Pace::Asked))
            }
            Err(error) => Err(error),
        };
    }
    let own = File::from(stream.try_clone()?);
    if kind == FileType::Socket {
        rustix::io::ioctl_fionbio(own.as_fd(), true)?;
        return Ok((own, Pace::Refusing));
    }
    Ok((own, Pace::Any))
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
