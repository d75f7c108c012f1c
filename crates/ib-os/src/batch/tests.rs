use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;

use super::*;

#[test]
fn datagrams_arrive_in_order_and_truncation_is_detected() {
    let (here, there) = UnixDatagram::pair().expect("a pair of sockets can be created");
    let sent: Vec<[u8; 8]> = (0..5).map(|number| [number; 8]).collect();
    assert_eq!(send(here.as_fd(), &sent).expect("the socket accepts five datagrams"), 5);
    here.send(&[9; 20]).expect("the socket accepts one more datagram");
    let mut batch: Batch<8> = Batch::new();
    assert_eq!(batch.receive(there.as_fd()).expect("received"), 6);
    for (index, datagram) in sent.iter().enumerate() {
        assert_eq!(batch.datagram(index), Some(&datagram[..]));
    }
    assert_eq!(batch.datagram(5), None);
    assert_eq!(batch.receive(there.as_fd()).expect("an empty socket is not an error"), 0);
}

#[test]
fn full_receiver_accepts_no_datagrams() {
    let (here, _there) = UnixDatagram::pair().expect("a pair of sockets can be created");
    let datagrams = [[0u8; 8]; BATCH];
    let mut total = 0;
    loop {
        match send(here.as_fd(), &datagrams).expect("a full receiver is not an error") {
            0 => break,
            sent => total += sent,
        }
    }
    assert!(total > 0);
}
