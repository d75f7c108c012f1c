//! A program in C uses everything that the library has, against a server with prepared answers.
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::mem::offset_of;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use ib_types::{Gid, PKey};
use ib_wire::acm::{
    ByteOrder, ClientHeader, ClientOpcode, ClientStatus, EndpointInfo, Entry, EntryFlags,
    EntryType, HEADER, MOST, Resolve,
};
use ib_wire::mad::sa::PathRecord;
use ibfabric_acm::{Endpoint, PathRecordBytes, Text};

/// Returns a file of this crate.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the library, which cargo builds beside the tests.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let directory = test.parent().expect("in a directory").to_owned();
    let library = directory.join("libibfabric_acm.so");
    assert!(library.exists(), "{} is not built", library.display());
    library
}

/// Installs the library: programs are linked with one name of it, and look for the other one when they start.
fn install(directory: &Path) {
    for name in ["libibfabric_acm.so", "libibfabric_acm.so.0"] {
        std::os::unix::fs::symlink(library(), directory.join(name)).expect("a link");
    }
}

/// Returns how the library's structures lie in memory, as words for the compiler.
fn layouts() -> Vec<String> {
    let layouts = [
        ("ENDPOINT", size_of::<Endpoint>()),
        ("ENDPOINT_PKEY", offset_of!(Endpoint, pkey)),
        ("ENDPOINT_PORT_COUNT", offset_of!(Endpoint, port_count)),
        ("ENDPOINT_PROVIDER", offset_of!(Endpoint, provider)),
        ("ADDRESS", size_of::<Text>()),
        ("PATH", size_of::<ibfabric_acm::Path>()),
        ("PATH_RECORD", offset_of!(ibfabric_acm::Path, record)),
        ("RECORD", size_of::<PathRecordBytes>()),
        ("RECORD_ALIGNMENT", align_of::<PathRecordBytes>()),
    ];
    layouts.into_iter().map(|(what, number)| format!("-DLAYOUT_{what}={number}")).collect()
}

/// Returns whether there is a compiler; says so when there is none.
fn has(compiler: &str) -> bool {
    let found = Command::new(compiler).arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: there is no {compiler} (Debian: gcc, g++)");
    }
    found
}

fn run(command: &mut Command) {
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
}

#[test]
fn a_program_in_c_uses_everything() {
    if !has("cc") {
        return;
    }
    let temporary = tempfile::tempdir().expect("a directory");
    let (program, socket) = (temporary.path().join("client"), temporary.path().join("acm.sock"));
    let libraries = temporary.path();
    install(libraries);
    run(Command::new("cc")
        .args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-pthread"])
        .args(layouts())
        .arg("-I")
        .arg(file("include"))
        .arg(file("tests/c/client.c"))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(libraries)
        .arg("-libfabric_acm"));
    // The name is written into the program, so that another interface is not taken for this one.
    let linked = std::fs::read(&program).expect("a program");
    assert!(linked.windows(21).any(|text| text == b"libibfabric_acm.so.0\0"));
    let unix = UnixListener::bind(&socket).expect("a socket");
    let tcp = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = tcp.local_addr().expect("it is bound").port();
    // They end with the process.
    thread::spawn(move || unix.incoming().for_each(|stream| serve(stream.expect("a client"))));
    thread::spawn(move || tcp.incoming().for_each(|stream| serve(stream.expect("a client"))));
    run(Command::new(&program)
        .arg(&socket)
        .arg(port.to_string())
        .env("LD_LIBRARY_PATH", libraries));
}

#[test]
fn the_header_is_cxx_as_well() {
    if !has("c++") {
        return;
    }
    run(Command::new("c++")
        .args(["-x", "c++", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"])
        .arg(file("include/ibfabric_acm.h")));
}

/// Answers as ibacm takes requests: what one call brings is one.
fn serve(mut stream: impl Read + Write) {
    let mut buffer = [0; MOST];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        let request = &buffer[..read];
        let header = ClientHeader::parse(request.first_chunk().expect("a header"));
        let (length, order) = header.length().expect("a length");
        assert_eq!(length, read, "one call brings one request");
        let answered = match header.opcode {
            ClientOpcode::RESOLVE => resolve(&Resolve::parse(header, &request[HEADER..], order)),
            ClientOpcode::PERF_QUERY if header.src_index == 0 => Some((ClientStatus::SUCCESS, {
                (1..=7_u64).flat_map(u64::to_be_bytes).collect::<Vec<u8>>()
            })),
            ClientOpcode::EP_QUERY if header.src_out == 1 => {
                Some((ClientStatus::SUCCESS, endpoint()))
            }
            ClientOpcode::EP_QUERY => Some((ClientStatus::EINVAL, Vec::new())),
            _ => Some((ClientStatus::ESRCADDR, Vec::new())),
        };
        let Some((status, data)) = answered else { return };
        if status == SILENCE {
            thread::sleep(Duration::from_millis(1));
            continue;
        }
        let mut answer = ClientHeader { status, src_out: (data.len() / 8) as u8, ..header };
        answer.set_length(HEADER + data.len(), ByteOrder::of(header.opcode));
        stream.write_all(&[&answer.to_bytes()[..], &data].concat()).expect("the client is there");
        if request.windows(8).any(|text| text == b"farewell") {
            return;
        }
    }
}

/// Returns an endpoint with two addresses.
fn endpoint() -> Vec<u8> {
    let padded = |text: &str| {
        let mut all = [0; 64];
        all[..text.len()].copy_from_slice(text.as_bytes());
        all
    };
    let info = EndpointInfo {
        device_guid: 0x1122_3344_5566_7788,
        port: 2,
        port_count: 3,
        p_key: 0x8001,
        address_count: 2,
        provider: padded("ibacmp"),
    };
    [&info.to_bytes()[..], &padded("node7"), &padded("10.0.0.7")].concat()
}

/// No status of the protocol: nothing is answered.
const SILENCE: ClientStatus = ClientStatus(255);

/// Returns the answer that the destination wants; `None` to end the connection.
fn resolve(request: &Resolve) -> Option<(ClientStatus, Vec<u8>)> {
    let destination = request.entries.last().expect("a destination");
    let name = String::from_utf8_lossy(destination.name_bytes());
    let mut status = ClientStatus::SUCCESS;
    let lids = match destination.kind {
        EntryType::NAME => match &*name {
            "goodbye" => return None,
            "silence" => {
                status = SILENCE;
                vec![]
            }
            "farewell" => vec![1],
            "node7" => {
                assert_eq!(request.entries.len(), 2);
                assert!(destination.flags.has(EntryFlags::NODELAY));
                vec![7, 8]
            }
            name => {
                let number = name.strip_prefix("status").expect("a name that is asked for");
                status = ClientStatus(number.parse().expect("a number"));
                vec![]
            }
        },
        EntryType::PATH => {
            assert_eq!(destination.flags, EntryFlags::QUERY_SA);
            vec![destination.path_record().dlid]
        }
        _ => vec![destination.info[3].into()],
    };
    let paths = lids.into_iter().map(|dlid| {
        let dgid = Gid(dlid.into());
        let path = PathRecord { dlid, dgid, p_key: PKey(0xffff), ..PathRecord::zeroed() };
        Entry::path(EntryFlags::PATH, &path).to_bytes(ByteOrder::NATIVE)
    });
    Some((status, paths.flatten().collect()))
}
