//! A C program calls all functions of the library. A server sends it predefined responses.
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
    EntryType, HEADER_LENGTH, MAX_LENGTH, Resolve,
};
use ib_wire::mad::sa::PathRecord;
use ibfabric_acm::{Endpoint, PathRecordBytes, Text};

/// Returns the path of a file of this crate.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the path of the library. Cargo builds it in the directory of the test programs.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the path of the test program is known");
    let directory = test.parent().expect("the test program is in a directory").to_owned();
    let library = directory.join("libibfabric_acm.so");
    assert!(library.exists(), "{} is not built", library.display());
    library
}

/// Creates symlinks to the library: one with the name for the linker, and one with the soname for the
/// dynamic loader.
fn install(directory: &Path) {
    for name in ["libibfabric_acm.so", "libibfabric_acm.so.0"] {
        std::os::unix::fs::symlink(library(), directory.join(name))
            .expect("a symlink can be created");
    }
}

/// Returns compiler options that define C macros with the sizes and offsets of the library's structures.
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

/// Returns true if the compiler is installed. If not, prints that the test is skipped.
fn has(compiler: &str) -> bool {
    let found = Command::new(compiler).arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: {compiler} is not installed (Debian: gcc, g++)");
    }
    found
}

fn run(command: &mut Command) {
    let output = command.output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
}

#[test]
fn c_program_calls_all_functions() {
    if !has("cc") {
        return;
    }
    let temporary = tempfile::tempdir().expect("a directory can be created");
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
    // The program contains the soname, so a library of another interface version is not loaded.
    let linked = std::fs::read(&program).expect("the program is readable");
    assert!(linked.windows(21).any(|text| text == b"libibfabric_acm.so.0\0"));
    let unix = UnixListener::bind(&socket).expect("the socket can be bound");
    let tcp = TcpListener::bind(("127.0.0.1", 0)).expect("a TCP port can be bound");
    let port = tcp.local_addr().expect("the listener is bound").port();
    // The server threads end with the test process.
    thread::spawn(move || unix.incoming().for_each(|stream| serve(stream.expect("accept"))));
    thread::spawn(move || tcp.incoming().for_each(|stream| serve(stream.expect("accept"))));
    run(Command::new(&program)
        .arg(&socket)
        .arg(port.to_string())
        .env("LD_LIBRARY_PATH", libraries));
}

#[test]
fn header_is_valid_cpp() {
    if !has("c++") {
        return;
    }
    run(Command::new("c++")
        .args(["-x", "c++", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"])
        .arg(file("include/ibfabric_acm.h")));
}

/// Serves a client. Like ibacm, expects that each `read` returns one request.
fn serve(mut stream: impl Read + Write) {
    let mut buffer = [0; MAX_LENGTH];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        let request = &buffer[..read];
        let header = ClientHeader::parse(request.first_chunk().expect("the request has a header"));
        let (length, order) = header.length().expect("the length is valid");
        assert_eq!(length, read, "a `read` returns one request");
        let answered = match header.opcode {
            ClientOpcode::RESOLVE => {
                resolve(&Resolve::parse(header, &request[HEADER_LENGTH..], order))
            }
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
        answer.set_length(HEADER_LENGTH + data.len(), ByteOrder::of(header.opcode));
        stream
            .write_all(&[&answer.to_bytes()[..], &data].concat())
            .expect("the client is connected");
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

/// Marks a request to which the test server sends no response. The protocol does not define this status.
const SILENCE: ClientStatus = ClientStatus(255);

/// Returns the response that the destination name selects; `None` to close the connection.
fn resolve(request: &Resolve) -> Option<(ClientStatus, Vec<u8>)> {
    let destination = request.entries.last().expect("the request has a destination");
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
                let number = name.strip_prefix("status").expect("the name begins with `status`");
                status = ClientStatus(number.parse().expect("a number follows `status`"));
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
