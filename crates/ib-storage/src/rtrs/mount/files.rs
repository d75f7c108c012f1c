//! Handles the kernel's requests for the FUSE file system.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    LockOwner, OpenAccMode, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use ib_rtrs::Errno;
use ib_rtrs::tree::{Entry, Kind, MAX_WRITE};

use super::EndNotifier;
use super::sources::Sources;

/// The kernel must not cache attributes and entries, since sessions and paths change.
const TTL: Duration = Duration::ZERO;

/// The inode number of all directory entries that `readdir` returns. An entry gets its real number at its first lookup.
const NO_NUMBER: INodeNo = INodeNo(0xffff_ffff);

/// The FUSE file system that shows the tree.
pub(super) struct Files {
    sources: Arc<Sources>,
    nodes: Mutex<Nodes>,
    /// Open files and directories, by handle.
    open: Mutex<BTreeMap<u64, Open>>,
    next: AtomicU64,
    since: SystemTime,
    owner: (u32, u32),
    ended: EndNotifier,
}

/// The inodes that the kernel references.
struct Nodes {
    /// Paths by inode number, with the number of references that the kernel holds.
    by_number: BTreeMap<u64, (String, u64)>,
    by_path: BTreeMap<String, u64>,
    next: u64,
}

/// An open file or directory.
enum Open {
    /// A file, with the contents queried when it was opened or last read at offset 0. Empty if opened only for writing.
    File(Arc<[u8]>),
    /// A directory, with its entries.
    Directory(Arc<[Entry]>),
}

impl Nodes {
    fn new() -> Self {
        let by_number = BTreeMap::from([(INodeNo::ROOT.0, (String::new(), 1))]);
        Self { by_number, by_path: BTreeMap::from([(String::new(), 1)]), next: 2 }
    }

    /// Returns the inode number of a path, and adds one to the kernel's references to this inode.
    fn reference(&mut self, path: String) -> u64 {
        let number = *self.by_path.entry(path.clone()).or_insert(self.next);
        if number == self.next {
            self.next += 1;
        }
        self.by_number.entry(number).or_insert((path, 0)).1 += 1;
        number
    }

    /// Removes `times` references of the kernel to an inode.
    fn forget(&mut self, number: u64, times: u64) {
        if number == INodeNo::ROOT.0 {
            return;
        }
        let Some((path, references)) = self.by_number.get_mut(&number) else { return };
        *references = references.saturating_sub(times);
        if *references == 0 {
            self.by_path.remove(path);
            self.by_number.remove(&number);
        }
    }
}

impl Files {
    pub(super) fn new(sources: Sources, ended: EndNotifier) -> Self {
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        Self {
            sources: Arc::new(sources),
            nodes: Mutex::new(Nodes::new()),
            open: Mutex::new(BTreeMap::new()),
            next: AtomicU64::new(1),
            since: SystemTime::now(),
            owner: (user.as_raw(), group.as_raw()),
            ended,
        }
    }

    fn path(&self, number: INodeNo) -> Result<String, Errno> {
        let nodes = lock(&self.nodes);
        nodes.by_number.get(&number.0).map(|(path, _)| path.clone()).ok_or(Errno::ENOENT)
    }

    fn attributes(&self, number: u64, kind: Kind) -> FileAttr {
        let (kind, perm, nlink, size) = match kind {
            Kind::Directory => (FileType::Directory, 0o755, 2, 0),
            // Reports the size of a page, as sysfs does, since the real size is known only when the
            // file is read.
            Kind::File { is_writable: true } => (FileType::RegularFile, 0o644, 1, MAX_WRITE as u64),
            Kind::File { is_writable: false } => {
                (FileType::RegularFile, 0o444, 1, MAX_WRITE as u64)
            }
        };
        FileAttr {
            ino: INodeNo(number),
            size,
            blocks: 0,
            atime: self.since,
            mtime: self.since,
            ctime: self.since,
            crtime: self.since,
            kind,
            perm,
            nlink,
            uid: self.owner.0,
            gid: self.owner.1,
            rdev: 0,
            blksize: MAX_WRITE as u32,
            flags: 0,
        }
    }

    fn keep(&self, open: Open) -> FileHandle {
        let handle = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.open).insert(handle, open);
        FileHandle(handle)
    }

    fn open_file(&self, number: INodeNo, flags: OpenFlags) -> Result<FileHandle, Errno> {
        let path = self.path(number)?;
        let Kind::File { is_writable } = self.sources.kind(&path)? else {
            return Err(Errno::EISDIR);
        };
        let mode = flags.acc_mode();
        if mode != OpenAccMode::O_RDONLY && !is_writable {
            return Err(Errno::EACCES);
        }
        let text =
            if mode == OpenAccMode::O_WRONLY { String::new() } else { self.sources.read(&path)? };
        Ok(self.keep(Open::File(text.into_bytes().into())))
    }

    /// Returns the contents of a file from `offset` on. A read at offset 0 queries the contents
    /// again.
    fn read_file(
        &self,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
    ) -> Result<Vec<u8>, Errno> {
        let opened = match lock(&self.open).get(&handle.0) {
            Some(Open::File(bytes)) => Arc::clone(bytes),
            _ => return Err(Errno::EINVAL),
        };
        if offset > 0 {
            let from = usize::try_from(offset).unwrap_or(usize::MAX).min(opened.len());
            return Ok(opened[from..].to_vec());
        }
        let text: Arc<[u8]> = self.sources.read(&self.path(number)?)?.into_bytes().into();
        lock(&self.open).insert(handle.0, Open::File(Arc::clone(&text)));
        Ok(text.to_vec())
    }

    fn list(&self, number: INodeNo) -> Result<FileHandle, Errno> {
        let mut entries = self.sources.list(&self.path(number)?)?;
        let dots = [".", ".."].map(|name| Entry { name: name.to_owned(), kind: Kind::Directory });
        entries.splice(..0, dots);
        Ok(self.keep(Open::Directory(entries.into())))
    }
}

impl Filesystem for Files {
    fn destroy(&mut self) {
        self.ended.notify();
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = || {
            let name = name.to_str().ok_or(Errno::ENOENT)?;
            let parent = self.path(parent)?;
            let path = if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") };
            let kind = self.sources.kind(&path)?;
            Ok((lock(&self.nodes).reference(path), kind))
        };
        match found() {
            Ok((number, kind)) => {
                reply.entry(&TTL, &self.attributes(number, kind), Generation(0));
            }
            Err(errno) => reply.error(number_of(errno)),
        }
    }

    fn forget(&self, _: &Request, number: INodeNo, times: u64) {
        lock(&self.nodes).forget(number.0, times);
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.path(number).and_then(|path| self.sources.kind(&path)) {
            Ok(kind) => reply.attr(&TTL, &self.attributes(number.0, kind)),
            Err(errno) => reply.error(number_of(errno)),
        }
    }

    /// Accepts truncation, which precedes writes, but does nothing. Refuses changes of mode and
    /// owner.
    fn setattr(
        &self,
        request: &Request,
        number: INodeNo,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
        _: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        handle: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        if mode.is_some() || user.is_some() || group.is_some() {
            return reply.error(fuser::Errno::EPERM);
        }
        self.getattr(request, number, handle, reply);
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.open_file(number, flags) {
            // Uses direct I/O, since the kernel must not cache the contents.
            Ok(handle) => reply.opened(handle, FopenFlags::FOPEN_DIRECT_IO),
            Err(errno) => reply.error(number_of(errno)),
        }
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.read_file(number, handle, offset) {
            Ok(bytes) => reply.data(&bytes[..bytes.len().min(size as usize)]),
            Err(errno) => reply.error(number_of(errno)),
        }
    }

    /// Writes a value to a control file. Ignores the offset, as sysfs does. A new thread waits for the
    /// result.
    fn write(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        _: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let path = match self.path(number) {
            Ok(path) => path,
            Err(errno) => return reply.error(number_of(errno)),
        };
        let (Ok(value), true) = (std::str::from_utf8(data), data.len() <= MAX_WRITE) else {
            return reply.error(fuser::Errno::EINVAL);
        };
        let (value, sources) = (value.to_owned(), Arc::clone(&self.sources));
        let length = data.len() as u32;
        let write = move || match sources.write(&path, &value) {
            Ok(()) => reply.written(length),
            Err(errno) => reply.error(number_of(errno)),
        };
        // If the thread cannot be started, the reply is dropped, which reports an error to the
        // kernel.
        let _ = std::thread::Builder::new().name("control".to_owned()).spawn(write);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        lock(&self.open).remove(&handle.0);
        reply.ok();
    }

    fn opendir(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.list(number) {
            Ok(handle) => reply.opened(handle, FopenFlags::empty()),
            Err(errno) => reply.error(number_of(errno)),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = match lock(&self.open).get(&handle.0) {
            Some(Open::Directory(entries)) => Arc::clone(entries),
            _ => return reply.error(fuser::Errno::ENOTDIR),
        };
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        for (at, Entry { name, kind }) in entries.iter().enumerate().skip(from) {
            let kind = match kind {
                Kind::Directory => FileType::Directory,
                Kind::File { .. } => FileType::RegularFile,
            };
            if reply.add(NO_NUMBER, at as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        lock(&self.open).remove(&handle.0);
        reply.ok();
    }

    // The following requests create or remove files and directories, and are refused.

    fn create(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        reply.error(fuser::Errno::EPERM);
    }

    fn mknod(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(fuser::Errno::EPERM);
    }

    fn mkdir(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(fuser::Errno::EPERM);
    }

    fn unlink(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(fuser::Errno::EPERM);
    }

    fn rmdir(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(fuser::Errno::EPERM);
    }

    fn symlink(&self, _: &Request, _: INodeNo, _: &OsStr, _: &Path, reply: ReplyEntry) {
        reply.error(fuser::Errno::EPERM);
    }

    fn link(&self, _: &Request, _: INodeNo, _: INodeNo, _: &OsStr, reply: ReplyEntry) {
        reply.error(fuser::Errno::EPERM);
    }

    fn rename(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: INodeNo,
        _: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        reply.error(fuser::Errno::EPERM);
    }
}

fn number_of(errno: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(errno.0.into())
}

/// Locks a mutex. Ignores poisoning, since a panic of another thread leaves the data consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
