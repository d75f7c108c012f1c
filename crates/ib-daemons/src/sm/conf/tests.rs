use super::*;
use crate::log::{Log, LogOptions};

fn read_text(text: &str) -> Result<(Settings, Vec<String>), String> {
    let mut settings = Settings::default();
    let ignored = apply("opensm.conf", text.as_bytes(), &mut settings);
    ignored.map(|ignored| (settings, ignored)).map_err(DaemonError::into_message)
}

#[test]
fn values_are_read_in_their_notations() {
    let text = "# comment\n\nlmc 2\nm_key 0x1234\nrouting_engine ftree,updn\nconnect_roots TRUE\n\
                root_guid_file /etc/roots\npacket_life_time 0x10\nqos TRUE\nqos_max_vls 4\n\
                qos_ca_vlarb_high 0:4,1:0\npart_enforce out\nscatter_ports 8\nsweep_interval\t0\n";
    let (mut settings, ignored) = read_text(text).expect("the settings are valid");
    assert!(ignored.is_empty(), "{ignored:?}");
    assert_eq!((settings.lmc, settings.config.m_key), (2, 0x1234));
    assert_eq!(settings.config.routing.engines.to_string(), "ftree,updn");
    assert!(settings.engines.connect_roots);
    assert_eq!(settings.engines.root_guids.take().as_deref(), Some(Path::new("/etc/roots")));
    assert_eq!(settings.engines.scatter_ports, Some(8));
    let log = LogOptions {
        flags: 3,
        limit: 0,
        file: None,
        is_default: false,
        erases: false,
        echoes: false,
    };
    let log = Log::open(&log).expect("the log can be opened");
    let config = settings.config(&log).expect("the configuration names no missing file");
    assert_eq!(config.packet_life_time, 16);
    assert_eq!(config.sweep_interval, None);
    let qos = config.qos.expect("the configuration enables QoS");
    assert_eq!((qos.ca.max_vls, qos.router.max_vls), (4, 4));
    assert_eq!((qos.ca.vlarb_high.len(), qos.router.vlarb_high.len()), (2, 15));
}

#[test]
fn invalid_value_is_reported_with_its_line() {
    let error = |text: &str| read_text(text).expect_err("the settings are invalid");
    assert_eq!(
        error("lmc 1\nlmc 8\n"),
        "opensm.conf:2: lmc: found `8`, expected a number of 0 to 7"
    );
    assert_eq!(
        error("connect_roots yes"),
        "opensm.conf:1: connect_roots: found `yes`, expected TRUE or FALSE"
    );
    assert_eq!(error("\nlmc"), "opensm.conf:2: found `lmc`, expected a key, a blank and a value");
    assert!(error("routing_engine nue").starts_with("opensm.conf:1: routing_engine: "));
    assert!(error("qos_sl2vl 0,1").contains("2 VLs"), "{}", error("qos_sl2vl 0,1"));
}

#[test]
fn unsupported_key_with_another_value_is_noted() {
    let text = "perfmgr FALSE\nforce_link_speed 1\nconsole off\nfrobnicate 1\n\
                cc_sw_cong_setting_victim_mask 0x0\nno_partition_enforcement TRUE\n";
    let (settings, notes) = read_text(text).expect("the settings are valid");
    assert_eq!(
        notes,
        [
            "opensm.conf:2: force_link_speed: ignored: ibfabric does not support this key of OpenSM",
            "opensm.conf:4: found `frobnicate`, expected a key that OpenSM or ibfabric knows; \
             ignored"
        ]
    );
    assert_eq!(settings.config.part_enforce, ib_sm::PartEnforce::Off);
}

#[test]
fn unsupported_value_of_a_key_is_an_error() {
    for (text, expected) in [
        ("\nperfmgr TRUE", "opensm.conf:2: perfmgr: found `TRUE`, which is not supported: "),
        ("console local", "opensm.conf:1: console: found `local`, "),
        ("congestion_control TRUE", "; expected `FALSE`"),
        ("qos_policy_file /etc/mine", "opensm.conf:1: qos_policy_file: "),
        ("prefix_routes_file mine", "opensm.conf:1: prefix_routes_file: "),
        ("event_plugin_name x", "opensm.conf:1: event_plugin_name: "),
        ("routing_engine dfsssp", "`dfsssp` is an engine of OpenSM that is not supported here"),
    ] {
        let error = read_text(text).expect_err("the setting is not supported");
        assert!(error.contains(expected), "{error}");
    }
    for (key, _) in REFUSED {
        assert!(IGNORED.iter().any(|(known, _)| known == key), "{key}");
    }
}

#[test]
fn written_file_can_be_read() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let path = place.path().join("conf");
    let mut settings = Settings::default();
    for (key, value) in [("lmc", "3"), ("qos_sl2vl", "0,1,2,3,4,5,6,7,0,1,2,3,4,5,6,7")] {
        settings.set(key, value).expect("the value is valid");
    }
    write(&path, &settings).expect("the file can be written");
    let mut again = Settings::default();
    let text = std::fs::read(&path).expect("the file can be read");
    assert!(read(&path, &text, &mut again).expect("the settings are valid").is_empty());
    for key in KEYS {
        let (one, other) = ((key.field)(&mut settings).show(), (key.field)(&mut again).show());
        assert_eq!(one, other, "{}", key.name);
    }
    assert_eq!(again.lmc, 3);
}

#[test]
fn supported_and_ignored_keys_are_disjoint() {
    for key in KEYS {
        assert!(IGNORED.iter().all(|(name, _)| *name != key.name), "{}", key.name);
    }
}

#[test]
fn comments_and_quotes_are_not_part_of_values() {
    for (line, expected) in [
        ("log_file /tmp/x # the log", "/tmp/x"),
        ("log_file /tmp/x#the log", "/tmp/x"),
        ("log_file \"/tmp/x y\"", "/tmp/x y"),
        ("log_file '/tmp/x'\t# the log", "/tmp/x"),
        ("log_file \"'/tmp/x'\"", "'/tmp/x'"),
        ("log_file \"/tmp/x'", "\"/tmp/x'"),
        ("log_file \"/tmp/x#y\"", "\"/tmp/x"),
        ("  log_file\t/tmp/x y \r", "/tmp/x y"),
    ] {
        let (settings, notes) = read_text(line).expect("the line is valid");
        assert_eq!(settings.log_file.as_deref(), Some(Path::new(expected)), "{line}");
        assert!(notes.is_empty(), "{notes:?}");
    }
    let text = "sweep_interval 5 # seconds\nlmc \"1\"\nconnect_roots 'TRUE'\npart_enforce \"in\"#\n\
                routing_engine \"updn, minhop\" # a list\nsm_priority 010\n";
    let (settings, _) = read_text(text).expect("the text is valid");
    assert_eq!((settings.sweep_interval, settings.lmc), (5, 1));
    assert!(settings.engines.connect_roots);
    assert_eq!(settings.config.part_enforce, ib_sm::PartEnforce::In);
    assert_eq!(settings.config.routing.engines.to_string(), "updn,minhop");
    assert_eq!(settings.config.sm_priority, 8);
}

#[test]
fn comments_may_have_any_encoding() {
    let mut settings = Settings::default();
    let notes = apply("opensm.conf", b"# caf\xe9\nlmc 2 # \xe9\n", &mut settings);
    assert_eq!(notes.map_err(DaemonError::into_message), Ok(Vec::new()));
    assert_eq!(settings.lmc, 2);
    let wrong = apply("opensm.conf", b"log_file /tmp/\xe9\n", &mut settings);
    assert!(wrong.is_err());
}

#[test]
fn spellings_that_opensm_misreads_are_errors() {
    for line in [
        "connect_roots true",
        "connect_roots True",
        "connect_roots 1",
        "connect_roots \" TRUE \"",
        "connect_roots",
        "no_partition_enforcement true",
        "perfmgr true",
        "part_enforce BOTH",
        "part_enforce",
        "sweep_interval=5",
        "sweep_interval = 5",
        "sweep_interval #5",
        "sweep_interval \"\"",
        "sweep_interval 08",
        "sweep_interval -1",
        "log_file = /tmp/x",
        "log_file",
        "log_file \"",
        "sm_priority 16",
        "m_key_protection_level 4",
        "subnet_timeout 32",
        "qos_max_vls 16",
        "qos_vlarb_high 15:4",
        "qos_vlarb_high 0:256",
        "qos_high_limit 256",
    ] {
        let error = read_text(line).expect_err(line);
        assert!(error.starts_with("opensm.conf:1: "), "{error}");
    }
}

#[test]
fn values_that_need_quotes_are_written_with_them() {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let path = place.path().join("conf");
    for file in [" x ", "\"x\"", "'x'", "x y"] {
        let settings = Settings { log_file: Some(file.into()), ..Settings::default() };
        write(&path, &settings).expect("the file can be written");
        let mut again = Settings::default();
        read(&path, &std::fs::read(&path).expect("the file can be read"), &mut again)
            .expect("the file is valid");
        assert_eq!(again.log_file.as_deref(), Some(Path::new(file)));
    }
    for file in ["a#b", "a\nlmc 3", "= x"] {
        let settings = Settings { log_file: Some(file.into()), ..Settings::default() };
        assert!(write(&path, &settings).is_err(), "{file}");
    }
}
