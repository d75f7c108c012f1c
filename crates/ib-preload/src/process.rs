//! What a process has once: the connection to the simulator, the open files, the thread that receives,
//! the directory of sysfs. All of it starts when a program first touches one of our paths.

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

/// The process's own; null until it is needed, and again in the child of a fork.
static PROCESS: AtomicPtr<Process> = AtomicPtr::new(std::ptr::null_mut());

/// The number of the process that has the connection; zero before.
static OWNER: AtomicI32 = AtomicI32::new(0);

/// The sockets to the simulator, for the child of a fork, which must not keep them.
static SOCKETS: [AtomicI32; 2] = [const { AtomicI32::new(-1) }; 2];

/// How long a simulator that was not there is not asked again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What a process has once.
pub(crate) struct Process {
    /// The uverbs device, if the environment sets one.
    verbs: Option<Verbs>,
    connection: OnceLock<Arc<Client>>,
    /// When there was no simulator the last time; held while one is looked for.
    failed: Mutex<Option<Instant>>,
    tree: Mutex<Option<(Tree, &'static CStr)>>,
    state: Mutex<State>,
    /// Whether the simulator was told that there is a subnet manager's duty.
    is_sm: Mutex<bool>,
}

/// Returns the process's own.
pub(crate) fn process() -> &'static Process {
    let found = PROCESS.load(Ordering::Acquire);
    // SAFETY: what is stored there was leaked from a box and is never freed.
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
        // SAFETY: as above; the box was leaked and is now stored.
        Ok(_) => unsafe { &*new },
        Err(other) => {
            // SAFETY: nobody else has seen the new one, and the other one was leaked before.
            unsafe {
                drop(Box::from_raw(new));
                &*other
            }
        }
    }
}

/// Returns true in the process that opened our descriptors, false in a child that shares its memory.
pub(crate) fn is_owner() -> bool {
    // SAFETY: the call only returns a number.
    OWNER.load(Ordering::Relaxed) == unsafe { libc::getpid() }
}

impl Process {
    /// Returns the connection to the simulator, after making it.
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
        match attach(again) {
            Ok((client, is_sm)) => {
                *lock(&self.is_sm) = is_sm;
                let client = Arc::new(client);
                self.start(&client)?;
                lock(&self.state).needs_sm = is_sm;
                Ok(self.connection.get_or_init(|| client))
            }
            Err(message) => {
                *failed = Some(Instant::now());
                // Standard error may be closed.
                let _ = writeln!(std::io::stderr(), "ib-preload: {}", escaped(&message));
                Err(Errno::NO_DEVICE)
            }
        }
    }

    /// Returns the uverbs device.
    pub(crate) fn verbs(&'static self) -> Option<&'static Verbs> {
        self.verbs.as_ref()
    }

    /// Returns the uverbs device, whose descriptor was used.
    ///
    /// # Errors
    /// `EBADF` if the process has none.
    pub(crate) fn uverbs(&'static self) -> Result<&'static Verbs, Errno> {
        self.verbs.as_ref().ok_or(Errno(libc::EBADF))
    }

    /// Opens the uverbs device.
    pub(crate) fn open_uverbs(&'static self, flags: i32) -> Result<i32, Errno> {
        let verbs = self.verbs.as_ref().ok_or(Errno::NO_DEVICE)?;
        own();
        verbs.open(flags)
    }

    /// Starts the thread that receives.
    fn start(&'static self, client: &Arc<Client>) -> Result<(), Errno> {
        own();
        SOCKETS[0].store(client.data().as_raw_fd(), Ordering::Relaxed);
        SOCKETS[1].store(client.control_socket().as_raw_fd(), Ordering::Relaxed);
        worker::start(self, Arc::clone(client))
    }

    /// Returns the directory that stands for the root of the file system, its files as new as the
    /// simulator's answers.
    pub(crate) fn root(&'static self) -> Result<&'static CStr, Errno> {
        if let Some(verbs) = &self.verbs {
            own();
            return self.root_of_verbs(verbs);
        }
        let client = self.connect()?;
        let mut tree = lock(&self.tree);
        let result = match &mut *tree {
            // What was written stays readable when the simulator has gone.
            Some((tree, root)) => tree.refresh(client).or(Ok(())).map(|()| *root),
            None => Tree::create(client).map(|new| {
                let root: &CStr = Box::leak(sysfs::c_path(new.root()).into_boxed_c_str());
                *tree = Some((new, root));
                root
            }),
        };
        result.map_err(|error| {
            let error = error.to_string();
            let error = escaped(&error);
            let _ = writeln!(std::io::stderr(), "ib-preload: cannot write sysfs: {error}");
            Errno::NO_DEVICE
        })
    }

    /// Returns the directory in a process with a uverbs device.
    fn root_of_verbs(&self, verbs: &Verbs) -> Result<&'static CStr, Errno> {
        let mut tree = lock(&self.tree);
        if tree.is_none() {
            let new = Tree::empty().map_err(|_| Errno::NO_SPACE)?;
            let root: &CStr = Box::leak(sysfs::c_path(new.root()).into_boxed_c_str());
            *tree = Some((new, root));
        }
        let (tree, root) = tree.as_mut().expect("just made");
        verbs.write_files(tree)?;
        Ok(*root)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Tells the simulator when the duty of a subnet manager begins or ends: with the first issm
    /// device or agent that wants datagrams unasked, and with the last.
    fn update_duty(&'static self) {
        let Some(client) = self.connection.get() else { return };
        let mut told = lock(&self.is_sm);
        let is_sm = self.state().is_sm();
        if *told != is_sm {
            match client.set_is_sm(is_sm) {
                Ok(()) => *told = is_sm,
                Err(error) => {
                    let error = error.to_string();
                    let _ = writeln!(std::io::stderr(), "ib-preload: {}", escaped(&error));
                }
            }
        }
    }
}

/// Makes the process the owner of what is opened, and prepares for its end and for forks.
fn own() {
    // SAFETY: the call only returns a number.
    if OWNER.swap(unsafe { libc::getpid() }, Ordering::Relaxed) == 0 {
        // SAFETY: both are functions of this library, which is never unloaded before the end.
        unsafe {
            libc::atexit(at_exit);
            libc::pthread_atfork(None, None, Some(in_child));
        }
    }
}

/// Starts a thread without signals, which are for the program's own threads.
///
/// # Errors
/// `EAGAIN` if the system has no more threads.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Errno> {
    // SAFETY: all bits zero are a valid set; the calls read and write the live sets given.
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

/// Attaches as the environment says; waits for a simulator only the first time.
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says goodbye and removes the directory.
extern "C" fn at_exit() {
    if !is_owner() {
        return;
    }
    // SAFETY: what is stored there was leaked from a box and is never freed.
    let Some(process) = (unsafe { PROCESS.load(Ordering::Acquire).as_ref() }) else { return };
    // Another thread may be in the middle of something that never ends now.
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

/// Makes the child of a fork a process that has opened nothing: the thread that receives was not
/// copied, and the sockets are the parent's.
extern "C" fn in_child() {
    PROCESS.store(std::ptr::null_mut(), Ordering::Release);
    descriptors::clear();
    verbs::in_child();
    for socket in &SOCKETS {
        let socket = socket.swap(-1, Ordering::Relaxed);
        if socket >= 0 {
            // SAFETY: the child has no other user of the socket: what owned it is forgotten.
            unsafe { libc::close(socket) };
        }
    }
}
