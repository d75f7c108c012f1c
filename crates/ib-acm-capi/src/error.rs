//! `errno`, and the text of the last error.

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

/// An error of a call: `errno` and its text.
#[derive(Debug)]
pub(crate) struct Failure {
    number: c_int,
    text: String,
}

impl Failure {
    /// Returns the error for an invalid argument: `EINVAL`.
    pub(crate) fn argument(text: impl Into<String>) -> Self {
        Self { number: libc::EINVAL, text: text.into() }
    }

    /// Returns the error for a failed allocation: `ENOMEM`.
    pub(crate) fn memory() -> Self {
        Self { number: libc::ENOMEM, text: "out of memory for the result".into() }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let number = match &error {
            ClientError::Refused(status) => of_status(*status),
            ClientError::Connect { error, .. } => {
                error.raw_os_error().unwrap_or_else(|| of_kind(error.kind()))
            }
            // A broken connection accepts no further requests. Its error kind can be `TimedOut`, but `ETIMEDOUT` would
            // mean that the connection is still usable.
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
        // Other kinds occur only while connecting, for example, if the host name is unknown.
        _ => libc::EHOSTUNREACH,
    }
}

/// Runs the body of a C call. If the body fails or panics, sets `errno` and the error text, and
/// returns `None`.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Option<T> {
    let panicked = || Failure { number: libc::EIO, text: "internal error in the library".into() };
    // A panic leaves at most a connection in an inconsistent state. This does no harm, because later calls validate
    // all bytes that the connection receives.
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(panicked()));
    result
        .map_err(|Failure { number, text }| {
            let text = CString::new(text).unwrap_or_default();
            // While a thread exits, its thread-local error text is not available.
            let _ = LAST.try_with(|last| *last.borrow_mut() = text);
            // SAFETY: the pointer to the `errno` of the calling thread is always valid.
            unsafe { *libc::__errno_location() = number };
        })
        .ok()
}

/// Returns the result of a C call: 0 if it succeeded, or -1 if it failed.
pub(crate) fn status(done: Option<()>) -> c_int {
    if done.is_some() { 0 } else { -1 }
}

/// Returns the text of the last error in this thread; see `ib_acm_error_string` in the header.
#[unsafe(no_mangle)]
pub extern "C" fn ib_acm_error_string() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}
