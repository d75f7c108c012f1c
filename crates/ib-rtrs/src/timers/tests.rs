use super::*;

#[test]
fn deadlines_come_in_their_order_and_once() {
    let at = Instant::from_nanos;
    let mut deadlines = Deadlines::default();
    deadlines.set('b', at(5));
    deadlines.set('a', at(5));
    deadlines.set('c', at(1));
    deadlines.set('c', at(9));
    deadlines.set('d', at(2));
    deadlines.stop('d');
    assert_eq!(deadlines.next(), Some(at(5)));
    assert_eq!(deadlines.take_due(at(4)), None);
    assert_eq!(deadlines.take_due(at(7)), Some('a'));
    assert_eq!(deadlines.take_due(at(7)), Some('b'));
    assert_eq!(deadlines.take_due(at(7)), None);
    assert_eq!(deadlines.take_due(at(9)), Some('c'));
    assert_eq!(deadlines.next(), None);
}
