use std::sync::mpsc::channel;

use super::*;

#[test]
fn replaced_file_leaves_no_temporary_file() {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let path = directory.path().join("file");
    for text in ["one", "two"] {
        replace(&path, text.as_bytes()).expect("replaced");
        assert_eq!(std::fs::read_to_string(&path).expect("the file can be read"), text);
    }
    assert!(replace(&directory.path().join("none/file"), b"").is_err());
    let names = std::fs::read_dir(directory.path()).expect("the directory can be read");
    assert_eq!(names.count(), 1, "the temporary file is removed");
}

#[test]
fn newest_job_of_each_kind_is_written() {
    let mut writer = Writer::start().expect("the system can create a thread");
    let (go, wait) = channel::<()>();
    let (sender, written) = channel();
    let (begun, began) = channel();
    let first = sender.clone();
    writer.write(
        Kind::Dumps,
        Box::new(move || {
            begun.send(()).expect("the test waits until the job has begun");
            wait.recv().expect("the test sends the start signal");
            first.send(1).expect("the test keeps the receiver `written`");
            vec!["disk full".to_owned()]
        }),
    );
    began.recv().expect("the first job starts");
    for number in [2, 3] {
        let sender = sender.clone();
        let job = move || {
            sender.send(number).expect("the test keeps the receiver `written`");
            Vec::new()
        };
        writer.write(Kind::Dumps, Box::new(job));
    }
    writer.write(
        Kind::Cache,
        Box::new(move || {
            sender.send(4).expect("the test keeps the receiver `written`");
            Vec::new()
        }),
    );
    go.send(()).expect("the first job keeps the receiver `wait`");
    assert_eq!(writer.finish(), ["disk full"]);
    assert_eq!(written.iter().collect::<Vec<_>>(), [1, 4, 3]);
}
