//! Names, addresses and paths resolved.

use ib_acm::Address;
use ib_acm::client::{Client, Resolved, ResolvedPath};
use ib_wire::mad::sa::PathRecord;
use libc::{c_char, c_int, sockaddr};

use crate::ClientHandle;
use crate::arguments::{ip, name, needed, options};
use crate::arrays::{Out, free};
use crate::error::{Failure, guarded, status};

/// A path record as it is on the wire: `struct ib_acm_path_record`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct PathRecordBytes(pub [u8; PathRecord::LENGTH]);

/// A path of an answer: `struct ib_acm_path`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Path {
    /// What it is for.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
    /// The path.
    pub record: PathRecordBytes,
}

/// What arguments are called.
const SOURCE: &str = "the source";
const DESTINATION: &str = "the destination";

/// Resolves names, as `ib_acm_resolve_name` in the header says.
///
/// # Safety
/// The handle is null or one of a connection that has not been ended; texts are null or end with a zero; the other
/// pointers are null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ib_acm_resolve_name(
    handle: *mut ClientHandle,
    source: *const c_char,
    destination: *const c_char,
    paths: *mut *mut Path,
    count: *mut usize,
    flags: u32,
) -> c_int {
    // SAFETY: the caller promises texts or null.
    let ends = || unsafe { Ok((name(source, SOURCE)?, name(destination, DESTINATION)?)) };
    // SAFETY: the caller promises a connection or null, and places that are null or can be written.
    unsafe { resolve(handle, ends, flags, (paths, count)) }
}

/// Resolves IP addresses, as `ib_acm_resolve_ip` in the header says.
///
/// # Safety
/// The handle is null or one of a connection that has not been ended; addresses are null or as long as their families
/// say; the other pointers are null or can be written.
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
    // SAFETY: the caller promises a connection or null, and places that are null or can be written.
    unsafe { resolve(handle, ends, flags, (paths, count)) }
}

/// Resolves a path, as `ib_acm_resolve_path` in the header says.
///
/// # Safety
/// The handle is null or one of a connection that has not been ended; the path is null or can be read and written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ib_acm_resolve_path(
    handle: *mut ClientHandle,
    path: *mut PathRecordBytes,
    flags: u32,
) -> c_int {
    status(guarded(|| {
        if path.is_null() {
            return Err(Failure::argument("the path: NULL"));
        }
        let options = options(flags)?;
        // SAFETY: the caller promises that what is not null can be read; nothing is asked of its alignment.
        let wanted = PathRecord::parse(&unsafe { path.read_unaligned() }.0);
        // SAFETY: the caller promises a connection or null.
        let resolved =
            unsafe { ClientHandle::with(handle, |client| client.resolve_path(&wanted, options)) }?;
        // SAFETY: the caller promises that what is not null can be written.
        unsafe { path.write_unaligned(PathRecordBytes(resolved.path.to_bytes())) };
        Ok(())
    }))
}

/// Gives paths back, as `ib_acm_free_paths` in the header says.
///
/// # Safety
/// The pointer is null or one of a function that resolves, and it is used no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ib_acm_free_paths(paths: *mut Path) {
    // SAFETY: the caller promises the same.
    unsafe { free(paths) };
}

/// Resolves an address.
///
/// # Safety
/// The handle is null or one of a connection that has not been ended; the places are null or can be written.
unsafe fn resolve(
    handle: *mut ClientHandle,
    ends: impl FnOnce() -> Result<(Option<Address>, Option<Address>), Failure>,
    flags: u32,
    (paths, count): (*mut *mut Path, *mut usize),
) -> c_int {
    status(guarded(|| {
        let out = Out::new(paths, count)?;
        let (source, destination) = ends()?;
        let destination = needed(destination, DESTINATION)?;
        let options = options(flags)?;
        let ask = |client: &mut Client| client.resolve(source.as_ref(), &destination, options);
        // SAFETY: the caller promises a connection or null.
        let Resolved { paths, .. } = unsafe { ClientHandle::with(handle, ask) }?;
        let path = |path: &ResolvedPath| Path {
            flags: path.flags.0,
            reserved: 0,
            record: PathRecordBytes(path.record.to_bytes()),
        };
        // SAFETY: the caller promises that both can be written; paths need an alignment of 8.
        unsafe { out.store(&paths.iter().map(path).collect::<Vec<_>>()) }
    }))
}
