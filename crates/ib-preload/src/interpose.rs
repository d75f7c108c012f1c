//! Replacements of C library functions. Calls with paths or descriptors that this library does not
//! serve are passed to the C library.
//!
//! The replacements have the ABI `C-unwind`, because the cancellation of a thread unwinds their
//! frames. Therefore a replacement holds no value with a destructor at the time when it calls a C
//! library function. While the library does its own work, cancellation is disabled.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::errno::Errno;

mod descriptor;
mod next;
mod path;
mod verbs;

unsafe extern "C" {
    fn pthread_setcancelstate(state: libc::c_int, old: *mut libc::c_int) -> libc::c_int;
}

/// Value of `PTHREAD_CANCEL_DISABLE` on Linux.
const CANCEL_DISABLE: libc::c_int = 1;

/// Runs a closure with thread cancellation disabled. A panic becomes the error `EIO`.
fn guarded<T>(work: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    let mut old = 0;
    // SAFETY: the call writes to a live integer.
    unsafe { pthread_setcancelstate(CANCEL_DISABLE, &raw mut old) };
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Errno::IO));
    // SAFETY: the call writes to a live integer. It restores the state that the first call has
    // stored.
    unsafe { pthread_setcancelstate(old, &raw mut old) };
    result
}

/// Converts a result to the return value of a C function: a number, or -1 with the error in `errno`.
fn finish<T: TryInto<N>, N: From<i8>>(result: Result<T, Errno>) -> N {
    match result.map(TryInto::try_into) {
        Ok(Ok(value)) => value,
        Ok(Err(_)) => fail(Errno(libc::EOVERFLOW), N::from(-1)),
        Err(error) => fail(error, N::from(-1)),
    }
}

fn fail<T>(error: Errno, value: T) -> T {
    error.store();
    value
}
