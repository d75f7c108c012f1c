//! Asking a daemon that runs: one line over its console, and its answer shown.

use std::io::Write;

use ib_control::console::ConsoleClient;
use serde_json::{Value, json};

use crate::failure::{Failure, Verdict, say};
use crate::output::{Format, Output};

/// Asks the daemon with a console of a name, and shows the answer; `what` is what the daemon is.
pub(super) fn ask(
    name: &str,
    what: &str,
    line: &str,
    format: Format,
    output: &mut Output,
) -> Result<Verdict, Failure> {
    let mut console = ConsoleClient::connect(name).map_err(|error| {
        Failure::Unusable(format!("no {what} listens on @{name}:console: {error}"))
    })?;
    let answer = console
        .ask(line)
        .map_err(|error| Failure::Unusable(format!("the {what} did not answer: {error}")))?;
    let reply: Value = serde_json::from_str(&answer).map_err(|error| {
        Failure::Unusable(format!("the answer of the {what} cannot be read: {error}"))
    })?;
    let good = reply["ok"] == Value::Bool(true);
    let text = reply["text"].as_str().unwrap_or_default();
    show(good, text, &reply["data"], format, output)
}

/// Shows an answer: what was asked for, or why there is none.
pub(super) fn show(
    good: bool,
    text: &str,
    data: &Value,
    format: Format,
    output: &mut Output,
) -> Result<Verdict, Failure> {
    if !good {
        say!("{text}");
    } else if format == Format::Json {
        // An answer without data is an object, too.
        match data {
            Value::Null => output.json(&json!({ "text": text.trim_end() }))?,
            data => output.json(data)?,
        }
    } else {
        write!(output, "{text}")?;
        if !text.ends_with('\n') {
            writeln!(output)?;
        }
    }
    Ok(Verdict::good_if(good))
}
