//! `ibfabric sm ctl`: asks a manager that runs.

use crate::cli::sm::{CtlArgs, Question};
use crate::command::console;
use crate::failure::{Failure, Verdict};
use crate::output::Output;

pub(super) fn run(args: &CtlArgs, output: &mut Output) -> Result<Verdict, Failure> {
    let line = match &args.question {
        Question::Status => "status".to_owned(),
        Question::Sweep => "sweep".to_owned(),
        Question::Routes { switch: None } => "routes".to_owned(),
        Question::Routes { switch: Some(switch) } => format!("routes {switch}"),
        Question::Metrics => "metrics".to_owned(),
    };
    console::ask(&args.socket, "subnet manager", &line, args.format, output)
}
