//! Calls of the C library functions that this library replaces.

use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A C library function. Its address is looked up at the first call.
pub(super) struct Next {
    name: &'static CStr,
    address: AtomicPtr<libc::c_void>,
}

impl Next {
    pub(super) const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Returns the address of the function; null if the C library does not have the function.
    pub(super) fn address(&self) -> *mut libc::c_void {
        let known = self.address.load(Ordering::Acquire);
        if !known.is_null() {
            return known;
        }
        // SAFETY: the name ends with a zero byte. The call only looks up the next definition after
        // this library's.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.address.store(found, Ordering::Release);
        found
    }
}

/// Calls a function of the C library by name and type. If the function does not exist, the result
/// is the last argument of the macro.
macro_rules! next {
    ($name:literal as fn($($kind:ty),* $(,)?) -> $result:ty, ($($argument:expr),* $(,)?), $absent:expr) => {{
        static NEXT: $crate::interpose::next::Next = $crate::interpose::next::Next::new($name);
        let address = NEXT.address();
        if address.is_null() {
            $crate::errno::Errno(libc::ENOSYS).store();
            $absent
        } else {
            // SAFETY: the address is that of the C library function `$name`, which has the type that
            // the macro was given. The arguments are those of the caller.
            unsafe {
                let function = std::mem::transmute::<
                    *mut libc::c_void,
                    unsafe extern "C-unwind" fn($($kind),*) -> $result,
                >(address);
                function($($argument),*)
            }
        }
    }};
}

pub(super) use next;
