use ib_types::ServiceLevel;

use super::*;
use crate::packet::Payload;

fn packet() -> Packet {
    let payload = Payload::Transport(vec![0; 12]);
    Packet { slid: 1, dlid: 2, sl: ServiceLevel::default(), grh: None, payload }
}

#[test]
fn shared_space_is_free_when_the_last_copy_leaves() {
    let mut flights = Flights::default();
    let key = flights.launch(PortId(0), packet(), None);
    flights.get_mut(key).holds = Some(BufferSpace::new(PortId(1), 0, 64, 0));
    flights.share_space(key, 2, Instant::ZERO);
    let copy = flights.copy(key);
    let [early, late] = [3, 7].map(Instant::from_nanos);
    let holds = [key, copy].map(|key| flights.remove(key).holds.expect("both occupy buffer space"));
    assert_eq!(flights.free_at(holds[0], late), None);
    assert_eq!(flights.free_at(holds[1], early), Some(late));
    assert_eq!(flights.shared_spaces(), 0);
}

#[test]
fn small_buffers_are_not_recycled() {
    let mut flights = Flights::default();
    flights.give_buffer(vec![0; MIN_SPARE_LENGTH - 1]);
    assert!(flights.take_buffer().is_empty());
    flights.give_buffer(vec![0; MIN_SPARE_LENGTH]);
    assert_eq!(flights.take_buffer().len(), MIN_SPARE_LENGTH);
}
