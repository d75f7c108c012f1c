//! The `ibfabric` program as a library.
//!
//! | module | holds |
//! |---|---|
//! | [`cli`] | the command line as clap types, and the [`clap::Command`] from which documentation is generated |
//! | `command` | one file per subcommand |
//! | `input` | input files of commands |
//! | `output` | standard output as text or JSON |
//! | [`schemas`] | JSON Schemas of the output of `--json` |
//! | `failure` | errors of commands and exit statuses |
//!
//! The exit statuses are in [`cli::statuses`].
//!
//! # Example
//! ```
//! let command = ibfabric::cli::command();
//! let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
//! assert!(names.contains(&"route"));
//! ```

pub mod cli;
mod command;
mod failure;
mod input;
mod output;
pub mod schemas;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

/// Runs the program on the process's arguments and returns its exit status.
#[must_use]
pub fn main() -> ExitCode {
    let mut words = std::env::args_os().peekable();
    let mut output = output::Output::stdout();
    if words.peek().is_some_and(|name| cli::opensm::is_name(name)) {
        return end(command::sm::run_as_opensm(words.skip(1), &mut output), &mut output);
    }
    let cli = match cli::Cli::read(words) {
        Ok(cli) => cli,
        Err(error) => return print(&error),
    };
    if cli.quiet {
        ib_daemons::message::set_quiet();
        if !cli.command.writes_data() {
            output = output::Output::discarding();
        }
    }
    let started = Instant::now();
    let has_usage = cli.verbose > cli.command.details();
    let result = match cli.command {
        cli::Command::Gen(args) => command::gen_fabric::run(&args, &mut output),
        cli::Command::Route(args) => command::route::run(&args, &mut output),
        cli::Command::Check(args) => command::check::run(&args, &mut output),
        cli::Command::Sim(args) => command::sim::run(&args, &mut output),
        cli::Command::Sm(args) => command::sm::run(*args, &mut output),
        cli::Command::Tracer(args) => command::tracer::run(&args, &mut output),
        cli::Command::Agent(args) => command::agent::run(&args, &mut output),
        cli::Command::Acme(args) => command::acme::run(&args, &mut output),
        cli::Command::Acm(args) => command::acm::run(args, &mut output),
        cli::Command::Hca(args) => command::hca::run(&args, &mut output),
        cli::Command::Run(args) => command::run::run(&args, &mut output),
        cli::Command::Rdma(args) => command::rdma::run(&args, &mut output),
        cli::Command::Rtrs(args) => command::rtrs::run(&args, &mut output),
        cli::Command::Nbd(args) => command::nbd::run(&args, &mut output),
        cli::Command::Up(args) => command::up::run(&args, &mut output),
        cli::Command::Selftest(args) => command::up::self_test(&args, &mut output),
        cli::Command::Capture(args) => command::capture::run(&args, &mut output),
        cli::Command::Completions(args) => command::completions::run(args, &mut output),
    };
    let status = end(result, &mut output);
    if has_usage {
        let (seconds, memory) = (started.elapsed().as_secs_f64(), command::summary::peak_rss_mb());
        failure::note!("run time {seconds:.3} s, peak memory {memory:.0} MB");
    }
    status
}

/// Prints help, the version, or the error of the command line; returns the exit status.
fn print(answer: &clap::Error) -> ExitCode {
    let printed = answer.print().and_then(|()| std::io::stdout().flush());
    match printed {
        Err(error) if !answer.use_stderr() => failure::Failure::from(error).report(),
        // An error of writing to standard error is ignored, since it cannot be printed.
        _ => ExitCode::from(answer.exit_code() as u8),
    }
}

/// Writes pending output, and returns the exit status for a command's result.
fn end(
    result: Result<failure::Verdict, failure::Failure>,
    output: &mut output::Output,
) -> ExitCode {
    // The verdict remains the same if the reader closed standard output early.
    let result = result.and_then(|verdict| match output.flush() {
        Ok(()) | Err(failure::Failure::OutputClosed) => Ok(verdict),
        Err(failure) => Err(failure),
    });
    match result {
        // If the capture file of `--pcap` could not be written completely, the exit status is 1.
        Ok(failure::Verdict::Good) if ib_daemons::own_capture::has_failed() => {
            failure::Verdict::Bad.into()
        }
        Ok(verdict) => verdict.into(),
        Err(failure) => failure.report(),
    }
}
