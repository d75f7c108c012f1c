//! Requests to a running daemon over its control socket.

use std::io::Write;

use ib_control::lines::LineClient;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::failure::{Failure, Verdict, say};
use crate::output::{Format, Output};

/// A reply without data, as JSON.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TextReply<'a> {
    text: &'a str,
}

/// Sends a request to the daemon whose socket is named `name`, and prints the reply. Error messages use the text
/// `daemon` for the daemon.
pub(super) fn request(
    name: &str,
    daemon: &str,
    request: &impl Serialize,
    format: Format,
    output: &mut Output,
) -> Result<Verdict, Failure> {
    let mut client = LineClient::connect(name).map_err(|error| {
        Failure::Unusable(format!("no {daemon} listens on @{name}:console: {error}"))
    })?;
    let reply = client
        .request(request)
        .map_err(|error| Failure::Unusable(format!("the {daemon} did not respond: {error}")))?;
    show(reply.ok, &reply.text, &reply.data, format, output)
}

/// Prints the reply to a request. If the request failed, `text` is the reason and goes to standard error.
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
        // If a reply has no data, its text is printed in a JSON object.
        match data {
            Value::Null => output.json(&TextReply { text: text.trim_end() })?,
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
