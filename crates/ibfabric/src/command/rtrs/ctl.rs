//! `rtrs ctl`: queries statistics of a running program, and changes its paths.

use ib_storage::rtrs::control::{ControlClient, ControlError, ControlRequest};

use crate::cli::rtrs::{CtlAction, CtlArgs};
use crate::command::console;
use crate::failure::{Failure, Verdict};
use crate::output::{Format, Output};

pub(super) fn run(args: &CtlArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let ask = match &args.action {
        CtlAction::Get { path } => ControlRequest::Read(path.clone()),
        CtlAction::Set { path, value } => {
            ControlRequest::Write { path: path.clone(), value: value.clone() }
        }
        CtlAction::List { path } => ControlRequest::List(path.clone()),
        CtlAction::Metrics => ControlRequest::Metrics,
    };
    let mut client = ControlClient::connect(&args.socket).map_err(|error| {
        Failure::Unusable(format!(
            "no program with RTRS listens at {error}; --socket names another socket"
        ))
    })?;
    match client.request(&ask) {
        // For an empty reply, no line is printed at all.
        Ok(reply) if reply.text.is_empty() && !args.json => Ok(Verdict::Good),
        Ok(reply) => console::show(true, &reply.text, &reply.data, Format::of(args.json), out),
        Err(ControlError::Refused { text, .. }) => {
            console::show(false, &text, &serde_json::Value::Null, Format::of(args.json), out)
        }
        Err(error) => Err(Failure::unusable(error)),
    }
}
