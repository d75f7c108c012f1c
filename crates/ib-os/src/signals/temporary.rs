//! Temporary files, which are removed if a signal ends the process.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, Once, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ};
use signal_hook::iterator::Signals;

/// Signals that users, terminals and resource limits send, and whose default action ends the process.
const SIGNALS: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ];

/// Paths of the temporary files, including files that are not created yet.
static PATHS: LazyLock<Mutex<Vec<PathBuf>>> = LazyLock::new(Mutex::default);

/// True once [`Termination`](super::Termination) or [`Orders`](super::Orders) catch signals. A
/// termination signal then makes the process exit normally, and destructors remove the temporary files.
pub(super) static ENDS_IN_ORDER: AtomicBool = AtomicBool::new(false);

/// The path of a temporary file. The file is removed when this value is dropped, or when a signal ends the process.
#[derive(Debug)]
pub struct TemporaryPath(PathBuf);

impl TemporaryPath {
    /// Registers the path of a file that will be created afterwards.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        static STARTED: Once = Once::new();
        // If the signal thread cannot be started, a signal ends the process without removing the file.
        STARTED.call_once(|| drop(remove_on_signals()));
        lock().push(path.clone());
        Self(path)
    }

    /// Returns the path of the temporary file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Renames the file. It is then no longer temporary.
    ///
    /// # Errors
    /// Fails if the system cannot rename the file. The file is then removed.
    pub fn persist(self, path: &Path) -> io::Result<()> {
        // The signal thread needs this lock to remove files. So it removes no file between the rename and the removal
        // of the path from `paths`.
        let mut paths = lock();
        std::fs::rename(&self.0, path)?;
        paths.retain(|other| *other != self.0);
        Ok(())
    }
}

impl Drop for TemporaryPath {
    fn drop(&mut self) {
        let mut paths = lock();
        if let Some(at) = paths.iter().position(|path| *path == self.0) {
            paths.swap_remove(at);
            // The error is ignored: the file may not have been created yet.
            let _ = std::fs::remove_file(&self.0);
        }
    }
}

fn lock() -> MutexGuard<'static, Vec<PathBuf>> {
    PATHS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the signal thread. If a signal of [`SIGNALS`] does not make the process exit normally, this thread removes
/// the temporary files. It then executes the signal's default action.
fn remove_on_signals() -> io::Result<()> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let wanted = SIGNALS.into_iter().filter(|&signal| !super::ignores(&status, signal));
    let mut signals = Signals::new(wanted)?;
    let thread = std::thread::Builder::new().name("signals".to_owned());
    thread.spawn(move || {
        for signal in signals.forever() {
            let is_handled = matches!(signal, SIGHUP | SIGINT | SIGTERM);
            if is_handled && ENDS_IN_ORDER.load(Ordering::SeqCst) {
                continue;
            }
            // The lock is held until the process ends, so that no other thread can create or rename a temporary file.
            let paths = lock();
            for path in &*paths {
                let _ = std::fs::remove_file(path);
            }
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    })?;
    Ok(())
}
