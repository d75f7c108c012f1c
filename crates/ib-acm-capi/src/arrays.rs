//! Result arrays in memory that the C library allocates.

use crate::error::Failure;

/// The output parameters for an array and the number of its elements.
pub(crate) struct Out<T> {
    array: *mut *mut T,
    count: *mut usize,
}

impl<T: Copy> Out<T> {
    /// Creates the output parameters from the caller's two pointers; fails if one of them is null.
    pub(crate) fn new(array: *mut *mut T, count: *mut usize) -> Result<Self, Failure> {
        if array.is_null() || count.is_null() {
            return Err(Failure::argument("the pointer for the result or for the count is NULL"));
        }
        Ok(Self { array, count })
    }

    /// Allocates an array with `malloc`, and copies the elements to it. Stores the array's address and the count.
    ///
    /// # Safety
    /// Both output parameters are writable. `T` needs no larger alignment than `malloc` guarantees.
    pub(crate) unsafe fn store(self, elements: &[T]) -> Result<(), Failure> {
        // Memory is allocated even for an empty array, so that all results are freed in the same way.
        let size = size_of_val(elements).max(1);
        // SAFETY: `malloc` accepts all sizes.
        let array = unsafe { libc::malloc(size) }.cast::<T>();
        if array.is_null() {
            return Err(Failure::memory());
        }
        // SAFETY: the memory is new and large enough, and the caller promises that it is aligned.
        unsafe { array.copy_from_nonoverlapping(elements.as_ptr(), elements.len()) };
        // SAFETY: the caller promises that both output parameters are writable.
        unsafe {
            self.array.write(array);
            self.count.write(elements.len());
        }
        Ok(())
    }
}

/// Frees a result array.
///
/// # Safety
/// The pointer is null or was stored by [`Out::store`], and is not used afterwards.
pub(crate) unsafe fn free<T>(array: *mut T) {
    // SAFETY: `store` got the array from `malloc`, and the caller promises not to use it again.
    unsafe { libc::free(array.cast()) };
}
