use super::*;
use crate::lab;
use crate::options::LogLevel;
use crate::options::Options;
use crate::random_faults::random_faults;
use crate::sim::Sim;

#[test]
fn script_is_parsed_line_by_line() {
    let text = "\u{feff}# comment\n\n  at 10ms unlink \"a\"[3]\r\nAT 1.5s  power b off\n";
    let steps = read_script("test", text).unwrap();
    let expected = [
        Step {
            at: Duration::from_millis(10),
            command: "unlink a[3]".parse().unwrap(),
            line: Some(3),
        },
        Step {
            at: Duration::from_millis(1500),
            command: "power b off".parse().unwrap(),
            line: Some(4),
        },
    ];
    assert_eq!(steps, expected);
}

#[test]
fn errors_have_line_and_column() {
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
fn steps_are_run_at_their_times() {
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
    let before = sim.next_at();
    for (wrong, message) in [
        ("unlink nobody", "there is no node \"nobody\": expected the name or description"),
        ("unlink h1[2]", "node \"h1\" has no port 2: expected 1 to 1"),
        ("misroute h1 1 2", "node \"h1\" is not a switch: expected a switch"),
        ("performanceset h1[1] PortCounters.X=1", "found X, expected the name of a counter"),
    ] {
        let text = format!("at 1us unlink h1\n\nat 2us {wrong}");
        let error = sim.load_script(&read_script("f", &text).unwrap()).unwrap_err();
        assert_eq!(error.line, Some(3));
        assert!(error.to_string().starts_with(message), "{error}");
        assert_eq!(sim.next_at(), before, "no step is scheduled");
    }
}

#[test]
fn failed_steps_are_reported_to_the_callback() {
    let mut sim = Sim::new(&lab::row(1), Options::default());
    let (sender, told) = std::sync::mpsc::channel();
    sim.on_failed_step(move |failed| sender.send(failed.clone()).unwrap());
    let text = "at 1us unlink h1[1]\nat 5us unlink s1[3]\nat 7us relink h1[1]";
    sim.load_script(&read_script("f", text).unwrap()).unwrap();
    sim.run_until(Instant::from_nanos(10_000));
    let failed: Vec<FailedStep> = told.try_iter().collect();
    assert_eq!(failed.len(), 1);
    assert_eq!((failed[0].at, failed[0].step.line), (Instant::from_nanos(5_000), Some(2)));
    assert_eq!(failed[0].step.command.to_string(), "Unlink \"s1\"[3]");
    assert_eq!(failed[0].error, CommandError::NothingToPull("\"s1\"[3]".to_owned()));
}

#[test]
fn random_faults_depend_on_the_seed_and_end_in_time() {
    let fabric = lab::generated("torus 3x3 hosts=1");
    let time = Duration::from_millis(10);
    let faults = |seed| random_faults(&fabric, seed, time, 60);
    assert_eq!(faults(1), faults(1));
    assert_ne!(faults(1), faults(2));
    for seed in 0..20 {
        let steps = faults(seed);
        assert!(steps.len() >= 60 && steps.iter().all(|step| step.at <= time));
        let mut sim = Sim::new(&fabric, Options::default());
        sim.load_script(&steps).unwrap();
        let end = Instant::ZERO + time + Duration::from_micros(10);
        while sim.run_step(end) {
            lab::check_phys_states(&sim);
        }
        sim.run_until(end);
        sim.settle(sim.now());
        assert_eq!(sim.stats().failed_steps, 0, "{seed}");
        for port in lab::all_ports(&sim) {
            let (id, state) = (sim.port(port).node, sim.port(port));
            assert!(sim.node(id).powered);
            assert_eq!((state.info.m_key, state.info.m_key_protect), (0, 0), "{seed}");
            if let Some(switch) = &sim.node(id).switch {
                let lies = &switch.deviations;
                assert!(lies.misrouted.is_empty() && lies.ignored_blocks.is_empty(), "{seed}");
            }
            assert!(state.faults.is_none(), "{seed}");
            assert_eq!(state.cable, fabric.port(port).peer, "{seed}");
            assert_eq!(state.is_up(), state.cable.is_some(), "{seed}");
            assert_eq!(state.held_down, 0, "{seed}");
        }
        lab::check_phys_states(&sim);
    }
    let nothing = lab::fabric(&[("h1", 1)], &[]);
    assert_eq!(random_faults(&nothing, 1, time, 10), []);
}

#[test]
fn random_faults_spare_the_first_host_and_its_cables() {
    let time = Duration::from_millis(10);
    let torus = lab::generated("torus 2x2 hosts=1");
    // In the second fabric, the first host has two cables.
    let nodes = [("s1", 4), ("h1", 2), ("h2", 1), ("s2", 4)];
    let links = ["h1.1 s1.1", "s1.2 h1.2", "s1.3 s2.1", "s1.4 s2.2", "h2.1 s2.3"];
    let fabrics = [torus, lab::fabric(&nodes, &links)];
    for (fabric, seed) in fabrics.iter().flat_map(|fabric| (0..100).map(move |seed| (fabric, seed)))
    {
        let (host, node) = fabric.nodes().find(|(_, node)| !node.kind.is_switch()).unwrap();
        let cables = fabric.ports_of(host).filter_map(|(id, port)| Some([id, port.peer?]));
        let spared: Vec<_> = cables.flatten().collect();
        assert!(!spared.is_empty());
        for step in random_faults(fabric, seed, time, 30) {
            let targets = match &step.command {
                Command::Unlink(one)
                | Command::Relink(one)
                | Command::Fault(one, _)
                | Command::Flap(one, ..)
                | Command::Power(one, _) => vec![one],
                Command::Swap(one, other) => vec![one, other],
                Command::MKey(..) | Command::Misroute(..) | Command::IgnoreLft(..) => vec![],
                other => panic!("{other}"),
            };
            for target in targets {
                assert_ne!(target.node, node.name, "{seed}: {step}");
                let id = fabric.find_name(&target.node).unwrap();
                let mut ports = fabric.ports_of(id);
                let port = ports.find(|(_, port)| Some(port.number) == target.port);
                assert!(port.is_none_or(|(id, _)| !spared.contains(&id)), "{seed}: {step}");
            }
        }
    }
}
