//! The functions of the C library that this library stands in for. What does not concern our files
//! and descriptors passes on.
//!
//! The functions are declared as C code that may be unwound: a thread that is cancelled inside one
//! leaves through it, so nothing on the way out may need to be dropped. Where our own work is done,
//! cancelling waits.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::errno::Errno;

mod descriptor;
mod next;
mod path;
mod verbs;

unsafe extern "C" {
    fn pthread_setcancelstate(state: libc::c_int, old: *mut libc::c_int) -> libc::c_int;
}

/// The state of a thread that is not cancelled for now, on Linux.
const CANCEL_DISABLE: libc::c_int = 1;

/// Does our own work: no cancelling, and no panic reaches the program.
fn guarded<T>(work: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    let mut old = 0;
    // SAFETY: the call writes the live number that it is given.
    unsafe { pthread_setcancelstate(CANCEL_DISABLE, &raw mut old) };
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Errno::IO));
    // SAFETY: as above; the state is the one that was stored before.
    unsafe { pthread_setcancelstate(old, &raw mut old) };
    result
}

/// Returns what a C function returns: a number, or -1 and the error in `errno`.
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
