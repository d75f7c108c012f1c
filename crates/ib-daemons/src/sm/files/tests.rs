use std::sync::mpsc::channel;

use super::*;

#[test]
fn a_file_is_replaced_as_a_whole() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = place.path().join("file");
    for text in ["one", "two"] {
        replace(&path, text.as_bytes()).expect("replaced");
        assert_eq!(std::fs::read_to_string(&path).expect("text"), text);
    }
    assert!(replace(&place.path().join("none/file"), b"").is_err());
    let names = std::fs::read_dir(place.path()).expect("a directory");
    assert_eq!(names.count(), 1, "no temporary file stays");
}

#[test]
fn of_what_waits_the_newest_is_written() {
    let mut writer = Writer::start().expect("a thread");
    let (go, wait) = channel::<()>();
    let (sender, written) = channel();
    let (begun, began) = channel();
    let first = sender.clone();
    writer.write(
        Kind::Dumps,
        Box::new(move || {
            begun.send(()).expect("heard");
            wait.recv().expect("told");
            first.send(1).expect("heard");
            vec!["disk full".to_owned()]
        }),
    );
    began.recv().expect("it begins");
    for number in [2, 3] {
        let sender = sender.clone();
        let job = move || {
            sender.send(number).expect("heard");
            Vec::new()
        };
        writer.write(Kind::Dumps, Box::new(job));
    }
    writer.write(
        Kind::Cache,
        Box::new(move || {
            sender.send(4).expect("heard");
            Vec::new()
        }),
    );
    go.send(()).expect("heard");
    assert_eq!(writer.finish(), ["disk full"]);
    assert_eq!(written.iter().collect::<Vec<_>>(), [1, 4, 3]);
}
