use super::*;

#[test]
fn header_on_ethernet_is_that_of_a_udp_datagram() {
    let ends = Route {
        source: Gid(0xfd00 << 112 | 1),
        destination: Gid(0xfd00 << 112 | 2),
        ..Route::default()
    };
    let ethernet = Grh::parse(&grh(&ends, 100));
    assert_eq!((ethernet.next_header, ethernet.payload_length), (17, 108));
    assert_eq!((ethernet.source, ethernet.destination), (ends.destination, ends.source));
    let infiniband = Grh::parse(&grh(&Route { slid: 1, dlid: 2, ..ends }, 100));
    assert_eq!((infiniband.next_header, infiniband.payload_length), (0x1b, 100));
}
