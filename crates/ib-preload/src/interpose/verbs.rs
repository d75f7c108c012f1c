//! Replacements of functions that only programs with a uverbs device need: `fstat`, `mmap`, `socket` and
//! `ibv_open_device`.

use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{c_int, c_void, off_t, size_t};

use super::fail;
use super::next::{Next, next};
use super::path::describe;
use crate::descriptors;
use crate::errno::Errno;
use crate::process::process;
use crate::verbs::DEVICE_NUMBER;

/// Protocol of the netlink sockets that list RDMA devices.
const NETLINK_RDMA: c_int = 20;

/// Replaces `socket(2)`. Refuses netlink sockets that list RDMA devices, so that libibverbs
/// discovers devices in sysfs.
///
/// # Safety
/// The caller has to meet the requirements of the C library's function.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn socket(
    domain: c_int,
    kind: c_int,
    protocol: c_int,
) -> c_int {
    if domain == libc::AF_NETLINK
        && protocol == NETLINK_RDMA
        && super::guarded(|| Ok(process().verbs().is_some())).unwrap_or(false)
    {
        return fail(Errno(libc::EPROTONOSUPPORT), -1);
    }
    next!(c"socket" as fn(c_int, c_int, c_int) -> c_int, (domain, kind, protocol), -1)
}

/// Defines replacements of functions that map files. A program can map only the existing rings of a uverbs device.
macro_rules! mappers {
    ($($(#[$documentation:meta])* $name:literal $function:ident;)*) => {
        $(
            $(#[$documentation])*
            ///
            /// # Safety
            /// The caller has to meet the requirements of the C library's function.
            #[unsafe(no_mangle)]
            pub(super) unsafe extern "C-unwind" fn $function(
                address: *mut c_void, length: size_t, access: c_int, flags: c_int, fd: c_int, offset: off_t
            ) -> *mut c_void {
                if descriptors::is_verbs(fd) && flags & libc::MAP_ANONYMOUS == 0 {
                    let checked = super::guarded(|| process().uverbs()?.check_mapping(fd, offset, length));
                    if let Err(error) = checked {
                        return fail(error, libc::MAP_FAILED);
                    }
                }
                next!(
                    $name as fn(*mut c_void, size_t, c_int, c_int, c_int, off_t) -> *mut c_void,
                    (address, length, access, flags, fd, offset),
                    libc::MAP_FAILED
                )
            }
        )*
    };
}

mappers! {
    /// Replaces `mmap(2)`.
    c"mmap" mmap;
    /// Replaces `mmap64`. On 64-bit machines, it is the same function as `mmap`.
    c"mmap64" mmap64;
}

/// A context of libibverbs, in the public layout of `struct ibv_context`.
#[repr(C)]
struct Context {
    device: *mut c_void,
    operations_before: [*mut c_void; 11],
    poll_cq: *mut c_void,
    operations_after: [*mut c_void; 20],
    cmd_fd: c_int,
}

type OpenDevice = unsafe extern "C-unwind" fn(*mut c_void) -> *mut Context;
type PollCq = unsafe extern "C-unwind" fn(*mut c_void, c_int, *mut c_void) -> c_int;

/// File name of libibverbs.
const LIBRARY: &CStr = c"libibverbs.so.1";

/// Name of the libibverbs function that opens a device.
const OPEN_DEVICE: &CStr = c"ibv_open_device";

/// The function with which the rxe provider polls a CQ, the same in all contexts. [`poll_cq`] replaces this function in
/// every context, and calls it.
static POLL_CQ: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Replaces `ibv_open_device` of libibverbs. In the returned context, polling an empty CQ also drives the device, so
/// that the polling thread does not wait for the device's worker thread. A program that calls `ibv_open_device` of
/// libibverbs directly also works, but polls more slowly.
///
/// # Safety
/// The caller has to meet the requirements of libibverbs' function.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn ibv_open_device(device: *mut c_void) -> *mut c_void {
    static NEXT: Next = Next::new(OPEN_DEVICE);
    let mut address = NEXT.address();
    if address.is_null() {
        // `NEXT` does not find functions of a library that the program has loaded with `RTLD_LOCAL`,
        // so the function is looked up in libibverbs itself.
        // SAFETY: both names end with a zero byte; `RTLD_NOLOAD` loads no library.
        address = unsafe {
            let library = libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if library.is_null() {
                return fail(Errno(libc::ENOSYS), std::ptr::null_mut());
            }
            libc::dlsym(library, OPEN_DEVICE.as_ptr())
        };
    }
    if address.is_null() {
        return fail(Errno(libc::ENOSYS), std::ptr::null_mut());
    }
    // SAFETY: the address is that of libibverbs' function, which has this type.
    unsafe {
        let open: OpenDevice = std::mem::transmute::<*mut c_void, OpenDevice>(address);
        let context = open(device);
        if !context.is_null() && descriptors::is_verbs((*context).cmd_fd) {
            POLL_CQ.store((*context).poll_cq, Ordering::Release);
            (*context).poll_cq = poll_cq as PollCq as *mut c_void;
        }
        context.cast()
    }
}

/// Polls a CQ. If the CQ is empty, drives the device. If the device has processed a packet, polls
/// the CQ again.
unsafe extern "C-unwind" fn poll_cq(cq: *mut c_void, count: c_int, wc: *mut c_void) -> c_int {
    let address = POLL_CQ.load(Ordering::Acquire);
    // SAFETY: the address is that of the provider's function. `ibv_open_device` has stored the
    // address before it put `poll_cq` into a context.
    unsafe {
        let poll: PollCq = std::mem::transmute::<*mut c_void, PollCq>(address);
        let found = poll(cq, count, wc);
        let has_moved = found == 0
            && super::guarded(|| Ok(process().verbs().is_some_and(|verbs| verbs.poll())))
                .unwrap_or(false);
        if has_moved { poll(cq, count, wc) } else { found }
    }
}

/// Defines replacements for the `fstat` family, whose results contain the type of a descriptor's
/// file.
macro_rules! types {
    ($($(#[$documentation:meta])* $name:literal $function:ident($($before:ident: $kind:ty),*);)*) => {
        $(
            $(#[$documentation])*
            ///
            /// # Safety
            /// The caller has to meet the requirements of the C library's function.
            #[unsafe(no_mangle)]
            pub(super) unsafe extern "C-unwind" fn $function(
                $($before: $kind,)* fd: c_int, buffer: *mut libc::stat
            ) -> c_int {
                let result = next!(
                    $name as fn($($kind,)* c_int, *mut libc::stat) -> c_int,
                    ($($before,)* fd, buffer),
                    -1
                );
                if descriptors::is_verbs(fd) {
                    let number = super::guarded(|| Ok(process().uverbs()?.number_of(fd)));
                    describe(number.unwrap_or(DEVICE_NUMBER), result, buffer);
                }
                result
            }
        )*
    };
}

types! {
    /// Replaces `fstat(2)`.
    c"fstat" fstat();
    /// Replaces `fstat64`. On 64-bit machines, it fills the same structure as `fstat`.
    c"fstat64" fstat64();
    /// Replaces `__fxstat`, which programs linked with glibc before 2.33 call instead of `fstat`.
    c"__fxstat" __fxstat(version: c_int);
    /// Replaces `__fxstat64`, which programs linked with glibc before 2.33 call instead of
    /// `fstat64`.
    c"__fxstat64" __fxstat64(version: c_int);
}
