//! State of the process: the connection to the simulator, the open files, the receiving thread, and the directory of
//! sysfs files. The state is created at its first use, usually when the program opens a path that the library may
//! serve.

use std::ffi::CStr;
use std::io::Write as _;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ib_ibsim::client::{Attach, Client};

use ib_types::text::escaped;

use crate::descriptors;
use crate::errno::Errno;
use crate::sysfs::{self, Tree};
use crate::verbs::{self, Settings, Verbs};

mod files;
mod worker;

use files::State;

/// The state of the process. Null until [`process`] is first called. After a fork, [`in_child`] resets
/// it to null in the child.
static PROCESS: AtomicPtr<Process> = AtomicPtr::new(std::ptr::null_mut());

/// PID of the process that has opened the library's descriptors; 0 before the first one is opened.
static OWNER: AtomicI32 = AtomicI32::new(0);

/// Sockets that are connected to the simulator. The child of a fork closes them.
static SOCKETS: [AtomicI32; 2] = [const { AtomicI32::new(-1) }; 2];

/// After a failed attempt to connect to the simulator, no other attempt is made for this time.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// State of a process.
pub(crate) struct Process {
    /// The uverbs device, if environment variables configure one.
    verbs: Option<Verbs>,
    connection: OnceLock<Arc<Client>>,
    /// Time of the last failed attempt to connect to the simulator. The lock is held during each
    /// attempt.
    failed: Mutex<Option<Instant>>,
    tree: Mutex<Option<(Tree, &'static CStr)>>,
    state: Mutex<State>,
    /// True if this process has reported to the simulator that the port has an SM (IsSM).
    is_sm: Mutex<bool>,
}

/// Returns the state of the process. The first call creates it.
pub(crate) fn process() -> &'static Process {
    let found = PROCESS.load(Ordering::Acquire);
    // SAFETY: the pointer was leaked from a box, which is never freed.
    if let Some(process) = unsafe { found.as_ref() } {
        return process;
    }
    let settings = Settings::from_environment().unwrap_or_else(|message| {
        let _ = writeln!(std::io::stderr(), "ibfabric: {}", escaped(&message));
        None
    });
    let new = Box::into_raw(Box::new(Process {
        verbs: settings.map(Verbs::new),
        connection: OnceLock::new(),
        failed: Mutex::new(None),
        tree: Mutex::new(None),
        state: Mutex::new(State::default()),
        is_sm: Mutex::new(false),
    }));
    let stored =
        PROCESS.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
    match stored {
        // SAFETY: the box was leaked, is now stored, and is never freed.
        Ok(_) => unsafe { &*new },
        Err(other) => {
            // SAFETY: the new box was not published. The box of the other thread was leaked and is
            // never freed.
            unsafe {
                drop(Box::from_raw(new));
                &*other
            }
        }
    }
}

/// Returns true if this process has opened the library's descriptors. Returns false in a child that
/// shares the parent's memory (`vfork`).
pub(crate) fn is_owner() -> bool {
    // SAFETY: the call only returns a number.
    OWNER.load(Ordering::Relaxed) == unsafe { libc::getpid() }
}

impl Process {
    /// Returns the connection to the simulator. The first call opens it.
    pub(crate) fn connect(&'static self) -> Result<&'static Arc<Client>, Errno> {
        if let Some(client) = self.connection.get() {
            return Ok(client);
        }
        let mut failed = lock(&self.failed);
        if let Some(client) = self.connection.get() {
            return Ok(client);
        }
        let again = failed.is_some();
        if failed.is_some_and(|failed| failed.elapsed() < RETRY_AFTER) {
            return Err(Errno::NO_DEVICE);
        }
        match descriptors::open_internal(|| attach(again)) {
            Ok((client, is_sm)) => {
                *lock(&self.is_sm) = is_sm;
                let client = Arc::new(client);
                descriptors::open_internal(|| self.start(&client))?;
                lock(&self.state).needs_sm = is_sm;
                Ok(self.connection.get_or_init(|| client))
            }
            Err(message) => {
                *failed = Some(Instant::now());
                print_error(&message);
                Err(Errno::NO_DEVICE)
            }
        }
    }

    /// Returns the uverbs device, if environment variables configure one.
    pub(crate) fn verbs(&'static self) -> Option<&'static Verbs> {
        self.verbs.as_ref()
    }

    /// Returns the uverbs device.
    ///
    /// # Errors
    /// Fails with `EBADF`, the error for an invalid descriptor, if the process has no uverbs device.
    pub(crate) fn uverbs(&'static self) -> Result<&'static Verbs, Errno> {
        self.verbs.as_ref().ok_or(Errno(libc::EBADF))
    }

    /// Opens the uverbs device.
    pub(crate) fn open_uverbs(&'static self, flags: i32) -> Result<i32, Errno> {
        let verbs = self.verbs.as_ref().ok_or(Errno::NO_DEVICE)?;
        own();
        verbs.open(flags)
    }

    /// Opens the `rdma_cm` device.
    pub(crate) fn open_rdma_cm(&'static self, flags: i32) -> Result<i32, Errno> {
        let verbs = self.verbs.as_ref().ok_or(Errno::NO_DEVICE)?;
        own();
        verbs.open_rdma_cm(flags)
    }

    /// Starts the receiving thread.
    fn start(&'static self, client: &Arc<Client>) -> Result<(), Errno> {
        own();
        SOCKETS[0].store(client.data().as_raw_fd(), Ordering::Relaxed);
        SOCKETS[1].store(client.control_socket().as_raw_fd(), Ordering::Relaxed);
        worker::start(self, Arc::clone(client))
    }

    /// Updates the files in the library's private directory. Returns the path of this directory, with
    /// which redirected paths begin.
    pub(crate) fn root(&'static self) -> Result<&'static CStr, Errno> {
        if let Some(verbs) = &self.verbs {
            own();
            return self.root_of_verbs(verbs);
        }
        let client = self.connect()?;
        let mut tree = lock(&self.tree);
        let result = match &mut *tree {
            // A refresh fails after the simulator has disconnected. The error is ignored, so that the
            // files that were written before remain readable.
            Some((tree, root)) => tree.refresh(client).or(Ok(())).map(|()| *root),
            None => Tree::create(client).map(|new| {
                let root: &CStr = Box::leak(sysfs::c_path(new.root()).into_boxed_c_str());
                *tree = Some((new, root));
                root
            }),
        };
        result.map_err(|error| {
            print_error(&format!("cannot write sysfs: {error}"));
            Errno::NO_DEVICE
        })
    }

    /// Updates the files in the library's private directory in a process that has a uverbs device.
    /// Returns the path of the directory.
    fn root_of_verbs(&self, verbs: &Verbs) -> Result<&'static CStr, Errno> {
        let mut tree = lock(&self.tree);
        if tree.is_none() {
            let new = Tree::empty().map_err(|error| {
                print_error(&format!("cannot create a directory for sysfs: {error}"));
                Errno::NO_SPACE
            })?;
            let root: &CStr = Box::leak(sysfs::c_path(new.root()).into_boxed_c_str());
            *tree = Some((new, root));
        }
        let (tree, root) = tree.as_mut().expect("the tree was created above");
        verbs.write_files(tree)?;
        Ok(*root)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// If the result of [`State::is_sm`] has changed, notifies the simulator.
    fn update_is_sm(&'static self) {
        let Some(client) = self.connection.get() else { return };
        let mut reported = lock(&self.is_sm);
        let is_sm = self.state().is_sm();
        if *reported != is_sm {
            match client.set_is_sm(is_sm) {
                Ok(()) => *reported = is_sm,
                Err(error) => {
                    print_error(&error.to_string());
                }
            }
        }
    }
}

/// Records that this process owns the library's descriptors. The first call also registers handlers
/// for the exit of the process and for forks.
fn own() {
    // SAFETY: the call only returns a number.
    if OWNER.swap(unsafe { libc::getpid() }, Ordering::Relaxed) == 0 {
        // SAFETY: both handlers belong to this library, which is not unloaded before the process
        // exits.
        unsafe {
            libc::atexit(at_exit);
            libc::pthread_atfork(None, None, Some(in_child));
        }
    }
}

/// Starts a thread with all signals blocked, so that only threads of the program handle signals.
///
/// # Errors
/// Fails with `EAGAIN` if the system has no more threads.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Errno> {
    // SAFETY: a signal set with all bits zero is valid. The calls read and write the two live sets.
    let previous = unsafe {
        let (mut all, mut previous): (libc::sigset_t, libc::sigset_t) =
            (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut previous);
        previous
    };
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    // SAFETY: the call reads the live set that was stored above.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const previous, std::ptr::null_mut());
    }
    started.map(drop).map_err(|_| Errno::AGAIN)
}

/// Attaches to the simulator that environment variables specify. Waits for the simulator to start.
/// If `again` is true, an earlier attempt has already waited, so this one waits at most 200 ms.
fn attach(again: bool) -> Result<(Client, bool), String> {
    let mut attach = Attach::from_environment().map_err(|error| error.to_string())?;
    if let Ok(seconds) = std::env::var("UMAD_PRELOAD_PATIENCE") {
        let patience = seconds.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
        attach.patience = patience.ok_or_else(|| {
            format!("UMAD_PRELOAD_PATIENCE is {seconds:?}, expected a number of seconds")
        })?;
    }
    if again {
        attach.patience = attach.patience.min(Duration::from_millis(200));
    }
    let is_sm = attach.is_sm;
    Client::attach(&attach).map(|client| (client, is_sm)).map_err(|error| error.to_string())
}

/// Prints an error of the library. A failed write is ignored, because standard error may be closed.
fn print_error(message: &str) {
    let _ = writeln!(std::io::stderr(), "ib-preload: {}", escaped(message));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Disconnects from the simulator, and removes the directory of sysfs files.
extern "C" fn at_exit() {
    if !is_owner() {
        return;
    }
    // SAFETY: the pointer was leaked from a box, which is never freed.
    let Some(process) = (unsafe { PROCESS.load(Ordering::Acquire).as_ref() }) else { return };
    // Another thread may hold the lock and never release it, so this thread does not wait for the
    // lock.
    if let Ok(mut tree) = process.tree.try_lock()
        && let Some((tree, _)) = tree.take()
    {
        tree.remove();
    }
    if let Some(client) = process.connection.get() {
        client.leave();
    }
    if let Some(verbs) = &process.verbs {
        verbs.at_exit();
    }
}

/// Resets the state in the child of a fork. The child has no receiving thread, and the sockets
/// belong to the parent.
extern "C" fn in_child() {
    PROCESS.store(std::ptr::null_mut(), Ordering::Release);
    descriptors::clear();
    verbs::in_child();
    for socket in &SOCKETS {
        let socket = socket.swap(-1, Ordering::Relaxed);
        if socket >= 0 {
            // SAFETY: nothing in the child uses the socket any more, because the process state was
            // reset above.
            unsafe { libc::close(socket) };
        }
    }
}
