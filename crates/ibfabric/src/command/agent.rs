//! `ibfabric agent`: responds to requests of ibtracer and ibping at a port.

use ib_daemons::agent::{self, AgentConfig};

use crate::cli::tracer::AgentArgs;
use crate::failure::{Failure, Verdict};
use crate::output::Output;

pub(crate) fn run(args: &AgentArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let config = AgentConfig { station: args.station.config(), host_name: args.host_name.clone() };
    Ok(agent::run(&config, out)?.into())
}
