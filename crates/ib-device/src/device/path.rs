//! The paths from an HCA to others.

use std::io;
use std::net::IpAddr;

use ib_link::Route;
use ib_types::{Instant, Mtu, PKey};

use super::{Device, Wire, gid_of};

/// A path to another port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The way of its packets.
    pub route: Route,
    /// The largest payload that they carry.
    pub mtu: Mtu,
    /// The partition.
    pub p_key: PKey,
}

/// Why there is no way to an address.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// Nobody has it.
    #[error("nobody in the fabric has the address {0}")]
    Unknown(IpAddr),
    /// The SA returns no path.
    #[error("no path to {to}: {why}")]
    None {
        /// The address.
        to: IpAddr,
        /// What it said.
        why: String,
    },
    /// The system failed, or the simulator has gone.
    #[error("asking for a path: {0}")]
    Io(#[from] io::Error),
}

impl Device {
    /// Returns the path to an address.
    ///
    /// In a simulated fabric, an ACM service is queried ([`Device::resolve_through`]), or the SA if there is
    /// none. The SA is queried once for each address until the port changes.
    ///
    /// # Errors
    /// Fails if the SA returns no path, or no port has the address.
    pub fn path_to(&mut self, address: IpAddr) -> Result<Path, PathError> {
        let most = self.connection_mtu;
        if let Some(path) = self.path_by_name(address)? {
            return Ok(Path { mtu: path.mtu.min(most), ..path });
        }
        let found = match &mut self.wire {
            Wire::Roce(_) => {
                let (source, destination) = (gid_of(self.address), gid_of(address));
                let route = Route { source, destination, is_global: true, ..Route::default() };
                return Ok(Path { route, mtu: self.connection_mtu, p_key: PKey::DEFAULT });
            }
            Wire::Attached(attached) => attached.gid_of(address)?,
        };
        let gid = found.ok_or(PathError::Unknown(address))?;
        if let Wire::Attached(attached) = &mut self.wire {
            if let Some(path) = attached.path(gid) {
                return Ok(Path { mtu: path.mtu.min(most), ..path });
            }
            attached.ask_path(gid);
        }
        loop {
            if !self.progress()? {
                self.wait(Instant::NEVER, None)?;
            }
            if let Wire::Attached(attached) = &mut self.wire
                && let Some(answer) = attached.path_answer(gid)
            {
                let path = answer.map_err(|why| PathError::None { to: address, why })?;
                return Ok(Path { mtu: path.mtu.min(most), ..path });
            }
        }
    }
}
