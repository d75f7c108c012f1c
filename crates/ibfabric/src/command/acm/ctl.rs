//! `ibfabric acm ctl`: requests to a running ACM service.

use ib_daemons::acm::AcmRequest;

use crate::cli::acm::{CtlArgs, Question};
use crate::command::console;
use crate::failure::{Failure, Verdict};
use crate::output::{Format, Output};

pub(super) fn run(args: &CtlArgs, output: &mut Output) -> Result<Verdict, Failure> {
    let name = ib_daemons::acm::console_name(&args.socket);
    let request = match &args.question {
        Question::Status => AcmRequest::Status,
        Question::Cache { address } => AcmRequest::Known { address: address.clone() },
        Question::Flush => AcmRequest::Flush,
        Question::Reload => AcmRequest::Reload,
        Question::Metrics => AcmRequest::Metrics,
    };
    console::request(&name, "ACM service", &request, Format::of(args.json), output)
}
