use super::*;

/// Returns the options of a command line: name and argument.
fn options(line: &str) -> Result<Vec<(&'static str, String)>, String> {
    let given = read(line.split_whitespace().map(OsString::from))?;
    let pairs = given.into_iter().map(|g| (g.name, g.value.to_string_lossy().into_owned()));
    Ok(pairs.collect())
}

fn of(line: &str) -> Vec<(&'static str, String)> {
    options(line).expect("it is right")
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

/// As Debian's opensm 3.3.23 takes them.
#[test]
fn one_hyphen_is_a_long_option_where_it_can_be() {
    assert_eq!(of("-once"), [("once", String::new())]);
    assert_eq!(of("-lm 2"), [("lmc", "2".to_owned())]);
    assert_eq!(of("-foo"), [("log_file", "oo".to_owned())]);
    assert!(options("-ver").expect_err("there are two").contains("--version, --verbose"));
    assert!(options("-lo").expect_err("there are three").contains("which of"));
    assert_eq!(of("-V -y"), [("V", String::new()), ("stay_on_fatal", String::new())]);
}

#[test]
fn what_is_no_option_is_named() {
    let error = |line| options(line).expect_err("it is wrong");
    assert_eq!(error("-D"), "-D: expected an argument");
    assert_eq!(error("--lmc"), "--lmc: expected an argument");
    assert_eq!(error("--once=1"), "--once=1: the option has no argument");
    assert_eq!(error("extra -o"), "found `extra`, expected an option");
    assert_eq!(error("--frobnicate"), "--frobnicate: there is no such option");
    assert_eq!(error("-j"), "-j: there is no such option");
    assert_eq!(error("-oj"), "-j: there is no such option");
}

#[test]
fn the_program_is_known_by_its_name() {
    assert!(is_name(OsStr::new("/usr/sbin/opensm")) && is_name(OsStr::new("opensm")));
    assert!(!is_name(OsStr::new("ibfabric")) && !is_name(OsStr::new("opensm/ibfabric")));
}

#[test]
fn no_two_options_have_one_letter() {
    for (at, known) in KNOWN.iter().enumerate().filter(|(_, known)| known.0 != ' ') {
        let other = KNOWN[..at].iter().find(|other| other.0 == known.0);
        assert!(other.is_none_or(|other| other.3 == known.3), "-{}", known.0);
    }
}
