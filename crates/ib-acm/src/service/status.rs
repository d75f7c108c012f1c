//! State of endpoints, caches and counters, for queries of clients and for the console.

use std::time::Duration;

use ib_types::{Gid, Guid, Instant, PKey};
use ib_wire::acm::{
    ByteOrder, ClientHeader, ClientStatus, EndpointInfo, Entry, EntryFlags, HEADER_LENGTH,
    MAX_DATA_LENGTH, PerfCounters,
};

use super::endpoint_table::{Endpoint, EndpointTable, sum_of};
use super::key::EndpointKey;
use super::pending::response_header;
use crate::Address;

/// State of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointView {
    /// Name of the HCA.
    pub device: Box<str>,
    /// GUID of the HCA.
    pub node_guid: Guid,
    /// Port number.
    pub port: u8,
    /// P_Key of the partition.
    pub p_key: PKey,
    /// Names and addresses of the endpoint.
    pub addresses: Vec<Address>,
    /// True if the port is active and the base group is joined.
    pub is_up: bool,
    /// Counters of the requests that the endpoint has handled.
    pub counters: PerfCounters,
    /// MGIDs of joined groups in ascending order of preference.
    pub groups: Vec<Gid>,
    /// Number of cached addresses.
    pub cached_addresses: usize,
    /// Number of cached peers.
    pub cached_peers: usize,
    /// True if the port has UD QPs. If not, the endpoint has the restrictions of [`NO_DATAGRAMS`](super::NO_DATAGRAMS).
    pub has_datagrams: bool,
}

/// A cached address of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedAddressView {
    /// The address.
    pub address: Address,
    /// GID of the peer's port.
    pub gid: Gid,
    /// LID from which the peer sent messages; 0 if the peer has sent no message.
    pub lid: u16,
    /// QP of the peer's ACM service; 0 if not known.
    pub qpn: u32,
    /// Time since the peer confirmed the address.
    pub age: Duration,
    /// True if the address is preloaded from a file.
    pub is_preloaded: bool,
    /// Cached SA route or preloaded route.
    pub route: Option<RouteView>,
}

/// A cached route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteView {
    /// Destination LID.
    pub dlid: u16,
    /// Service level.
    pub sl: u8,
}

/// Name of the provider that implements ibacm's protocol.
const PROVIDER: &str = "ibacmp";

/// Size in bytes of a name or address in the response to an endpoint query.
const NAME_LENGTH: usize = 64;

impl EndpointTable {
    /// Returns the sum of each counter over all endpoints, including removed ones.
    pub(super) fn counters(&self) -> PerfCounters {
        let endpoints = self.endpoints.values();
        endpoints.fold(self.other_counters, |sum, it| sum_of(&sum, &it.identity.counters))
    }

    /// Returns the state of all endpoints, in the order of their indices.
    pub(super) fn views(&self) -> Vec<EndpointView> {
        let view = |(key, endpoint): (&EndpointKey, &Endpoint)| {
            let Endpoint { identity, resolver, .. } = endpoint;
            let state = &self.ports.get(&key.port)?.state;
            Some(EndpointView {
                device: state.device.clone(),
                node_guid: state.link.node_guid,
                port: state.link.number,
                p_key: identity.p_key,
                addresses: identity.addresses.clone(),
                is_up: self.is_up(*key),
                counters: identity.counters,
                groups: resolver.groups.joined().collect(),
                cached_addresses: resolver.peers.table.cache.len(),
                cached_peers: resolver.peers.table.cache.peers(),
                has_datagrams: state.has_datagrams,
            })
        };
        self.endpoints.iter().filter_map(view).collect()
    }

    /// Returns the cached entries in the order of their addresses. `only` selects one address; `None` selects all.
    pub(super) fn cached(&self, now: Instant, only: Option<&Address>) -> Vec<CachedAddressView> {
        let mut found = Vec::new();
        for endpoint in self.endpoints.values() {
            endpoint.resolver.peers.table.cache.each(|address, peer, seen, is_preloaded| {
                if only.is_none_or(|only| only == address) {
                    found.push(CachedAddressView {
                        address: address.clone(),
                        gid: peer.gid,
                        lid: peer.lid,
                        qpn: peer.qpn,
                        age: seen.age(now),
                        is_preloaded,
                        route: peer.route.map(|it| RouteView { dlid: it.dlid(), sl: it.sl() }),
                    });
                }
            });
        }
        found.sort_by(|one, other| one.address.cmp(&other.address));
        found
    }

    /// Returns the addresses that are being resolved, in ascending order.
    pub(super) fn resolving(&self) -> Vec<Address> {
        let endpoints = self.endpoints.values();
        let addresses = endpoints.flat_map(|endpoint| endpoint.resolver.resolutions.addresses());
        let mut addresses: Vec<Address> = addresses.cloned().collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    }

    /// Appends the response to a query of counters.
    pub(super) fn write_counters(
        &self,
        header: &ClientHeader,
        data: &[u8],
        order: ByteOrder,
        out: &mut Vec<u8>,
    ) -> Result<(), ClientStatus> {
        let counters = match (data, header.src_index) {
            ([], 0) => self.counters(),
            ([], index) => {
                let found = self.endpoints.values().nth(usize::from(index) - 1);
                found.ok_or(ClientStatus::EINVAL)?.identity.counters
            }
            (data, _) => {
                let entry = data.try_into().map_err(|_| ClientStatus::EINVAL)?;
                // The header's length is in network order, but the entry with the address has native byte order, as in
                // a RESOLVE request.
                let native = Entry::parse(entry, ByteOrder::NATIVE);
                let entry = match native.kind.name() {
                    Some(_) => native,
                    None => Entry::parse(entry, order),
                };
                if !entry.flags.has(EntryFlags::SOURCE) {
                    return Err(ClientStatus::EINVAL);
                }
                let address = Address::of_entry(&entry).map_err(|_| ClientStatus::ESRCTYPE)?;
                let key = self.owner(&address).ok_or(ClientStatus::ESRCADDR)?;
                self.endpoints.get(&key).ok_or(ClientStatus::ESRCADDR)?.identity.counters
            }
        };
        let values = counters.values();
        let mut response = response_header(header, ClientStatus::SUCCESS);
        response.src_out = values.len() as u8;
        response.set_length(HEADER_LENGTH + 8 * values.len(), ByteOrder::Big);
        out.extend_from_slice(&response.to_bytes());
        for value in values {
            out.extend_from_slice(&value.to_be_bytes());
        }
        Ok(())
    }

    /// Appends the response to a query of an endpoint.
    pub(super) fn write_endpoint(
        &self,
        header: &ClientHeader,
        out: &mut Vec<u8>,
    ) -> Result<(), ClientStatus> {
        let (index, port) = (usize::from(header.src_out), header.src_index);
        let is_at_port = |(key, _): &(&EndpointKey, &Endpoint)| {
            let own = self.ports.get(&key.port).map(|port| port.state.link.number);
            port == 0 || own == Some(port)
        };
        let index = index.checked_sub(1).ok_or(ClientStatus::EINVAL)?;
        let found = self.endpoints.iter().filter(is_at_port).nth(index);
        let (key, Endpoint { identity, .. }) = found.ok_or(ClientStatus::EINVAL)?;
        let state = &self.ports.get(&key.port).ok_or(ClientStatus::EINVAL)?.state;
        let mut provider = [0; 64];
        provider[..PROVIDER.len()].copy_from_slice(PROVIDER.as_bytes());
        // Addresses that do not fit into the message are left out.
        let max = (MAX_DATA_LENGTH - EndpointInfo::LENGTH) / NAME_LENGTH;
        let addresses = &identity.addresses[..identity.addresses.len().min(max)];
        let info = EndpointInfo {
            device_guid: state.link.node_guid.0,
            port: state.link.number,
            port_count: state.port_count,
            p_key: identity.p_key.0,
            address_count: addresses.len() as u16,
            provider,
        };
        let mut response = response_header(header, ClientStatus::SUCCESS);
        let length = HEADER_LENGTH + EndpointInfo::LENGTH + NAME_LENGTH * addresses.len();
        response.set_length(length, ByteOrder::Big);
        out.extend_from_slice(&response.to_bytes());
        out.extend_from_slice(&info.to_bytes());
        for address in addresses {
            let mut name = [0; NAME_LENGTH];
            let text = address.to_string();
            let length = text.len().min(NAME_LENGTH - 1);
            name[..length].copy_from_slice(&text.as_bytes()[..length]);
            out.extend_from_slice(&name);
        }
        Ok(())
    }
}
