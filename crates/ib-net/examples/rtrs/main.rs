//! RTRS with RNBD in it, as small as it can be: to see that it works with a Linux kernel at the other end.
//!
//! `rtrs client SERVER DEVICE [MEGABYTES]` connects, opens a block device, writes and compares it.
//! `rtrs server ADDRESS MEGABYTES` offers memory as device `disk0` until it is killed.
//! `rtrs bench SECONDS DEPTH SIZE` reads over loopback.

use std::io;
use std::net::IpAddr;

use ib_net::device::{Device, DeviceOptions};
use ib_net::rtrs::Devices;
use ib_rtrs::AdapterId;

mod bench;
mod client;
mod server;

/// What can be asked for.
const USAGE: &str = "expected: client SERVER DEVICE [MEGABYTES], server ADDRESS MEGABYTES, or bench SECONDS DEPTH SIZE";

type Done<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Done<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["client", server, device, rest @ ..] => client::run(server.parse()?, device, rest),
        ["server", address, megabytes, rest @ ..] => {
            server::run(address.parse()?, megabytes.parse()?, rest)
        }
        ["bench", seconds, depth, size, rest @ ..] => {
            bench::run(seconds.parse()?, depth.parse()?, size.parse()?, rest)
        }
        _ => Err(USAGE.into()),
    }
}

fn say(text: &str) {
    use std::io::Write as _;
    // Nobody may read it any more.
    writeln!(io::stdout(), "{text}").ok();
}

/// Opens the adapter of an address, or the one from which another address is reached.
fn open(address: IpAddr, is_own: bool) -> Done<(Devices, AdapterId)> {
    let own = if is_own { address } else { own_address(address)? };
    let mut devices = Devices::new();
    let id = devices.add(Device::open(DeviceOptions::new(own))?);
    Ok((devices, id))
}

fn own_address(peer: IpAddr) -> io::Result<IpAddr> {
    let any = if peer.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = std::net::UdpSocket::bind(any)?;
    socket.connect((peer, 4791))?;
    Ok(socket.local_addr()?.ip())
}
