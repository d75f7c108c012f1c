use super::*;

#[test]
fn header_fields_have_the_offsets_of_the_kernel() {
    let header = UmadHeader {
        agent: 1,
        status: 110,
        timeout_ms: 200,
        retries: 3,
        length: 320,
        queue_pair: 1,
        q_key: 0x8001_0000,
        lid: 0x1234,
        sl: 2,
        path_bits: 3,
        grh_present: true,
        gid_index: 4,
        hop_limit: 5,
        traffic_class: 6,
        gid: [7; 16],
        flow_label: 8,
        p_key_index: 9,
    };
    let bytes = header.to_bytes();
    assert_eq!(UmadHeader::parse(&bytes), header);
    assert_eq!(UmadHeader::parse(&bytes[..56]), UmadHeader { p_key_index: 0, ..header });
    assert_eq!(bytes[20..30], [0, 0, 0, 1, 0x80, 1, 0, 0, 0x12, 0x34]);
    assert_eq!((bytes[4], bytes[36], bytes[55], bytes[56]), (110, 7, 8, 9));
}

#[test]
fn registrations_can_be_parsed_after_formatting() {
    let registration = Registration {
        agent: 3,
        queue_pair: 1,
        class: 0x32,
        class_version: 1,
        flags: 0,
        methods: 1 << 1 | 1 << 100,
        oui: 0x00_1405,
        rmpp_version: 1,
    };
    let old = registration.to_old();
    assert_eq!(Registration::from_old(&old), registration);
    assert_eq!(old[20..27], [1, 0x32, 1, 0x00, 0x14, 0x05, 1]);
    let registration = Registration { flags: USER_RMPP, ..registration };
    let new = registration.to_new();
    assert_eq!(Registration::from_new(&new), registration);
    assert_eq!((new[12], new[16], new[28]), (1, 2, 0x10));
}
