use super::*;

#[test]
fn line_has_the_prefix_of_opensm() {
    let time = jiff::civil::date(2026, 11, 5).at(9, 4, 0, 42_000);
    let text =
        prefix(&time.to_zoned_datetime(jiff::tz::TimeZone::UTC).expect("the time is valid"), INFO);
    let (time, rest) = text.split_once(" [").expect("the prefix contains a process ID");
    assert_eq!(time, "Nov 05 09:04:00 000042");
    assert!(rest.ends_with("] 0x02"), "{rest}");
}

fn logged(flags: u8, limit: u32, lines: &[(u8, &str)]) -> String {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let path = place.path().join("log");
    let file = Some(path.as_path());
    let options =
        LogOptions { flags, limit, file, is_default: false, erases: false, echoes: false };
    let log = Log::open(&options).expect("the log can be opened");
    for &(level, text) in lines {
        log.line(level, text);
    }
    std::fs::read_to_string(&path).expect("the file can be read")
}

#[test]
fn levels_are_chosen_by_flags() {
    let lines = [(ERROR, "one"), (INFO, "two"), (VERBOSE, "three"), (SYSTEM, "four")];
    let texts = |flags| {
        let text = logged(flags, 0, &lines);
        let texts = text.lines().filter_map(|line| line.split_once(" -> "));
        texts.map(|(_, text)| text.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(texts(0x03), ["one", "two", "four"]);
    assert_eq!(texts(0x04), ["three", "four"]);
    assert_eq!(texts(0), [""; 0]);
}

#[test]
fn log_is_truncated_at_its_limit() {
    let long = "x".repeat(400 << 10);
    let text = logged(0x03, 1, &[(INFO, &long), (INFO, &long), (INFO, &long), (INFO, "end")]);
    assert_eq!(text.lines().count(), 2, "the third line makes the log truncate the file");
    assert!(text.ends_with(" -> end\n"));
}

#[test]
fn renamed_log_is_reopened() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let (path, old) = (place.path().join("log"), place.path().join("log.1"));
    std::fs::write(&path, "before\n").expect("the file can be written");
    let file = Some(path.as_path());
    let mut options =
        LogOptions { flags: 3, limit: 0, file, is_default: false, erases: false, echoes: false };
    let log = Log::open(&options).expect("the log can be opened");
    log.line(INFO, "one");
    std::fs::rename(&path, &old).expect("the file can be renamed");
    log.line(INFO, "two");
    log.reopen();
    log.line(INFO, "three");
    let count = |path| std::fs::read_to_string(path).expect("the file can be read").lines().count();
    assert_eq!((count(&old), count(&path)), (3, 1));
    options.erases = true;
    drop(Log::open(&options));
    assert_eq!(count(&path), 0);
}

#[test]
fn world_writable_log_is_restricted() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let path = place.path().join("log");
    for (before, after) in [(0o666, 0o664), (0o602, 0o600), (0o640, 0o640), (0o664, 0o664)] {
        std::fs::write(&path, "before\n").expect("the file can be written");
        let mode = Permissions::from_mode(before);
        std::fs::set_permissions(&path, mode).expect("the mode can be changed");
        let file = Some(path.as_path());
        let (erases, echoes) = (false, false);
        let options = LogOptions { flags: 3, limit: 0, file, is_default: false, erases, echoes };
        Log::open(&options).expect("the log can be opened").line(INFO, "one");
        let mode = std::fs::metadata(&path).expect("the file exists").permissions().mode();
        assert_eq!(mode & 0o777, after, "{before:o}");
    }
}

#[test]
fn logged_text_cannot_forge_lines() {
    let forged = "session a\x1b[2J\nNov 05 09:04:00 000042 [0001F2A3] 0x01 -> forged";
    let text = logged(0x03, 0, &[(INFO, forged)]);
    assert!(!text.contains('\x1b'), "{text:?}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with(" -> session a\\u{1b}[2J"), "{text:?}");
    assert!(lines[1..].iter().all(|line| line.starts_with("  ")), "{text:?}");
}
