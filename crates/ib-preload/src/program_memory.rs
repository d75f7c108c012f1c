//! Copies from and to addresses that the program passes to the library. An invalid address causes an error, as in calls
//! of the kernel, and not a signal.
//!
//! The kernel copies the bytes (`process_vm_readv(2)`), except those on the stack of the calling thread. Commands and
//! events of libibverbs are on the stack, so they need no system call.

use std::os::raw::c_void;

use crate::errno::Errno;

/// Bytes at most this far above the current stack frame are not checked. They belong to the callers' frames, or to the
/// data of the thread above its stack.
const STACK: usize = 4096;

type Transfer = unsafe extern "C" fn(
    libc::pid_t,
    *const libc::iovec,
    libc::c_ulong,
    *const libc::iovec,
    libc::c_ulong,
    libc::c_ulong,
) -> isize;

/// Copies bytes of the program at an address into `bytes`.
///
/// # Errors
/// Fails with `EFAULT` if a byte at the address is not readable.
pub(crate) fn read(address: usize, bytes: &mut [u8]) -> Result<(), Errno> {
    if !is_on_stack(address, bytes.len()) {
        match transfer(libc::process_vm_readv, address, bytes.as_mut_ptr().cast(), bytes.len()) {
            Err(error) if is_unavailable(error) => {}
            result => return result,
        }
    }
    // SAFETY: the bytes are on the stack of this thread, or the program guarantees that they are readable. The source
    // and the library's slice do not overlap.
    unsafe {
        let from = std::ptr::with_exposed_provenance::<u8>(address);
        std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len());
    }
    Ok(())
}

/// Copies bytes to an address of the program.
///
/// # Errors
/// Fails with `EFAULT` if a byte at the address is not writable.
pub(crate) fn write(address: usize, bytes: &[u8]) -> Result<(), Errno> {
    if !is_on_stack(address, bytes.len()) {
        let from = bytes.as_ptr().cast_mut().cast();
        match transfer(libc::process_vm_writev, address, from, bytes.len()) {
            Err(error) if is_unavailable(error) => {}
            result => return result,
        }
    }
    // SAFETY: as in `read`.
    unsafe {
        let to = std::ptr::with_exposed_provenance_mut::<u8>(address);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
    }
    Ok(())
}

/// Returns true if all bytes at an address are among the [`STACK`] bytes above this function's stack frame.
#[inline(never)]
fn is_on_stack(address: usize, length: usize) -> bool {
    let frame = 0_u8;
    let above = address.wrapping_sub(std::ptr::from_ref(std::hint::black_box(&frame)).addr());
    above < STACK && length <= STACK - above
}

/// Returns true if the system does not permit the system call, as in some containers. The bytes are then copied
/// without a check.
const fn is_unavailable(error: Errno) -> bool {
    matches!(error.0, libc::EPERM | libc::ENOSYS)
}

fn transfer(call: Transfer, address: usize, own: *mut c_void, length: usize) -> Result<(), Errno> {
    let local = libc::iovec { iov_base: own, iov_len: length };
    let remote = std::ptr::with_exposed_provenance_mut(address);
    let remote = libc::iovec { iov_base: remote, iov_len: length };
    // SAFETY: the call reads two live structures. It accesses the `length` bytes of a live slice at `own`, and checks
    // the other address.
    let done = unsafe { call(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0) };
    match usize::try_from(done) {
        Ok(done) if done == length => Ok(()),
        Ok(_) => Err(Errno::FAULT),
        Err(_) => Err(Errno::last()),
    }
}

#[cfg(test)]
mod tests;
