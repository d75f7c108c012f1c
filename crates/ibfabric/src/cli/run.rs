//! The command line of `run`.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::{ArgGroup, Args};

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("port").required(true).args(["attach", "roce"]))]
pub struct RunArgs {
    /// Attaches to a port of the running `ibfabric sim` with this name: the port is the device of the program [default
    /// name: as for clients of ibsim, `IBSIM_SOCKNAME` or sim].
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    pub attach: Option<String>,
    /// Node of the simulated fabric, with `:PORT` for a port other than the first; also an address, a GID or a LID.
    /// [default: the first host]
    #[arg(long, value_name = "NODE[:PORT]", requires = "attach", conflicts_with = "roce")]
    pub node: Option<String>,
    /// IP address of this machine: the device of the program uses RoCEv2 over UDP.
    #[arg(long, value_name = "ADDR")]
    pub roce: Option<IpAddr>,
    /// Name of the device, as `ibv_devices` shows it.
    #[arg(long, value_name = "NAME", default_value = "rxe0", value_parser = device_name)]
    pub device: String,
    /// Library that the program is started with. [default: beside `ibfabric`, or in `../lib/ibfabric`]
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
