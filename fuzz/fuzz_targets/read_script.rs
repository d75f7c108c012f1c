//! Parses arbitrary text as a script of faults, and its first line as a command and as a port name.
//!
//! Checks that accepted scripts survive writing and parsing again, and that they run on a fabric. The column of an
//! error must be within its line.
#![no_main]

use std::time::Duration;

use ib_sim::{Command, Options, Sim, Target, read_script};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let first = text.lines().next().unwrap_or_default();
    if let Ok(target) = first.parse::<Target>() {
        assert_eq!(target.to_string().parse(), Ok(target));
    }
    match first.parse::<Command>() {
        Ok(command) => {
            assert_eq!(command.to_string().parse(), Ok(command.clone()));
            let mut sim = Sim::new(ib_fuzz::fabric(), Options::default());
            if let Err(error) = sim.run(&command) {
                assert!(!error.to_string().is_empty());
            }
            // The command may let a link flap indefinitely, so the simulated time is limited.
            sim.run_until(sim.now() + Duration::from_nanos(100));
        }
        Err(error) => {
            assert!((1..=first.chars().count() + 1).contains(&error.column), "{error}");
        }
    }
    match read_script("fuzz", text) {
        Ok(steps) => {
            let written: String = steps.iter().map(|step| format!("{step}\n")).collect();
            assert_eq!(read_script("written", &written), Ok(steps.clone()));
            let _ = Sim::new(ib_fuzz::fabric(), Options::default()).load_script(&steps);
        }
        Err(error) => {
            let text = text.trim_start_matches('\u{feff}');
            let line =
                text.lines().nth(error.line - 1).expect("the script has the line of the error");
            assert!((1..=line.chars().count() + 1).contains(&error.column), "{error}");
        }
    }
});
