//! `ibfabric acm ctl`: asks a service that runs.

use crate::cli::acm::{CtlArgs, Question};
use crate::command::console;
use crate::failure::{Failure, Verdict};
use crate::output::Output;

pub(super) fn run(args: &CtlArgs, output: &mut Output) -> Result<Verdict, Failure> {
    let name = ib_daemons::acm::console_name(&args.socket);
    let line = match &args.question {
        Question::Status => "status".to_owned(),
        Question::Known { address: None } => "known".to_owned(),
        Question::Known { address: Some(address) } => format!("known {address}"),
        Question::Flush => "flush".to_owned(),
        Question::Reload => "reload".to_owned(),
        Question::Metrics => "metrics".to_owned(),
    };
    console::ask(&name, "service of IB ACM", &line, args.format, output)
}
