use super::*;
use crate::command::log::{Log, LogOptions};

fn read_text(text: &str) -> Result<(Settings, Vec<String>), String> {
    let mut settings = Settings::default();
    let ignored = apply("opensm.conf", text.as_bytes(), &mut settings);
    ignored.map(|ignored| (settings, ignored)).map_err(Failure::into_message)
}

#[test]
fn values_are_read_in_their_notations() {
    let text = "# comment\n\nlmc 2\nm_key 0x1234\nrouting_engine ftree,updn\nconnect_roots TRUE\n\
                root_guid_file /etc/roots\npacket_life_time 0x10\nqos TRUE\nqos_max_vls 4\n\
                qos_ca_vlarb_high 0:4,1:0\npart_enforce out\nscatter_ports 8\nsweep_interval\t0\n";
    let (mut settings, ignored) = read_text(text).expect("it is right");
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
    let log = Log::open(&log).expect("it is no file");
    let config = settings.config(&log).expect("no file is needed");
    assert_eq!(config.packet_life_time, 16);
    assert_eq!(config.sweep_interval, None);
    let qos = config.qos.expect("it is on");
    assert_eq!((qos.ca.max_vls, qos.router.max_vls), (4, 4));
    assert_eq!((qos.ca.vlarb_high.len(), qos.router.vlarb_high.len()), (2, 15));
}

#[test]
fn a_value_that_is_none_is_named_with_its_place() {
    let error = |text: &str| read_text(text).expect_err("it is wrong");
    assert_eq!(
        error("lmc 1\nlmc 8\n"),
        "opensm.conf:2: lmc: found `8`, expected a number of 0 to 7"
    );
    assert_eq!(
        error("connect_roots yes"),
        "opensm.conf:1: connect_roots: found `yes`, expected TRUE or FALSE"
    );
    assert_eq!(error("\nlmc"), "opensm.conf:2: found `lmc` alone, expected a value behind it");
    assert!(error("routing_engine nue").starts_with("opensm.conf:1: routing_engine: "));
    assert!(error("qos_sl2vl 0,1").contains("2 lanes"), "{}", error("qos_sl2vl 0,1"));
}

#[test]
fn what_means_nothing_here_is_named_with_its_line_when_it_is_not_as_usual() {
    let text = "perfmgr FALSE\nforce_link_speed 1\nconsole off\nfrobnicate 1\n\
                cc_sw_cong_setting_victim_mask 0x0\nno_partition_enforcement TRUE\n";
    let (settings, notes) = read_text(text).expect("nothing is wrong");
    assert_eq!(
        notes,
        [
            "opensm.conf:2: force_link_speed: ignored: OpenSM knows it, but there is no such thing \
             here",
            "opensm.conf:4: found `frobnicate`, expected a key that OpenSM or ibfabric knows; \
             ignored"
        ]
    );
    assert_eq!(settings.config.part_enforce, ib_sm::PartEnforce::Off);
}

#[test]
fn what_an_option_is_refused_for_is_refused_of_its_key() {
    for (text, expected) in [
        ("\nperfmgr TRUE", "opensm.conf:2: perfmgr: found `TRUE`, which is not supported: "),
        ("console local", "opensm.conf:1: console: found `local`, "),
        ("congestion_control TRUE", "; expected `FALSE`"),
        ("qos_policy_file /etc/mine", "opensm.conf:1: qos_policy_file: "),
        ("prefix_routes_file mine", "opensm.conf:1: prefix_routes_file: "),
        ("event_plugin_name x", "opensm.conf:1: event_plugin_name: "),
        ("routing_engine dfsssp", "`dfsssp` is an engine of OpenSM that is not supported here"),
    ] {
        let error = read_text(text).expect_err("it cannot be had");
        assert!(error.contains(expected), "{error}");
    }
    for (key, _) in REFUSED {
        assert!(IGNORED.iter().any(|(known, _)| known == key), "{key}");
    }
}

#[test]
fn what_is_written_is_read_again() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = place.path().join("conf");
    let mut settings = Settings::default();
    for (key, value) in [("lmc", "3"), ("qos_sl2vl", "0,1,2,3,4,5,6,7,0,1,2,3,4,5,6,7")] {
        settings.set(key, value).expect("it is right");
    }
    write(&path, &settings).expect("written");
    let mut again = Settings::default();
    let text = std::fs::read(&path).expect("it is there");
    assert!(read(&path, &text, &mut again).expect("it is right").is_empty());
    for key in KEYS {
        let (one, other) = ((key.field)(&mut settings).show(), (key.field)(&mut again).show());
        assert_eq!(one, other, "{}", key.name);
    }
    assert_eq!(again.lmc, 3);
}

#[test]
fn no_key_is_in_both_tables() {
    for key in KEYS {
        assert!(IGNORED.iter().all(|(name, _)| *name != key.name), "{}", key.name);
    }
}
