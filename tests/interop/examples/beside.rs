//! Boots a guest, runs a preparation command in it, and then a program on the host:
//! `beside LIMIT PREPARATION -- PROGRAM ARGUMENT…`.
//!
//! LIMIT is a time limit in seconds. PREPARATION is a single line for the guest's shell.
//!
//! With `beside LIMIT PREPARATION then LINE -- PROGRAM …`, the guest's shell runs LINE one second after the start of
//! the program. The example prints the output of all commands and the end of the guest's kernel log.

use std::process::Command;
use std::thread;
use std::time::Duration;

use interop::{Guest, GuestOptions};

#[expect(clippy::disallowed_macros, reason = "a closed pipe may end this example")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let split = arguments.iter().position(|word| word == "--").ok_or("expected --")?;
    let (before, program) = (&arguments[..split], &arguments[split + 1..]);
    let limit = Duration::from_secs(before.first().ok_or("expected a limit")?.parse()?);
    let guest = Guest::boot(&GuestOptions::default())?;
    if let Some(preparation) = before.get(1) {
        let done = guest.run(preparation, limit)?;
        println!("the preparation exited with status {}:\n{}", done.status, done.output);
    }
    let program_name = program.first().ok_or("expected a program")?;
    let ours = guest.start_beside(Command::new(program_name).args(&program[1..]))?;
    if let Some(then) = before.get(3) {
        thread::sleep(Duration::from_secs(1));
        let done = guest.run(then, limit)?;
        println!("the command after `then` exited with status {}:\n{}", done.status, done.output);
        match ours.wait(Duration::from_secs(2)) {
            Ok(done) => println!("the program ended with status {}:\n{}", done.status, done.output),
            Err(error) => println!("the program: {error}"),
        }
    } else {
        let done = ours.wait(limit)?;
        println!("the program ended with status {}:\n{}", done.status, done.output);
    }
    let counters = guest.counters()?;
    for name in ["completer_retry_err", "duplicate_request", "out_of_seq_request", "rcvd_rnr_err"] {
        println!("{name} {:?}", counters.get(name));
    }
    println!(
        "kernel:\n{}",
        guest.kernel_log()?.lines().rev().take(25).collect::<Vec<_>>().join("\n")
    );
    Ok(())
}
