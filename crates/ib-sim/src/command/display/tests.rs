use ib_types::Guid;
use ib_wire::mad::AttributeId;
use proptest::prelude::*;

use super::*;
use crate::command::parse_duration;
use crate::script::{Step, read_script};

#[test]
fn displayed_names_can_be_parsed() {
    for (text, written) in [
        ("a[1]", "\"a\"[1]"),
        ("\"a b\"", "\"a b\""),
        ("a\"b[1]", "\"a\"\"b\"[1]"),
        ("\"a\"\" b\"[1]", "\"a\"\" b\"[1]"),
        ("\"\"\"\"", "\"\"\"\""),
        ("\"a[1]\"[2]", "\"a[1]\"[2]"),
    ] {
        let target: Target = text.parse().unwrap();
        assert_eq!(target.to_string(), written);
        assert_eq!(written.parse(), Ok(target));
    }
    for wrong in ["\"\"\"", "\"a\"\"", "\"\"[1]"] {
        assert!(wrong.parse::<Target>().is_err(), "{wrong}");
    }
}

#[test]
fn durations_use_the_greatest_integer_unit() {
    for (nanos, written) in [
        (0, "0s"),
        (1, "1ns"),
        (1_500_000, "1500us"),
        (20_000_000, "20ms"),
        (3_000_000_000, "3s"),
        // This number of nanoseconds needs more than the 53 bits of precision of an `f64`.
        (999_999_999_999_999_999, "999999999999999999ns"),
    ] {
        let time = Duration::from_nanos(nanos);
        assert_eq!(DisplayDuration(time).to_string(), written);
        assert_eq!(parse_duration(written), Some(time));
    }
}

#[test]
fn values_are_displayed_in_canonical_form() {
    for (text, written) in [
        ("fault a[1] LOSS=.30 delay=0.0015s", "Fault \"a\"[1] loss=0.3 delay=1500us"),
        ("Error a 07.50 PortInfo", "Error \"a\" 7.5 21"),
        ("MKey a 85", "MKey \"a\" 0x55 1"),
        ("flap \"a\"[1] 1500us 20ms 3", "Flap \"a\"[1] 1500us 20ms 3"),
        ("ignorelft a 0 7", "IgnoreLft \"a\" 0 7"),
    ] {
        assert_eq!(text.parse::<Command>().unwrap().to_string(), written);
    }
}

/// Generates durations that can be parsed.
fn time() -> impl Strategy<Value = Duration> {
    let units = prop_oneof![Just(1), Just(1_000), Just(1_000_000), Just(1_000_000_000)];
    let small = (0..1_000_000u64, units).prop_map(|(count, unit)| count * unit);
    prop_oneof![small, 0..1_000_000_000_000_000_000u64].prop_map(Duration::from_nanos)
}

/// Generates targets: a node or one of its ports. Names are not empty and contain no line end.
fn target(port: impl Strategy<Value = Option<u8>>) -> impl Strategy<Value = Target> {
    let name = prop_oneof![".{1,12}", "[\"\\[\\] a]{1,6}"];
    (name, port).prop_map(|(node, port)| Target { node, port })
}

fn any_target() -> impl Strategy<Value = Target> {
    target(any::<Option<u8>>())
}

fn port() -> impl Strategy<Value = Target> {
    target(any::<u8>().prop_map(Some))
}

fn probability() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(1.0),
        (0..1000u32).prop_map(|part| f64::from(part) / 1000.0),
        0.0..1.0
    ]
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        probability().prop_map(Fault::Loss),
        probability().prop_map(Fault::Corruption),
        probability().prop_map(Fault::Duplication),
        probability().prop_map(Fault::Reordering),
        time().prop_map(Fault::HeldBack),
        time().prop_map(Fault::Delay),
    ]
}

fn ignored() -> impl Strategy<Value = Ignored> {
    prop_oneof![
        Just(Ignored::All),
        Just(Ignored::None),
        prop::collection::vec(any::<u16>(), 1..5).prop_map(Ignored::Blocks),
    ]
}

/// Generates every command, with all values that can be parsed.
fn command() -> impl Strategy<Value = Command> {
    let attribute = any::<Option<u16>>().prop_map(|id| id.map(AttributeId));
    let rate = probability().prop_map(|part| part * 100.0);
    let cables = prop_oneof![
        (port(), port()).prop_map(|(one, other)| Command::Link(one, other)),
        (port(), port()).prop_map(|(one, other)| Command::Swap(one, other)),
        any_target().prop_map(Command::Unlink),
        any_target().prop_map(Command::Relink),
        any_target().prop_map(Command::Clear),
        (port(), time(), time(), any::<u32>())
            .prop_map(|(port, down, up, times)| Command::Flap(port, down, up, times)),
    ];
    let values = prop_oneof![
        (any_target(), any::<u64>()).prop_map(|(at, guid)| Command::Guid(at, Guid(guid))),
        (any_target(), rate, attribute).prop_map(|(at, rate, id)| Command::Error(at, rate, id)),
        (port(), "[A-Za-z0-9_.]{0,12}", any::<u64>())
            .prop_map(|(port, field, value)| Command::PerformanceSet(port, field, value)),
        (any_target(), 0..=49_151u16, 0..=7u8)
            .prop_map(|(at, lid, lmc)| Command::BaseLid(at, lid, lmc)),
        (any_target(), any::<u64>(), 0..=3u8)
            .prop_map(|(at, key, protect)| Command::MKey(at, key, protect)),
    ];
    let faults = prop_oneof![
        (any_target(), prop::collection::vec(fault(), 0..4))
            .prop_map(|(at, faults)| Command::Fault(at, faults)),
        (any_target(), any::<bool>()).prop_map(|(at, on)| Command::Power(at, on)),
        (any_target(), any::<Option<(u8, u8)>>())
            .prop_map(|(at, ports)| Command::Misroute(at, ports)),
        (any_target(), ignored()).prop_map(|(at, ignored)| Command::IgnoreLft(at, ignored)),
    ];
    prop_oneof![cables, values, faults]
}

proptest! {
    #[test]
    fn displayed_commands_are_parsed_as_the_same_command(command in command(), at in time()) {
        let written = command.to_string();
        prop_assert_eq!(written.parse(), Ok(command.clone()), "{}", written);
        let step = Step { at, command, line: Some(1) };
        prop_assert_eq!(read_script("written", &step.to_string()), Ok(vec![step]));
    }
}
