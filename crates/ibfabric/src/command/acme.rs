//! `ibfabric acme`: queries ACM services and writes their configuration files, in place of `ib_acme`.
//!
//! | module | holds |
//! |---|---|
//! | `names` | parsers of name lists, and of addresses of the type that -f selects |
//! | `ask` | requests to ACM services, and the output of the results |
//! | `result` | the results as JSON |
//! | `files` | `ibacm_addr.cfg` and `ibacm_opts.cfg` |

use std::io::Write as _;

use crate::cli::acme::AcmeArgs;
use crate::failure::{Failure, Verdict};
use crate::output::{Format, Output};

mod ask;
mod files;
mod names;
pub(crate) mod result;

use result::Results;

/// The status of the last operation: the value that `ib_acme` returns, or 0 for success.
type Status = u32;

/// The status that `ib_acme` returns for any error.
const FAILED: Status = u32::MAX;

/// Runs `ibfabric acme`.
pub(crate) fn run(args: &AcmeArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let mut status = 0;
    let mut services = Vec::new();
    if args.addresses.is_some() || args.options.is_some() {
        files::write(args, out)?;
    }
    let has_requests =
        args.endpoints.is_some() || args.destination.is_some() || args.perf.is_some();
    if has_requests {
        let requested = match &args.service {
            None => vec![None],
            Some(text) => {
                let names = names::expand(text).map_err(Failure::Unusable)?;
                names.into_iter().map(Some).collect()
            }
        };
        for service in requested {
            let (its_status, result) = ask::service(args, service.as_deref(), out)?;
            status = its_status;
            services.push(result);
        }
    }
    match Format::of(args.json) {
        Format::Json if has_requests => {
            out.json(&Results { services, status })?;
        }
        Format::Json => {}
        Format::Text => writeln!(out, "return status 0x{status:x}")?,
    }
    Ok(match status {
        0 => Verdict::Good,
        status => Verdict::Other(status as u8),
    })
}
