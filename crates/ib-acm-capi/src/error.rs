//! `errno`, and the text of what failed last.

use std::cell::RefCell;
use std::ffi::CString;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ib_acm::client::ClientError;
use ib_wire::acm::ClientStatus;
use libc::{c_char, c_int};

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    number: c_int,
    text: String,
}

impl Failure {
    /// Returns that an argument is none that can be.
    pub(crate) fn argument(text: impl Into<String>) -> Self {
        Self { number: libc::EINVAL, text: text.into() }
    }

    /// Returns that there is no memory.
    pub(crate) fn memory() -> Self {
        Self { number: libc::ENOMEM, text: "there is no memory for the answer".into() }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let number = match &error {
            ClientError::Refused(status) => of_status(*status),
            ClientError::Connect { error, .. } => {
                error.raw_os_error().unwrap_or_else(|| of_kind(error.kind()))
            }
            // A service that takes no requests; `ETIMEDOUT` would promise a connection of further use.
            ClientError::Broken { error, .. } => error.raw_os_error().unwrap_or(libc::EPIPE),
            other => of_kind(other.kind()),
        };
        Self { number, text: error.to_string() }
    }
}

fn of_status(status: ClientStatus) -> c_int {
    match status {
        ClientStatus::ENOMEM => libc::ENOMEM,
        ClientStatus::ENODATA => libc::ENODATA,
        ClientStatus::ENOTCONN => libc::ENOTCONN,
        ClientStatus::ETIMEDOUT => libc::ETIMEDOUT,
        ClientStatus::ESRCADDR | ClientStatus::EDESTADDR => libc::EADDRNOTAVAIL,
        _ => libc::EINVAL,
    }
}

fn of_kind(kind: io::ErrorKind) -> c_int {
    match kind {
        io::ErrorKind::TimedOut => libc::ETIMEDOUT,
        io::ErrorKind::ConnectionReset => libc::ECONNRESET,
        io::ErrorKind::InvalidData => libc::EPROTO,
        io::ErrorKind::InvalidInput => libc::EINVAL,
        // Such as of a host's name that nobody knows.
        _ => libc::EHOSTUNREACH,
    }
}

/// Does the work of a call. Returns `None`, with `errno` and the text set, when it fails or panics.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Option<T> {
    let panicked = || Failure { number: libc::EIO, text: "the library has failed".into() };
    // A panic could leave no more than a connection half done, and what comes on it is checked anyway.
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(panicked()));
    result
        .map_err(|Failure { number, text }| {
            let text = CString::new(text).unwrap_or_default();
            // A thread that ends has no texts any longer.
            let _ = LAST.try_with(|last| *last.borrow_mut() = text);
            // SAFETY: the address is that of the thread's own variable, which is always there.
            unsafe { *libc::__errno_location() = number };
        })
        .ok()
}

/// Returns what a call that says no more than whether it worked returns.
pub(crate) fn status(done: Option<()>) -> c_int {
    if done.is_some() { 0 } else { -1 }
}

/// Returns what failed last in the calling thread, as `ib_acm_error_string` in the header says.
#[unsafe(no_mangle)]
pub extern "C" fn ib_acm_error_string() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}
