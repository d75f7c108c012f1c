//! `ibfabric sm ctl`: requests to a running SM.

use ib_daemons::sm::SmRequest;

use crate::cli::sm::{CtlArgs, Question};
use crate::command::console;
use crate::failure::{Failure, Verdict};
use crate::output::{Format, Output};

pub(super) fn run(args: &CtlArgs, output: &mut Output) -> Result<Verdict, Failure> {
    let request = match &args.question {
        Question::Status => SmRequest::Status,
        Question::Sweep => SmRequest::Sweep,
        Question::Routes { switch } => SmRequest::Routes { switch: switch.clone() },
        Question::Metrics => SmRequest::Metrics,
    };
    console::request(&args.name, "subnet manager", &request, Format::of(args.json), output)
}
