//! Queries of counters.

use std::num::NonZeroU8;

use ib_acm::client::CounterScope;
use libc::{c_int, c_uint};

use crate::ClientHandle;
use crate::arrays::{Out, free};
use crate::error::{Failure, guarded, status};

/// Queries counters; see `ib_acm_query_perf` in the header.
///
/// # Safety
/// The handle is null or an open connection. Other pointers are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ib_acm_query_perf(
    handle: *mut ClientHandle,
    index: c_uint,
    counters: *mut *mut u64,
    count: *mut usize,
) -> c_int {
    status(guarded(|| {
        let out = Out::new(counters, count)?;
        let number = u8::try_from(index);
        let number = number
            .map_err(|_| Failure::argument(format!("endpoint {index}: expected at most 255")))?;
        let of = NonZeroU8::new(number).map_or(CounterScope::Service, CounterScope::Endpoint);
        // SAFETY: the caller promises an open connection or null.
        let counters = unsafe { ClientHandle::with(handle, |client| client.perf(&of)) }?;
        // SAFETY: the caller promises that both pointers are writable.
        unsafe { out.store(&counters.0) }
    }))
}

/// Frees counters; see `ib_acm_free_perf` in the header.
///
/// # Safety
/// The pointer is null or a result of [`ib_acm_query_perf`], and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ib_acm_free_perf(counters: *mut u64) {
    // SAFETY: the caller promises null or a result array that is not used afterwards.
    unsafe { free(counters) };
}
