use super::*;

const MAPS: &str = "\
1000-3000 rw-p 00000000 00:00 0
3000-4000 rw-s 00000000 00:00 0 [heap]
4000-5000 r--p 00000000 00:00 0
7000-8000 ---p 00000000 00:00 0";

#[test]
fn ranges_may_span_mappings_without_gaps() {
    assert!(covers(MAPS, 0x1000..0x4000, true));
    assert!(covers(MAPS, 0x2fff..0x3001, true));
    assert!(!covers(MAPS, 0x1000..0x4001, true), "the last page is read-only");
    assert!(covers(MAPS, 0x1000..0x5000, false));
    assert!(!covers(MAPS, 0x1000..0x5001, false));
    assert!(!covers(MAPS, 0xfff..0x1001, false));
    assert!(!covers(MAPS, 0x7000..0x7001, false), "no access is allowed");
}

#[test]
fn own_memory_is_mapped() {
    let bytes = vec![0_u8; 100_000];
    let start = bytes.as_ptr().addr();
    assert!(is_mapped(start..start + bytes.len(), true));
    assert!(!is_mapped(0x10..0x20, false));
}
