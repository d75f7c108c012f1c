use crate::sim::Sim;
use ib_link::Incoming;
use ib_types::Instant;
use ib_wire::mad::sm::{PhysState, PortState};

use super::*;
use crate::lab::{self, lid, node, port, run, two_switches as made};

fn target(node: &str, port: Option<u8>) -> Target {
    Target { node: node.to_owned(), port }
}

#[test]
fn every_command_is_parsed() {
    let a1 = || target("a", Some(1));
    let b2 = || target("b c", Some(2));
    let a = || target("a", None);
    let ms = Duration::from_millis;
    for (text, command) in [
        ("Link \"a\"[1] \"b c\"[2]", Command::Link(a1(), b2())),
        ("  link a[1]  \"b c\"[ 2 ] ", Command::Link(a1(), b2())),
        ("Unlink a", Command::Unlink(a())),
        ("unlink a[1]", Command::Unlink(a1())),
        ("ReLink \"a\"", Command::Relink(a())),
        ("CLEAR a[1]", Command::Clear(a1())),
        ("Guid a 0x1f", Command::Guid(a(), Guid(0x1f))),
        ("Guid a[1] 31", Command::Guid(a1(), Guid(31))),
        ("Error a 50", Command::Error(a(), 50.0, None)),
        ("Error a[1] 2.5 0x15", Command::Error(a1(), 2.5, Some(AttributeId::PORT_INFO))),
        (
            "PerformanceSet a[1] PortCounters.SymbolErrorCounter=7",
            Command::PerformanceSet(a1(), "SymbolErrorCounter".into(), 7),
        ),
        ("Baselid a[1] 7", Command::BaseLid(a1(), 7, 0)),
        ("Baselid a 0x10 3", Command::BaseLid(a(), 16, 3)),
        (
            "Fault a[1] loss=0.5 corrupt=1 duplicate=0 reorder=.25 held=3us delay=1.5ms",
            Command::Fault(
                a1(),
                vec![
                    Fault::Loss(0.5),
                    Fault::Corruption(1.0),
                    Fault::Duplication(0.0),
                    Fault::Reordering(0.25),
                    Fault::HeldBack(Duration::from_micros(3)),
                    Fault::Delay(Duration::from_micros(1500)),
                ],
            ),
        ),
        ("Fault a none", Command::Fault(a(), vec![])),
        ("Flap a[1] 1ms 2ms 3", Command::Flap(a1(), ms(1), ms(2), 3)),
        ("Power a OFF", Command::Power(a(), false)),
        ("power a on", Command::Power(a(), true)),
        ("MKey a 0x55", Command::MKey(a(), 0x55, 1)),
        ("MKey a[1] 5 3", Command::MKey(a1(), 5, 3)),
        ("Misroute a 1 2", Command::Misroute(a(), Some((1, 2)))),
        ("Misroute a none", Command::Misroute(a(), None)),
        ("IgnoreLft a all", Command::IgnoreLft(a(), Ignored::All)),
        ("IgnoreLft a none", Command::IgnoreLft(a(), Ignored::None)),
        ("IgnoreLft a 0 7", Command::IgnoreLft(a(), Ignored::Blocks(vec![0, 7]))),
        ("Swap a[1] \"b c\"[2]", Command::Swap(a1(), b2())),
    ] {
        assert_eq!(text.parse::<Command>().as_ref(), Ok(&command), "{text}");
        assert_eq!(command.to_string().parse(), Ok(command), "round trip of {text}");
    }
}

#[test]
fn attributes_are_parsed_by_name() {
    for (name, id) in [
        ("PortInfo", AttributeId::PORT_INFO),
        ("nodedescription", AttributeId::NODE_DESCRIPTION),
        ("PortCounters", AttributeId::PORT_COUNTERS),
        ("ClassPortInfo", AttributeId::CLASS_PORT_INFO),
    ] {
        let command = Command::Error(target("a", Some(1)), 50.0, Some(id));
        assert_eq!(format!("Error a[1] 50 {name}").parse(), Ok(command), "{name}");
    }
}

#[test]
fn counter_values_are_limited_by_the_attribute() {
    for (counter, most) in [
        ("SymbolErrorCounter", 0xffff_u64),
        ("LinkDownedCounter", 0xff),
        ("LocalLinkIntegrityErrors", 15),
        ("PortXmitData", 0xffff_ffff),
    ] {
        let set = |attribute: &str, value: u64| {
            format!("PerformanceSet a[1] {attribute}.{counter}={value}").parse::<Command>()
        };
        assert!(set("PortCounters", most).is_ok());
        let error = set("PortCounters", most + 1).unwrap_err();
        assert_eq!(error.column, 21);
        assert!(error.expected.starts_with(&format!("at most {most},")), "{error}");
        assert!(set("PortCountersExtended", u64::MAX).is_ok());
    }
}

#[test]
fn parse_errors_have_column_found_and_expected() {
    for (text, column, found, expected) in [
        ("", 1, "the end of the line", "Link, Unlink"),
        ("Lonk a", 1, "\"Lonk\"", "Link, Unlink"),
        ("Link a[1]", 10, "the end of the line", "a port"),
        ("Link a[1] b", 11, "\"b\"", "a port"),
        ("Link a[300] b[1]", 6, "\"a[300]\"", "a port"),
        ("Link \"é ü\"[1] b[x]", 15, "\"b[x]\"", "a port"),
        ("Unlink \"a", 8, "\"\\\"a\"", "a closing quote"),
        ("Unlink a[1", 8, "\"a[1\"", "a closing bracket"),
        ("Unlink \"\"", 8, "\"\\\"\\\"\"", "node"),
        ("Unlink \"a\"x", 8, "\"\\\"a\\\"x\"", "node"),
        ("Unlink a b", 10, "\"b\"", "the end of the line"),
        ("Guid a 0x", 8, "\"0x\"", "a GUID"),
        ("Guid a 0x+1", 8, "\"0x+1\"", "a GUID"),
        ("Error a 101", 9, "\"101\"", "a rate"),
        ("Error a NaN", 9, "\"NaN\"", "a rate"),
        ("Error a 1 0x10000", 11, "\"0x10000\"", "the number of an attribute"),
        ("PerformanceSet a PortCounters.X=1", 16, "\"a\"", "a port"),
        ("PerformanceSet a[1] Other.X=1", 21, "\"Other.X=1\"", "PortCounters or"),
        (
            "PerformanceSet a[1] PortCounters.X",
            21,
            "\"PortCounters.X\"",
            "PortCounters.field=value",
        ),
        ("Baselid a 49152", 11, "\"49152\"", "a LID"),
        ("Baselid a 1 8", 13, "\"8\"", "an LMC"),
        ("Fault a[1] loss=2", 12, "\"loss=2\"", "a probability from 0 to 1"),
        ("Fault a[1] loss=1 corrupt=-1", 19, "\"corrupt=-1\"", "a probability from 0 to 1"),
        ("Fault a[1] duplicate=x", 12, "\"duplicate=x\"", "a probability from 0 to 1"),
        ("Fault a[1] reorder=10us", 12, "\"reorder=10us\"", "a probability from 0 to 1"),
        ("Fault a[1] held=0.5", 12, "\"held=0.5\"", "the maximum delay of reordered packets"),
        ("Fault a[1] loss", 12, "\"loss\"", "loss=P"),
        ("Fault a[1] delay=5", 12, "\"delay=5\"", "the additional latency of every packet, a time"),
        ("Fault a[1]", 11, "the end of the line", "loss=P"),
        ("Flap a[1] 1 2ms 3", 11, "\"1\"", "the time that the link is down"),
        ("Flap a[1] 1ms 2ms 4294967296", 19, "\"4294967296\"", "the number of repetitions"),
        ("Power a maybe", 9, "\"maybe\"", "on or off"),
        ("MKey a 1 4", 10, "\"4\"", "a protection level"),
        ("Misroute a 1 256", 14, "\"256\"", "two ports"),
        ("IgnoreLft a 1 all", 15, "\"all\"", "all, none or numbers"),
    ] {
        let error = text.parse::<Command>().unwrap_err();
        assert_eq!((error.column, error.found.as_str()), (column, found), "{text}");
        assert!(
            error.expected.starts_with(expected) || error.expected.contains(expected),
            "{text}: {error}"
        );
    }
}

#[test]
fn durations_are_parsed_with_units() {
    let nanos = |text| parse_duration(text).map(|time| time.as_nanos());
    assert_eq!(nanos("7ns"), Some(7));
    assert_eq!(nanos("250us"), Some(250_000));
    assert_eq!(nanos("1.5µs"), Some(1_500));
    assert_eq!(nanos("10ms"), Some(10_000_000));
    assert_eq!(nanos("2s"), Some(2_000_000_000));
    for wrong in
        ["", "1", "s", "-1s", "1 s", "1m", "1e3s", "1..2s", "99999999999999999999s", "infs"]
    {
        assert_eq!(nanos(wrong), None, "{wrong}");
    }
}

fn fails(sim: &mut Sim, text: &str) -> CommandError {
    sim.run(&text.parse().unwrap()).unwrap_err()
}

fn state(sim: &Sim, name: &str) -> PortState {
    sim.port_info(port(sim, name)).port_state
}

#[test]
fn commands_on_missing_targets_are_refused() {
    let mut sim = made();
    for (text, message) in [
        ("Unlink nobody", "there is no node \"nobody\""),
        ("Unlink h1[2]", "node \"h1\" has no port 2: expected 1 to 1"),
        ("Unlink h1[0]", "node \"h1\" has no port 0: expected 1 to 1"),
        ("Link s1[0] s2[3]", "node \"s1\" has no port 0: expected 1 to 4"),
        ("Link s1[2] s2[3]", "port \"s1\"[2] has a cable already"),
        ("Link s2[3] s2[3]", "found \"s2\"[3], expected a different port"),
        ("Flap s2[3] 1ms 1ms 1", "port \"s2\"[3] has no cable"),
        ("Swap s2[3] s1[2]", "port \"s2\"[3] has no cable"),
        ("Swap s1[2] s2[1]", "found \"s2\"[1], expected a port of another cable"),
        ("Unlink s1[0]", "node \"s1\" has no port 0: expected 1 to 4"),
        ("ReLink s1[0]", "node \"s1\" has no port 0: expected 1 to 4"),
        ("Fault s1[0] loss=0.5", "node \"s1\" has no port 0: expected 1 to 4"),
        ("Unlink s1[1]", "\"s1\"[1] has no cable to pull: expected a target with a cable"),
        ("ReLink s1[1]", "no cable of \"s1\"[1] was pulled: expected a target with a pulled cable"),
        ("ReLink s1", "no cable of \"s1\" was pulled: expected a target with a pulled cable"),
        ("Misroute s1 0 1", "node \"s1\" has no port 0: expected 1 to 4"),
        ("IgnoreLft s1 0 768", "found block 768, expected blocks of 64 LIDs, 0 to 767"),
        ("PerformanceSet h1[1] PortCounters.PortSelect=1", "found PortSelect, expected the name"),
        ("Misroute h1 1 2", "node \"h1\" is not a switch"),
        ("Misroute s1 2 2", "found port 2 for port 2, expected a different port"),
        ("Misroute s1[3] 1 2", "found port \"s1\"[3], expected a node without a port number"),
        ("Misroute s1[3] none", "found port \"s1\"[3], expected a node without a port number"),
        ("IgnoreLft s1[2] all", "found port \"s1\"[2], expected a node without a port number"),
        ("Power h2[1] off", "found port \"h2\"[1], expected a node without a port number"),
        ("Flap s1[2] 1ms 1ms 0", "found 0 times, expected at least 1"),
        ("Fault s1[2] held=1s", "found held without reorder, expected `reorder`"),
        ("Fault s1 held=1s reorder=0 loss=1", "found held without reorder, expected `reorder`"),
        ("Misroute s1 1 5", "node \"s1\" has no port 5: expected 1 to 4"),
        ("IgnoreLft h1 all", "node \"h1\" is not a switch"),
        (
            "PerformanceSet h1[1] PortCounters.Nothing=1",
            "found Nothing, expected the name of a counter",
        ),
    ] {
        let error = fails(&mut sim, text).to_string();
        assert!(error.starts_with(message), "{text}: {error}");
    }
}

#[test]
fn cables_are_pulled_plugged_and_swapped() {
    let mut sim = made();
    run(&mut sim, "Unlink s1[2]");
    assert_eq!((state(&sim, "s1.2"), state(&sim, "s2.1")), (PortState::DOWN, PortState::DOWN));
    assert_eq!(sim.peer(port(&sim, "s1.2")), None);
    let nothing = CommandError::NothingToPull("\"s1\"[2]".to_owned());
    assert_eq!(fails(&mut sim, "Unlink s1[2]"), nothing);
    run(&mut sim, "ReLink s2[1]");
    assert_eq!((state(&sim, "s1.2"), state(&sim, "s2.1")), (PortState::INIT, PortState::INIT));
    let nothing = CommandError::NothingPulled("\"s2\"[1]".to_owned());
    assert_eq!(fails(&mut sim, "ReLink s2[1]"), nothing);
    run(&mut sim, "Unlink s1");
    assert_eq!(fails(&mut sim, "Unlink s1"), CommandError::NothingToPull("\"s1\"".to_owned()));
    assert_eq!(state(&sim, "h1.1"), PortState::DOWN);
    run(&mut sim, "Link s1[1] s2[2]");
    run(&mut sim, "ReLink s1");
    assert_eq!(state(&sim, "h1.1"), PortState::INIT);
    assert_eq!(state(&sim, "s1.2"), PortState::INIT, "both cables of s1 are plugged in again");
    assert_eq!(sim.peer(port(&sim, "s2.2")), Some(port(&sim, "s1.1")));
    // `ReLink` does not plug the old cable of a port back in if the port has got a new cable.
    run(&mut sim, "Unlink s1[2]");
    run(&mut sim, "Link s1[2] s2[3]");
    fails(&mut sim, "ReLink s2[1]");
    assert_eq!(sim.peer(port(&sim, "s2.1")), None);
    run(&mut sim, "Swap h1[1] h2[1]");
    assert_eq!(sim.peer(port(&sim, "h1.1")), Some(port(&sim, "s2.4")));
    assert_eq!(sim.peer(port(&sim, "s1.3")), Some(port(&sim, "h2.1")));
    assert_eq!(state(&sim, "h1.1"), PortState::INIT);
    for at in lab::all_ports(&sim) {
        if let Some(peer) = sim.peer(at) {
            assert_eq!(sim.peer(peer), Some(at));
        }
    }
}

#[test]
fn clear_resets_lids_counters_and_cables() {
    let mut sim = made();
    let at = port(&sim, "s1.2");
    sim.port_mut(at).counters.symbol_errors = 5;
    run(&mut sim, "Clear s1");
    assert_eq!((sim.port_info(port(&sim, "s1.0")).lid, sim.counters(at).symbol_errors), (0, 0));
    assert!(matches!(fails(&mut sim, "ReLink s1"), CommandError::NothingPulled(_)));
    assert_eq!(sim.peer(at), None, "the cable is not plugged in again");
    run(&mut sim, "Clear h2[1]");
    assert_eq!(lid(&sim, "h2"), 0);
}

#[test]
fn guids_lids_counters_and_keys_are_set() {
    let mut sim = made();
    run(&mut sim, "Guid s1 0x77");
    assert_eq!(sim.link_port(port(&sim, "s1.0")).port_guid, Guid(0x77));
    assert_eq!(sim.link_port(port(&sim, "s1.0")).node_guid, Guid(0x77));
    run(&mut sim, "Guid h1 0x80");
    assert_eq!(sim.link_port(port(&sim, "h1.1")).node_guid, Guid(0x80));
    assert_eq!(
        sim.link_port(port(&sim, "h1.1")).port_guid,
        Guid(0x81),
        "port n has the node GUID plus n, as in ibsim"
    );
    run(&mut sim, "Guid h1[1] 0x78");
    assert_eq!(sim.link_port(port(&sim, "h1.1")).port_guid, Guid(0x78));
    run(&mut sim, "Baselid s1[3] 40 2");
    let info = sim.port_info(port(&sim, "s1.0"));
    assert_eq!((info.lid, info.lmc), (40, 2), "only port 0 of a switch has LIDs");
    for (name, counter) in [
        ("SymbolErrorCounter", "symbol_errors"),
        ("LinkDownedCounter", "link_downed"),
        ("PortXmitData", "xmit_data"),
        ("PortRcvSwitchRelayErrors", "rcv_switch_relay_errors"),
        ("VL15Dropped", "vl15_dropped"),
        ("PortXmitWait", "xmit_wait"),
    ] {
        run(&mut sim, &format!("PerformanceSet s1[2] PortCounters.{name}=99"));
        let all = sim.counters(port(&sim, "s1.2")).named();
        assert!(all.contains(&(counter, 99)), "{name}: {all:?}");
    }
    run(&mut sim, "MKey s1 0x55 2");
    let info = sim.port_info(port(&sim, "s1.0"));
    assert_eq!((info.m_key, info.m_key_protect), (0x55, 2));
}

/// Sends `count` data packets from h1 to h2. Returns the first payload byte of each arrived packet,
/// in the order of arrival.
fn arrivals(sim: &mut Sim, count: u8) -> Vec<u8> {
    let (from, to) = (port(sim, "h1.1"), port(sim, "h2.1"));
    sim.open(to);
    for number in 0..count {
        let dlid = lid(sim, "h2");
        let mut packet = lab::data(sim, from, dlid, 0, 4);
        if let crate::Payload::Transport(bytes) = &mut packet.payload {
            bytes[12] = number;
        }
        sim.send_packet(from, packet);
    }
    lab::run_checked(sim, Instant::NEVER);
    lab::check_settled(sim);
    std::iter::from_fn(|| sim.receive_packet(to))
        .map(|packet| match packet.payload {
            crate::Payload::Transport(bytes) => bytes[12],
            crate::Payload::Mad(_) => unreachable!("data was sent"),
        })
        .collect()
}

#[test]
fn faults_lose_corrupt_duplicate_and_delay_packets() {
    let all: Vec<u8> = (0..100).collect();
    let mut sim = made();
    run(&mut sim, "Fault s1[2] loss=0.3");
    let response = arrivals(&mut sim, 100);
    assert!((50..90).contains(&response.len()) && response.is_sorted(), "{response:?}");
    assert_eq!(lab::lost(&sim, "fault") as usize, 100 - response.len());

    let mut sim = made();
    run(&mut sim, "Fault s1[2] corrupt=1");
    assert!(arrivals(&mut sim, 10).is_empty());
    assert_eq!(sim.counters(port(&sim, "s2.1")).rcv_errors, 10, "the receiver counts the errors");
    assert_eq!(sim.counters(port(&sim, "s1.2")).xmit_packets, 10);
    assert_eq!(lab::lost(&sim, "damaged"), 10);

    let mut sim = made();
    run(&mut sim, "Fault s1[2] duplicate=1");
    let mut response = arrivals(&mut sim, 10);
    response.sort_unstable();
    assert_eq!(response, (0..10).flat_map(|n| [n, n]).collect::<Vec<u8>>());

    let mut sim = made();
    run(&mut sim, "Fault s1[2] reorder=0.5 held=1us");
    let mut response = arrivals(&mut sim, 100);
    assert!(!response.is_sorted());
    response.sort_unstable();
    assert_eq!(response, all);

    let mut sim = made();
    run(&mut sim, "Fault s1[2] delay=5us");
    let from = port(&sim, "h1.1");
    let packet = lab::data(&sim, from, lid(&sim, "h2"), 0, 4);
    sim.send_packet(from, packet);
    sim.settle(sim.now());
    let hop = 4 + 8 + 12 + 4 + 200;
    // The time of the last event consists of three hops, the added delay, and the latency of the
    // last credit update.
    assert_eq!(sim.now(), Instant::from_nanos(3 * hop + 5000 + 200));
    run(&mut sim, "Fault s1[2] none");
    assert_eq!(arrivals(&mut sim, 100).len(), 100);
}

#[test]
fn error_rate_loses_requests_and_entering_packets() {
    use ib_wire::mad::{Method, TransactionId, smp};
    let query = |sim: &mut Sim, path: &[u8], id| {
        let client = lab::client(sim, "h1");
        let mad = smp::directed_request(Method::GET, TransactionId(1), (id, 0), path);
        let response = lab::query(sim, client, ib_link::Remote::directed(), mad);
        sim.detach(client);
        matches!(response, Some(Incoming::Received(_)))
    };
    let mut sim = made();
    run(&mut sim, "Error s1[3] 100 0x11");
    assert!(!query(&mut sim, &[1], AttributeId::NODE_INFO));
    assert!(query(&mut sim, &[1], AttributeId::NODE_DESCRIPTION), "other attributes are answered");
    assert!(query(&mut sim, &[1, 2], AttributeId::NODE_INFO), "forwarded requests are not lost");
    assert_eq!(sim.counters(port(&sim, "s1.3")).rcv_errors, 0);
    run(&mut sim, "Error s1[3] 100");
    assert!(!query(&mut sim, &[1, 2], AttributeId::NODE_INFO));
    assert_eq!(sim.counters(port(&sim, "s1.3")).rcv_errors, 1);
    run(&mut sim, "Error s1 0");
    assert!(query(&mut sim, &[1, 2], AttributeId::NODE_INFO));
    assert!(sim.port(port(&sim, "s1.3")).faults.is_none());
    run(&mut sim, "Error s1 50");
    let answered = (0..200).filter(|_| query(&mut sim, &[1], AttributeId::NODE_INFO)).count();
    assert!((20..90).contains(&answered), "{answered}");
}

#[test]
fn link_flaps_the_requested_number_of_times() {
    let mut sim = made();
    sim.run(&"Flap s1[2] 1ms 2ms 3".parse().unwrap()).unwrap();
    let mut states = Vec::new();
    for half in 0..20u64 {
        sim.run_until(Instant::from_nanos(half * 500_000 + 100));
        states.push(state(&sim, "s2.1") > PortState::DOWN);
    }
    let expected: Vec<bool> = (0..20).map(|half| half >= 18 || half % 6 >= 2).collect();
    assert_eq!(states, expected);
    assert_eq!(sim.counters(port(&sim, "s1.2")).link_downed, 3);
    assert_eq!(sim.port_info(port(&sim, "s1.2")).phys_state, PhysState::LINK_UP);
    // Virtual time advances even if the link goes down and up for 0 ns each.
    sim.run(&"Flap s1[2] 0ns 0ns 4000000000".parse().unwrap()).unwrap();
    sim.run_until(Instant::from_nanos(20_000_000));
}

#[test]
fn overlapping_flaps_hold_a_link_down_until_the_last_ends() {
    let mut sim = made();
    for command in ["Flap s1[2] 2ms 9ms 1", "Flap s1[2] 3ms 9ms 1", "Flap s2[1] 4ms 9ms 1"] {
        sim.run(&command.parse().unwrap()).unwrap();
    }
    for half in 0..20u64 {
        sim.run_until(Instant::from_nanos(half * 500_000 + 100));
        lab::check_phys_states(&sim);
        assert_eq!(state(&sim, "s1.2") > PortState::DOWN, half >= 8, "{half}");
    }
    assert_eq!(sim.counters(port(&sim, "s1.2")).link_downed, 1);
    // Two flaps at one end hold the link down separately.
    let start = sim.now();
    for command in ["Flap s1[2] 2ms 9ms 1", "Flap s1[2] 3ms 9ms 1"] {
        sim.run(&command.parse().unwrap()).unwrap();
    }
    for (micros, up) in [(1_900, false), (2_100, false), (2_900, false), (3_100, true)] {
        sim.run_until(start + Duration::from_micros(micros));
        assert_eq!(state(&sim, "s1.2") > PortState::DOWN, up, "{micros}");
    }
}

#[test]
fn flap_does_not_bring_up_a_port_disabled_by_the_sm() {
    use ib_wire::mad::sm::PortInfo;
    for (before, disabled_at) in [(true, 0), (false, 1_500_000), (false, 2_500_000)] {
        let mut sim = made();
        let client = lab::client(&mut sim, "h1");
        let at = port(&sim, "s1.2");
        let disable = |sim: &mut Sim, phys_state| {
            let to = PortInfo { port_state: PortState::NO_CHANGE, phys_state, ..sim.port_info(at) };
            assert_eq!(lab::set(sim, client, &[1], (&to, 2)).0.0, 0);
        };
        if before {
            disable(&mut sim, PhysState::DISABLED);
        }
        sim.run(&"Flap s1[2] 1ms 1ms 2".parse().unwrap()).unwrap();
        sim.run_until(Instant::from_nanos(disabled_at));
        if !before {
            disable(&mut sim, PhysState::DISABLED);
        }
        sim.run_until(Instant::from_nanos(10_000_000));
        let info = sim.port_info(at);
        assert_eq!((info.port_state, info.phys_state), (PortState::DOWN, PhysState::DISABLED));
        disable(&mut sim, PhysState::POLLING);
        assert_eq!(state(&sim, "s1.2"), PortState::INIT);
        // A subnet manager cannot bring up a link that a flap holds down.
        sim.run(&"Flap s1[2] 1ms 1ms 1".parse().unwrap()).unwrap();
        sim.run_until(sim.now() + Duration::from_micros(500));
        disable(&mut sim, PhysState::POLLING);
        let info = sim.port_info(at);
        assert_eq!((info.port_state, info.phys_state), (PortState::DOWN, PhysState::POLLING));
        sim.run_until(sim.now() + Duration::from_millis(1));
        assert_eq!(state(&sim, "s1.2"), PortState::INIT);
    }
}

#[test]
fn node_without_power_is_silent_and_loses_its_state() {
    let mut sim = made();
    run(&mut sim, "Power s2 off");
    assert_eq!((state(&sim, "s1.2"), state(&sim, "h2.1")), (PortState::DOWN, PortState::DOWN));
    assert_eq!(lid(&sim, "s2"), 0);
    let client = lab::client(&mut sim, "s2");
    let attribute = (AttributeId::NODE_INFO, 0);
    let mad = ib_wire::mad::smp::directed_request(
        ib_wire::mad::Method::GET,
        ib_wire::mad::TransactionId(1),
        attribute,
        &[1],
    );
    let response = lab::query(&mut sim, client, ib_link::Remote::directed(), mad);
    assert!(matches!(response, Some(Incoming::Lost(_))));
    assert_eq!(lab::lost(&sim, "no_power"), 1);
    run(&mut sim, "Power s2 on");
    assert_eq!(state(&sim, "s1.2"), PortState::INIT);
    let switch = sim.node(node(&sim, "s2")).switch.as_ref().unwrap();
    assert!(switch.linear.is_empty() && switch.info.port_state_change);
    lab::check_settled(&sim);
}

#[test]
fn misrouting_switch_forwards_differently_from_its_lft() {
    use ib_wire::mad::sm::LinearForwardingBlock;
    let mut sim = made();
    let client = lab::client(&mut sim, "h1");
    let table = |sim: &mut Sim| {
        let (_, mad) = lab::get(sim, client, &[1], (AttributeId::LINEAR_FORWARDING, 0));
        mad.attribute::<LinearForwardingBlock>().unwrap()
    };
    let before = table(&mut sim);
    assert_eq!(arrivals(&mut sim, 1).len(), 1);
    run(&mut sim, "Misroute s1 2 1");
    assert_eq!(table(&mut sim), before);
    assert_eq!(arrivals(&mut sim, 1).len(), 0);
    assert_eq!(lab::lost(&sim, "link_down"), 1, "port 1 has no cable");
    let (status, _) = lab::get(&mut sim, client, &[1, 2], (AttributeId::NODE_INFO, 0));
    assert_eq!(status.0, 0, "directed-route SMPs are not misrouted");
    run(&mut sim, "Misroute s1 none");
    assert_eq!(arrivals(&mut sim, 1).len(), 1);
}

#[test]
fn switch_acknowledges_ignored_lft_writes() {
    use ib_wire::mad::sm::LinearForwardingBlock;
    let mut sim = made();
    let client = lab::client(&mut sim, "h1");
    let write = |sim: &mut Sim, block: u32| {
        let ports = LinearForwardingBlock { ports: [2; 64] };
        let (status, answer) = lab::set(sim, client, &[1], (&ports, block));
        assert_eq!((status.0, answer), (0, ports), "the write is acknowledged");
        let (_, mad) = lab::get(sim, client, &[1], (AttributeId::LINEAR_FORWARDING, block));
        mad.attribute() == Some(ports)
    };
    run(&mut sim, "IgnoreLft s1 3 5");
    assert_eq!([3, 4, 5].map(|block| write(&mut sim, block)), [false, true, false]);
    run(&mut sim, "IgnoreLft s1 all");
    assert!(!write(&mut sim, 6));
    run(&mut sim, "IgnoreLft s1 none");
    assert!(write(&mut sim, 3));
}
