//! `ibfabric sm ctl`: asks a manager that runs.

use std::io::Write;

use ib_net::console::ConsoleClient;
use serde_json::Value;

use crate::cli::sm::{CtlArgs, Question};
use crate::failure::{Failure, Verdict, say};
use crate::output::{Format, Output};

pub(super) fn run(args: &CtlArgs, output: &mut Output) -> Result<Verdict, Failure> {
    let socket = &args.socket;
    let mut console = ConsoleClient::connect(socket).map_err(|error| {
        Failure::Unusable(format!("no subnet manager listens on @{socket}:console: {error}"))
    })?;
    let line = match &args.question {
        Question::Status => "status".to_owned(),
        Question::Sweep => "sweep".to_owned(),
        Question::Routes { switch: None } => "routes".to_owned(),
        Question::Routes { switch: Some(switch) } => format!("routes {switch}"),
        Question::Metrics => "metrics".to_owned(),
    };
    let answer = console
        .ask(&line)
        .map_err(|error| Failure::Unusable(format!("the manager did not answer: {error}")))?;
    let reply: Value = serde_json::from_str(&answer).map_err(|error| {
        Failure::Unusable(format!("the manager's answer cannot be read: {error}"))
    })?;
    let good = reply["ok"] == Value::Bool(true);
    let text = reply["text"].as_str().unwrap_or_default();
    if !good {
        say!("{text}");
    } else if args.format == Format::Json {
        output.json(&reply["data"])?;
    } else {
        write!(output, "{text}")?;
        if !text.ends_with('\n') {
            writeln!(output)?;
        }
    }
    Ok(Verdict::good_if(good))
}
