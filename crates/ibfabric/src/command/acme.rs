//! `ibfabric acme`: queries ACM services and writes their files, in place of `ib_acme`.
//!
//! | module | holds |
//! |---|---|
//! | `names` | parsers of address lists and of typed addresses |
//! | `ask` | requests to ACM services, and the output of the results |
//! | `files` | `ibacm_addr.cfg` and `ibacm_opts.cfg` |

use std::io::Write as _;

use serde_json::{Value, json};

use crate::cli::acme::AcmeArgs;
use crate::failure::{Failure, Verdict};
use crate::output::{Format, Output};

mod ask;
mod files;
mod names;

/// The status of the last operation: the value that `ib_acme` returns, or 0 for success.
type Status = u32;

/// The status that `ib_acme` returns for any error.
const FAILED: Status = u32::MAX;

/// Runs `ibfabric acme`.
pub(crate) fn run(args: &AcmeArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let mut status = 0;
    let mut results: Vec<Value> = Vec::new();
    if args.addresses.is_some() || args.options.is_some() {
        files::write(args, out)?;
    }
    let has_requests =
        args.endpoints.is_some() || args.destination.is_some() || args.perf.is_some();
    if has_requests {
        let services = match &args.service {
            None => vec![None],
            Some(text) => {
                let names = names::expand(text).map_err(Failure::Unusable)?;
                names.into_iter().map(Some).collect()
            }
        };
        for service in services {
            let (its_status, result) = ask::service(args, service.as_deref(), out)?;
            status = its_status;
            results.push(result);
        }
    }
    match Format::of(args.json) {
        Format::Json if has_requests => {
            out.json(&json!({ "services": results, "status": status }))?;
        }
        Format::Json => {}
        Format::Text => writeln!(out, "return status 0x{status:x}")?,
    }
    Ok(match status {
        0 => Verdict::Good,
        status => Verdict::Other(status as u8),
    })
}
