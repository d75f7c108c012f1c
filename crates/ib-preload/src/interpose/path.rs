//! Replacements of C library functions that take paths. Paths in sysfs are redirected to the
//! directory of the `sysfs` module, and devices are opened by this library.

use std::ffi::CStr;

use libc::{c_char, c_int, c_uint, c_void, mode_t, size_t, ssize_t};

use super::next::next;
use super::{fail, finish, guarded};
use crate::errno::Errno;
use crate::process::process;
use crate::verbs::{DEVICE_NUMBER, RDMA_CM_NUMBER};

/// Maximum length of a path in bytes, including the terminating zero byte.
const LONGEST: usize = libc::PATH_MAX as usize;

/// Directory of the uverbs devices.
const VERBS_CLASS: &str = "/sys/class/infiniband_verbs";

/// Directory of the attributes of the `rdma_cm` device.
const RDMA_CM_CLASS: &str = "/sys/class/misc/rdma_cm";

/// Name of the uverbs device.
const UVERBS: &str = "uverbs0";

/// Name of the `rdma_cm` device.
const RDMA_CM: &str = "rdma_cm";

/// Returns true if the process has a uverbs device.
fn has_verbs() -> bool {
    guarded(|| Ok(process().verbs().is_some())).unwrap_or(false)
}

/// File or device that a path refers to.
enum Target {
    /// The library does not serve the path, so the C library gets it unchanged.
    Same,
    /// A file in the library's private directory. [`target`] has written its path into `buffer`.
    Other,
    /// The umad device.
    Umad,
    /// The issm device.
    Issm,
    /// The uverbs device.
    Uverbs,
    /// The `rdma_cm` device.
    RdmaCm,
    /// The call fails with this error.
    Failed(Errno),
}

/// Returns the file or device to which a path refers. A redirected path is written into `buffer`,
/// so that no allocation is needed.
fn target(path: *const c_char, buffer: &mut [u8; LONGEST]) -> Target {
    if path.is_null() {
        return Target::Same;
    }
    // SAFETY: the caller guarantees a path with a terminating zero.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    let Some(parts) = own_path(path) else { return Target::Same };
    match parts {
        ["/dev/infiniband/", "umad0"] => return Target::Umad,
        ["/dev/infiniband/", "issm0"] => return Target::Issm,
        ["/dev/infiniband/", UVERBS] => return Target::Uverbs,
        ["/dev/infiniband/", RDMA_CM] => return Target::RdmaCm,
        _ => {}
    }
    let root = match guarded(|| process().root()) {
        Ok(root) => root.to_bytes(),
        Err(error) => return Target::Failed(error),
    };
    let mut length = 0;
    for part in [root, parts[0].as_bytes(), parts[1].as_bytes(), b"\0"] {
        let Some(room) = buffer.get_mut(length..length + part.len()) else {
            return Target::Failed(Errno(libc::ENAMETOOLONG));
        };
        room.copy_from_slice(part);
        length += part.len();
    }
    Target::Other
}

/// Splits a path that the library serves into the directory, without superfluous slashes, and the
/// rest of the path. Returns `None` for other paths.
fn own_path(path: &[u8]) -> Option<[&str; 2]> {
    const DIRECTORIES: [&str; 5] = [
        "/sys/class/infiniband",
        "/sys/class/infiniband_mad",
        VERBS_CLASS,
        RDMA_CM_CLASS,
        "/dev/infiniband",
    ];
    if path.first() != Some(&b'/') {
        return None;
    }
    let path = std::str::from_utf8(path).ok()?;
    for directory in DIRECTORIES {
        let Some(rest) = below(path, directory) else { continue };
        if [VERBS_CLASS, RDMA_CM_CLASS].contains(&directory) && !has_verbs() {
            return None;
        }
        if directory != "/dev/infiniband" {
            return Some([directory, rest]);
        }
        // The library serves umad devices, issm devices, its uverbs device and its `rdma_cm` device. The kernel serves
        // all other devices.
        let name = rest.trim_start_matches('/');
        return match name.get(..4) {
            Some("umad" | "issm") => Some(["/dev/infiniband/", name]),
            _ if name == UVERBS && has_verbs() => Some(["/dev/infiniband/", UVERBS]),
            _ if name == RDMA_CM && has_verbs() => Some(["/dev/infiniband/", RDMA_CM]),
            _ if name.is_empty() => Some([directory, ""]),
            _ => None,
        };
    }
    None
}

/// Returns the rest of a path below a directory; `None` if the path is not below it.
fn below<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    let mut rest = path;
    for name in directory.split('/').skip(1) {
        if !rest.starts_with('/') {
            return None;
        }
        rest = rest.trim_start_matches('/').strip_prefix(name)?;
    }
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// Opens a device.
fn open_device(target: &Target, flags: c_int) -> c_int {
    finish(guarded(|| match target {
        Target::Issm => process().open_issm(flags),
        Target::Uverbs => process().open_uverbs(flags),
        Target::RdmaCm => process().open_rdma_cm(flags),
        _ => process().open_umad(flags),
    }))
}

/// Defines replacements of functions that open a file or device by path.
macro_rules! openers {
    ($($(#[$documentation:meta])* $name:literal $function:ident($($before:ident: $kind:ty),*; $flags:ident $(, $mode:ident: $mode_kind:ty)?);)*) => {
        $(
            $(#[$documentation])*
            ///
            /// # Safety
            /// The caller has to meet the requirements of the C library's function.
            #[unsafe(no_mangle)]
            pub(super) unsafe extern "C-unwind" fn $function(
                $($before: $kind,)* path: *const c_char, $flags: c_int $(, $mode: $mode_kind)?
            ) -> c_int {
                let mut buffer = [0; LONGEST];
                let path = match target(path, &mut buffer) {
                    Target::Same => path,
                    Target::Other => buffer.as_ptr().cast(),
                    Target::Failed(error) => return fail(error, -1),
                    device => return open_device(&device, $flags),
                };
                next!(
                    $name as fn($($kind,)* *const c_char, c_int $(, $mode_kind)?) -> c_int,
                    ($($before,)* path, $flags $(, $mode)?),
                    -1
                )
            }
        )*
    };
}

openers! {
    /// Replaces `open(2)`. The variadic third argument is declared as a fixed one, which is passed
    /// in the same register.
    c"open" open(; flags, mode: mode_t);
    /// Replaces `open64`.
    c"open64" open64(; flags, mode: mode_t);
    /// Replaces `openat(2)`.
    c"openat" openat(directory: c_int; flags, mode: mode_t);
    /// Replaces `openat64`.
    c"openat64" openat64(directory: c_int; flags, mode: mode_t);
    /// Replaces `__open_2`, which programs compiled with `_FORTIFY_SOURCE` call instead of `open`.
    c"__open_2" __open_2(; flags);
    /// Replaces `__open64_2`, which programs compiled with `_FORTIFY_SOURCE` call instead of
    /// `open64`.
    c"__open64_2" __open64_2(; flags);
    /// Replaces `__openat_2`, which programs compiled with `_FORTIFY_SOURCE` call instead of
    /// `openat`.
    c"__openat_2" __openat_2(directory: c_int; flags);
    /// Replaces `__openat64_2`, which programs compiled with `_FORTIFY_SOURCE` call instead of
    /// `openat64`.
    c"__openat64_2" __openat64_2(directory: c_int; flags);
}

/// Defines replacements of functions that take a path but do not open devices.
macro_rules! redirected {
    ($($(#[$documentation:meta])* $name:literal $function:ident($($before:ident: $kind:ty),*; $($after:ident: $after_kind:ty),*) -> $result:ty = $failed:expr;)*) => {
        $(
            $(#[$documentation])*
            ///
            /// # Safety
            /// The caller has to meet the requirements of the C library's function.
            #[unsafe(no_mangle)]
            pub(super) unsafe extern "C-unwind" fn $function(
                $($before: $kind,)* path: *const c_char, $($after: $after_kind),*
            ) -> $result {
                let mut buffer = [0; LONGEST];
                let path = match redirect(path, &mut buffer) {
                    Ok((path, _)) => path,
                    Err(error) => return fail(error, $failed),
                };
                next!(
                    $name as fn($($kind,)* *const c_char, $($after_kind),*) -> $result,
                    ($($before,)* path, $($after),*),
                    $failed
                )
            }
        )*
    };
}

/// Major and minor number of a device.
type DeviceNumber = (u32, u32);

/// Returns the path that is passed to the C library. For a device, this is a file in this library's
/// own directory. Also returns the number of the device.
fn redirect(
    path: *const c_char,
    buffer: &mut [u8; LONGEST],
) -> Result<(*const c_char, Option<DeviceNumber>), Errno> {
    let (device, number): (&[u8], _) = match target(path, buffer) {
        Target::Same => return Ok((path, None)),
        Target::Other => return Ok((buffer.as_ptr().cast(), None)),
        Target::Failed(error) => return Err(error),
        Target::Umad => (b"/dev/infiniband/umad0\0", (231, 0)),
        Target::Issm => (b"/dev/infiniband/issm0\0", (231, 64)),
        Target::Uverbs => (b"/dev/infiniband/uverbs0\0", DEVICE_NUMBER),
        Target::RdmaCm => (b"/dev/infiniband/rdma_cm\0", RDMA_CM_NUMBER),
    };
    let root = guarded(|| process().root())?.to_bytes();
    let whole = buffer.get_mut(..root.len() + device.len()).ok_or(Errno(libc::ENAMETOOLONG))?;
    whole[..root.len()].copy_from_slice(root);
    whole[root.len()..].copy_from_slice(device);
    Ok((buffer.as_ptr().cast(), Some(number)))
}

/// Changes the result of a function of the `stat` family for a device: the type of the file becomes that of a
/// character device.
pub(super) fn describe(number: DeviceNumber, result: c_int, buffer: *mut libc::stat) {
    if result == 0 && !buffer.is_null() {
        // SAFETY: the call that returned `result` has filled the structure.
        unsafe {
            (*buffer).st_mode = libc::S_IFCHR | 0o666;
            (*buffer).st_rdev = libc::makedev(number.0, number.1);
        }
    }
}

/// Defines replacements of functions that return the type of the file at a path.
macro_rules! described {
    ($($(#[$documentation:meta])* $name:literal $function:ident($($before:ident: $kind:ty),*; $($after:ident: $after_kind:ty),*);)*) => {
        $(
            $(#[$documentation])*
            ///
            /// # Safety
            /// The caller has to meet the requirements of the C library's function.
            #[unsafe(no_mangle)]
            pub(super) unsafe extern "C-unwind" fn $function(
                $($before: $kind,)* path: *const c_char, buffer: *mut libc::stat $(, $after: $after_kind)*
            ) -> c_int {
                let mut place = [0; LONGEST];
                let (path, number) = match redirect(path, &mut place) {
                    Ok(found) => found,
                    Err(error) => return fail(error, -1),
                };
                let result = next!(
                    $name as fn($($kind,)* *const c_char, *mut libc::stat $(, $after_kind)*) -> c_int,
                    ($($before,)* path, buffer $(, $after)*),
                    -1
                );
                if let Some(number) = number {
                    describe(number, result, buffer);
                }
                result
            }
        )*
    };
}

redirected! {
    /// Replaces `fopen(3)`.
    c"fopen" fopen(; mode: *const c_char) -> *mut libc::FILE = std::ptr::null_mut();
    /// Replaces `fopen64`.
    c"fopen64" fopen64(; mode: *const c_char) -> *mut libc::FILE = std::ptr::null_mut();
    /// Replaces `opendir(3)`.
    c"opendir" opendir(;) -> *mut libc::DIR = std::ptr::null_mut();
    /// Replaces `scandir(3)`.
    c"scandir" scandir(; list: *mut c_void, filter: *mut c_void, order: *mut c_void) -> c_int = -1;
    /// Replaces `scandir64`.
    c"scandir64" scandir64(; list: *mut c_void, filter: *mut c_void, order: *mut c_void) -> c_int = -1;
    /// Replaces `access(2)`.
    c"access" access(; mode: c_int) -> c_int = -1;
    /// Replaces `faccessat(2)`.
    c"faccessat" faccessat(directory: c_int; mode: c_int, flags: c_int) -> c_int = -1;
    /// Replaces `readlink(2)`.
    c"readlink" readlink(; buffer: *mut c_char, size: size_t) -> ssize_t = -1;
    /// Replaces `readlinkat(2)`.
    c"readlinkat" readlinkat(directory: c_int; buffer: *mut c_char, size: size_t) -> ssize_t = -1;
}

described! {
    /// Replaces `stat(2)`.
    c"stat" stat(;);
    /// Replaces `stat64`.
    c"stat64" stat64(;);
    /// Replaces `lstat(2)`.
    c"lstat" lstat(;);
    /// Replaces `lstat64`.
    c"lstat64" lstat64(;);
    /// Replaces `fstatat(2)`.
    c"fstatat" fstatat(directory: c_int; flags: c_int);
    /// Replaces `fstatat64`.
    c"fstatat64" fstatat64(directory: c_int; flags: c_int);
    /// Replaces `__xstat`, which programs linked with glibc before 2.33 call instead of `stat`.
    c"__xstat" __xstat(version: c_int;);
    /// Replaces `__xstat64`, which programs linked with glibc before 2.33 call instead of `stat64`.
    c"__xstat64" __xstat64(version: c_int;);
    /// Replaces `__lxstat`, which programs linked with glibc before 2.33 call instead of `lstat`.
    c"__lxstat" __lxstat(version: c_int;);
    /// Replaces `__lxstat64`, which programs linked with glibc before 2.33 call instead of
    /// `lstat64`.
    c"__lxstat64" __lxstat64(version: c_int;);
}

/// Replaces `statx(2)`.
///
/// # Safety
/// The caller has to meet the requirements of the C library's function.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn statx(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    buffer: *mut libc::statx,
) -> c_int {
    let mut place = [0; LONGEST];
    let (path, number) = match redirect(path, &mut place) {
        Ok(found) => found,
        Err(error) => return fail(error, -1),
    };
    let result = next!(
        c"statx" as fn(c_int, *const c_char, c_int, c_uint, *mut libc::statx) -> c_int,
        (directory, path, flags, mask, buffer),
        -1
    );
    if let Some((major, minor)) = number
        && result == 0
        && !buffer.is_null()
    {
        // SAFETY: the call above has filled the structure.
        unsafe {
            (*buffer).stx_mode = (libc::S_IFCHR | 0o666) as u16;
            (*buffer).stx_rdev_major = major;
            (*buffer).stx_rdev_minor = minor;
        }
    }
    result
}

#[cfg(test)]
mod tests;
