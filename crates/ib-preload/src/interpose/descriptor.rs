//! Replacements of C library functions that take descriptors.

use libc::{c_int, c_uint, c_ulong, c_void, size_t, ssize_t};

use ib_umad::abi::{ENABLE_PKEY, REGISTER_AGENT, REGISTER_AGENT2, Registration, UNREGISTER_AGENT};

use super::next::next;
use super::{fail, finish, guarded};
use crate::descriptors;
use crate::errno::Errno;
use crate::process::{is_owner, process};

/// Replaces `read(2)`.
///
/// # Safety
/// The caller has to meet the requirements of the C library's function.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn read(
    fd: c_int,
    buffer: *mut c_void,
    count: size_t,
) -> ssize_t {
    if descriptors::is_inherited(fd) {
        return fail(Errno::NO_DEVICE, -1);
    }
    if !descriptors::is_ours(fd) {
        return next!(
            c"read" as fn(c_int, *mut c_void, size_t) -> ssize_t,
            (fd, buffer, count),
            -1
        );
    }
    loop {
        let result = guarded(|| {
            if buffer.is_null() {
                return Err(Errno::FAULT);
            }
            if descriptors::is_verbs(fd) {
                return process().uverbs()?.read(fd, buffer.expose_provenance(), count);
            }
            // SAFETY: the caller guarantees a buffer of `count` bytes.
            let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), count) };
            process().read(fd, buffer)
        });
        if result != Err(Errno::AGAIN) || is_nonblocking(fd) {
            return finish(result);
        }
        if !wait_for_event(fd) {
            return -1;
        }
    }
}

fn is_nonblocking(fd: c_int) -> bool {
    // SAFETY: the call takes numbers only.
    unsafe { libc::fcntl(fd, libc::F_GETFL) & libc::O_NONBLOCK != 0 }
}

/// Replaces `__read_chk`, which programs compiled with `_FORTIFY_SOURCE` call instead of `read`.
///
/// # Safety
/// The caller has to meet the requirements of the C library's function.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn __read_chk(
    fd: c_int,
    buffer: *mut c_void,
    count: size_t,
    size: size_t,
) -> ssize_t {
    if count > size || !(descriptors::is_ours(fd) || descriptors::is_inherited(fd)) {
        return next!(
            c"__read_chk" as fn(c_int, *mut c_void, size_t, size_t) -> ssize_t,
            (fd, buffer, count, size),
            -1
        );
    }
    // SAFETY: the caller guarantees a buffer of `count` bytes.
    unsafe { read(fd, buffer, count) }
}

/// Replaces `write(2)`.
///
/// # Safety
/// The caller has to meet the requirements of the C library's function.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn write(
    fd: c_int,
    buffer: *const c_void,
    count: size_t,
) -> ssize_t {
    // The file of the device in memory contains the parent's rings.
    if descriptors::is_inherited(fd) {
        return fail(Errno::NO_DEVICE, -1);
    }
    if !descriptors::is_ours(fd) {
        return next!(
            c"write" as fn(c_int, *const c_void, size_t) -> ssize_t,
            (fd, buffer, count),
            -1
        );
    }
    loop {
        let result = guarded(|| {
            if buffer.is_null() {
                return Err(Errno::FAULT);
            }
            if descriptors::is_verbs(fd) {
                return process().uverbs()?.write(fd, buffer.expose_provenance(), count);
            }
            // SAFETY: the caller guarantees that `buffer` has `count` bytes.
            let bytes = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), count) };
            process().write(fd, bytes)
        });
        // The command GET_EVENT of `rdma_cm` waits for an event. Like a call that waits in the kernel, it keeps waiting
        // if another thread closes the descriptor.
        if result != Err(Errno::AGAIN) || is_nonblocking(fd) {
            return finish(result);
        }
        let awaited = guarded(|| Ok(process().uverbs()?.begin_wait(fd)));
        let has_waited = wait_for_event(awaited.unwrap_or(-1));
        let _ = guarded(|| {
            process().uverbs()?.end_wait(fd);
            Ok(())
        });
        if !has_waited {
            return -1;
        }
    }
}

/// Waits until an event of a descriptor can be read. If the descriptor is -1, waits indefinitely. Like a blocking call
/// of the kernel's device, `poll` is a cancellation point. Returns false if `poll` fails; `errno` then has the error.
fn wait_for_event(fd: c_int) -> bool {
    let mut polled = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let count = next!(
        c"poll" as fn(*mut libc::pollfd, libc::nfds_t, c_int) -> c_int,
        (&raw mut polled, 1, -1),
        -1
    );
    count >= 0
}

/// Replaces `ioctl(2)`. The variadic third argument is declared as a fixed one, which is passed in
/// the same register.
///
/// # Safety
/// The caller has to meet the requirements of the C library's function.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn ioctl(
    fd: c_int,
    request: c_ulong,
    argument: *mut c_void,
) -> c_int {
    if descriptors::is_inherited(fd) {
        return fail(Errno::NO_DEVICE, -1);
    }
    if !descriptors::is_ours(fd) {
        return next!(
            c"ioctl" as fn(c_int, c_ulong, *mut c_void) -> c_int,
            (fd, request, argument),
            -1
        );
    }
    finish(guarded(|| {
        if descriptors::is_verbs(fd) {
            // If the ioctl fails with this error, libibverbs uses write commands instead of ioctls.
            return Err(Errno(libc::EPROTONOSUPPORT));
        }
        let request = request as u32;
        let length = match request {
            ENABLE_PKEY => 0,
            UNREGISTER_AGENT => 4,
            REGISTER_AGENT => Registration::OLD,
            REGISTER_AGENT2 => Registration::NEW,
            _ => return Err(Errno::NOT_TTY),
        };
        if argument.is_null() && length > 0 {
            return Err(Errno::FAULT);
        }
        let bytes: &mut [u8] = if length == 0 {
            &mut []
        } else {
            // SAFETY: the caller guarantees a structure of the size that the ioctl specifies.
            unsafe { std::slice::from_raw_parts_mut(argument.cast::<u8>(), length) }
        };
        process().control(fd, request, bytes).map(|()| 0)
    }))
}

/// Replaces `close(2)`.
///
/// # Safety
/// The caller has to meet the requirements of the C library's function.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    forget(fd);
    next!(c"close" as fn(c_int) -> c_int, (fd), -1)
}

/// If a descriptor that is about to be closed belongs to the library, removes it from the library's
/// state.
fn forget(fd: c_int) {
    descriptors::disinherit(fd);
    if descriptors::is_ours(fd) && is_owner() {
        // The result is ignored, because the descriptor is closed in any case.
        let _ = guarded(|| {
            match process().verbs() {
                Some(verbs) if descriptors::is_verbs(fd) => verbs.closing(fd),
                _ => process().closing(fd),
            }
            Ok(())
        });
    }
}

fn forget_range(first: c_uint, last: c_uint) {
    let most = descriptors::MOST;
    let (first, last) = (i32::try_from(first).unwrap_or(most), i32::try_from(last).unwrap_or(most));
    (first..=last.min(most)).for_each(descriptors::disinherit);
    if first > last
        || !(first..last.min(most)).any(descriptors::is_ours) && !descriptors::is_ours(last)
    {
        return;
    }
    let found = guarded(|| {
        let mut found = process().descriptors(first, last);
        if let Some(verbs) = process().verbs() {
            found.extend(verbs.descriptors(first, last));
        }
        Ok(found)
    });
    for fd in found.unwrap_or_default() {
        forget(fd);
    }
}

/// Replaces `close_range(2)`.
///
/// # Safety
/// The caller has to meet the requirements of the C library's function.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn close_range(
    first: c_uint,
    last: c_uint,
    flags: c_int,
) -> c_int {
    // With CLOSE_RANGE_CLOEXEC (4), the call sets the close-on-exec flags of the descriptors instead of closing them.
    if flags & 4 == 0 {
        forget_range(first, last);
    }
    next!(c"close_range" as fn(c_uint, c_uint, c_int) -> c_int, (first, last, flags), -1)
}

/// Replaces `closefrom(3)`.
///
/// # Safety
/// The caller has to meet the requirements of the C library's function.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn closefrom(first: c_int) {
    forget_range(first.max(0) as c_uint, c_uint::MAX);
    next!(c"closefrom" as fn(c_int) -> (), (first), ());
}

/// If the original descriptor belongs to the library, adds its duplicate to the library's state.
/// A duplicate of an inherited descriptor counts as inherited. Returns the duplicate.
fn copied(old: c_int, new: c_int) -> c_int {
    if new >= 0 && new != old && descriptors::is_inherited(old) {
        descriptors::inherit(new);
    }
    if new >= 0 && new != old && descriptors::is_ours(old) && is_owner() {
        let _ = guarded(|| {
            match process().verbs() {
                Some(verbs) if descriptors::is_verbs(old) => verbs.duplicated(old, new),
                _ => process().duplicated(old, new),
            }
            Ok(())
        });
    }
    new
}

/// Replaces `dup(2)`.
///
/// # Safety
/// The caller has to meet the requirements of the C library's function.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn dup(old: c_int) -> c_int {
    copied(old, next!(c"dup" as fn(c_int) -> c_int, (old), -1))
}

/// Replaces `dup2(2)`.
///
/// # Safety
/// The caller has to meet the requirements of the C library's function.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn dup2(old: c_int, new: c_int) -> c_int {
    if old != new {
        forget(new);
    }
    copied(old, next!(c"dup2" as fn(c_int, c_int) -> c_int, (old, new), -1))
}

/// Replaces `dup3(2)`.
///
/// # Safety
/// The caller has to meet the requirements of the C library's function.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    if old != new {
        forget(new);
    }
    copied(old, next!(c"dup3" as fn(c_int, c_int, c_int) -> c_int, (old, new, flags), -1))
}

/// Replaces `fcntl(2)`. The variadic third argument is declared as a fixed one, which is passed in
/// the same register.
///
/// # Safety
/// The caller has to meet the requirements of the C library's function.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn fcntl(
    fd: c_int,
    command: c_int,
    argument: *mut c_void,
) -> c_int {
    let result =
        next!(c"fcntl" as fn(c_int, c_int, *mut c_void) -> c_int, (fd, command, argument), -1);
    after_fcntl(fd, command, result)
}

/// Replaces `fcntl64`, which programs linked with glibc 2.28 or later call instead of `fcntl`.
///
/// # Safety
/// The caller has to meet the requirements of the C library's function.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn fcntl64(
    fd: c_int,
    command: c_int,
    argument: *mut c_void,
) -> c_int {
    let result =
        next!(c"fcntl64" as fn(c_int, c_int, *mut c_void) -> c_int, (fd, command, argument), -1);
    after_fcntl(fd, command, result)
}

fn after_fcntl(fd: c_int, command: c_int, result: c_int) -> c_int {
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => copied(fd, result),
        _ => result,
    }
}
