//! Resolution of names, addresses and paths.

use ib_acm::Address;
use ib_acm::client::{Client, Resolved, ResolvedPath};
use ib_wire::mad::sa::PathRecord;
use libc::{c_char, c_int, sockaddr};

use crate::ClientHandle;
use crate::arguments::{ip, name, options, required};
use crate::arrays::{Out, free};
use crate::error::{Failure, guarded, status};

/// An encoded path record: `struct ib_acm_path_record`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct PathRecordBytes(pub [u8; PathRecord::LENGTH]);

/// A path to the resolved address: `struct ib_acm_path`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Path {
    /// The flags of the path: `IB_ACM_PATH_…`.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
    /// The path record.
    pub record: PathRecordBytes,
}

/// Name of the argument `source` in error texts.
const SOURCE: &str = "the source";
/// Name of the argument `destination` in error texts.
const DESTINATION: &str = "the destination";

/// Resolves a name; see `ib_acm_resolve_name` in the header.
///
/// # Safety
/// The handle is null or an open connection. `source` and `destination` are null or strings that
/// end with a zero byte. Other pointers are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ib_acm_resolve_name(
    handle: *mut ClientHandle,
    source: *const c_char,
    destination: *const c_char,
    paths: *mut *mut Path,
    count: *mut usize,
    flags: u32,
) -> c_int {
    // SAFETY: the caller promises strings or null.
    let ends = || unsafe { Ok((name(source, SOURCE)?, name(destination, DESTINATION)?)) };
    // SAFETY: the caller promises an open connection or null, and pointers that are null or
    // writable.
    unsafe { resolve(handle, ends, flags, paths, count) }
}

/// Resolves an IP address; see `ib_acm_resolve_ip` in the header.
///
/// # Safety
/// The handle is null or an open connection. `source` and `destination` are null or addresses with
/// the size of their address family. Other pointers are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ib_acm_resolve_ip(
    handle: *mut ClientHandle,
    source: *const sockaddr,
    destination: *const sockaddr,
    paths: *mut *mut Path,
    count: *mut usize,
    flags: u32,
) -> c_int {
    // SAFETY: the caller promises addresses or null.
    let ends = || unsafe { Ok((ip(source, SOURCE)?, ip(destination, DESTINATION)?)) };
    // SAFETY: the caller promises an open connection or null, and pointers that are null or
    // writable.
    unsafe { resolve(handle, ends, flags, paths, count) }
}

/// Resolves a path; see `ib_acm_resolve_path` in the header.
///
/// # Safety
/// The handle is null or an open connection. The pointer to the path is null, or the path is
/// readable and writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ib_acm_resolve_path(
    handle: *mut ClientHandle,
    path: *mut PathRecordBytes,
    flags: u32,
) -> c_int {
    status(guarded(|| {
        if path.is_null() {
            return Err(Failure::argument("the path is NULL"));
        }
        let options = options(flags)?;
        // SAFETY: the caller promises that the path is readable. An unaligned read needs no
        // alignment.
        let requested = PathRecord::parse(&unsafe { path.read_unaligned() }.0);
        // SAFETY: the caller promises an open connection or null.
        let resolved = unsafe {
            ClientHandle::with(handle, |client| client.resolve_path(&requested, options))
        }?;
        // SAFETY: the caller promises that the path is writable.
        unsafe { path.write_unaligned(PathRecordBytes(resolved.path.to_bytes())) };
        Ok(())
    }))
}

/// Frees paths; see `ib_acm_free_paths` in the header.
///
/// # Safety
/// The pointer is null or a result of [`ib_acm_resolve_name`] or [`ib_acm_resolve_ip`], and is not
/// used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ib_acm_free_paths(paths: *mut Path) {
    // SAFETY: the caller promises null or a result array that is not used afterwards.
    unsafe { free(paths) };
}

/// Calls `ends` for the source and the destination. Resolves the destination, and stores the paths to the destination
/// in the output parameters.
///
/// # Safety
/// The handle is null or an open connection. The output parameters are null or writable.
unsafe fn resolve(
    handle: *mut ClientHandle,
    ends: impl FnOnce() -> Result<(Option<Address>, Option<Address>), Failure>,
    flags: u32,
    paths: *mut *mut Path,
    count: *mut usize,
) -> c_int {
    status(guarded(|| {
        let out = Out::new(paths, count)?;
        let (source, destination) = ends()?;
        let destination = required(destination, DESTINATION)?;
        let options = options(flags)?;
        let ask = |client: &mut Client| client.resolve(source.as_ref(), &destination, options);
        // SAFETY: the caller promises an open connection or null.
        let Resolved { paths, .. } = unsafe { ClientHandle::with(handle, ask) }?;
        let path = |path: &ResolvedPath| Path {
            flags: path.flags.0,
            reserved: 0,
            record: PathRecordBytes(path.record.to_bytes()),
        };
        // SAFETY: the caller promises that `paths` and `count` are writable. `malloc` guarantees the
        // alignment of 8 that a path needs.
        unsafe { out.store(&paths.iter().map(path).collect::<Vec<_>>()) }
    }))
}
