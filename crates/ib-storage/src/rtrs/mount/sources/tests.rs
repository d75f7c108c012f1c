use std::path::Path;

use ib_rtrs::tree::TreeError;

use super::*;
use crate::rtrs::control::tests::Program;
use crate::rtrs::control::{Control, ControlRequest, message};

/// Starts a program that serves some files in one directory. Each file contains the name of the
/// program and its own path.
fn program(socket: &Path, name: &'static str, files: &'static [&'static str]) -> Program {
    let control = Control::open(Some(socket), None).expect("the socket is free");
    Program::start(control, move |ask| {
        let entry = |name: &&str| Entry {
            name: (*name).to_owned(),
            kind: Kind::File { is_writable: true },
        };
        let wrong = |errno, path: &str| message::failed(&TreeError::new(errno, path, "no"));
        let has = |path: &str| path.strip_prefix("all/").is_some_and(|file| files.contains(&file));
        Some(match ask {
            ControlRequest::List(path) if path.is_empty() => {
                message::list(&[Entry { name: "all".to_owned(), kind: Kind::Directory }])
            }
            ControlRequest::List(path) if path == "all" => {
                message::list(&files.iter().map(entry).collect::<Vec<_>>())
            }
            ControlRequest::Kind(path) if path == "all" => message::kind(Kind::Directory),
            ControlRequest::Kind(path) if has(&path) => {
                message::kind(Kind::File { is_writable: true })
            }
            ControlRequest::Read(path) if has(&path) => {
                message::read(&path, format!("{name} {path}\n"))
            }
            ControlRequest::Write { path, value } if has(&path) && value == "1" => {
                message::written()
            }
            ControlRequest::Write { path, .. } if has(&path) => wrong(Errno::EINVAL, &path),
            ControlRequest::List(path)
            | ControlRequest::Kind(path)
            | ControlRequest::Read(path)
            | ControlRequest::Write { path, .. } => wrong(Errno::ENOENT, &path),
            ControlRequest::Metrics => message::metrics(String::new()),
        })
    })
}

fn names(entries: Vec<Entry>) -> Vec<String> {
    entries.into_iter().map(|entry| entry.name).collect()
}

#[test]
fn files_of_several_programs_are_merged() {
    let dir = tempfile::tempdir().expect("a directory can be created");
    let [first, second] = ["1", "2"].map(|name| dir.path().join(name));
    let sockets = || vec![first.clone(), second.clone()];
    let one = program(&first, "one", &["a", "b"]);
    assert!(Sources::connect(sockets()).is_err(), "the second socket has no listener");
    let two = program(&second, "two", &["b", "c"]);
    let sources = Sources::connect(sockets()).expect("both sockets have listeners");
    assert_eq!(names(sources.list("").expect("the root exists")), ["all"]);
    assert_eq!(names(sources.list("all").expect("the directory exists")), ["a", "b", "c"]);
    assert_eq!(sources.read("all/b").as_deref(), Ok("one all/b\n"));
    assert_eq!(sources.read("all/c").as_deref(), Ok("two all/c\n"));
    assert_eq!(sources.kind("all/c"), Ok(Kind::File { is_writable: true }));
    assert_eq!(sources.kind("all/d"), Err(Errno::ENOENT));
    assert_eq!(sources.list("none"), Err(Errno::ENOENT));
    assert_eq!(sources.write("all/c", "1"), Ok(()));
    assert_eq!(sources.write("all/a", "2"), Err(Errno::EINVAL));
    // The files of a stopped program are missing until it is restarted.
    drop(one);
    assert_eq!(sources.read("all/b").as_deref(), Ok("two all/b\n"));
    assert_eq!(names(sources.list("all").expect("the directory exists")), ["b", "c"]);
    drop(two);
    assert_eq!(sources.kind(""), Ok(Kind::Directory));
    assert_eq!(sources.list("").expect("the root exists"), []);
    assert_eq!(sources.kind("all"), Err(Errno::ENOENT));
    let _again = program(&second, "again", &["c"]);
    assert_eq!(sources.read("all/c").as_deref(), Ok("again all/c\n"));
}
