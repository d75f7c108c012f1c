//! Result arrays in memory of the C library.

use crate::error::Failure;

/// The output parameters for an array and the number of its elements.
pub(crate) struct Out<T> {
    array: *mut *mut T,
    count: *mut usize,
}

impl<T: Copy> Out<T> {
    /// Creates the pair of output parameters; fails if one is null.
    pub(crate) fn new(array: *mut *mut T, count: *mut usize) -> Result<Self, Failure> {
        if array.is_null() || count.is_null() {
            return Err(Failure::argument("the pointer for the result or for its count is NULL"));
        }
        Ok(Self { array, count })
    }

    /// Copies elements to memory from `malloc`, and stores its address and the count.
    ///
    /// # Safety
    /// Both output parameters are writable. The alignment of `T` is at most that of `malloc`.
    pub(crate) unsafe fn store(self, elements: &[T]) -> Result<(), Failure> {
        // An empty array is allocated, too, so that all results are freed in the same way.
        let size = size_of_val(elements).max(1);
        // SAFETY: `malloc` accepts all sizes.
        let array = unsafe { libc::malloc(size) }.cast::<T>();
        if array.is_null() {
            return Err(Failure::memory());
        }
        // SAFETY: the memory is new and large enough, and the caller promises its alignment.
        unsafe { array.copy_from_nonoverlapping(elements.as_ptr(), elements.len()) };
        // SAFETY: the caller promises that both are writable.
        unsafe {
            self.array.write(array);
            self.count.write(elements.len());
        }
        Ok(())
    }
}

/// Frees an array.
///
/// # Safety
/// The pointer is null or was stored by [`Out::store`], and is not used afterwards.
pub(crate) unsafe fn free<T>(array: *mut T) {
    // SAFETY: it came from `malloc`, and the caller promises that this is its last use.
    unsafe { libc::free(array.cast()) };
}
