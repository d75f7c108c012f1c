//! `ibfabric hca`: shares an IP address among programs. `ibfabric run` starts this command.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ib_attach::{AttachError, hca_daemon_name, hold};
use ib_daemons::hca::{self, HcaConfig};

use crate::cli::hca::HcaArgs;
use crate::failure::{Failure, Verdict};
use crate::output::Output;

/// Time in seconds without users after which a daemon that was started by [`hold_or_start`] exits.
pub(crate) const EXIT_IDLE: &str = "3";

/// Maximum number of attempts to connect to a daemon. A daemon can exit just before the connection.
const ATTEMPTS: usize = 4;

pub(crate) fn run(args: &HcaArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let config = HcaConfig {
        address: args.roce,
        allow_zero_checksum: args.allow_zero_checksum,
        exit_idle: args.exit_idle.map(|seconds| Duration::from_secs(seconds.into())),
        is_background: args.background,
        log_file: args.log_file.clone(),
    };
    match hca::run(&config, out)? {
        0 => Ok(Verdict::Good),
        status => Ok(Verdict::Other(status)),
    }
}

/// Connects to the HCA daemon of an address. If no daemon serves it, starts one, without the environment variables
/// `unset`. The daemon exits shortly after the last process has closed its connections, including the returned one.
pub(crate) fn hold_or_start(
    address: IpAddr,
    log_file: Option<&Path>,
    unset: &[&str],
) -> Result<OwnedFd, Failure> {
    let name = hca_daemon_name(address);
    for _ in 0..ATTEMPTS {
        match hold(&name) {
            Ok(socket) => return Ok(socket),
            Err(AttachError::NoServer { source, .. })
                if source.kind() == std::io::ErrorKind::ConnectionRefused => {}
            Err(AttachError::Gone { .. }) => {}
            Err(error) => return Err(Failure::unusable(error)),
        }
        let own = std::env::current_exe().map_err(Failure::unusable)?;
        let mut command = Command::new(own);
        for variable in unset {
            command.env_remove(variable);
        }
        command.args(["hca", "--roce", &address.to_string(), "--background"]);
        command
            .args(["--exit-idle", EXIT_IDLE])
            .args(log_file.map(|_| "--log-file"))
            .args(log_file);
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
        if !status.map_err(Failure::unusable)?.success() {
            return Err(Failure::Said);
        }
    }
    let name = hca_daemon_name(address);
    Err(Failure::Unusable(format!(
        "the HCA daemon of {address} has exited {ATTEMPTS} times before a program could use it (@{name}:data)"
    )))
}
