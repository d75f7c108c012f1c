//! Parses path addresses, and shows that a session without paths refuses requests.
//!
//! ```text
//! $ cargo run -p ib-rtrs --example paths
//! ip:192.168.77.2@ip:192.168.77.1 leads to ip:192.168.77.1
//! gid:fe80::1@gid:fe80::2 leads to gid:fe80::2
//! `iw:10.0.0.1`: paths over iWARP are not supported, only over RoCEv2 and InfiniBand
//! a request without a path: no path is connected
//! ```

use std::io::Write;

use ib_rtrs::{
    Adapter, AdapterId, Adapters, Client, ClientConfig, Direction, PathAddress, Request,
};
use ib_types::Instant;

/// An implementor of [`Adapters`] without HCAs. `ib_storage::rtrs::Devices` is an implementor with HCAs.
struct NoAdapters;

impl Adapters for NoAdapters {
    fn get(&mut self, _: AdapterId) -> Option<Adapter<'_>> {
        None
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for text in ["ip:192.168.77.2@ip:192.168.77.1", "gid:fe80::1@gid:fe80::2", "iw:10.0.0.1"] {
        match text.parse::<PathAddress>() {
            Ok(path) => writeln!(out, "{path} leads to {}", path.destination)?,
            Err(error) => writeln!(out, "{error}")?,
        }
    }
    let mut client = Client::new(ClientConfig::new("backup"), [7; 32]);
    let request = Request {
        cpu: 0,
        direction: Direction::Write,
        header: b"header for the server's user",
        data: &[],
        user: 1,
        is_admin: false,
    };
    match client.request(Instant::ZERO, &mut NoAdapters, &request) {
        Ok(_) => Err("a session without paths has accepted a request".into()),
        Err(error) => Ok(writeln!(out, "a request without a path: {error}")?),
    }
}
