//! A uverbs device, through which unmodified libibverbs with the rxe provider drives a software HCA
//! of this project.
//!
//! The entry points and the state behind their lock are in one file, because each call changes the tables of
//! descriptors, files and objects together.
//!
//! | module | holds |
//! |---|---|
//! | `settings` | port and name of the device, from environment variables |
//! | `command`, `abi` | write commands: decoding, layouts; sans-IO |
//! | `rxe` | elements of the shared rings: work requests and completions; sans-IO |
//! | `ring` | rings in the memory of the device file |
//! | `execute`, `attributes` | commands on objects; attributes of device, port and queue pairs |
//! | `objects` | objects of the contexts, by handle |
//! | `adapter` | the device: moves requests from the rings into the engine, and completions back |
//! | `events` | completion channels and asynchronous events |
//! | `rdma_cm` | the `rdma_cm` device: opens channels, and passes commands to the module `cm` |
//! | `worker` | the thread that makes progress while the program polls its rings or sleeps |
//! | `sysfs` | files under `/sys/class/infiniband` and `/sys/class/infiniband_verbs` |
//! | `mappings` | mapped address ranges of the process |
//!
//! The device is opened when the program opens the first device file, and closed with the last one.
//! A child of `fork(2)` has no device until it opens a device file itself.

use std::io::Write as _;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use std::collections::BTreeMap;

use ib_device::{AttachedOptions, Device, DeviceError, DeviceOptions};
use ib_os::clock;
use ib_types::Instant;
use ib_types::text::escaped;

use crate::descriptors;
use crate::errno::Errno;
use crate::program_memory;
use crate::sysfs::Tree;

mod abi;
mod adapter;
mod attributes;
mod command;
mod events;
mod execute;
mod mappings;
mod objects;
mod rdma_cm;
mod ring;
mod rxe;
mod settings;
mod sysfs;
mod worker;

use abi::{AsyncEventRecord, ContextResponse, Field, bytes_of};
use adapter::Adapter;
use attributes::Port;
use command::{Command, Request, ResponseBuffer};
use events::{EventFile, Source};
use execute::{Executor, Response};
use objects::{Context, FileId, Objects};
pub(crate) use rdma_cm::DEVICE_NUMBER as RDMA_CM_NUMBER;
use ring::RingFile;
pub(crate) use settings::{PortSetting, Settings};

/// Major and minor number of the device: the same as those of the kernel's first uverbs device.
pub(crate) const DEVICE_NUMBER: (u32, u32) = (231, 192);

/// After this many polls without a packet, a polling thread yields its processor.
const POLLS_BEFORE_YIELD: u32 = 100;

/// Commands of up to this many bytes are copied to the stack. All commands of libibverbs are shorter.
const SHORT_COMMAND: usize = 512;

/// Before a device is closed, its queues are processed at most this many times, to send the last
/// packets.
const LAST_TURNS: u32 = 16;

/// Descriptors of the device's link. The child of a fork closes them.
static LINK: [AtomicI32; 2] = [const { AtomicI32::new(-1) }; 2];

/// The uverbs device of a process.
pub(crate) struct Verbs {
    settings: Settings,
    state: Mutex<State>,
    /// Number of program threads that wait for the lock of `state`. The worker lets them lock it
    /// first.
    waiting: AtomicU32,
    /// True while the worker waits in `ppoll`. Meanwhile, the kernel keeps the link's files open, even
    /// if another thread closes their descriptors.
    is_worker_waiting: AtomicBool,
}

/// State that the threads of the program share with the worker.
#[derive(Default)]
struct State {
    adapter: Option<Adapter>,
    /// Number of times that the device was opened. A worker exits when the number changes.
    generation: u64,
    objects: Objects,
    descriptors: BTreeMap<i32, FileId>,
    /// Number of descriptors of each open file.
    references: BTreeMap<FileId, u32>,
    last_file: FileId,
    /// The eventfd that wakes the worker; `None` until a worker is started.
    wake: Option<OwnedFd>,
    /// Time until which the worker sleeps, unless it is woken.
    sleeps_until: Instant,
    /// Number of times that a thread of the program polled a CQ and thereby processed the queues of
    /// the device.
    polls: u64,
    /// Time of the last poll that `polls` counts.
    polled: Instant,
    /// Number of consecutive polls, counted in `polls`, that have processed no packet.
    idle_polls: u32,
    /// True while the worker pauses and leaves sending and receiving to the threads that poll CQs.
    is_napping: bool,
}

impl Verbs {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            state: Mutex::new(State::default()),
            waiting: AtomicU32::new(0),
            is_worker_waiting: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        if let Ok(state) = self.state.try_lock() {
            return state;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        state
    }

    /// Opens the uverbs device file. Returns a descriptor for the program.
    ///
    /// # Errors
    /// Fails with `ENODEV` if the configured port cannot be opened, and with `EMFILE` if the
    /// process cannot open another descriptor.
    pub(crate) fn open(&'static self, flags: i32) -> Result<i32, Errno> {
        let mut state = self.lock();
        let descriptor = memory_file(flags)?;
        state.check_device()?;
        if state.adapter.is_none() {
            descriptors::open_internal(|| self.start(&mut state, self.open_device()?))?;
        }
        let clone = descriptors::duplicate(descriptor.as_fd())?;
        let file = state.add(descriptor.as_raw_fd())?;
        let context = Context { rings: RingFile::new(clone), async_file: None };
        state.objects.contexts.insert(file, context);
        Ok(descriptor.into_raw_fd())
    }

    /// Opens the device that the settings specify.
    fn open_device(&self) -> Result<Device, Errno> {
        let opened = match &self.settings.port {
            PortSetting::Attached(port) => {
                let options = AttachedOptions { class: None, ..AttachedOptions::new(port.clone()) };
                Device::attach(&options)
            }
            PortSetting::Roce { address, is_exclusive, allow_zero_checksum } => {
                let mut options = DeviceOptions::new(*address);
                options.socket.allow_zero_checksum = *allow_zero_checksum;
                if *is_exclusive {
                    Device::open(options)
                } else {
                    Device::open_or_share(options, None)
                }
            }
        };
        let mut device = opened.map_err(|error: DeviceError| {
            print(&error.to_string());
            Errno::NO_DEVICE
        })?;
        let mut was_reported = false;
        device.on_zero_checksum(move |peer| {
            if !std::mem::replace(&mut was_reported, true) {
                print(&format!(
                    "{peer}: packets with a UDP checksum of zero are dropped; Linux soft RoCE sends such packets, and \
                     `ibfabric run --allow-zero-checksum` accepts them"
                ));
            }
        });
        Ok(device)
    }

    /// Starts the worker of a device.
    fn start(&'static self, state: &mut State, device: Device) -> Result<(), Errno> {
        let adapter = Adapter::new(device);
        for (slot, descriptor) in LINK.iter().zip(adapter.descriptors()) {
            slot.store(descriptor, Ordering::Relaxed);
        }
        state.adapter = Some(adapter);
        state.generation += 1;
        let started = worker::start(self, state);
        if started.is_err() {
            state.adapter = None;
        }
        started
    }

    /// Writes the files of the device into a directory.
    ///
    /// # Errors
    /// Fails if the configured port cannot be opened or a file cannot be written.
    pub(crate) fn write_files(&self, tree: &mut Tree) -> Result<(), Errno> {
        let state = self.lock();
        let port = match &state.adapter {
            Some(adapter) => adapter.port.clone(),
            None if sysfs::is_written(tree, &self.settings.device) => return Ok(()),
            None => Port::of(&mut self.open_device()?),
        };
        drop(state);
        sysfs::write(tree, &self.settings.device, &port).map_err(|error| {
            print(&format!("cannot write sysfs: {error}"));
            Errno::NO_DEVICE
        })
    }

    /// Reads the next event of an event file into the program's buffer of `count` bytes at `address`. Returns the size
    /// of the event in bytes.
    ///
    /// # Errors
    /// Fails with `EAGAIN` if no event waits. Fails with `EINVAL` if the descriptor is not that of
    /// an event file, or if the buffer is too small. Fails with `EFAULT` if the buffer is not writable; the event is
    /// then lost, as in the kernel.
    pub(crate) fn read(
        &self,
        descriptor: i32,
        address: usize,
        count: usize,
    ) -> Result<usize, Errno> {
        let mut event = [0; AsyncEventRecord::SIZE];
        let size = self.next_event(descriptor, &mut event[..count.min(AsyncEventRecord::SIZE)])?;
        program_memory::write(address, &event[..size])?;
        Ok(size)
    }

    /// Moves the next event of an event file into `buffer`. Returns the size of the event in bytes.
    fn next_event(&self, descriptor: i32, buffer: &mut [u8]) -> Result<usize, Errno> {
        let mut state = self.lock();
        let file = state.file(descriptor)?;
        let objects = &mut state.objects;
        let events = objects.event_files.get_mut(&file).ok_or(Errno::INVALID)?;
        let (size, source) = events.read(buffer)?;
        let is_completion = size == u64::SIZE;
        match source {
            Source::Cq(handle) => {
                if let Some(cq) = objects.cqs.get_mut(handle) {
                    let count =
                        if is_completion { &mut cq.comp_events } else { &mut cq.async_events };
                    *count += 1;
                }
            }
            Source::Qp(handle) => {
                if let Some(qp) = objects.qps.get_mut(handle) {
                    qp.events += 1;
                }
            }
            Source::Srq(handle) => {
                if let Some(srq) = objects.srqs.get_mut(handle) {
                    srq.events += 1;
                }
            }
            Source::Device => {}
        }
        Ok(size)
    }

    /// Executes a command of `count` bytes at `address`, which the program has written to the device file. Returns the
    /// size of the command.
    ///
    /// # Errors
    /// Fails with the error numbers of the kernel's uverbs.
    pub(crate) fn write(
        &self,
        descriptor: i32,
        address: usize,
        count: usize,
    ) -> Result<usize, Errno> {
        let mut short = [0; SHORT_COMMAND];
        let mut long = Vec::new();
        let bytes = if count <= SHORT_COMMAND {
            &mut short[..count]
        } else if count <= command::LONGEST {
            long.resize(count, 0);
            &mut long[..]
        } else {
            return Err(Errno::INVALID);
        };
        program_memory::read(address, bytes)?;
        let mut state = self.lock();
        let state = &mut *state;
        let context = state.file(descriptor)?;
        if state.objects.cm.has_channel(context) {
            return state.write_channel(context, bytes);
        }
        if !state.objects.contexts.contains_key(&context) {
            return Err(Errno::INVALID);
        }
        let command = Command::decode(bytes)?;
        let response = match command.request {
            Request::GetContext => state.get_context(context)?,
            Request::CreateCompChannel => {
                let (_, descriptor) = state.create_event_file()?;
                Response { core: bytes_of(&(descriptor as u32)), driver: Vec::new() }
            }
            _ => state.execute(context, &command)?,
        };
        let delivered = deliver(&command.response, &response);
        delivered.inspect_err(|_| state.undo(context, &command.request, &response))?;
        Ok(count)
    }

    /// Processes the queues of the device once, in a thread of the program that polls a CQ. Returns
    /// true if any packet was processed.
    pub(crate) fn poll(&self) -> bool {
        let Ok(mut guard) = self.state.try_lock() else { return false };
        let state = &mut *guard;
        let Some(adapter) = state.adapter.as_mut().filter(|adapter| !adapter.has_failed) else {
            return false;
        };
        state.polls += 1;
        state.polled = clock::now();
        // An error is ignored here, because the worker thread gets the same error and reports it.
        let moved = adapter.turn(&mut state.objects).unwrap_or(false);
        state.idle_polls = if moved { 0 } else { state.idle_polls.saturating_add(1) };
        let is_idle = state.idle_polls > POLLS_BEFORE_YIELD;
        drop(guard);
        if is_idle {
            // The peer or the simulator may need this thread's processor.
            std::thread::yield_now();
        }
        moved
    }

    /// Checks that the program may map a range of the device file.
    ///
    /// # Errors
    /// Fails with `EINVAL` if the range is not that of a ring of the context.
    pub(crate) fn check_mapping(
        &self,
        descriptor: i32,
        offset: i64,
        length: usize,
    ) -> Result<(), Errno> {
        let state = self.lock();
        let context = state.objects.contexts.get(&state.file(descriptor)?);
        let offset = usize::try_from(offset).map_err(|_| Errno::INVALID)?;
        let has_ring = context.is_some_and(|context| context.rings.has_ring(offset, length));
        if has_ring { Ok(()) } else { Err(Errno::INVALID) }
    }

    /// Records that the descriptor `new` is a duplicate of `old`, if `old` is a uverbs descriptor.
    pub(crate) fn duplicated(&self, old: i32, new: i32) {
        let mut state = self.lock();
        let Ok(file) = state.file(old) else { return };
        if descriptors::add_verbs(new) {
            state.descriptors.insert(new, file);
            *state.references.entry(file).or_default() += 1;
        }
    }

    /// Removes a descriptor that is about to be closed. If the descriptor is the file's last one,
    /// closes the file.
    pub(crate) fn closing(&self, descriptor: i32) {
        let mut state = self.lock();
        let state = &mut *state;
        descriptors::remove(descriptor);
        let Some(file) = state.descriptors.remove(&descriptor) else { return };
        let Some(count) = state.references.get_mut(&file) else { return };
        *count -= 1;
        if *count > 0 {
            return;
        }
        state.references.remove(&file);
        state.objects.event_files.remove(&file);
        let is_channel = state.objects.cm.has_channel(file);
        if !is_channel && !state.objects.contexts.contains_key(&file) {
            return;
        }
        match &mut state.adapter {
            Some(adapter) if is_channel => {
                state.objects.cm.close(file, &mut adapter.device, clock::now());
                state.after_command();
            }
            Some(adapter) => {
                Executor { adapter, objects: &mut state.objects, context: file }.destroy_all();
            }
            None => state.objects.cm.forget(file),
        }
        state.objects.contexts.remove(&file);
        if state.objects.contexts.is_empty() && state.objects.cm.is_empty() {
            state.close();
            // The program may open the device again at once, which binds the same address. The worker's
            // `ppoll` has to end first, because it keeps the closed link in use.
            while self.is_worker_waiting.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
    }

    /// Returns the descriptors of open files from `first` to `last`.
    pub(crate) fn descriptors(&self, first: i32, last: i32) -> Vec<i32> {
        self.lock().descriptors.range(first..=last).map(|(&descriptor, _)| descriptor).collect()
    }

    /// Closes the device when the process exits, unless another thread holds the lock.
    pub(crate) fn at_exit(&self) {
        if let Ok(mut state) = self.state.try_lock() {
            state.close();
        }
    }
}

impl State {
    /// Adds a new open file with its first descriptor. Returns the number of the file.
    fn add(&mut self, descriptor: i32) -> Result<FileId, Errno> {
        if !descriptors::add_verbs(descriptor) {
            return Err(Errno(libc::EMFILE));
        }
        self.last_file += 1;
        self.descriptors.insert(descriptor, self.last_file);
        self.references.insert(self.last_file, 1);
        Ok(self.last_file)
    }

    /// Checks that the device has not failed.
    ///
    /// # Errors
    /// Fails with `EIO` if the device has failed. The program has to close all files of the failed device before it can
    /// open the device again.
    fn check_device(&self) -> Result<(), Errno> {
        let has_failed = self.adapter.as_ref().is_some_and(|adapter| adapter.has_failed);
        if has_failed { Err(Errno::IO) } else { Ok(()) }
    }

    fn file(&self, descriptor: i32) -> Result<FileId, Errno> {
        self.descriptors.get(&descriptor).copied().ok_or(Errno::INVALID)
    }

    /// Creates an event file. Returns the file's number and the descriptor for the program.
    fn create_event_file(&mut self) -> Result<(FileId, i32), Errno> {
        let (events, descriptor) = EventFile::create()?;
        let file = self.add(descriptor.as_raw_fd())?;
        self.objects.event_files.insert(file, events);
        Ok((file, descriptor.into_raw_fd()))
    }

    fn get_context(&mut self, context: FileId) -> Result<Response, Errno> {
        let is_new = |context: &Context| context.async_file.is_none();
        if !self.objects.contexts.get(&context).is_some_and(is_new) {
            return Err(Errno::INVALID);
        }
        let (file, descriptor) = self.create_event_file()?;
        if let Some(context) = self.objects.contexts.get_mut(&context) {
            context.async_file = Some(file);
        }
        let response = ContextResponse { async_fd: descriptor as u32, num_comp_vectors: 1 };
        Ok(Response { core: bytes_of(&response), driver: Vec::new() })
    }

    /// Executes a command that uses the device.
    fn execute(&mut self, context: FileId, command: &Command) -> Result<Response, Errno> {
        let channel = match command.request {
            Request::CreateCq(create) => self.channel(create.comp_channel)?,
            Request::CreateCqEx(create) => self.channel(create.comp_channel)?,
            _ => None,
        };
        let has_async_file = |context: &Context| context.async_file.is_some();
        if !self.objects.contexts.get(&context).is_some_and(has_async_file) {
            return Err(Errno::INVALID);
        }
        if !command.request.is_destroy() {
            self.check_device()?;
        }
        let adapter = self.adapter.as_mut().ok_or(Errno::IO)?;
        let mut executor = Executor { adapter, objects: &mut self.objects, context };
        let response = match command.request {
            Request::CreateCq(create) => executor.create_cq(&create, channel),
            Request::CreateCqEx(create) => executor.create_cq_ex(&create, channel),
            _ => executor.execute(command),
        };
        let needs_worker = !self.is_napping || matches!(command.request, Request::ReqNotifyCq(_));
        self.send_and_settle();
        if needs_worker {
            self.wake_if_needed();
        }
        response
    }

    /// Sends the packets of an executed command, and passes completions and events to the program. Wakes the worker if
    /// the device needs it before the end of its sleep.
    fn after_command(&mut self) {
        self.send_and_settle();
        self.wake_if_needed();
    }

    fn send_and_settle(&mut self) {
        if let Some(adapter) = &mut self.adapter {
            // A UD or UC send completes when its last packet has been sent, so packets are sent before
            // completions are passed to the program.
            adapter.device.flush();
            adapter.settle(&mut self.objects);
        }
    }

    /// Wakes the worker if the device needs it before the end of its sleep. Prepares the link to wake it when the next
    /// packet arrives.
    fn wake_if_needed(&mut self) {
        let Some(adapter) = &mut self.adapter else { return };
        match adapter.device.begin_wait() {
            Some(until) if until >= self.sleeps_until && !self.is_napping => {}
            _ => self.wake(),
        }
    }

    /// Destroys the object that a command has created, because the program does not get the response.
    fn undo(&mut self, context: FileId, request: &Request, response: &Response) {
        let Some(&number) = response.core.first_chunk() else { return };
        let number = u32::from_ne_bytes(number);
        if matches!(request, Request::GetContext | Request::CreateCompChannel) {
            let descriptor = number as i32;
            descriptors::remove(descriptor);
            if let Some(file) = self.descriptors.remove(&descriptor) {
                self.references.remove(&file);
                self.objects.event_files.remove(&file);
                for context in self.objects.contexts.values_mut() {
                    context.async_file.take_if(|async_file| *async_file == file);
                }
            }
            // SAFETY: the program does not know the new descriptor.
            unsafe { libc::close(descriptor) };
        } else if let (Some(undo), Some(adapter)) = (request.undo(number), &mut self.adapter) {
            Executor { adapter, objects: &mut self.objects, context }.destroy(undo);
        }
    }

    /// Returns the event file of a completion channel; `None` for descriptor -1, which means no
    /// channel.
    fn channel(&self, descriptor: i32) -> Result<Option<FileId>, Errno> {
        if descriptor == -1 {
            return Ok(None);
        }
        let file = self.descriptors.get(&descriptor).ok_or(Errno(libc::EBADF))?;
        if self.objects.event_files.contains_key(file) {
            Ok(Some(*file))
        } else {
            Err(Errno::INVALID)
        }
    }

    /// Wakes the worker.
    fn wake(&mut self) {
        self.sleeps_until = Instant::ZERO;
        if let Some(wake) = &self.wake {
            let one = 1_u64;
            // SAFETY: the call reads eight live bytes; the descriptor does not block.
            unsafe { libc::write(wake.as_raw_fd(), (&raw const one).cast(), 8) };
        }
    }

    /// Closes the device.
    fn close(&mut self) {
        for descriptor in &LINK {
            descriptor.store(-1, Ordering::Relaxed);
        }
        if let Some(adapter) = &mut self.adapter {
            self.objects.cm.close_all(&mut adapter.device, clock::now());
            // Sends the last packets, such as acknowledgements.
            for _ in 0..LAST_TURNS {
                if !adapter.turn(&mut self.objects).unwrap_or(false) {
                    break;
                }
            }
            adapter.device.flush();
        }
        self.adapter = None;
        self.wake();
    }
}

/// Closes the descriptors of the link in the child of a fork.
pub(crate) fn in_child() {
    for descriptor in &LINK {
        let descriptor = descriptor.swap(-1, Ordering::Relaxed);
        if descriptor >= 0 {
            // SAFETY: nothing in the child uses the descriptor any more, because the process state
            // was reset.
            unsafe { libc::close(descriptor) };
        }
    }
}

/// Opens a file in memory. The file is sealed against shrinking, so that its mapped rings remain
/// accessible.
fn memory_file(flags: i32) -> Result<OwnedFd, Errno> {
    let close_on_exec = if flags & libc::O_CLOEXEC == 0 { 0 } else { libc::MFD_CLOEXEC };
    // SAFETY: the name ends with a zero byte.
    let file =
        unsafe { libc::memfd_create(c"uverbs".as_ptr(), close_on_exec | libc::MFD_ALLOW_SEALING) };
    if file < 0 {
        return Err(Errno::last());
    }
    // SAFETY: the descriptor was just opened and has no other owner.
    let file = unsafe { OwnedFd::from_raw_fd(file) };
    // SAFETY: the call takes numbers only.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) } < 0 {
        return Err(Errno::last());
    }
    Ok(file)
}

/// Copies a response into the program's buffer. Bytes beyond the size of the buffer are not copied.
fn deliver(buffer: &ResponseBuffer, response: &Response) -> Result<(), Errno> {
    let whole = [&response.core[..], &response.driver].concat();
    let parts = if buffer.driver == 0 {
        [(buffer.address, &whole[..whole.len().min(buffer.core)]), (0, &[][..])]
    } else {
        let core = &response.core[..response.core.len().min(buffer.core)];
        let driver = &response.driver[..response.driver.len().min(buffer.driver)];
        [(buffer.address, core), (buffer.address.wrapping_add(buffer.core as u64), driver)]
    };
    for (address, bytes) in parts.into_iter().filter(|(_, bytes)| !bytes.is_empty()) {
        program_memory::write(usize::try_from(address).map_err(|_| Errno::FAULT)?, bytes)?;
    }
    Ok(())
}

/// Prints a message to standard error. Errors are ignored, because standard error may be closed.
fn print(message: &str) {
    let _ = writeln!(std::io::stderr(), "ibfabric: {}", escaped(message));
}
