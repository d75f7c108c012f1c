//! Targets of captures: a file, rotated files, or a stream.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use rustix::fs::{FileType, OFlags};
use serde::{Deserialize, Serialize};

/// When to begin the next file, and how many files to keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotation {
    /// Maximum size of a file in bytes, including statistics. Each file has at least one packet, even if this packet
    /// exceeds the maximum size.
    pub bytes: Option<u64>,
    /// Maximum duration of a file before the next one begins.
    pub duration: Option<Duration>,
    /// Maximum number of packets in a file.
    pub packets: Option<u64>,
    /// Maximum number of files to keep; when there are more, the oldest is removed.
    pub files: Option<usize>,
}

impl Rotation {
    /// Returns true if a capture can have more than one file.
    #[must_use]
    pub const fn happens(&self) -> bool {
        self.bytes.is_some() || self.duration.is_some() || self.packets.is_some()
    }
}

/// The target of a capture.
#[derive(Debug)]
pub enum Target {
    /// A file, which is created or truncated.
    File(PathBuf),
    /// Rotated files, with a number and the time in their names.
    Files(PathBuf, Rotation),
    /// An open stream, such as a pipe. A reader that does not read cannot block the program: the unread packets are
    /// overwritten in the rings.
    Stream(OwnedFd),
}

impl Target {
    /// Returns the path of the file, or the path from which the names of rotated files are made.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) | Self::Files(path, _) => Some(path),
            Self::Stream(_) => None,
        }
    }
}

/// Error that ended a capture or prevented its start.
#[derive(Debug, thiserror::Error)]
#[error("{}", match .offset {
    Some(offset) => format!("{name}: byte {offset}: {source}"),
    None => format!("cannot capture into {name}: {source}"),
})]
pub struct TargetError {
    /// Path of the file, or `the stream`.
    pub name: String,
    /// Number of bytes in the file or stream; `None` if the file or the recorder thread could not be created.
    pub offset: Option<u64>,
    /// The system's error.
    pub source: io::Error,
}

/// An open file or stream.
#[derive(Debug)]
pub(super) struct Output {
    target: Target,
    file: Option<File>,
    /// True if a write may have to wait for a reader of the stream.
    is_slow: bool,
    /// True if the file has to be polled before each write.
    is_paced: bool,
    name: PathBuf,
    /// Number of bytes in the current file.
    offset: u64,
    packets: u64,
    since: SystemTime,
    /// Paths of the rotated files that were not removed yet, the oldest first.
    files: VecDeque<PathBuf>,
    /// Number of files that were begun, including removed ones.
    count: u64,
    /// Number of bytes written to all files.
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

    /// Opens the next file of the capture. For a stream, this happens only once, because a stream is not rotated.
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
        let (file, mode) = opened.map_err(|source| TargetError {
            name: self.name.display().to_string(),
            offset: None,
            source,
        })?;
        (self.is_slow, self.is_paced) = (mode != WriteMode::NonBlocking, mode == WriteMode::Polled);
        self.file = Some(file);
        if let Target::Files(_, Rotation { files: most, .. }) = self.target {
            self.files.push_back(self.name.clone());
            while most.is_some_and(|most| self.files.len() > most.max(1)) {
                // Removing fails if another process has removed the file.
                fs::remove_file(
                    self.files.pop_front().expect("the list has more files than its maximum"),
                )
                .ok();
            }
        }
        Ok(())
    }

    /// Returns the number of packets that still fit into the file.
    pub(super) fn room(&self) -> u64 {
        let Target::Files(_, rotation) = &self.target else { return u64::MAX };
        rotation.packets.map_or(u64::MAX, |most| most.saturating_sub(self.packets).max(1))
    }

    /// Returns the maximum size of a rotated file in bytes; `None` if there is no maximum.
    pub(super) const fn limit(&self) -> Option<u64> {
        match &self.target {
            Target::Files(_, rotation) => rotation.bytes,
            Target::File(_) | Target::Stream(_) => None,
        }
    }

    /// Returns true if the capture can begin another file.
    pub(super) const fn has_next(&self) -> bool {
        matches!(self.target, Target::Files(..))
    }

    /// Returns true if the present file has reached its maximum number of packets or its maximum duration. Then the
    /// next file must begin.
    pub(super) fn is_full(&self) -> bool {
        let Target::Files(_, rotation) = &self.target else { return false };
        if self.packets == 0 {
            // A file without packets is not full, however small the maximum is.
            return false;
        }
        rotation.packets.is_some_and(|most| self.packets >= most)
            || rotation.duration.is_some_and(|most| {
                SystemTime::now().duration_since(self.since).is_ok_and(|there| there >= most)
            })
    }

    /// Writes as many of the pending bytes as the target accepts now. If writing to a file fails, the file still ends
    /// with a whole block.
    pub(super) fn write(&mut self, bytes: &mut Pending) -> Result<(), TargetError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        // True if the disk was too full for all pending blocks. The blocks are then written one by one, since some may
        // still fit.
        let mut is_full = false;
        while !bytes.is_empty() {
            let mut part = bytes.rest();
            if is_full {
                let end = block_ends(&bytes.bytes).find(|end| *end > bytes.done);
                part = &part[..end.map_or(part.len(), |end| (end - bytes.done).min(part.len()))];
            }
            if self.is_paced {
                // A writable pipe accepts this many bytes without blocking.
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
                    // The file must end with a whole block, since programs that read it refuse an incomplete one.
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

    /// Returns the name of the current file.
    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    /// Returns the number of bytes written to the current file.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the number of files that were begun, and the number of bytes written to them.
    pub(super) const fn written(&self) -> (u64, u64) {
        (self.count, self.bytes)
    }
}

/// Behaviour of a write while the reader of a pipe or socket accepts no more bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteMode {
    /// The target is neither a pipe nor a socket, so writes never wait for a reader.
    NonBlocking,
    /// The pipe or socket is in non-blocking mode: if it is not writable, a write fails with `EAGAIN`.
    Eagain,
    /// The pipe may be in blocking mode, so it must be polled before each write.
    Polled,
}

/// Number of bytes that one write to a pipe writes atomically.
const PIPE_BUF: usize = 4096;

/// Creates a file, or opens a named pipe that a reader has opened.
fn create(path: &Path) -> io::Result<(File, WriteMode)> {
    let mut options = OpenOptions::new();
    options.write(true);
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, NONBLOCK);
    let file = create_alone(path, &mut options)?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
    let mode = if kind == FileType::Fifo { WriteMode::Eagain } else { WriteMode::NonBlocking };
    Ok((file, mode))
}

/// Creates or truncates a file. Fails if another program or capture is writing it.
///
/// The file stays locked with `flock` until it is closed. Pipes and devices are not locked.
///
/// # Errors
/// Fails with [`ErrorKind::ResourceBusy`] if another program or capture is writing the file. Also fails if the file
/// cannot be opened or truncated.
pub fn create_alone(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options.create(true).truncate(false).open(path)?;
    if file.metadata()?.is_file() {
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let what = "another capture or program is writing it, expected an unused file";
                return Err(io::Error::new(ErrorKind::ResourceBusy, what));
            }
            // The file system does not support locks, so the file is used without one.
            Err(TryLockError::Error(_)) => {}
        }
        file.set_len(0)?;
    }
    Ok(file)
}

/// Returns the end offset of each pcapng block in `blocks`.
fn block_ends(blocks: &[u8]) -> impl Iterator<Item = usize> {
    let mut end = 0;
    std::iter::from_fn(move || {
        let length = blocks.get(end + 4..end + 8)?.try_into().ok()?;
        // A pcapng block has at least 12 bytes: its type and two copies of its length, of 4 bytes each. This minimum
        // makes the iteration advance even if a length is wrong.
        end += (u32::from_le_bytes(length) as usize).max(12);
        Some(end)
    })
}

const NONBLOCK: i32 = OFlags::NONBLOCK.bits().cast_signed();

/// Returns true if a pipe is writable or its reader has disconnected.
fn is_writable(file: &File) -> bool {
    let mut files = [ib_os::poll::watched(file.as_fd(), true)];
    files[0].events = libc::POLLOUT;
    ib_os::poll::wait_any(&mut files, 0).is_ok() && files[0].revents != 0
}

/// Bytes that wait to be written to the target.
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

    /// Returns the number of bytes that the target has accepted.
    pub(super) const fn done(&self) -> usize {
        self.done
    }

    /// Empties the buffer. Bytes that the target has not accepted are lost.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.done = 0;
    }
}

/// Opens a stream for the capture, and returns how to write to it without blocking.
fn open_stream(stream: &OwnedFd) -> io::Result<(File, WriteMode)> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(stream)?.st_mode);
    if kind == FileType::Fifo {
        // Other processes share the open file description, so `O_NONBLOCK` must not be set on it. Opening the pipe
        // again creates another open file description.
        let path = format!("/proc/self/fd/{}", stream.as_raw_fd());
        let mut options = OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, NONBLOCK);
        return match options.write(true).open(path) {
            Ok(file) => Ok((file, WriteMode::Eagain)),
            // The pipe belongs to another user, so this process cannot open it again. The process then uses the
            // descriptor that it was passed, and polls before each write.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                Ok((File::from(stream.try_clone()?), WriteMode::Polled))
            }
            Err(error) => Err(error),
        };
    }
    let own = File::from(stream.try_clone()?);
    if kind == FileType::Socket {
        rustix::io::ioctl_fionbio(own.as_fd(), true)?;
        return Ok((own, WriteMode::Eagain));
    }
    Ok((own, WriteMode::NonBlocking))
}

/// Returns the name of a rotated file as dumpcap forms it: `a.pcapng` becomes `a_00001_20260131235959.pcapng`. The time
/// is in UTC.
fn numbered(path: &Path, number: u64, time: SystemTime) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    // A time after the year 9999 cannot be represented and can only come from a wrong clock. The year 1970 replaces it.
    let time = Timestamp::try_from(time).unwrap_or_default();
    let mut name = format!("{stem}_{number:05}_{}", time.strftime("%Y%m%d%H%M%S"));
    if let Some(extension) = path.extension() {
        name.push('.');
        name.push_str(&extension.to_string_lossy());
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests;
