//! `ibfabric sim ctl`: the console of a simulator that runs.

use std::io::{BufRead, Write};

use ib_net::console::ConsoleClient;
use serde_json::Value;

use crate::cli::sim::CtlArgs;
use crate::failure::{Failure, Verdict, say};
use crate::output::{Format, Output};

pub(super) fn run(args: &CtlArgs, output: &mut Output) -> Result<Verdict, Failure> {
    let socket = &args.socket;
    let mut console = ConsoleClient::connect(socket).map_err(|error| {
        Failure::Unusable(format!("no simulator listens on @{socket}:console: {error}"))
    })?;
    if !args.command.is_empty() {
        return ask(&mut console, &args.command.join(" "), args, output);
    }
    let mut verdict = Verdict::Good;
    for line in std::io::stdin().lock().lines() {
        let line = line
            .map_err(|error| Failure::Unusable(format!("cannot read standard input: {error}")))?;
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        if ask(&mut console, &line, args, output)? == Verdict::Bad {
            verdict = Verdict::Bad;
        }
        output.flush()?;
    }
    Ok(verdict)
}

fn ask(
    console: &mut ConsoleClient,
    line: &str,
    args: &CtlArgs,
    output: &mut Output,
) -> Result<Verdict, Failure> {
    let answer = console
        .ask(line)
        .map_err(|error| Failure::Unusable(format!("the simulator did not answer: {error}")))?;
    let reply: Value = serde_json::from_str(&answer).map_err(|error| {
        Failure::Unusable(format!("the simulator's answer cannot be read: {error}"))
    })?;
    let good = reply["ok"] == Value::Bool(true);
    let text = reply["text"].as_str().unwrap_or_default();
    if args.format == Format::Json {
        output.json(&reply)?;
    } else if good {
        write!(output, "{text}")?;
        if !text.is_empty() && !text.ends_with('\n') {
            writeln!(output)?;
        }
    } else {
        say!("{text}");
    }
    Ok(Verdict::good_if(good))
}
