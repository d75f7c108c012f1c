use super::*;
use crate::lab::{self, node, port, run, two_switches as made};
use crate::sim::Sim;

fn words(commands: &[Command]) -> Vec<String> {
    commands.iter().map(ToString::to_string).collect()
}

/// Returns all active faults of a fabric as text.
fn all(sim: &Sim) -> Vec<String> {
    let nodes = sim.node_ids().flat_map(|node| sim.active_faults_of_node(node));
    let ports = lab::all_ports(sim).flat_map(|port| sim.active_faults_of_port(port));
    words(&nodes.chain(ports).collect::<Vec<_>>())
}

#[test]
fn no_faults_are_active_initially_and_after_removal() {
    let mut sim = made();
    assert_eq!(all(&sim), [""; 0]);
    for (fault, removal) in [
        ("Power \"s2\" off", "Power s2 on"),
        ("Misroute \"s1\" 2 1", "Misroute s1 none"),
        ("IgnoreLft \"s1\" all", "IgnoreLft s1 none"),
        ("IgnoreLft \"s1\" 3 5", "IgnoreLft s1 none"),
        ("Fault \"s1\"[2] loss=0.3", "Fault s1[2] none"),
        (
            "Fault \"s1\"[2] corrupt=1 duplicate=0.25 reorder=0.001 held=3us delay=1500us",
            "Fault s1[2] none",
        ),
        ("Fault \"s1\"[2] delay=7ns", "Fault s1[2] delay=0s"),
        ("Error \"h1\"[1] 7.1", "Error h1[1] 0"),
        ("Error \"h1\"[1] 100 21", "Error h1[1] 0 PortInfo"),
        ("Error \"s1\"[0] 50", "Error s1 0"),
    ] {
        run(&mut sim, fault);
        assert_eq!(all(&sim), [fault]);
        run(&mut sim, removal);
        assert_eq!(all(&sim), [""; 0], "{fault}, {removal}");
        let faulty = lab::all_ports(&sim).find(|&port| sim.port(port).faults.is_some());
        assert_eq!(faulty, None, "{fault}, {removal}");
    }
}

#[test]
fn active_faults_can_be_set_again() {
    let mut sim = made();
    let commands = [
        "Misroute s1 2 1",
        "Misroute s1 3 4",
        "IgnoreLft s2 7",
        "Fault s1[2] loss=0.125",
        "Fault s1[2] delay=1ms",
        "Error s1[2] 12.5 0x11",
        "Unlink h2[1]",
    ];
    for command in commands {
        run(&mut sim, command);
    }
    let active_faults = all(&sim);
    let mut again = made();
    for command in &active_faults {
        // A pulled cable is reported at both of its ports, so the second `Unlink` fails.
        let _ = again.run(&command.parse().unwrap());
    }
    assert_eq!(all(&again), active_faults);
    assert_eq!(active_faults.iter().filter(|command| command.starts_with("Unlink")).count(), 2);
    assert!(
        active_faults.contains(&"Fault \"s1\"[2] loss=0.125 delay=1ms".to_owned()),
        "{active_faults:?}"
    );
}

#[test]
fn faults_without_effect_are_not_active() {
    let mut sim = made();
    run(&mut sim, "Fault s1[2] reorder=0.5 held=1ms");
    run(&mut sim, "Fault s1[2] reorder=0");
    assert_eq!(all(&sim), [""; 0]);
}

#[test]
fn flap_is_active_until_the_last_link_up() {
    let mut sim = made();
    let at = port(&sim, "s1.2");
    sim.run(&"Flap s1[2] 1ms 2ms 2".parse().unwrap()).unwrap();
    let start = sim.now();
    let micros = |micros| start + std::time::Duration::from_micros(micros);
    for (moment, left) in [(500, 2), (1500, 1), (3500, 1), (4500, 0), (9000, 0)] {
        sim.run_until(micros(moment));
        let expected = (left > 0).then(|| format!("Flap \"s1\"[2] 1ms 2ms {left}"));
        let found = words(&sim.active_faults_of_port(at));
        assert_eq!(found, Vec::from_iter(expected), "{moment}");
    }
}

#[test]
fn pulled_cable_is_active_until_plugged_or_cleared() {
    for removal in ["ReLink s2[1]", "Clear s1[2]", "Link s1[2] s2[1]"] {
        let mut sim = made();
        run(&mut sim, "Unlink s1[2]");
        assert_eq!(all(&sim), ["Unlink \"s1\"[2]", "Unlink \"s2\"[1]"]);
        run(&mut sim, removal);
        assert_eq!(all(&sim), [""; 0], "{removal}");
    }
}

#[test]
fn node_faults_are_not_reported_for_other_nodes() {
    let mut sim = made();
    run(&mut sim, "Power s2 off");
    assert_eq!(sim.active_faults_of_node(node(&sim, "s1")), []);
    assert_eq!(sim.active_faults_of_port(port(&sim, "s2.1")), []);
}
