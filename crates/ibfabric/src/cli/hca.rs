//! The command line of `hca`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

/// Arguments of `hca`.
#[derive(Debug, Args)]
pub struct HcaArgs {
    /// The IP address of this machine to share.
    #[arg(long, value_name = "ADDR")]
    pub roce: IpAddr,
    /// Accepts IPv4 packets with a UDP checksum of zero, as Linux soft RoCE and hardware send them. One in
    /// 2^15 corruptions of such packets is not detected.
    #[arg(long)]
    pub allow_zero_checksum: bool,
    /// Exits when no program has used the address for this number of seconds [default: never].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub exit_idle: Option<u32>,
    /// Runs in the background: exits with status 0 as soon as the daemon serves the address. If another HCA daemon
    /// serves the address already, it keeps running, and no second daemon is started.
    #[arg(short, long)]
    pub background: bool,
    /// Appends the messages of a daemon in the background to this file [default: messages are discarded].
    #[arg(long, value_name = "FILE", requires = "background")]
    pub log_file: Option<PathBuf>,
}
