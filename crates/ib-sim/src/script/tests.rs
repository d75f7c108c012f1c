use super::*;
use crate::lab;
use crate::log::LogLevel;
use crate::sim::Options;

#[test]
fn a_script_is_read_line_by_line() {
    let text = "\u{feff}# comment\n\n  at 10ms unlink \"a\"[3]\r\nAT 1.5s  power b off\n";
    let steps = read_script("test", text).unwrap();
    let expected = [
        Step { at: Duration::from_millis(10), command: "unlink a[3]".parse().unwrap() },
        Step { at: Duration::from_millis(1500), command: "power b off".parse().unwrap() },
    ];
    assert_eq!(steps, expected);
}

#[test]
fn an_error_names_line_and_column() {
    for (text, message) in [
        ("\n in 10ms x", "f:2:2: found \"in\", expected at TIME COMMAND"),
        ("at", "f:1:3: found the end of the line, expected a time such as 250us, 10ms or 1.5s"),
        ("at 10", "f:1:4: found \"10\", expected a time such as 250us, 10ms or 1.5s"),
        ("at 1s power a maybe", "f:1:15: found \"maybe\", expected on or off"),
        ("at 1µs   power \"ü ü\" maybe", "f:1:22: found \"maybe\", expected on or off"),
        ("at 1s", "f:1:6: found the end of the line, expected Link"),
    ] {
        let error = read_script("f", text).unwrap_err().to_string();
        assert!(error.starts_with(message), "{text:?}: {error}");
    }
}

#[test]
fn steps_are_run_at_their_moments() {
    let fabric = lab::row(1);
    let mut sim = Sim::new(&fabric, Options { log: LogLevel::Events, ..Options::default() });
    sim.run_until(Instant::from_nanos(1_000));
    let text = "at 1us unlink h1[1]\nat 5us relink h1[1]\nat 7us link h1[1] h2[1]";
    sim.load_script(&read_script("f", text).unwrap()).unwrap();
    let up = |sim: &Sim| sim.peer(lab::port(sim, "h1.1")).is_some();
    sim.run_until(Instant::from_nanos(1_000));
    assert!(!up(&sim));
    sim.run_until(Instant::from_nanos(4_999));
    assert!(!up(&sim));
    sim.run_until(Instant::from_nanos(5_000));
    assert!(up(&sim));
    assert_eq!(sim.stats().failed_steps, 0);
    sim.run_until(Instant::from_nanos(7_000));
    assert_eq!(sim.stats().failed_steps, 1);
    let log = sim.take_log();
    assert!(log.contains("failed: port \"h1\"[1] has a cable already"), "{log}");
    let wrong = read_script("f", "at 1us unlink h1\nat 2us unlink nobody").unwrap();
    let before = sim.next_at();
    assert!(sim.load_script(&wrong).is_err());
    assert_eq!(sim.next_at(), before, "nothing of it is taken");
}

#[test]
fn random_faults_are_the_same_for_the_same_seed_and_mended_at_the_end() {
    let fabric = lab::generated("torus 3x3 hosts=1");
    let time = Duration::from_millis(10);
    let faults = |seed| random_faults(&fabric, seed, (time, 60));
    assert_eq!(faults(1), faults(1));
    assert_ne!(faults(1), faults(2));
    for seed in 0..20 {
        let steps = faults(seed);
        assert!(steps.len() >= 60 && steps.iter().all(|step| step.at <= time));
        let mut sim = Sim::new(&fabric, Options::default());
        sim.load_script(&steps).unwrap();
        sim.run_until(Instant::ZERO + time + Duration::from_micros(10));
        sim.settle(sim.now());
        assert_eq!(sim.stats().failed_steps, 0, "{seed}");
        for port in lab::all_ports(&sim) {
            let (id, state) = (sim.port(port).node, sim.port(port));
            assert!(sim.node(id).powered);
            assert!(state.faults.is_none(), "{seed}");
            assert_eq!(state.cable, fabric.port(port).peer, "{seed}");
            assert_eq!(state.is_up(), state.cable.is_some(), "{seed}");
        }
    }
    let nothing = lab::fabric(&[("h1", 1)], &[]);
    assert_eq!(random_faults(&nothing, 1, (time, 10)), []);
}
