use super::*;

/// Returns the long names and arguments of a command line's options.
fn options(line: &str) -> Result<Vec<(&'static str, String)>, String> {
    let given = read(line.split_whitespace().map(OsString::from))?;
    let pairs = given.into_iter().map(|g| (g.name, g.value.to_string_lossy().into_owned()));
    Ok(pairs.collect())
}

fn of(line: &str) -> Vec<(&'static str, String)> {
    options(line).expect("command line is valid")
}

#[test]
fn long_and_short_options_have_their_arguments() {
    let engine = ("routing_engine", "ftree,updn".to_owned());
    for line in [
        "-R ftree,updn",
        "-Rftree,updn",
        "--routing_engine ftree,updn",
        "--routing_engine=ftree,updn",
        "-routing_engine ftree,updn",
        "--rout ftree,updn",
    ] {
        assert_eq!(of(line), std::slice::from_ref(&engine), "{line}");
    }
    assert_eq!(of("-D 0x43 -d2"), [("D", "0x43".to_owned()), ("debug", "2".to_owned())]);
    assert_eq!(of("-vvo"), ["verbose", "verbose", "once"].map(|name| (name, String::new())));
    assert_eq!(of("-o --"), [("once", String::new())]);
}

/// Debian's opensm 3.3.23 parses these command lines in the same way.
#[test]
fn one_hyphen_prefers_long_option() {
    assert_eq!(of("-once"), [("once", String::new())]);
    assert_eq!(of("-lm 2"), [("lmc", "2".to_owned())]);
    assert_eq!(of("-foo"), [("log_file", "oo".to_owned())]);
    assert!(options("-ver").expect_err("two options match").contains("--version or --verbose"));
    assert!(options("-lo").expect_err("three options match").contains("ambiguous option"));
    assert_eq!(of("-V -y"), [("V", String::new()), ("stay_on_fatal", String::new())]);
}

#[test]
fn invalid_word_is_named() {
    let error = |line| options(line).expect_err("command line is invalid");
    assert_eq!(error("-D"), "-D: expected an argument");
    assert_eq!(error("--lmc"), "--lmc: expected an argument");
    assert_eq!(error("--once=1"), "--once=1: found an argument, expected none");
    assert_eq!(error("extra -o"), "found `extra`, expected an option");
    assert_eq!(error("--frobnicate"), "--frobnicate: unknown option");
    assert_eq!(error("-j"), "-j: unknown option");
    assert_eq!(error("-oj"), "-j: unknown option");
}

#[test]
fn opensm_is_recognised_by_file_name() {
    assert!(is_name(OsStr::new("/usr/sbin/opensm")) && is_name(OsStr::new("opensm")));
    assert!(!is_name(OsStr::new("ibfabric")) && !is_name(OsStr::new("opensm/ibfabric")));
}

#[test]
fn short_names_are_unique() {
    for (at, known) in OPTIONS.iter().enumerate().filter(|(_, known)| known.0 != ' ') {
        let other = OPTIONS[..at].iter().find(|other| other.0 == known.0);
        assert!(other.is_none_or(|other| other.3 == known.3), "-{}", known.0);
    }
}
