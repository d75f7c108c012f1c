use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::config::Parsed;

const FILE: &str = "opts.cfg";

fn parsed(text: &str) -> Parsed<Options> {
    Options::read(FILE, text.as_bytes()).unwrap()
}

/// Returns the options in a text. Fails if there are warnings.
fn read(text: &str) -> Options {
    let parsed = parsed(text);
    assert_eq!(parsed.warnings, []);
    parsed.value
}

fn warnings(text: &str) -> Vec<String> {
    parsed(text).warnings.iter().map(|warning| warning.at(FILE).to_string()).collect()
}

fn word(text: &str) -> Word {
    Word::new(text).unwrap()
}

#[test]
fn empty_file_has_the_defaults() {
    for text in ["", "# nothing\n\n  \t# at all\r\n", "\u{feff}# a mark\n"] {
        assert_eq!(read(text), Options::default());
    }
}

#[test]
fn every_key_is_read() {
    let options = read(
        "LOG_FILE stderr\nlog_level 2\numad_debug_level 1\nlock_file /tmp/lock\nserver_port 6126\n\
         server_mode OPEN\nacme_plus_kernel_only yes\nprovider_lib_path /opt/lib\n\
         support_ips_in_addr_cfg 1\nprovider ibacmp 0xfe80000000000001\nprovider ibacmp default\n\
         timeout 500\nretries 7\nsa_depth 8\nresolve_depth 1\nsend_depth 9\nrecv_depth 2048\n\
         addr_prot acm\naddr_timeout -1\nroute_prot acm\nroute_timeout 15\nloopback_prot none\n\
         min_mtu 4096\nmin_rate 100\nroute_preload opensm_full_v1\nroute_data_file /r\n\
         addr_preload acm_hosts\naddr_data_file /a\ncheck_interval 0\nannounce 0\nroute_check no\n\
         max_destinations 5000\ngroup 2.5 256\ngroup 200 4096 3 # the wide one\n",
    );
    let group = |rate, mtu, sl| GroupOption { rate, mtu, sl };
    let wanted = Options {
        log_file: LogFile::Stderr,
        log_level: 2,
        umad_debug_level: 1,
        lock_file: word("/tmp/lock"),
        server_port: 6126,
        server_mode: ServerMode::Open,
        acme_plus_kernel_only: true,
        provider_lib_path: Some(word("/opt/lib")),
        support_ips_in_addr_cfg: true,
        provider: vec![
            Provider { name: word("ibacmp"), prefix: Some(0xfe80_0000_0000_0001) },
            Provider { name: word("ibacmp"), prefix: None },
        ],
        timeout: Duration::from_millis(500),
        retries: 7,
        sa_depth: 8,
        resolve_depth: 1,
        send_depth: 9,
        recv_depth: 2048,
        addr_timeout: None,
        route_prot: RouteProtocol::Acm,
        route_timeout: Some(Duration::from_mins(15)),
        loopback_prot: Loopback::None,
        min_mtu: Mtu::B4096,
        min_rate: RateCode::GBPS_100,
        route_preload: RoutePreload::OpensmFullV1,
        route_data_file: word("/r"),
        addr_preload: AddressPreload::AcmHosts,
        addr_data_file: word("/a"),
        check_interval: None,
        announce: 0,
        route_check: false,
        max_destinations: 5000,
        group: vec![
            group(RateCode::GBPS_2_5, Mtu::B256, None),
            group(RateCode::GBPS_200, Mtu::B4096, ServiceLevel::new(3)),
        ],
    };
    assert_eq!(options, wanted);
    assert_eq!(read(&wanted.to_file()), wanted);
}

#[test]
fn suspicious_lines_cause_warnings() {
    let long = format!("log_file /{}\n", "x".repeat(111));
    let cases: &[(&str, &[&str])] = &[
        ("colour red\n", &["1: found `colour`, expected a known key; the line is ignored"]),
        (
            "\ntimeout # 5\n",
            &["2: found nothing, expected a value of timeout; the line is ignored"],
        ),
        (
            "timeout 2000 1 2\n",
            &["1: found `1 2`, expected the end of the line; the found text is ignored"],
        ),
        (
            "timeout 2000ms\nmin_rate 10Gb\n",
            &[
                "1: found `2000ms`, expected a number; the text after its digits is ignored",
                "2: found `10Gb`, expected a number; the text after its digits is ignored",
            ],
        ),
        (
            "retries 3\nRetries 2\n",
            &[
                "2: found `Retries`, expected a key other than that of line 1; this line overrides the earlier one",
            ],
        ),
        (
            &long,
            &[
                "1: found `121 bytes`, expected a line of at most 119 bytes; ibacm would truncate the line",
            ],
        ),
        (
            "provider ibacmp\n",
            &[
                "1: found `ibacmp`, expected a name and `default` or a subnet prefix; the line is ignored",
            ],
        ),
    ];
    for (text, expected) in cases {
        let expected: Vec<_> = expected.iter().map(|text| format!("opts.cfg:{text}")).collect();
        assert_eq!(warnings(text), expected, "{text}");
    }
    assert_eq!(parsed("retries 3\nRetries 9\n").value.retries, 9);
    assert_eq!(parsed(&long).value.log_file, LogFile::File(word(&long[9..long.len() - 1])));
}

#[test]
fn lines_that_are_not_utf8_cause_warnings() {
    let parsed = Options::read(FILE, b"# caf\xe9\nlock_file /\xff\nretries 5 # caf\xe9\n").unwrap();
    assert_eq!(parsed.value, Options { retries: 5, ..Options::default() });
    let expected = "2: found `lock_file /\u{fffd}`, expected UTF-8 text; the line is ignored";
    assert_eq!(parsed.warnings.len(), 1);
    assert_eq!(parsed.warnings[0].to_string(), expected);
}

#[test]
fn spelling_of_the_man_page_is_accepted() {
    let parsed = parsed("route_preload full_opensm_v1\n");
    assert_eq!(parsed.value.route_preload, RoutePreload::OpensmFullV1);
    let expected = "1: found `full_opensm_v1`, expected opensm_full_v1; \
                    the value is accepted, but ibacm would preload no routes";
    assert_eq!(parsed.warnings[0].to_string(), expected);
}

#[test]
fn other_providers_cause_a_warning() {
    let parsed = parsed("provider other 0x1\n");
    assert_eq!(parsed.value.provider, [Provider { name: word("other"), prefix: Some(1) }]);
    let expected = "1: found `other`, expected ibacmp; \
                    this provider cannot be loaded, so the built-in provider serves its subnets";
    assert_eq!(parsed.warnings[0].to_string(), expected);
}

#[test]
fn values_out_of_range_are_errors_with_the_range() {
    let cases = [
        ("log_level 3", "found `3`, expected a number from 0 to 2"),
        ("server_port 0", "found `0`, expected a number from 1 to 65535"),
        ("server_port x", "found `x`, expected a number from 1 to 65535"),
        ("retries -1", "found `-1`, expected a number from 0 to 65535"),
        ("retries 65536", "found `65536`, expected a number from 0 to 65535"),
        ("sa_depth 0", "found `0`, expected a number from 1 to 65535"),
        ("timeout 0", "found `0`, expected a number from 1 to 2147483647"),
        (
            "timeout 99999999999999999999",
            "found `99999999999999999999`, expected a number from 1 to",
        ),
        (
            "addr_timeout -2",
            "found `-2`, expected -1 for no limit, or minutes from 0 to 2147483647",
        ),
        ("server_mode local", "found `local`, expected unix or loop or open"),
        ("route_prot both", "found `both`, expected sa or acm"),
        ("support_ips_in_addr_cfg yes", "found `yes`, expected 1 or 0"),
        ("addr_prot arp", "found `arp`, expected acm"),
        ("min_mtu 1500", "found `1500`, expected an MTU in bytes: 256, 512, 1024, 2048 or 4096"),
        ("min_rate 15", "found `15`, expected a rate in Gbit/s: 2.5, 5, 10, 14, 20, 25, 28, 30,"),
        ("group 10", "found ``, expected an MTU in bytes: 256, 512, 1024, 2048 or 4096"),
        ("group 10 2048 16", "found `16`, expected a number from 0 to 15"),
        ("provider ibacmp prefix", "found `prefix`, expected default, or a subnet prefix such as"),
        ("lock_file a\u{7}", "found `a\\u{7}`, expected a name without control characters"),
        ("check_interval -1", "found `-1`, expected a number from 0 to 2147483647"),
        ("announce 256", "found `256`, expected a number from 0 to 255"),
    ];
    for (text, expected) in cases {
        let error = Options::read(FILE, format!("\n{text}\n").as_bytes()).unwrap_err();
        let key = text.split(' ').next().unwrap();
        let message = error.to_string();
        assert!(message.starts_with(&format!("opts.cfg:2: {key}: {expected}")), "{message}");
    }
    let error = Options::read(FILE, "group 10 256\n".repeat(6).as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "opts.cfg:6: group: found 6 groups, expected at most 5");
}

#[test]
fn lowest_rate_is_read_with_and_without_its_fraction() {
    for text in ["min_rate 2", "min_rate 2.5"] {
        assert_eq!(read(text).min_rate, RateCode::GBPS_2_5);
    }
    for (code, megabits) in RateCode::RATES {
        let text = format!("min_rate {}", f64::from(megabits) / 1e3);
        assert_eq!(read(&text).min_rate, code);
    }
}

#[test]
fn written_lines_fit_into_ibacms_limit() {
    let text = Options::default().to_file();
    assert!(text.is_ascii());
    for line in text.lines() {
        assert!(line.len() <= 119, "{line}");
    }
    for key in read::KEYS {
        assert!(text.contains(&format!("\n# {key}:\n")), "{key}");
    }
}

#[test]
fn larger_clusters_have_longer_timeouts_and_fewer_queries() {
    let mut previous = Options::fitted(0);
    assert_eq!(previous, Options::fitted(1));
    assert_eq!(previous.timeout, Duration::from_millis(250));
    for nodes in [1, 64, 65, 128, 129, 1000, 4096, 4097, 10_000, 100_000, 1 << 40, usize::MAX] {
        let options = Options::fitted(nodes);
        assert_eq!(read(&options.to_file()), options, "{nodes}");
        assert!(options.timeout >= previous.timeout && options.timeout.as_secs() <= 4);
        assert!(options.sa_depth <= previous.sa_depth);
        assert!(options.resolve_depth <= previous.resolve_depth);
        assert!(options.recv_depth >= previous.recv_depth);
        assert!(options.send_depth >= previous.send_depth);
        assert_eq!(options.route_prot == RouteProtocol::Sa, nodes <= 128);
        previous = options;
    }
    assert_eq!(Options::fitted(100_000).max_destinations, 1_600_000);
}

prop_compose! {
    fn service()(
        file in select(vec![
            LogFile::Stdout, LogFile::Stderr, LogFile::File(word("/log")),
        ]),
        levels in (0..=2u8, any::<u8>()),
        lock in "/[!-~]{0,40}",
        port in 1..=u16::MAX,
        mode in select(vec![ServerMode::Unix, ServerMode::Loop, ServerMode::Open]),
        flags in any::<[bool; 2]>(),
        path in proptest::option::of("/[!-~äß]{0,40}"),
        provider in vec(proptest::option::of(any::<u64>()), 0..4),
    ) -> Options {
        let named = |prefix| Provider { name: word(PROVIDER), prefix };
        Options {
            log_file: file,
            log_level: levels.0,
            umad_debug_level: levels.1,
            lock_file: word(&lock),
            server_port: port,
            server_mode: mode,
            acme_plus_kernel_only: flags[0],
            support_ips_in_addr_cfg: flags[1],
            provider_lib_path: path.map(|path| word(&path)),
            provider: provider.into_iter().map(named).collect(),
            ..Options::default()
        }
    }
}

prop_compose! {
    fn resolution()(
        options in service(),
        timeout in 1..=i32::MAX as u32,
        retries in any::<u16>(),
        depths in [1..=u16::MAX, 1..=u16::MAX, 1..=u16::MAX, 1..=u16::MAX],
        minutes in [proptest::option::of(0..=i32::MAX as u32), proptest::option::of(0..=99u32)],
        choices in any::<[bool; 5]>(),
        rate in select(RateCode::RATES.to_vec()),
        mtu in select(Mtu::ALL.to_vec()),
        files in ["/[!-~]{0,40}", "/[!-~]{0,40}"],
    ) -> Options {
        let minutes = minutes.map(|it| it.map(|it| Duration::from_mins(it.into())));
        Options {
            timeout: Duration::from_millis(timeout.into()),
            retries,
            sa_depth: depths[0],
            resolve_depth: depths[1],
            send_depth: depths[2],
            recv_depth: depths[3],
            addr_timeout: minutes[0],
            route_timeout: minutes[1],
            route_prot: if choices[0] { RouteProtocol::Sa } else { RouteProtocol::Acm },
            loopback_prot: if choices[1] { Loopback::None } else { Loopback::Local },
            route_preload: [RoutePreload::None, RoutePreload::OpensmFullV1][usize::from(choices[2])],
            addr_preload: [AddressPreload::None, AddressPreload::AcmHosts][usize::from(choices[3])],
            route_check: choices[4],
            min_rate: rate.0,
            min_mtu: mtu,
            route_data_file: word(&files[0]),
            addr_data_file: word(&files[1]),
            ..options
        }
    }
}

prop_compose! {
    fn options()(
        options in resolution(),
        interval in proptest::option::of(1..=i32::MAX as u32),
        announce in any::<u8>(),
        max_destinations in 1..=i32::MAX as u32,
        group in vec(
            (
                select(RateCode::RATES.to_vec()),
                select(Mtu::ALL.to_vec()),
                proptest::option::of(0..16u8),
            ),
            0..=MOST_GROUPS,
        ),
    ) -> Options {
        let made = |((rate, _), mtu, sl): ((RateCode, u32), Mtu, Option<u8>)| {
            GroupOption { rate, mtu, sl: sl.and_then(ServiceLevel::new) }
        };
        Options {
            check_interval: interval.map(|seconds| Duration::from_secs(seconds.into())),
            announce,
            max_destinations,
            group: group.into_iter().map(made).collect(),
            ..options
        }
    }
}

/// Generates lines that resemble options.
fn lines() -> impl Strategy<Value = String> {
    let key = prop_oneof![select(read::KEYS.to_vec()).prop_map(str::to_owned), ".{0,9}"];
    let value = prop_oneof!["-?[0-9]{1,12}", "[a-z_0-9.]{0,9}", ".{0,9}", "0x[0-9a-f]{0,17}"];
    vec((key, value.clone(), value).prop_map(|(key, a, b)| format!("{key} {a} {b}\n")), 0..9)
        .prop_map(|lines| lines.concat())
}

proptest! {
    #[test]
    fn written_file_is_read_back(options in options()) {
        let parsed = Options::read(FILE, options.to_file().as_bytes())?;
        prop_assert_eq!(parsed.warnings, []);
        prop_assert_eq!(parsed.value, options);
    }

    #[test]
    fn any_parsed_options_can_be_written(text in lines()) {
        if let Ok(parsed) = Options::read(FILE, text.as_bytes()) {
            let again = Options::read(FILE, parsed.value.to_file().as_bytes())?;
            prop_assert_eq!(again.value, parsed.value);
        }
    }

    #[test]
    fn any_bytes_are_options_or_an_error(bytes in vec(any::<u8>(), 0..200)) {
        if let Err(error) = Options::read(FILE, &bytes) {
            prop_assert!(error.to_string().starts_with("opts.cfg:"));
        }
    }
}
