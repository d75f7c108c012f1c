use super::*;

fn id(upper: u64, own: u64) -> TransactionId {
    TransactionId(upper << OWN_BITS | own)
}

#[test]
fn the_last_word_on_a_transaction_counts() {
    let mut bits = UpperBits::new(4);
    for upper in [0xabcd, 0x1234, 0, 7] {
        assert_eq!(bits.strip(id(upper, 9)), id(0, 9));
        // Whoever has carried it has written something of his own there.
        assert_eq!(bits.restore(id(0xffff, 9)), id(upper, 9));
    }
    assert_eq!(bits.restore(id(0xffff, 10)), id(0, 10), "an unknown one has none");
}

#[test]
fn the_oldest_is_forgotten_first_and_zeros_take_no_room() {
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
