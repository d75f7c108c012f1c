//! The command line of `run`.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::{ArgGroup, Args};

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("port").required(true).args(["attach", "roce"]))]
pub struct RunArgs {
    /// Attaches the program's HCA to a port of the running `ibfabric sim` with this name [default name: the value of
    /// `IBSIM_SOCKNAME`, or sim].
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    pub attach: Option<String>,
    /// Port of the simulated fabric: a node name, an IP address, a GID or a LID. `NODE:PORT` selects a port other
    /// than the first [default: first host].
    #[arg(long, value_name = "NODE[:PORT]", requires = "attach", conflicts_with = "roce")]
    pub node: Option<String>,
    /// Gives the program an HCA that uses RoCEv2 over UDP at this IP address of this machine. Several programs can
    /// share the address through an HCA daemon (`ibfabric hca`), which is started if necessary.
    #[arg(long, value_name = "ADDR")]
    pub roce: Option<IpAddr>,
    /// Gives the program the address for itself, without an HCA daemon.
    #[arg(long, requires = "roce")]
    pub exclusive: bool,
    /// Appends the messages of an HCA daemon that this command starts to this file [default: messages are discarded].
    #[arg(long, value_name = "FILE", requires = "roce", conflicts_with_all = ["exclusive", "env"])]
    pub hca_log: Option<PathBuf>,
    /// Accepts IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One in
    /// 2^15 corruptions of such packets is not detected. Implies --exclusive.
    #[arg(long, requires = "roce", conflicts_with = "attach")]
    pub allow_zero_checksum: bool,
    /// Name of the program's HCA, as `ibv_devices` shows it.
    #[arg(long, value_name = "NAME", default_value = "rxe0", value_parser = device_name)]
    pub device: String,
    /// Library to preload into the program [default: in the directory of `ibfabric`, or in `../lib/ibfabric` relative
    /// to it].
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
    /// Prints the environment as shell commands instead of running a program.
    #[arg(long, conflicts_with = "program")]
    pub env: bool,
    /// Program and its arguments.
    #[arg(
        value_name = "PROGRAM",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required_unless_present = "env"
    )]
    pub program: Vec<OsString>,
}

/// Parses the name of a device: 1 to 63 letters, digits, `_`, `-` and `.`, without a `.` at the beginning.
fn device_name(text: &str) -> Result<String, &'static str> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let has_length = (1..=63).contains(&text.len());
    if has_length && text.bytes().all(is_name) && !text.starts_with('.') {
        Ok(text.to_owned())
    } else {
        Err("expected 1 to 63 letters, digits, '_', '-' and '.', the first not '.'")
    }
}
