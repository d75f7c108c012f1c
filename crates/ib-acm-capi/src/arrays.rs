//! What C programs get and give back: arrays of the C library.

use crate::error::Failure;

/// Where an array and the number of its elements are stored.
pub(crate) struct Out<T> {
    array: *mut *mut T,
    count: *mut usize,
}

impl<T: Copy> Out<T> {
    /// Returns the places, of which neither may be null.
    pub(crate) fn new(array: *mut *mut T, count: *mut usize) -> Result<Self, Failure> {
        if array.is_null() || count.is_null() {
            return Err(Failure::argument("the place for the answer or for its count: NULL"));
        }
        Ok(Self { array, count })
    }

    /// Copies elements to memory of the C library and stores where it is.
    ///
    /// # Safety
    /// Both places can be written. The elements need no more alignment than `malloc` gives.
    pub(crate) unsafe fn store(self, elements: &[T]) -> Result<(), Failure> {
        // A pointer to nothing is one, too, so that every answer is freed alike.
        let size = size_of_val(elements).max(1);
        // SAFETY: any size may be asked for.
        let array = unsafe { libc::malloc(size) }.cast::<T>();
        if array.is_null() {
            return Err(Failure::memory());
        }
        // SAFETY: the memory is new, has room for all elements, and is aligned for them as the caller promises.
        unsafe { array.copy_from_nonoverlapping(elements.as_ptr(), elements.len()) };
        // SAFETY: the caller promises that both can be written.
        unsafe {
            self.array.write(array);
            self.count.write(elements.len());
        }
        Ok(())
    }
}

/// Gives an array back.
///
/// # Safety
/// The pointer is null or one that [`Out::store`] has stored, and it is used no more.
pub(crate) unsafe fn free<T>(array: *mut T) {
    // SAFETY: it came from `malloc`, and the caller promises that this is its last use.
    unsafe { libc::free(array.cast()) };
}
