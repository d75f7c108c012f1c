//! Functions that only matter to uverbs devices: the type of a descriptor, and the socket for lists of RDMA devices.

use libc::c_int;

use super::fail;
use super::next::next;
use crate::descriptors;
use crate::errno::Errno;
use crate::process::process;
use crate::verbs::DEVICE_NUMBER;

/// Protocol of the netlink sockets that list RDMA devices.
const NETLINK_RDMA: c_int = 20;

/// Stands in for `socket(2)`. Without the netlink protocol libibverbs looks for devices in sysfs.
///
/// # Safety
/// As of the C library's.
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

/// Reports the descriptor of a uverbs device as that of a character device.
fn patch(fd: c_int, result: c_int, buffer: *mut libc::stat) -> c_int {
    if result == 0 && descriptors::is_verbs(fd) && !buffer.is_null() {
        let (major, minor) = DEVICE_NUMBER;
        // SAFETY: the call before has filled the structure.
        unsafe {
            (*buffer).st_mode = (*buffer).st_mode & !libc::S_IFMT | libc::S_IFCHR;
            (*buffer).st_rdev = libc::makedev(major, minor);
        }
    }
    result
}

/// Defines stand-ins for functions that return the type of a descriptor.
macro_rules! types {
    ($($(#[$documentation:meta])* $name:literal $function:ident($($before:ident: $kind:ty),*);)*) => {
        $(
            $(#[$documentation])*
            ///
            /// # Safety
            /// As of the C library's.
            #[unsafe(no_mangle)]
            pub(super) unsafe extern "C-unwind" fn $function(
                $($before: $kind,)* fd: c_int, buffer: *mut libc::stat
            ) -> c_int {
                let result = next!(
                    $name as fn($($kind,)* c_int, *mut libc::stat) -> c_int,
                    ($($before,)* fd, buffer),
                    -1
                );
                patch(fd, result, buffer)
            }
        )*
    };
}

types! {
    /// Stands in for `fstat(2)`.
    c"fstat" fstat();
    /// Stands in for `fstat64`, whose structure is the same on 64-bit machines.
    c"fstat64" fstat64();
    /// Stands in for what `fstat` is in programs from before version 2.33 of the C library.
    c"__fxstat" __fxstat(version: c_int);
    /// Stands in for what `fstat64` is in such programs.
    c"__fxstat64" __fxstat64(version: c_int);
}
