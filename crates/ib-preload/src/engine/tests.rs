use std::time::Duration;

use ib_wire::mad::{AttributeId, TransactionId};

use super::*;

const TENTH: Duration = Duration::from_millis(100);

fn agent(class: MgmtClass, methods: u128) -> Registration {
    Registration {
        queue_pair: u32::from(!class.is_smp()),
        class: class.0,
        class_version: class.version(),
        methods,
        oui: if class.has_oui() { 0x1405 } else { 0 },
        rmpp_version: u8::from(class.may_use_rmpp()),
        ..Registration::default()
    }
}

fn mad(class: MgmtClass, method: Method, id: u64) -> Mad {
    let mut mad = Mad::new(class, method, TransactionId(id));
    mad.set_attribute_id(AttributeId::CLASS_PORT_INFO);
    mad
}

/// Returns a message with a short umad header, as a program writes it.
fn written(agent: u32, lid: u16, timeout_ms: u32, retries: u32, message: &[u8]) -> Vec<u8> {
    let header =
        UmadHeader { agent, lid, timeout_ms, retries, queue_pair: 1, ..UmadHeader::default() };
    [&header.to_bytes()[..SHORT_HEADER], message].concat()
}

fn sent(engine: &mut Engine) -> Vec<Request> {
    std::iter::from_fn(|| engine.poll_transmit()).collect()
}

/// Exchanges datagrams between two engines with LIDs 1 and 2, until neither has datagrams to send.
fn exchange(now: Instant, one: &mut Engine, two: &mut Engine) {
    loop {
        let (from_one, from_two) = (sent(one), sent(two));
        if from_one.is_empty() && from_two.is_empty() {
            return;
        }
        let arrives = |slid| move |request: Request| Request { slid, ..request };
        from_one.into_iter().map(arrives(1)).for_each(|request| two.handle(now, &request));
        from_two.into_iter().map(arrives(2)).for_each(|request| one.handle(now, &request));
    }
}

fn read(engine: &mut Engine, file: FileId, room: usize) -> Result<(UmadHeader, Vec<u8>), Errno> {
    let mut buffer = vec![0; room];
    let length = engine.read(file, &mut buffer)?;
    let header = UmadHeader::parse(&buffer[..SHORT_HEADER]);
    Ok((header, buffer[SHORT_HEADER..length].to_vec()))
}

#[test]
fn response_is_delivered_once() {
    let mut engine = Engine::default();
    let file = engine.open();
    let slot = engine.register(file, &agent(MgmtClass::PERFORMANCE, 0)).expect("legal");
    let request = mad(MgmtClass::PERFORMANCE, Method::GET, 0xffff_ffff_0000_0007);
    let bytes = written(slot, 5, 100, 3, &request.0);
    engine.write(Instant::ZERO, file, &bytes).expect("sent");
    assert_eq!(
        engine.write(Instant::ZERO, file, &bytes),
        Err(Errno::INVALID),
        "a request with this transaction ID is outstanding"
    );
    let [request] = sent(&mut engine)[..] else { panic!("expected one datagram") };
    assert_eq!((request.dlid, request.source_queue_pair), (5, 1));
    let id = Mad(request.mad).transaction_id().0;
    assert_eq!((id >> 48, id as u32), (0, 7), "the upper bits are left to the simulator");
    assert_eq!(engine.poll_timeout(), Some(Instant::ZERO + TENTH));

    let mut answer = Mad(request.mad);
    answer.answer(MadStatus::OK);
    answer.set_transaction_id(TransactionId(id | 9 << 48));
    let answer = Request { slid: 5, dlid: 1, mad: answer.0, ..request };
    engine.handle(Instant::ZERO, &answer);
    engine.handle(Instant::ZERO, &answer);
    assert_eq!(engine.poll_woken(), Some(file));
    assert_eq!(read(&mut engine, file, 300), Err(Errno::INVALID), "the buffer is too small");
    let (header, body) = read(&mut engine, file, 320).expect("the file has a response");
    assert_eq!((header.agent, header.lid, header.length, header.status), (slot, 5, 312, 0));
    assert_eq!(body.len(), 256);
    assert_eq!(read(&mut engine, file, 320), Err(Errno::AGAIN));
    assert_eq!(engine.poll_timeout(), None);
}

#[test]
fn request_is_retried_and_fails() {
    let mut engine = Engine::default();
    let file = engine.open();
    let slot = engine.register(file, &agent(MgmtClass::PERFORMANCE, 0)).expect("legal");
    let request = mad(MgmtClass::PERFORMANCE, Method::GET, 7);
    engine.write(Instant::ZERO, file, &written(slot, 5, 100, 2, &request.0)).expect("sent");
    let mut attempts = 0;
    while let Some(due) = engine.poll_timeout() {
        attempts += sent(&mut engine).len();
        engine.handle_timeout(due);
    }
    assert_eq!(attempts, 3);
    let (header, body) = read(&mut engine, file, 320).expect("the file has a failed request");
    assert_eq!((header.status, body.len()), (110, 24));

    assert_eq!(engine.poll_woken(), None, "the message has been read");

    // If the simulator returns a request as lost, the request is retried immediately.
    engine.write(Instant::ZERO, file, &written(slot, 5, 100, 1, &request.0)).expect("sent");
    for _ in 0..2 {
        let [lost] = sent(&mut engine)[..] else { panic!("expected one datagram") };
        engine.handle(Instant::ZERO, &Request { status: TIMED_OUT, ..lost });
    }
    assert_eq!(read(&mut engine, file, 320).expect("the file has a failed request").0.status, 110);
}

#[test]
fn requests_are_delivered_to_the_registered_agent() {
    let mut engine = Engine::default();
    let (one, two) = (engine.open(), engine.open());
    assert!(!engine.serves());
    let ping = agent(MgmtClass::PING, 1 << 1);
    engine.register(one, &ping).expect("legal");
    assert_eq!(
        engine.register(two, &ping),
        Err(Errno::INVALID),
        "another agent is registered for the same methods"
    );
    let other = Registration { oui: 0x02c9, ..ping };
    engine.register(two, &other).expect("the agents have different vendors");
    assert!(engine.serves());
    let mut request = mad(MgmtClass::PING, Method::GET, 7);
    let from = |mad: &Mad| Request {
        dlid: 1,
        slid: 2,
        destination_queue_pair: 1,
        source_queue_pair: 1,
        status: 0,
        length: 256,
        mad: mad.0,
    };
    request.0[37..40].copy_from_slice(&[0x00, 0x02, 0xc9]);
    engine.handle(Instant::ZERO, &from(&request));
    assert!(!engine.is_readable(one) && engine.is_readable(two));
    request.0[37..40].copy_from_slice(&[1, 2, 3]);
    engine.handle(Instant::ZERO, &from(&request));
    let [refusal] = sent(&mut engine)[..] else { panic!("expected one refusal") };
    assert_eq!(Mad(refusal.mad).status(), MadStatus::BAD_METHOD_ATTRIBUTE);
    assert_eq!((refusal.dlid, refusal.slid), (2, 1));
    engine.close(two);
    engine.register(one, &other).expect("the agent with the same methods was removed");
}

#[test]
fn invalid_registrations_are_refused_as_by_the_kernel() {
    let mut engine = Engine::default();
    let file = engine.open();
    let good = agent(MgmtClass::SUBN_ADM, 0);
    for wrong in [
        Registration { queue_pair: 2, ..good },
        Registration { queue_pair: 0, ..good },
        Registration { class: 0x50, ..good },
        Registration { rmpp_version: 2, ..good },
        Registration { class: MgmtClass::PERFORMANCE.0, class_version: 1, ..good },
        Registration { oui: 0, ..agent(MgmtClass::PING, 0) },
        Registration { flags: 2, ..good },
    ] {
        assert_eq!(engine.register(file, &wrong), Err(Errno::INVALID), "{wrong:?}");
    }
    engine.enable_p_key(file).expect("no agent was registered yet");
    for slot in 0..32 {
        assert_eq!(engine.register(file, &good), Ok(slot));
    }
    assert_eq!(engine.register(file, &good), Err(Errno::NO_MEMORY));
    assert_eq!(engine.enable_p_key(file), Err(Errno::INVALID));
    assert_eq!(engine.unregister(file, 40), Err(Errno::INVALID));
    engine.unregister(file, 7).expect("agent 7 is registered");
    assert_eq!(engine.register(file, &good), Ok(7));
    assert_eq!(engine.write(Instant::ZERO, file, &[0; 64]), Err(Errno::INVALID));
    assert_eq!(engine.read(file, &mut [0; 63]), Err(Errno::INVALID));
}

#[test]
fn long_response_arrives_as_one_message() {
    let (mut client, mut server) = (Engine::default(), Engine::default());
    let (asks, answers) = (client.open(), server.open());
    let slot = client.register(asks, &agent(MgmtClass::SUBN_ADM, 0)).expect("legal");
    server.register(answers, &agent(MgmtClass::SUBN_ADM, u128::MAX)).expect("legal");
    let request = mad(MgmtClass::SUBN_ADM, Method::GET_TABLE, 7);
    client.write(Instant::ZERO, asks, &written(slot, 2, 100, 0, &request.0)).expect("sent");
    exchange(Instant::ZERO, &mut client, &mut server);
    let (header, request) = read(&mut server, answers, 320).expect("the request has arrived");
    assert_eq!(header.lid, 1);

    let mut answer = request[..56].to_vec();
    answer[3] |= 0x80;
    answer[24..27].copy_from_slice(&[1, 1, 1]);
    answer.extend((0..112 * 500).map(|index| (index % 249) as u8));
    server.write(Instant::ZERO, answers, &written(0, 1, 0, 3, &answer)).expect("sent");
    exchange(Instant::ZERO, &mut client, &mut server);
    assert_eq!(server.poll_timeout(), None, "the client has acknowledged all segments");
    let mut buffer = vec![0; 320];
    assert_eq!(client.read(asks, &mut buffer), Err(Errno::NO_SPACE));
    let needed = UmadHeader::parse(&buffer).length as usize;
    assert_eq!(needed, SHORT_HEADER + answer.len());
    assert_eq!(buffer[SHORT_HEADER + 56..312], answer[56..256], "the first segment was copied");
    let (_, whole) = read(&mut client, asks, needed).expect("the buffer has room for the message");
    assert_eq!(whole[36..], answer[36..]);
}

#[test]
fn files_fail_after_the_simulator_disconnects() {
    let mut engine = Engine::default();
    let file = engine.open();
    let slot = engine.register(file, &agent(MgmtClass::PERFORMANCE, 0)).expect("legal");
    let request = mad(MgmtClass::PERFORMANCE, Method::GET, 7);
    engine.write(Instant::ZERO, file, &written(slot, 5, 100, 2, &request.0)).expect("sent");
    engine.shut_down();
    assert_eq!(read(&mut engine, file, 320).expect("the file has a failed request").0.status, 110);
    assert_eq!(read(&mut engine, file, 320), Err(Errno::IO));
    let bytes = written(slot, 5, 100, 2, &request.0);
    assert_eq!(engine.write(Instant::ZERO, file, &bytes), Err(Errno::IO));
}
