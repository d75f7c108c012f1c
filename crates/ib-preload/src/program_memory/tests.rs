use super::*;

/// Maps a page with this protection, which is never unmapped. Returns its address.
fn page(protection: i32) -> usize {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the kernel chooses the address of a new mapping.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0) };
    assert_ne!(page, libc::MAP_FAILED);
    page.addr()
}

#[test]
fn invalid_addresses_are_errors() {
    let mut bytes = [7_u8; 16];
    for address in [0, 1, usize::MAX - 20, usize::MAX, page(libc::PROT_NONE)] {
        assert_eq!(read(address, &mut bytes), Err(Errno::FAULT), "{address:#x}");
        assert_eq!(write(address, &bytes), Err(Errno::FAULT), "{address:#x}");
    }
    let constant = page(libc::PROT_READ);
    assert_eq!(read(constant, &mut bytes), Ok(()));
    assert_eq!(bytes, [0; 16]);
    assert_eq!(write(constant, &bytes), Err(Errno::FAULT));
}

#[test]
fn bytes_on_heap_and_stack_are_copied() {
    let (mut heap, mut stack) = (vec![0_u8; 16], [0_u8; 16]);
    for address in [heap.as_mut_ptr().expose_provenance(), stack.as_mut_ptr().expose_provenance()] {
        assert_eq!(write(address, b"0123456789"), Ok(()));
        let mut found = [0; 12];
        assert_eq!(read(address, &mut found), Ok(()));
        assert_eq!(&found, b"0123456789\0\0");
    }
    assert_eq!((&heap[..2], &stack[..2]), (&b"01"[..], &b"01"[..]));
}

#[test]
fn stack_ends_below_the_current_frame() {
    let local = 0_u8;
    let address = std::ptr::from_ref(&local).addr();
    assert!(is_on_stack(address, 1));
    assert!(!is_on_stack(address, STACK + 1));
    assert!(!is_on_stack(address - 100_000, 1));
    assert!(!is_on_stack(usize::MAX, 1));
}
