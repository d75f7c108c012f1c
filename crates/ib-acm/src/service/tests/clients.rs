//! Tests of client requests and of the responses to them.

use super::*;

fn destination(address: &Address) -> Entry {
    address.to_entry(EntryFlags::DESTINATION).expect("the address is a name or an IP address")
}

fn source(address: &Address) -> Entry {
    address.to_entry(EntryFlags::SOURCE).expect("the address is a name or an IP address")
}

/// Returns the header of a response, and its data.
fn parts(answer: &[u8]) -> (ClientHeader, &[u8]) {
    (
        ClientHeader::parse(answer.first_chunk().expect("the header is complete")),
        &answer[HEADER_LENGTH..],
    )
}

#[test]
fn invalid_requests_fail_with_a_status() {
    let mut net = Net::new(2, &quiet());
    net.run_for(Duration::from_secs(1));
    let (one, other) = (name(0), name(1));
    let odd = |flags: u32, kind: u16, info: [u8; 64]| Entry {
        flags: EntryFlags(flags),
        kind: EntryType(kind),
        info,
    };
    let path = |path: PathRecord, flags| Entry::path(EntryFlags(flags), &path);
    let zero = PathRecord::zeroed();
    let cases: [(&str, Vec<Entry>, ClientStatus); 15] = [
        ("nothing", vec![], ClientStatus::EINVAL),
        ("a source only", vec![source(&one)], ClientStatus::EINVAL),
        ("two destinations", vec![destination(&one), destination(&other)], ClientStatus::EINVAL),
        (
            "two sources",
            vec![source(&one), source(&one), destination(&other)],
            ClientStatus::EINVAL,
        ),
        ("source and destination in one entry", vec![odd(3, 1, [b'a'; 64])], ClientStatus::EINVAL),
        ("neither source nor destination", vec![odd(0, 1, [b'a'; 64])], ClientStatus::EINVAL),
        (
            "a source of another machine",
            vec![source(&other), destination(&other)],
            ClientStatus::ESRCADDR,
        ),
        (
            "a source of unknown type",
            vec![odd(1, 9, [1; 64]), destination(&one)],
            ClientStatus::ESRCTYPE,
        ),
        ("a destination of unknown type", vec![odd(2, 9, [1; 64])], ClientStatus::EDESTTYPE),
        ("a name without a terminating zero", vec![odd(2, 1, [b'a'; 64])], ClientStatus::EDESTADDR),
        ("a name that is not UTF-8", vec![odd(2, 1, [0xff; 64])], ClientStatus::EDESTADDR),
        ("an empty name", vec![odd(2, 1, [0; 64])], ClientStatus::EDESTADDR),
        ("a path without a destination", vec![path(zero, 0)], ClientStatus::EDESTADDR),
        (
            "an SA query without a source",
            vec![path(PathRecord { dlid: 2, ..zero }, 1 << 31)],
            ClientStatus::ESRCADDR,
        ),
        ("an SA query with a name", vec![odd(2 | 1 << 31, 1, [0; 64])], ClientStatus::EINVAL),
    ];
    for (what, entries, expected) in cases {
        assert_eq!(net.resolve(0, entries), Err(expected), "{what}");
    }
    let errors = net.hosts[0].service.perf_counters().errors;
    assert_eq!(errors, 15);
}

#[test]
fn responses_have_the_format_of_ibacm() {
    let mut net = Net::new(2, &quiet());
    net.run_for(Duration::from_secs(1));
    net.find(0, &name(1)).expect("the address is resolved");
    // If the service has chosen the source, the response has a second entry with the source. This holds for both byte
    // orders.
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for (entries, length) in [
            (vec![destination(&name(1))], 160),
            (vec![source(&name(0)), destination(&name(1))], 88),
        ] {
            let mut bytes = Vec::new();
            Resolve::request(*b"whatever", entries).put(order, &mut bytes);
            let answer = net.request(0, &bytes).expect("the path is cached");
            let (header, rest) = parts(&answer);
            assert_eq!(header.length(), Ok((length, order)));
            assert_eq!((header.version, header.status), (1, ClientStatus::SUCCESS));
            assert_eq!(header.opcode.request(), ClientOpcode::RESOLVE);
            assert_eq!(&header.transaction, b"whatever");
            let answer = Resolve::parse(header, rest, order);
            let path = answer.entries[0];
            assert_eq!((path.flags, path.kind), (EntryFlags::PATH, EntryType::PATH));
            if let Some(chosen) = answer.entries.get(1) {
                assert_eq!(
                    (chosen.flags, chosen.name_bytes()),
                    (EntryFlags::SOURCE, &b"node0"[..])
                );
            }
        }
    }
}

#[test]
fn counters_and_endpoints_can_be_queried() {
    let mut net = Net::new(2, &quiet());
    net.run_for(Duration::from_secs(1));
    net.find(0, &name(1)).expect("the address is resolved");
    net.find(0, &name(1)).expect("the address is resolved");
    let ask = |net: &mut Net, opcode, src_out, src_index, entry: Option<Entry>| {
        let mut header = ClientHeader { src_out, src_index, ..ClientHeader::new(opcode, [9; 8]) };
        let data =
            entry.map(|entry| entry.to_bytes(ByteOrder::NATIVE).to_vec()).unwrap_or_default();
        header.set_length(HEADER_LENGTH + data.len(), ByteOrder::Big);
        let bytes = [header.to_bytes().to_vec(), data].concat();
        net.request(0, &bytes).expect("the response is immediate")
    };
    let expected = PerfCounters {
        resolves: 2,
        address_queries: 1,
        address_cached: 1,
        route_queries: 1,
        route_cached: 1,
        ..PerfCounters::default()
    };
    let own = source(&name(0));
    for (index, entry) in [(0, None), (1, None), (0, Some(own))] {
        let answer = ask(&mut net, ClientOpcode::PERF_QUERY, 0, index, entry);
        let (header, rest) = parts(&answer);
        assert_eq!((header.status, header.src_out), (ClientStatus::SUCCESS, 7));
        assert_eq!(header.length(), Ok((72, ByteOrder::Big)));
        let values: Vec<u64> =
            rest.as_chunks::<8>().0.iter().map(|&value| u64::from_be_bytes(value)).collect();
        assert_eq!(values, expected.values());
    }
    let other = source(&name(1));
    for (index, entry, status) in [
        (2, None, ClientStatus::EINVAL),
        (0, Some(other), ClientStatus::ESRCADDR),
        (0, Some(destination(&name(0))), ClientStatus::EINVAL),
    ] {
        let answer = ask(&mut net, ClientOpcode::PERF_QUERY, 0, index, entry);
        assert_eq!(parts(&answer).0.status, status);
    }
    let answer = ask(&mut net, ClientOpcode::EP_QUERY, 1, 0, None);
    let (header, rest) = parts(&answer);
    assert_eq!(header.length(), Ok((16 + 80 + 2 * 64, ByteOrder::Big)));
    assert_eq!(rest[..16], [0, 0, 0, 0, 0, 0, 0x10, 0, 1, 1, 0, 0, 0xff, 0xff, 0, 2]);
    assert_eq!(&rest[16..22], b"ibacmp");
    assert_eq!(&rest[80..86], b"node0\0");
    assert_eq!(&rest[144..153], b"10.0.0.1\0");
    for (number, port) in [(0, 0), (2, 0), (1, 2)] {
        let answer = ask(&mut net, ClientOpcode::EP_QUERY, number, port, None);
        assert_eq!(parts(&answer).0.status, ClientStatus::EINVAL);
    }
}

#[test]
fn unknown_opcodes_and_versions_are_rejected() {
    let mut net = Net::new(1, &quiet());
    for (version, opcode) in [(1, 0), (1, 4), (1, 77), (2, 1), (0, 1)] {
        let mut header = ClientHeader::new(ClientOpcode(opcode), [5; 8]);
        header.version = version;
        header.set_length(HEADER_LENGTH, ByteOrder::NATIVE);
        let answer = net.request(0, &header.to_bytes()).expect("the response is immediate");
        let (header, rest) = parts(&answer);
        assert_eq!((header.status, rest), (ClientStatus::EINVAL, &[][..]));
        assert_eq!(header.transaction, [5; 8]);
    }
    // A message with an incomplete entry after a complete one is refused.
    let mut header = ClientHeader::new(ClientOpcode::RESOLVE, [5; 8]);
    header.set_length(HEADER_LENGTH + 100, ByteOrder::NATIVE);
    let mut bytes = header.to_bytes().to_vec();
    bytes.extend(destination(&name(0)).to_bytes(ByteOrder::NATIVE));
    bytes.resize(HEADER_LENGTH + 100, 1);
    let answer = net.request(0, &bytes).expect("the response is immediate");
    assert_eq!(parts(&answer).0.status, ClientStatus::EINVAL);
}

#[test]
fn query_sa_flag_queries_the_sa() {
    let mut net = Net::new(2, &quiet());
    net.run_for(Duration::from_secs(1));
    let from = PathRecord { sgid: gid(0), ..PathRecord::zeroed() };
    let query = |path: PathRecord| vec![Entry::path(EntryFlags::QUERY_SA, &path)];
    let found = net.resolve(0, query(PathRecord { dgid: gid(1), ..from }));
    assert_eq!(found.map(|path| path.dlid), Ok(lid(1)));
    // The client receives the class-specific status of the SA.
    let found = net.resolve(0, query(PathRecord { dgid: gid(9), ..from }));
    assert_eq!(found, Err(ClientStatus(3)));
    net.is_mute = true;
    let found = net.resolve(0, query(PathRecord { dgid: gid(1), ..from }));
    assert_eq!(found, Err(ClientStatus::ETIMEDOUT));
    let mut bytes = Vec::new();
    let entries = query(PathRecord { dgid: gid(1), ..from });
    Resolve::request([0; 8], entries).put(ByteOrder::NATIVE, &mut bytes);
    assert_eq!(net.request(0, &bytes), None);
    let foreign = PathRecord { sgid: gid(1), dgid: gid(1), ..PathRecord::zeroed() };
    assert_eq!(net.resolve(0, query(foreign)), Err(ClientStatus::ESRCADDR));
    // If a port is removed, its pending requests fail.
    net.hosts[0].service.remove_port(net.now, PORT);
    let (_, answer) = net.hosts[0].service.poll_reply().expect("the request has completed");
    assert_eq!(parts(&answer).0.status, ClientStatus::ENOTCONN);
    assert_eq!(net.hosts[0].service.pending(), 0);
}

#[test]
fn gids_and_lids_are_queried_from_the_sa_once() {
    let mut net = Net::new(2, &quiet());
    net.run_for(Duration::from_secs(1));
    let to = |path: PathRecord| vec![Entry::path(EntryFlags(0), &path)];
    let zero = PathRecord::zeroed();
    for _ in 0..3 {
        let found = net.resolve(0, to(PathRecord { sgid: gid(0), dgid: gid(1), ..zero }));
        assert_eq!(found.map(|path| path.dlid), Ok(lid(1)));
    }
    for _ in 0..3 {
        let found = net.resolve(0, to(PathRecord { slid: lid(0), dlid: lid(1), ..zero }));
        assert_eq!(found.map(|path| path.dgid), Ok(gid(1)));
    }
    assert_eq!(net.counters(0).sa_queries, 2);
    let nobody = net.resolve(0, to(PathRecord { slid: lid(0), dlid: 99, ..zero }));
    assert_eq!(nobody, Err(ClientStatus::ENODATA));
}

#[test]
fn excess_requests_are_rejected() {
    let config = ServiceConfig { max_pending: 10, ..quiet() };
    let mut net = Net::new(1, &config);
    net.run_for(Duration::from_secs(1));
    let mut kept = 0;
    for number in 0..20 {
        let to = Address::name(&format!("nobody{number}")).expect("the name is valid");
        let mut bytes = Vec::new();
        Resolve::request([0; 8], vec![destination(&to)]).put(ByteOrder::NATIVE, &mut bytes);
        match net.request(0, &bytes) {
            None => kept += 1,
            Some(answer) => assert_eq!(parts(&answer).0.status, ClientStatus::ENOMEM),
        }
    }
    assert_eq!(kept, 10);
    net.run_for(Duration::from_secs(20));
    let replies = std::iter::from_fn(|| net.hosts[0].service.poll_reply()).count();
    assert_eq!((replies, net.hosts[0].service.pending()), (10, 0));
}

#[test]
fn resolutions_and_cached_routes_can_be_listed() {
    let mut net = Net::new(2, &quiet());
    net.run_for(Duration::from_secs(1));
    (net.off, net.sl) = (vec![1], 3);
    assert_eq!(net.hosts[0].service.resolving(), []);
    let mut bytes = Vec::new();
    Resolve::request([0; 8], vec![destination(&name(1))]).put(ByteOrder::NATIVE, &mut bytes);
    assert_eq!(net.request(0, &bytes), None);
    assert_eq!(net.hosts[0].service.resolving(), [name(1)]);
    net.off.clear();
    assert_eq!(net.find(0, &name(1)).map(|path| path.sl), Ok(3));
    assert_eq!(net.hosts[0].service.resolving(), []);
    let known = net.hosts[0].service.cached(net.now, Some(&name(1)));
    assert_eq!(known[0].route, Some(RouteView { dlid: lid(1), sl: 3 }));
}
