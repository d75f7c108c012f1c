use std::fs;
use std::path::Path;

use super::super::{ServiceAddress, ServiceFiles};

fn files(directory: &Path) -> ServiceFiles {
    ServiceFiles {
        port_file: directory.join("port"),
        socket: directory.join("any.sock"),
        own_socket: directory.join("own.sock"),
    }
}

#[test]
fn port_file_has_priority_over_the_socket() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path());
    let found = |text: Option<&str>| {
        match text {
            Some(text) => fs::write(&files.port_file, text).unwrap(),
            None => drop(fs::remove_file(&files.port_file)),
        }
        ServiceAddress::find_in(&files)
    };
    assert_eq!(found(Some("6126\n")), ServiceAddress::tcp("127.0.0.1", 6126));
    assert_eq!(found(Some(" 17 and more")), ServiceAddress::tcp("127.0.0.1", 17));
    // Without Unix domain sockets, the client uses the default TCP port.
    #[cfg(unix)]
    let socket = ServiceAddress::Unix(files.socket.clone());
    #[cfg(not(unix))]
    let socket = ServiceAddress::tcp("127.0.0.1", 6125);
    for text in [None, Some(""), Some("0"), Some("70000"), Some("no port"), Some("\u{fffd}")] {
        assert_eq!(found(text), socket, "{text:?}");
    }
    let endless = "7".repeat(1 << 20);
    assert_eq!(found(Some(&endless)), socket);
}

#[test]
fn address_text_is_a_socket_path_or_a_host() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path());
    let read = |text: &str| ServiceAddress::from_text_in(text, &files);
    assert_eq!(read("node7"), ServiceAddress::tcp("node7", 6125));
    fs::write(&files.port_file, "99").unwrap();
    assert_eq!(read("fd00::7"), ServiceAddress::tcp("fd00::7", 99));
    assert_eq!(read("fd00::7").to_string(), "[fd00::7]:99");
    assert_eq!(read("node7").to_string(), "node7:99");
    #[cfg(unix)]
    {
        for path in ["/run/acm", "./acm.sock", "run/acm.sock"] {
            assert_eq!(read(path), ServiceAddress::Unix(path.into()));
        }
        assert_eq!(ServiceAddress::default_for_machine().to_string(), "/run/ibacm-unix.sock");
    }
}
