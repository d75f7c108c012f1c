use std::net::{Ipv4Addr, Ipv6Addr};

use ib_types::{Gid, PKey};

use super::*;
use crate::mad::sa::{LifeTimeCode, RateCode};
use crate::mad::sm::MtuCode;

/// Parses hexadecimal bytes separated by spaces; `*N` means that the preceding byte occurs N times.
fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in text.split_whitespace() {
        match word.strip_prefix('*') {
            Some(times) => {
                let last = *bytes.last().expect("a byte precedes `*N`");
                let times: usize = times.parse().expect("`*` is followed by a number");
                bytes.resize(bytes.len() + times - 1, last);
            }
            None => {
                bytes.push(u8::from_str_radix(word, 16).expect("the word is a hexadecimal byte"));
            }
        }
    }
    bytes
}

#[test]
fn request_matches_the_bytes_of_current_clients() {
    let transaction = [1, 2, 3, 4, 5, 6, 7, 8];
    let source = Entry::ipv4(EntryFlags::SOURCE, Ipv4Addr::new(10, 0, 0, 1));
    let to = EntryFlags::DESTINATION.with(EntryFlags::NODELAY);
    let destination = Entry::name(to, "node1").expect("the name is short enough");
    let request = Resolve::request(transaction, vec![source, destination]);
    let golden = "01 01 00 00 00 00 a0 00 01 02 03 04 05 06 07 08 \
                  01 00 00 00 02 00 00 00 0a 00 00 01 00 *60 \
                  02 00 00 40 01 00 00 00 6e 6f 64 65 31 00 *59";
    let mut found = Vec::new();
    request.put(ByteOrder::Little, &mut found);
    assert_eq!(found, bytes(golden));

    let header = ClientHeader::parse(found.first_chunk().expect("the message has a header"));
    assert_eq!(header.length(), Ok((160, ByteOrder::Little)));
    let parsed = Resolve::parse(header, &found[HEADER_LENGTH..], ByteOrder::Little);
    assert_eq!(parsed.entries, request.entries);
    assert_eq!(parsed.entries[1].name_bytes(), b"node1");
}

#[test]
fn big_endian_requests_are_recognized_by_their_length() {
    let address = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 9);
    let request = Resolve::request([0; 8], vec![Entry::ipv6(EntryFlags::DESTINATION, address)]);
    let golden = "01 01 00 00 00 00 00 58 00 *8 \
                  00 00 00 02 00 03 00 00 fd 00 *14 09 00 *48";
    let mut found = Vec::new();
    request.put(ByteOrder::Big, &mut found);
    assert_eq!(found, bytes(golden));
    let header = ClientHeader::parse(found.first_chunk().expect("the message has a header"));
    assert_eq!(header.length(), Ok((88, ByteOrder::Big)));
    let parsed = Resolve::parse(header, &found[HEADER_LENGTH..], ByteOrder::Big);
    assert_eq!(parsed.entries, request.entries);
}

#[test]
fn request_lengths_are_valid_in_one_byte_order_only() {
    for length in (HEADER_LENGTH..=MAX_LENGTH).step_by(Entry::LENGTH) {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for opcode in [ClientOpcode::RESOLVE, ClientOpcode::PERF_QUERY] {
                let mut header = ClientHeader::new(opcode, [0; 8]);
                header.set_length(length, order);
                assert_eq!(header.length(), Ok((length, order)));
            }
        }
    }
    // The length is 513 in little-endian and 258 in big-endian order. Neither is the length of a
    // header and whole addresses, so the usual order of the opcode decides.
    let length = [0x01, 0x02];
    let found = |opcode| ClientHeader { opcode, length, ..ClientHeader::zeroed() }.length();
    assert_eq!(found(ClientOpcode::EP_QUERY), Ok((258, ByteOrder::Big)));
    let native = if cfg!(target_endian = "big") { 258 } else { 513 };
    assert_eq!(found(ClientOpcode::RESOLVE), Ok((native, ByteOrder::NATIVE)));
    for length in [[0, 0], [15, 0], [0, 15], [0xff, 0xff], [0x51, 0x03]] {
        let header = ClientHeader { length, ..ClientHeader::zeroed() };
        let (little, big) = (u16::from_le_bytes(length), u16::from_be_bytes(length));
        assert_eq!(header.length(), Err(LengthError::Neither { little, big }));
    }
}

#[test]
fn response_contains_a_path_record() {
    let path = PathRecord {
        dgid: Gid(0xfe80 << 112 | 2),
        sgid: Gid(0xfe80 << 112 | 1),
        dlid: 5,
        slid: 4,
        reversible: true,
        numb_path: 1,
        p_key: PKey(0xffff),
        mtu: MtuCode(4),
        rate: RateCode::GBPS_10,
        life_time: LifeTimeCode(18),
        ..PathRecord::zeroed()
    };
    let answer = Resolve::request([7; 8], vec![Entry::path(EntryFlags::PATH, &path)]);
    let golden = "01 01 00 00 00 00 58 00 07 *8 \
                  2b 00 00 00 10 00 00 00 \
                  00 *8 fe 80 00 *13 02 fe 80 00 *13 01 00 05 00 04 \
                  00 *4 00 81 ff ff 00 00 04 03 12 00 *7";
    let mut found = Vec::new();
    answer.put(ByteOrder::Little, &mut found);
    assert_eq!(found, bytes(golden));
    assert_eq!(answer.entries[0].path_record(), path);
}

#[test]
fn invalid_names_are_rejected() {
    let flags = EntryFlags::DESTINATION;
    assert_eq!(Entry::name(flags, ""), None);
    assert_eq!(Entry::name(flags, "a\0b"), None);
    assert_eq!(Entry::name(flags, &"x".repeat(64)), None);
    let longest = Entry::name(flags, &"x".repeat(63)).expect("the name is short enough");
    assert_eq!(longest.name_bytes().len(), 63);
    // Names in entries of other programs can lack a terminating zero.
    let full = Entry { info: [b'x'; 64], ..longest };
    assert_eq!(full.name_bytes().len(), 64);
}

#[test]
fn counters_are_returned_in_wire_order() {
    let counters = PerfCounters {
        errors: 1,
        resolves: 2,
        no_data: 3,
        address_queries: 4,
        address_cached: 5,
        route_queries: 6,
        route_cached: 7,
    };
    assert_eq!(counters.values(), [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn endpoint_info_is_in_network_byte_order() {
    let mut provider = [0; 64];
    provider[..6].copy_from_slice(b"ibacmp");
    let info = EndpointInfo {
        device_guid: 0x0102_0304_0506_0708,
        port: 1,
        port_count: 2,
        p_key: 0x8001,
        address_count: 3,
        provider,
    };
    let golden = "01 02 03 04 05 06 07 08 01 02 00 00 80 01 00 03 69 62 61 63 6d 70 00 *58";
    assert_eq!(info.to_bytes().to_vec(), bytes(golden));
}
