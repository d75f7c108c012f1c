use super::*;

fn id(upper: u64, own: u64) -> TransactionId {
    TransactionId(upper << OWN_BITS | own)
}

#[test]
fn last_upper_bits_of_a_transaction_are_restored() {
    let mut bits = UpperBits::new(4);
    for upper in [0xabcd, 0x1234, 0, 7] {
        assert_eq!(bits.strip(id(upper, 9)), id(0, 9));
        // The simulator has overwritten the upper bits with 0xffff.
        assert_eq!(bits.restore(id(0xffff, 9)), id(upper, 9));
    }
    assert_eq!(bits.restore(id(0xffff, 10)), id(0, 10), "unknown upper bits are zero");
}

#[test]
fn oldest_entry_is_removed_and_zeros_use_no_memory() {
    let mut bits = UpperBits::new(3);
    for own in 0..3 {
        bits.strip(id(1, own));
    }
    for own in 100..200 {
        bits.strip(id(0, own));
    }
    assert_eq!(bits.restore(id(0, 0)), id(1, 0));
    bits.strip(id(1, 3));
    let known = [0, 1, 2, 3].map(|own| bits.restore(id(0, own)) == id(1, own));
    assert_eq!(known, [false, true, true, true]);
    assert_eq!((bits.known.len(), bits.order.len()), (3, 3));
}
