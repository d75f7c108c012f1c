//! The IP addresses of ports: by what names are resolved and connections are made.
//!
//! Every adapter port with a GUID has an IPv4 address of 10.0.0.0/8 and an IPv6 address of
//! `fd69:6266:6162::/64`, both derived from the GUID, so that they are the same in every run and on
//! every machine. Where two GUIDs would have the same IPv4 address, the greater one takes the next
//! that is free. A file may give others:
//!
//! ```text
//! # GUID or "node"[port]   addresses
//! 0x0002c90300a1b2c1       192.168.7.1 fd00::7:1
//! "H-0002c90300a1b2c0"[2]  192.168.7.2
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ib_topology::PortId;
use ib_types::{Guid, NodeKind};

use crate::command::Target;
use crate::script::ScriptError;
use crate::sim::Sim;

/// The upper half of the IPv6 addresses.
const PREFIX: u64 = 0xfd69_6266_6162_0000;

/// The addresses of all adapter ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    by_port: BTreeMap<PortId, Vec<IpAddr>>,
    by_address: BTreeMap<IpAddr, PortId>,
    /// The ports whose addresses a file gave.
    given: BTreeSet<PortId>,
}

impl Addresses {
    /// Gives every adapter port of a fabric its addresses.
    #[must_use]
    pub fn derive(sim: &Sim) -> Self {
        let mut ports: Vec<(Guid, PortId)> = sim
            .adapter_ports()
            .map(|port| (sim.port(port).guid, port))
            .filter(|(guid, _)| !guid.is_zero())
            .collect();
        ports.sort_unstable();
        let mut taken = BTreeSet::new();
        let mut addresses = Self::default();
        for (guid, port) in ports {
            let mut host = hash(guid.0);
            while !taken.insert(host) {
                host = next(host);
            }
            let [_, a, b, c] = host.to_be_bytes();
            let v4 = IpAddr::V4(Ipv4Addr::new(10, a, b, c));
            let v6 = IpAddr::V6(Ipv6Addr::from(u128::from(PREFIX) << 64 | u128::from(guid.0)));
            addresses.set(port, vec![v4, v6]);
        }
        addresses
    }

    /// Derives the addresses anew after GUIDs have changed; those that a file gave stay.
    pub fn update(&mut self, sim: &Sim) {
        let mut derived = Self::derive(sim);
        for &port in &self.given {
            derived.set(port, self.of(port).to_vec());
        }
        derived.given = std::mem::take(&mut self.given);
        *self = derived;
    }

    fn set(&mut self, port: PortId, list: Vec<IpAddr>) {
        for old in self.by_port.remove(&port).unwrap_or_default() {
            self.by_address.remove(&old);
        }
        for &address in &list {
            self.by_address.insert(address, port);
        }
        self.by_port.insert(port, list);
    }

    /// Returns the addresses of a port.
    #[must_use]
    pub fn of(&self, port: PortId) -> &[IpAddr] {
        self.by_port.get(&port).map_or(&[], Vec::as_slice)
    }

    /// Returns the port that has an address.
    #[must_use]
    pub fn find(&self, address: IpAddr) -> Option<PortId> {
        self.by_address.get(&address).copied()
    }

    /// Returns all ports with their addresses, in the order of the fabric's file.
    pub fn iter(&self) -> impl Iterator<Item = (PortId, &[IpAddr])> {
        self.by_port.iter().map(|(&port, list)| (port, list.as_slice()))
    }

    /// Gives ports the addresses of a file in place of the derived ones; `name` is what errors call
    /// it.
    ///
    /// # Errors
    /// Fails at the first line that names no port of the fabric or no address, or an address that
    /// another port has. Nothing is changed then.
    pub fn override_from(&mut self, sim: &Sim, name: &str, text: &str) -> Result<(), ScriptError> {
        let mut changed = self.clone();
        for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let content = line.split('#').next().unwrap_or_default();
            if content.trim().is_empty() {
                continue;
            }
            changed.override_line(sim, content).map_err(|(at, found, expected)| ScriptError {
                name: name.to_owned(),
                line: index + 1,
                column: line[..at].chars().count() + 1,
                found,
                expected: expected.to_owned(),
            })?;
        }
        *self = changed;
        Ok(())
    }

    fn override_line(
        &mut self,
        sim: &Sim,
        line: &str,
    ) -> Result<(), (usize, String, &'static str)> {
        const PORT: &str = "the GUID of an adapter port, or \"node\"[port]";
        const ADDRESS: &str = "an IPv4 or IPv6 address that no other port has";
        let start = line.len() - line.trim_start().len();
        let rest = &line[start..];
        let quote = rest.strip_prefix('"').and_then(|rest| rest.find('"')).map_or(0, |end| end + 2);
        let end = rest[quote..].find(char::is_whitespace).map_or(rest.len(), |end| quote + end);
        let word = &rest[..end];
        let port = if word.starts_with("0x") {
            word.parse::<Guid>()
                .ok()
                .and_then(|guid| sim.adapter_ports().find(|&port| sim.port(port).guid == guid))
        } else {
            word.parse::<Target>().ok().and_then(|target| sim.target_port(&target).ok())
        };
        let adapter = |&port: &PortId| sim.adapter_ports().any(|known| known == port);
        let port = port.filter(adapter).ok_or_else(|| (start, format!("{word:?}"), PORT))?;
        let mut list = Vec::new();
        let mut at = start + end;
        for word in line[at..].split_whitespace() {
            at += line[at..].find(word).unwrap_or(0);
            let failed = || (at, format!("{word:?}"), ADDRESS);
            let address: IpAddr = word.parse().map_err(|_| failed())?;
            let free = self.find(address).is_none_or(|owner| owner == port);
            if !free || list.contains(&address) {
                return Err(failed());
            }
            list.push(address);
            at += word.len();
        }
        if list.is_empty() {
            return Err((line.trim_end().len(), "the end of the line".into(), ADDRESS));
        }
        self.set(port, list);
        self.given.insert(port);
        Ok(())
    }
}

impl Sim {
    /// Returns the ports of everything but switches.
    pub(crate) fn adapter_ports(&self) -> impl Iterator<Item = PortId> {
        (0..self.ports.len()).map(|index| PortId(index as u32)).filter(|&port| {
            let state = self.port(port);
            state.number > 0 && self.node(state.node).kind != NodeKind::Switch
        })
    }
}

/// Spreads a GUID over the 24 bits of an address, none of them all zeros or all ones.
const fn hash(guid: u64) -> u32 {
    let mixed = (guid ^ guid >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as u32 % 0xff_fffe + 1
}

const fn next(host: u32) -> u32 {
    if host == 0xff_fffe { 1 } else { host + 1 }
}

#[cfg(test)]
mod tests;
