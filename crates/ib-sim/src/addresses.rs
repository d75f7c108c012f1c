//! IP addresses of HCA ports, for name resolution and connections.
//!
//! Every HCA port with a GUID has an IPv4 address in 10.0.0.0/8 and an IPv6 address in
//! `fd69:6266:6162::/64`. Both are derived from the GUID, so they are the same in every run and on
//! every machine. If two ports would have the same address, the port with the greater GUID gets the
//! next free address. A file can assign other addresses, which must be unique:
//!
//! ```text
//! # GUID or "node"[port]   addresses
//! 0x0002c90300a1b2c1       192.168.7.1 fd00::7:1
//! "H-0002c90300a1b2c0"[2]  192.168.7.2
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ib_topology::PortId;
use ib_types::Guid;

use crate::command::{Target, closing};
use crate::script::ScriptError;
use crate::sim::Sim;

/// The upper 64 bits of the IPv6 addresses.
const PREFIX: u64 = 0xfd69_6266_6162_0000;

/// The IP addresses of all HCA ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    by_port: BTreeMap<PortId, Vec<IpAddr>>,
    by_address: BTreeMap<IpAddr, PortId>,
    overrides: AddressOverrides,
    /// Number of GUID changes in the fabric up to the time when the addresses were derived.
    guid_changes: u64,
}

/// The addresses that files have assigned.
type AddressOverrides = BTreeMap<PortId, Vec<IpAddr>>;

/// A parsed line of an address file: the port, and its addresses, each with the column of the
/// address.
type ListedAddresses = (PortId, Vec<(usize, IpAddr)>);

impl Addresses {
    /// Derives the addresses of every HCA port of a fabric.
    #[must_use]
    pub fn derive(sim: &Sim) -> Self {
        Self::with_overrides(sim, AddressOverrides::new())
    }

    /// Derives the addresses again if a GUID of the fabric has changed since the last derivation.
    /// Addresses from a file are kept.
    pub fn update(&mut self, sim: &Sim) {
        if self.guid_changes != sim.fabric().guid_changes() {
            *self = Self::with_overrides(sim, std::mem::take(&mut self.overrides));
        }
    }

    /// Returns the given addresses for ports in `overrides`, and derived addresses for all other
    /// HCA ports.
    fn with_overrides(sim: &Sim, overrides: AddressOverrides) -> Self {
        let mut with_overrides =
            Self { guid_changes: sim.fabric().guid_changes(), ..Self::default() };
        for (&port, list) in &overrides {
            with_overrides.set(port, list.clone());
        }
        let mut ports: Vec<(Guid, PortId)> = sim
            .fabric()
            .adapter_ports()
            .map(|port| (sim.fabric().port(port).guid, port))
            .filter(|(guid, port)| !guid.is_zero() && !overrides.contains_key(port))
            .collect();
        ports.sort_unstable();
        for (guid, port) in ports {
            let mut host = hash(guid.0);
            while with_overrides.by_address.contains_key(&v4(host)) {
                host = next(host);
            }
            let mut interface = guid.0;
            while with_overrides.by_address.contains_key(&v6(interface)) {
                interface = interface.checked_add(1).unwrap_or(1);
            }
            with_overrides.set(port, vec![v4(host), v6(interface)]);
        }
        with_overrides.overrides = overrides;
        with_overrides
    }

    fn set(&mut self, port: PortId, list: Vec<IpAddr>) {
        for &address in &list {
            self.by_address.insert(address, port);
        }
        self.by_port.insert(port, list);
    }

    /// Returns the addresses of a port; none if it is not an HCA port with a GUID.
    #[must_use]
    pub fn of(&self, port: PortId) -> &[IpAddr] {
        self.by_port.get(&port).map_or(&[], Vec::as_slice)
    }

    /// Returns the port that has an address.
    #[must_use]
    pub fn find(&self, address: IpAddr) -> Option<PortId> {
        self.by_address.get(&address).copied()
    }

    /// Returns all ports with their addresses, in the order of the fabric file.
    pub fn iter(&self) -> impl Iterator<Item = (PortId, &[IpAddr])> {
        self.by_port.iter().map(|(&port, list)| (port, list.as_slice()))
    }

    /// Replaces derived addresses by those of a file. `name` is the name of the file in errors. If
    /// a port has several lines, the last line applies.
    ///
    /// # Errors
    /// Fails on the first line with an unknown port or an invalid host address. If there is no such
    /// line, fails on the first address that another port uses. On errors, the addresses are
    /// unchanged.
    pub fn override_from(&mut self, sim: &Sim, name: &str, text: &str) -> Result<(), ScriptError> {
        let failed = |line: usize, (column, found, expected): LineError| ScriptError {
            name: name.to_owned(),
            line: line + 1,
            column,
            found,
            expected: expected.to_owned(),
        };
        let mut listed: BTreeMap<PortId, (usize, Vec<(usize, IpAddr)>)> = BTreeMap::new();
        for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let content = line.split('#').next().unwrap_or_default();
            if content.trim().is_empty() {
                continue;
            }
            let (port, list) = read_line(sim, content).map_err(|wrong| failed(index, wrong))?;
            listed.insert(port, (index, list));
        }
        let mut overrides = self.overrides.clone();
        overrides.retain(|port, _| !listed.contains_key(port));
        let mut taken: BTreeSet<IpAddr> = overrides.values().flatten().copied().collect();
        let mut lines: Vec<_> = listed.into_iter().collect();
        lines.sort_unstable_by_key(|(_, (index, _))| *index);
        for (port, (index, list)) in lines {
            for &(column, address) in &list {
                if !taken.insert(address) {
                    let wrong = (column, format!("\"{address}\""), "an unused address");
                    return Err(failed(index, wrong));
                }
            }
            overrides.insert(port, list.into_iter().map(|(_, address)| address).collect());
        }
        *self = Self::with_overrides(sim, overrides);
        Ok(())
    }
}

/// An error in a line: the column, the text found there, and the text expected.
type LineError = (usize, String, &'static str);

/// Parses a line of an address file.
fn read_line(sim: &Sim, line: &str) -> Result<ListedAddresses, LineError> {
    const PORT: &str = "the GUID of an HCA port, or \"node\"[port]";
    const ADDRESS: &str = "an IPv4 or IPv6 address of a host";
    let column = |at: usize| line[..at].chars().count() + 1;
    let start = line.len() - line.trim_start().len();
    let rest = &line[start..];
    let quote = rest.strip_prefix('"').and_then(closing).map_or(0, |end| end + 2);
    let end = rest[quote..].find(char::is_whitespace).map_or(rest.len(), |end| quote + end);
    let word = &rest[..end];
    let port = if word.starts_with("0x") {
        word.parse::<Guid>().ok().and_then(|guid| {
            sim.fabric().adapter_ports().find(|&port| sim.fabric().port(port).guid == guid)
        })
    } else {
        word.parse::<Target>().ok().and_then(|target| sim.target_port(&target).ok())
    };
    let adapter = |&port: &PortId| sim.fabric().adapter_ports().any(|known| known == port);
    let port = port.filter(adapter).ok_or_else(|| (column(start), format!("{word:?}"), PORT))?;
    let mut list = Vec::new();
    let mut at = start + end;
    for word in line[at..].split_whitespace() {
        at += line[at..].find(word).unwrap_or(0);
        let address = word.parse().ok().filter(is_of_host);
        let address = address.ok_or_else(|| (column(at), format!("{word:?}"), ADDRESS))?;
        list.push((column(at), address));
        at += word.len();
    }
    if list.is_empty() {
        let end = column(line.trim_end().len());
        return Err((end, "the end of the line".into(), ADDRESS));
    }
    Ok((port, list))
}

/// Returns true if the address is the unicast address of a host.
///
/// IPv4-mapped IPv6 addresses are excluded, because each would be a second form of an IPv4 address.
fn is_of_host(address: &IpAddr) -> bool {
    let nobody = address.is_unspecified() || address.is_multicast() || address.is_loopback();
    !nobody
        && match address {
            IpAddr::V4(v4) => v4.octets()[0] != 0 && !v4.is_broadcast(),
            IpAddr::V6(v6) => v6.to_ipv4_mapped().is_none(),
        }
}

fn v4(host: u32) -> IpAddr {
    let [_, a, b, c] = host.to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(10, a, b, c))
}

fn v6(interface: u64) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from(u128::from(PREFIX) << 64 | u128::from(interface)))
}

/// Maps a GUID to the 24 host bits of an IPv4 address, which are never all zeros or all ones.
const fn hash(guid: u64) -> u32 {
    let mixed = (guid ^ guid >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as u32 % 0xff_fffe + 1
}

const fn next(host: u32) -> u32 {
    if host == 0xff_fffe { 1 } else { host + 1 }
}

#[cfg(test)]
mod tests;
