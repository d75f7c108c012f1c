//! Selection of running programs.

use std::net::IpAddr;
use std::path::Path;

use ib_control::capture::message::{AdapterInfo, ProgramInfo};
use ib_control::capture::{CaptureClient, ClientError, pid_of, programs};

use crate::cli::capture::live::ProgramArgs;
use crate::failure::{Failure, say};

/// A program, and its selected HCAs.
pub(super) struct Program {
    pub(super) client: CaptureClient,
    pub(super) info: ProgramInfo,
}

/// Returns the selected programs; may be empty.
pub(super) fn find(args: &ProgramArgs) -> Result<Vec<Program>, Failure> {
    let names = programs().map_err(Failure::unusable)?;
    let mut found = Vec::new();
    for name in names {
        if args.pid.is_some() && args.pid != pid_of(&name) {
            continue;
        }
        let described = CaptureClient::connect(&name)
            .and_then(|client| client.describe().map(|info| (client, info)));
        let (client, mut info) = match described {
            Ok(found) => found,
            // Programs that have exited in the meantime and programs of other users are skipped.
            Err(ClientError::Gone(_) | ClientError::Io { .. } | ClientError::Foreign(_)) => {
                continue;
            }
            Err(error) => {
                say!("{name}: {error}");
                continue;
            }
        };
        if let Some(device) = args.device {
            let is_it = |it: &AdapterInfo| it.address.parse::<IpAddr>() == Ok(device);
            info.adapters.retain(is_it);
        }
        let is_meant = args.pid.is_none_or(|pid| pid == info.pid)
            && (args.device.is_none() || !info.adapters.is_empty());
        if is_meant {
            found.push(Program { client, info });
        }
    }
    Ok(found)
}

/// Returns the only program that the options select; fails if they select none or several.
pub(super) fn find_one(args: &ProgramArgs) -> Result<Program, Failure> {
    one(find(args)?, args)
}

/// Returns the only selected program. If several are selected, returns the only program that has captures with
/// the given numbers.
pub(super) fn find_with(args: &ProgramArgs, captures: &[u64]) -> Result<Program, Failure> {
    let found = find(args)?;
    let has = |it: &Program| {
        captures.iter().all(|number| it.info.captures.iter().any(|own| own.capture == *number))
    };
    if found.len() > 1 && found.iter().filter(|it| has(it)).count() == 1 {
        return one(found.into_iter().filter(has).collect(), args);
    }
    one(found, args)
}

fn one(mut found: Vec<Program>, args: &ProgramArgs) -> Result<Program, Failure> {
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Failure::Unusable(nobody(args))),
        _ => {
            let each = |it: &Program| format!("{}{}", it.info.pid, place(&it.info));
            let all: Vec<_> = found.iter().map(each).collect();
            let all = all.join(", ");
            Err(Failure::Unusable(format!(
                "several programs can be captured: {all}; select one with --pid or --device"
            )))
        }
    }
}

/// Returns the addresses of a program's HCAs as text, such as ` at 10.0.0.1 and 10.0.0.2`; empty if it has none.
fn place(info: &ProgramInfo) -> String {
    match &info.adapters[..] {
        [] => String::new(),
        [one] => format!(" at {}", one.address),
        [one, other] => format!(" at {} and {}", one.address, other.address),
        [one, others @ ..] => format!(" at {} and {} others", one.address, others.len()),
    }
}

/// Returns the error message for options that select no program.
pub(super) fn nobody(args: &ProgramArgs) -> String {
    let at = args.device.map_or(String::new(), |device| format!(" at {device}"));
    let who = match args.pid {
        Some(pid) if !Path::new(&format!("/proc/{pid}")).exists() => {
            return format!("there is no process {pid}");
        }
        Some(pid) => format!("process {pid} has no queue pairs{at}"),
        None => format!("no program of this user has queue pairs{at}"),
    };
    format!(
        "{who} that could be captured: expected one such as `ibfabric rdma`, `rtrs`, `nbd` or `up`"
    )
}
