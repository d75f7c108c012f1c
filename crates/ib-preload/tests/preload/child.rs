//! Checks that run under the preloaded library, in a process that a test of `main.rs` starts.

use std::ffi::CString;
use std::io;
use std::time::{Duration, Instant};

use ib_link::{Datagram, Incoming, MadLink, Remote};
use ib_umad::abi::{
    ENABLE_PKEY, HEADER, REGISTER_AGENT, REGISTER_AGENT2, Registration, SHORT_HEADER, UmadHeader,
};
use ib_umad::{UmadDevice, UmadLink, UmadOptions};
use ib_wire::mad::sm::NodeDescription;
use ib_wire::mad::{Attribute, Mad, Method, MgmtClass, TransactionId};

use crate::fabric::{SILENT, UNREACHABLE};

/// Calls a function of the C library. Returns `Err` with the value of `errno` if the function
/// fails.
macro_rules! call {
    ($function:ident($($argument:expr),*)) => {{
        // SAFETY: every pointer among the arguments refers to live memory of the length given with
        // it.
        let result = unsafe { libc::$function($($argument),*) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
    }};
}

/// Checks the descriptors of the umad device: requests, waiting, long messages, duplicates, use by
/// several threads, and `UmadLink`.
pub(crate) fn check_descriptors() {
    let file = open(libc::O_NONBLOCK);
    assert!(call!(fcntl(file, libc::F_GETFD)).is_ok(), "the descriptor is open in the kernel");
    assert!(file < 1024);
    call!(ioctl(file, ENABLE_PKEY as libc::c_ulong)).expect("no agent was registered yet");
    check_requests(file);
    check_waiting(file);
    check_long_messages(file);
    check_duplicates(file);
    check_threads();
    check_link();
}

fn open(flags: i32) -> i32 {
    let path = CString::new("/dev/infiniband/umad0").expect("the path has no zero byte");
    call!(open(path.as_ptr(), libc::O_RDWR | flags)).expect("the umad device can be opened")
}

fn register(file: i32, class: MgmtClass, methods: u128) -> u32 {
    let wish = Registration {
        queue_pair: u32::from(!class.is_smp()),
        class: class.0,
        class_version: class.version(),
        methods,
        oui: if class.has_oui() { 0x1405 } else { 0 },
        rmpp_version: u8::from(class.may_use_rmpp()),
        ..Registration::default()
    };
    if methods == 0 {
        let mut bytes = wish.to_old();
        call!(ioctl(file, REGISTER_AGENT as libc::c_ulong, bytes.as_mut_ptr()))
            .expect("the device registers the agent");
        return Registration::from_old(&bytes).agent;
    }
    let mut bytes = wish.to_new();
    call!(ioctl(file, REGISTER_AGENT2 as libc::c_ulong, bytes.as_mut_ptr()))
        .expect("the device registers the agent");
    Registration::from_new(&bytes).agent
}

fn send(file: i32, header: &UmadHeader, message: &[u8]) {
    let bytes = [&header.to_bytes()[..], message].concat();
    let length =
        call!(write(file, bytes.as_ptr().cast(), bytes.len())).expect("the device accepts the MAD");
    assert_eq!(length as usize, bytes.len());
}

fn read(file: i32, room: usize) -> io::Result<(UmadHeader, Vec<u8>)> {
    let mut buffer = vec![0_u8; room];
    let length = call!(read(file, buffer.as_mut_ptr().cast(), room))? as usize;
    Ok((UmadHeader::parse(&buffer[..HEADER]), buffer[HEADER..length].to_vec()))
}

fn readable(file: i32, milliseconds: i32) -> bool {
    let mut polled = libc::pollfd { fd: file, events: libc::POLLIN, revents: 0 };
    call!(poll(&raw mut polled, 1, milliseconds)).expect("the poll succeeds") == 1
}

fn description(lid: u16, id: u64) -> (UmadHeader, Mad) {
    let mut mad = Mad::new(MgmtClass::SUBN_LID_ROUTED, Method::GET, TransactionId(id));
    mad.set_attribute_id(NodeDescription::ID);
    (UmadHeader { lid, timeout_ms: 60, retries: 2, ..UmadHeader::default() }, mad)
}

fn check_requests(file: i32) {
    let agent = register(file, MgmtClass::SUBN_LID_ROUTED, 0);
    assert_eq!(
        read(file, 320).expect_err("no message is waiting").kind(),
        io::ErrorKind::WouldBlock
    );
    for (lid, least) in [(SILENT, 180), (UNREACHABLE, 0)] {
        let (header, mad) = description(lid, 5);
        let started = Instant::now();
        send(file, &UmadHeader { agent, ..header }, &mad.0);
        assert!(readable(file, 5_000), "the failed request is reported");
        assert!(
            started.elapsed() >= Duration::from_millis(least),
            "the request fails only after its retries"
        );
        let (header, body) = read(file, 320).expect("the report of the failed request has arrived");
        assert_eq!((header.status, header.lid, body.len()), (110, lid, 24));
        assert_eq!(body[12..16], mad.0[12..16]);
    }
    let (header, mad) = description(2, 6);
    send(file, &UmadHeader { agent, ..header }, &mad.0);
    assert!(readable(file, 5_000));
    let (header, body) = read(file, 320).expect("a response has arrived");
    assert_eq!((header.status, header.lid, header.length), (0, 2, 320));
    assert_eq!(body[64..71], *b"host-2\0");
    assert!(!readable(file, 0));
}

fn check_waiting(file: i32) {
    let (header, mad) = description(2, 8);
    send(file, &header, &mad.0);
    let queue = call!(epoll_create1(0)).expect("an epoll instance can be created");
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 9 };
    call!(epoll_ctl(queue, libc::EPOLL_CTL_ADD, file, &raw mut event))
        .expect("epoll accepts the umad descriptor");
    assert_eq!(call!(epoll_wait(queue, &raw mut event, 1, 5_000)).expect("epoll succeeds"), 1);
    call!(close(queue)).expect("the descriptor was open");
    // SAFETY: all bits zero are an empty set, and the descriptor is below the size of the set.
    let mut set = unsafe {
        let mut set: libc::fd_set = std::mem::zeroed();
        libc::FD_SET(file, &raw mut set);
        set
    };
    let none = std::ptr::null_mut();
    let none_at_all = std::ptr::null_mut();
    assert_eq!(
        call!(select(file + 1, &raw mut set, none, none, none_at_all))
            .expect("the select succeeds"),
        1
    );
    read(file, 320).expect("a response has arrived");
    // Without O_NONBLOCK, `read` waits for a message.
    let blocking = open(0);
    let agent = register(blocking, MgmtClass::SUBN_LID_ROUTED, 0);
    let header = UmadHeader { agent, ..header }.to_bytes();
    let bytes = [&header[..SHORT_HEADER], &mad.0].concat();
    call!(write(blocking, bytes.as_ptr().cast(), bytes.len())).expect("the device accepts the MAD");
    let mut buffer = [0_u8; 320];
    let length = call!(read(blocking, buffer.as_mut_ptr().cast(), 320))
        .expect("the blocking read returns the response");
    assert_eq!(length as usize, SHORT_HEADER + 256, "without ENABLE_PKEY the umad header is short");
    call!(close(blocking)).expect("the descriptor was open");
}

fn check_long_messages(file: i32) {
    let serves = register(file, MgmtClass::SYSTEM_STATUS, 1 << 1);
    let asks = register(file, MgmtClass::SYSTEM_STATUS, 0);
    let mut mad = Mad::new(MgmtClass::SYSTEM_STATUS, Method::GET, TransactionId(11));
    mad.0[37..40].copy_from_slice(&[0, 0x14, 5]);
    let to = UmadHeader { lid: 1, queue_pair: 1, ..UmadHeader::default() };
    send(file, &UmadHeader { agent: asks, timeout_ms: 2_000, ..to }, &mad.0);
    assert!(readable(file, 5_000));
    let (header, request) = read(file, 320).expect("the request has arrived");
    assert_eq!((header.agent, header.queue_pair), (serves, 1));

    let mut answer = request[..40].to_vec();
    answer[3] |= 0x80;
    answer[24..27].copy_from_slice(&[1, 1, 1]);
    answer.extend((0..50_000).map(|index| (index % 241) as u8));
    send(file, &UmadHeader { agent: serves, retries: 3, ..to }, &answer);
    assert!(readable(file, 5_000));
    let error = read(file, 320).expect_err("the response is longer than the buffer");
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    let (header, whole) = read(file, HEADER + 60_000).expect("the buffer holds the whole response");
    assert_eq!((header.agent, whole.len()), (asks, answer.len()));
    assert_eq!(whole[36..], answer[36..]);
}

fn check_duplicates(file: i32) {
    let copy = call!(dup(file)).expect("the descriptor can be duplicated");
    call!(close(file)).expect("the descriptor was open");
    let (header, mad) = description(2, 12);
    send(copy, &header, &mad.0);
    assert!(readable(copy, 5_000));
    read(copy, 320).expect("a response has arrived");
    let other =
        call!(fcntl(copy, libc::F_DUPFD_CLOEXEC, 100)).expect("the descriptor can be duplicated");
    call!(close(copy)).expect("the descriptor was open");
    send(other, &header, &mad.0);
    assert!(readable(other, 5_000));
    call!(close(other)).expect("the descriptor was open");
    // The closed descriptor does not belong to the library any more.
    let mut byte = 0_u8;
    let error =
        call!(read(other, (&raw mut byte).cast(), 1)).expect_err("the descriptor is closed");
    assert_eq!(error.raw_os_error(), Some(libc::EBADF));
}

fn check_threads() {
    let file = open(libc::O_NONBLOCK);
    call!(ioctl(file, ENABLE_PKEY as libc::c_ulong)).expect("no agent was registered yet");
    let agent = register(file, MgmtClass::SUBN_LID_ROUTED, 0);
    let (threads, each) = (4, 250);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                for number in 0..each {
                    let (header, mad) = description(2, thread << 16 | number);
                    let header = UmadHeader { agent, timeout_ms: 5_000, ..header };
                    send(file, &header, &mad.0);
                }
            });
        }
        let mut seen = std::collections::BTreeSet::new();
        while seen.len() < (threads * each) as usize {
            assert!(readable(file, 5_000), "only {} responses have arrived", seen.len());
            while let Ok((header, body)) = read(file, 320) {
                assert_eq!(header.status, 0);
                assert!(seen.insert(body[12..16].to_vec()), "each response is delivered once");
            }
        }
    });
    call!(close(file)).expect("the descriptor was open");
}

fn check_link() {
    let options = UmadOptions::classes(&[MgmtClass::SUBN_LID_ROUTED]);
    let device = UmadDevice::find("ibsim0", None).expect("the device exists");
    let mut link = UmadLink::open(&device, &options).expect("the device can be opened");
    let port = link.port().expect("the port attributes are readable");
    assert_eq!((port.number, port.lid, port.port_guid.0), (1, 1, 0x11));
    let (_, mut mad) = description(2, 0x1234_5678_0000_0001);
    mad.set_transaction_id(TransactionId(0x1234_5678_0000_0001));
    link.send(&Datagram::new(Remote::smi(2), mad)).expect("the device accepts the MAD");
    let deadline = link.now() + Duration::from_secs(5);
    let answer = loop {
        match link.receive().expect("the device is open") {
            Some(Incoming::Received(answer)) => break answer,
            Some(Incoming::Lost(lost)) => panic!("{lost:?}"),
            None => link.wait(deadline).expect("the wait succeeds"),
        }
    };
    assert_eq!(answer.mad.transaction_id(), mad.transaction_id());
    let description =
        answer.mad.attribute::<NodeDescription>().expect("the response is a NodeDescription");
    assert_eq!(description.as_text(), "host-2");
}
