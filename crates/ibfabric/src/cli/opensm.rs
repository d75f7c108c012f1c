//! OpenSM's command line, for a program that is called `opensm`.
//!
//! Options are parsed as by `getopt_long_only(3)`: a long option may start with one hyphen and may be
//! abbreviated if it is unambiguous; short options may be combined.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use ib_daemons::sm::reasons::{
    CONGESTION, ENGINE, MESHES, NO_CONSOLE, NO_SYSLOG, ONE_LID_EACH, PERFMGR, PREFIX_ROUTES,
    QOS_POLICY, SA_FILE,
};

/// The effect of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Sets this key of the configuration file to the argument.
    Key(&'static str),
    /// Sets this key of the configuration file to TRUE.
    On(&'static str),
    /// Sets a key of the configuration file to a value. The strings are the key and the value.
    Is(&'static str, &'static str),
    Config,
    CreateConfig,
    Once,
    Verbose,
    Everything,
    Debug,
    Console,
    Help,
    Version,
    PidFile,
    CacheDir,
    Name,
    Metrics,
    PerfInterval,
    Attach,
    /// No effect: the behaviour is always enabled.
    Granted,
    /// The option is not supported; the text is the reason.
    Refused(&'static str),
}

impl Meaning {
    /// Returns true for an option that OpenSM does not have.
    const fn is_own(self) -> bool {
        matches!(
            self,
            Self::Attach | Self::CacheDir | Self::Metrics | Self::Name | Self::PerfInterval
        )
    }
}

/// A supported or rejected option: short name or blank, long name, true if it has an argument, effect.
struct Definition(char, &'static str, bool, Meaning);

/// An option on a command line, with its long name and its argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) name: &'static str,
    pub(crate) meaning: Meaning,
    pub(crate) value: OsString,
}

const OPTIONS: &[Definition] = {
    use Meaning::{
        Attach, CacheDir, Config, Console, CreateConfig, Debug, Everything, Granted, Help, Is, Key,
        Metrics, Name, On, Once, PerfInterval, PidFile, Refused, Verbose, Version,
    };
    &[
        Definition(' ', "version", false, Version),
        Definition('F', "config", true, Config),
        Definition('c', "create-config", true, CreateConfig),
        Definition('d', "debug", true, Debug),
        Definition('g', "guid", true, Key("guid")),
        Definition('i', "ignore_guids", true, Key("port_prof_ignore_file")),
        Definition('w', "hop_weights_file", true, Key("hop_weights_file")),
        Definition('O', "dimn_ports_file", true, Key("port_search_ordering_file")),
        Definition('O', "port_search_ordering_file", true, Key("port_search_ordering_file")),
        Definition('l', "lmc", true, Key("lmc")),
        Definition('s', "sweep", true, Key("sweep_interval")),
        Definition('t', "timeout", true, Key("transaction_timeout")),
        Definition('v', "verbose", false, Verbose),
        Definition('D', "D", true, Key("log_flags")),
        Definition('f', "log_file", true, Key("log_file")),
        Definition('L', "log_limit", true, Key("log_max_size")),
        Definition('e', "erase_log_file", false, Is("accum_log_file", "FALSE")),
        Definition('P', "Pconfig", true, Key("partition_config_file")),
        Definition('N', "no_part_enforce", false, Is("part_enforce", "off")),
        Definition('Z', "part_enforce", true, Key("part_enforce")),
        Definition('W', "allow_both_pkeys", false, Granted),
        Definition('Q', "qos", false, On("qos")),
        Definition('Y', "qos_policy_file", true, Refused(QOS_POLICY)),
        Definition(' ', "congestion_control", false, Refused(CONGESTION)),
        Definition(' ', "cc_key", true, Refused(CONGESTION)),
        Definition('n', "maxsmps", true, Key("max_wire_smps")),
        Definition('q', "console", true, Console),
        Definition('C', "console-port", true, Refused(NO_CONSOLE)),
        Definition('V', "V", false, Everything),
        Definition('h', "help", false, Help),
        Definition('?', "help", false, Help),
        Definition('o', "once", false, Once),
        Definition('r', "reassign_lids", false, On("reassign_lids")),
        Definition('p', "priority", true, Key("sm_priority")),
        Definition('k', "smkey", true, Key("sm_key")),
        Definition('R', "routing_engine", true, Key("routing_engine")),
        Definition('A', "ucast_cache", false, On("use_ucast_cache")),
        Definition('z', "connect_roots", false, On("connect_roots")),
        Definition('M', "lid_matrix_file", true, Key("lid_matrix_dump_file")),
        Definition('U', "lfts_file", true, Key("lfts_file")),
        Definition('S', "sadb_file", true, Refused(SA_FILE)),
        Definition('a', "root_guid_file", true, Key("root_guid_file")),
        Definition('u', "cn_guid_file", true, Key("cn_guid_file")),
        Definition('G', "io_guid_file", true, Key("io_guid_file")),
        Definition(' ', "port-shifting", false, On("port_shifting")),
        Definition(' ', "scatter-ports", true, Key("scatter_ports")),
        Definition('H', "max_reverse_hops", true, Key("max_reverse_hops")),
        Definition('X', "guid_routing_order_file", true, Key("guid_routing_order_file")),
        Definition('m', "ids_guid_file", true, Key("ids_guid_file")),
        // After a fatal fault, the SM always reports the fault and continues.
        Definition('y', "stay_on_fatal", false, Granted),
        Definition('x', "honor_guid2lid", false, On("honor_guid2lid_file")),
        Definition('B', "daemon", false, On("daemon")),
        Definition('I', "inactive", false, On("sm_inactive")),
        Definition(' ', "perfmgr", false, Refused(PERFMGR)),
        Definition(' ', "perfmgr_sweep_time_s", true, Refused(PERFMGR)),
        Definition(' ', "prefix_routes_file", true, Refused(PREFIX_ROUTES)),
        Definition(' ', "consolidate_ipv6_snm_req", false, Refused(ONE_LID_EACH)),
        Definition(' ', "do_mesh_analysis", false, Refused(MESHES)),
        Definition(' ', "lash_start_vl", true, Key("lash_start_vl")),
        Definition(' ', "sm_sl", true, Key("sm_sl")),
        Definition(' ', "nue_max_num_vls", true, Refused(ENGINE)),
        Definition(' ', "retries", true, Key("transaction_retries")),
        Definition(' ', "torus_config", true, Refused(ENGINE)),
        Definition(
            ' ',
            "guid_routing_order_no_scatter",
            false,
            On("guid_routing_order_no_scatter"),
        ),
        Definition(' ', "log_prefix", true, Refused(NO_SYSLOG)),
        Definition(' ', "subnet_prefix", true, Key("subnet_prefix")),
        Definition(' ', "dump_files_dir", true, Key("dump_files_dir")),
        Definition('J', "pidfile", true, PidFile),
        // Options that OpenSM does not have.
        Definition(' ', "cache-dir", true, CacheDir),
        Definition(' ', "name", true, Name),
        Definition(' ', "metrics", true, Metrics),
        Definition(' ', "perf-interval", true, PerfInterval),
        Definition(' ', "attach", true, Attach),
    ]
};

/// Returns true if the program's file name is `opensm`.
pub(crate) fn is_name(program: &OsStr) -> bool {
    std::path::Path::new(program).file_name() == Some(OsStr::new("opensm"))
}

/// Parses a command line without the program's name.
///
/// # Errors
/// Returns a message about the first word that is not an option, or that lacks its argument.
pub(crate) fn read(words: impl IntoIterator<Item = OsString>) -> Result<Vec<Given>, String> {
    let mut words = words.into_iter();
    let mut given = Vec::new();
    while let Some(word) = words.next() {
        let bytes = word.as_bytes();
        let shown = word.to_string_lossy();
        match bytes {
            b"--" => match words.next() {
                None => break,
                Some(word) => return Err(stray(&word)),
            },
            [b'-', b'-', name @ ..] => match long(name, &shown)? {
                None => return Err(format!("{shown}: unknown option")),
                Some(found) => given.push(with_value(found, name, &shown, &mut words)?),
            },
            [b'-', first, rest @ ..] => {
                let is_short = short(*first).is_some();
                if (!rest.is_empty() || !is_short)
                    && let Some(found) = long(&bytes[1..], &shown)?
                {
                    given.push(with_value(found, &bytes[1..], &shown, &mut words)?);
                } else if is_short {
                    cluster(&bytes[1..], &mut words, &mut given)?;
                } else {
                    return Err(format!("{shown}: unknown option"));
                }
            }
            _ => return Err(stray(&word)),
        }
    }
    Ok(given)
}

fn stray(word: &OsStr) -> String {
    format!("found `{}`, expected an option", word.to_string_lossy())
}

fn short(letter: u8) -> Option<&'static Definition> {
    OPTIONS.iter().find(|option| option.0 != ' ' && option.0 as u32 == u32::from(letter))
}

/// Finds a long option by its name or an unambiguous abbreviation; ignores `=` and the text after it.
fn long(word: &[u8], shown: &str) -> Result<Option<&'static Definition>, String> {
    let name = word.split(|&byte| byte == b'=').next().unwrap_or_default();
    if let Some(exact) = OPTIONS.iter().find(|option| option.1.as_bytes() == name) {
        return Ok(Some(exact));
    }
    // OpenSM does not have the options of ibfabric, so they do not make its abbreviations ambiguous.
    let begins = |option: &&Definition| option.1.as_bytes().starts_with(name) && !option.3.is_own();
    let mut matches: Vec<&Definition> = OPTIONS.iter().filter(begins).collect();
    matches.dedup_by_key(|option| option.1);
    match matches[..] {
        [] => Ok(None),
        [only] => Ok(Some(only)),
        _ => {
            let names: Vec<&str> = matches.iter().map(|option| option.1).collect();
            Err(format!("{shown}: ambiguous option: expected --{}", names.join(" or --")))
        }
    }
}

/// Returns a long option with its argument, which is the text after `=`, or the next word.
fn with_value(
    option: &Definition,
    word: &[u8],
    shown: &str,
    words: &mut dyn Iterator<Item = OsString>,
) -> Result<Given, String> {
    let behind = word.iter().position(|&byte| byte == b'=').map(|at| word[at + 1..].to_vec());
    let value = match (option.2, behind) {
        (true, Some(value)) => OsString::from_vec(value),
        (true, None) => words.next().ok_or_else(|| format!("{shown}: expected an argument"))?,
        (false, None) => OsString::new(),
        (false, Some(_)) => return Err(format!("{shown}: found an argument, expected none")),
    };
    Ok(Given { name: option.1, meaning: option.3, value })
}

/// Parses combined short options. The argument of the last one may follow without a space.
fn cluster(
    letters: &[u8],
    words: &mut dyn Iterator<Item = OsString>,
    given: &mut Vec<Given>,
) -> Result<(), String> {
    for (at, &letter) in letters.iter().enumerate() {
        let option =
            short(letter).ok_or_else(|| format!("-{}: unknown option", char::from(letter)))?;
        let mut value = OsString::new();
        if option.2 {
            let rest = &letters[at + 1..];
            value = match rest {
                [] => words.next().ok_or_else(|| format!("-{}: expected an argument", option.0))?,
                _ => OsString::from_vec(rest.to_vec()),
            };
        }
        given.push(Given { name: option.1, meaning: option.3, value });
        if option.2 {
            break;
        }
    }
    Ok(())
}

/// Returns the text of `--help`; `describe` returns the description of a key of the configuration file, with
/// its range and default.
pub(crate) fn help(describe: &dyn Fn(&str) -> Option<String>) -> String {
    let mut text = "ibfabric under OpenSM's name: a subnet manager with OpenSM's command line.\n\
                    Usage: opensm [OPTIONS]\n\n"
        .to_owned();
    for Definition(short, long, has_value, meaning) in OPTIONS {
        if *short == '?' {
            continue;
        }
        let letter = if *short == ' ' { "    ".to_owned() } else { format!("-{short}, ") };
        let value = if *has_value { " <value>" } else { "" };
        let about = match meaning {
            Meaning::Key(key) => describe(key).unwrap_or_else(|| format!("the key {key}")),
            Meaning::On(key) | Meaning::Is(key, _) => {
                let value = if let Meaning::Is(_, value) = meaning { value } else { "TRUE" };
                let about = describe(key).unwrap_or_default();
                let about = about.split(": ").next().unwrap_or_default();
                format!("{about}: {value}")
            }
            Meaning::Config => {
                "configuration file [default: /etc/opensm/opensm.conf, if it exists]".to_owned()
            }
            Meaning::CreateConfig => {
                "write a configuration file with the settings of the other options, and exit"
                    .to_owned()
            }
            Meaning::Once => "exit when the subnet is up".to_owned(),
            Meaning::Verbose => "log more, 0x04 first; may be repeated".to_owned(),
            Meaning::Everything => "log everything".to_owned(),
            Meaning::Debug => "1 or 2: no effect, both are always enabled".to_owned(),
            Meaning::Console => "off".to_owned(),
            Meaning::Help => "print this text".to_owned(),
            Meaning::Version => "print the version".to_owned(),
            Meaning::PidFile => "write the process ID to a file".to_owned(),
            Meaning::CacheDir => "directory of the cache files, such as guid2lid".to_owned(),
            Meaning::Name => "name of this SM for `ibfabric sm ctl`".to_owned(),
            Meaning::Metrics => "serve metrics at this TCP address, ADDR:PORT".to_owned(),
            Meaning::PerfInterval => {
                "interval of reading the port counters, 1 to 86400 seconds".to_owned()
            }
            Meaning::Attach => "attach to the simulator with this name".to_owned(),
            Meaning::Granted => "no effect: always enabled".to_owned(),
            Meaning::Refused(why) => format!("not supported: {why}"),
        };
        text.push_str(&format!("  {:<44} {about}\n", format!("{letter}--{long}{value}")));
    }
    text.push_str("\nSee ibfabric-sm(1).\n");
    text
}

#[cfg(test)]
mod tests;
