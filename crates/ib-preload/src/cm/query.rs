//! Responses about the addresses and the path of an ID.

use ib_cm::ServiceId;
use ib_types::Gid;
use ib_wire::mad::sa::{PathRecord, Selector};

use super::abi::{AddressResponse, PathData, PathResponse, RouteResponse, UserPath};
use super::address::{Address, IbAddress};
use super::execute::service_of;
use super::ids::CmId;
use super::port::CmPort;
use super::{FileId, Manager};
use crate::errno::Errno;
use crate::layout::{Bytes, bytes_of};

/// Flags of the path of a connection: `IB_PATH_GMP`, `IB_PATH_PRIMARY` and `IB_PATH_BIDIRECTIONAL`.
const PATH_FLAGS: u32 = 1 | 1 << 1 | 1 << 3 | 1 << 5;

impl Manager {
    pub(super) fn query_address(
        &mut self,
        channel: FileId,
        number: u32,
        port: &mut impl CmPort,
    ) -> Result<Vec<u8>, Errno> {
        let id = self.ids.of(channel, number)?;
        Ok(bytes_of(&addresses(id, id.source, id.destination, port)))
    }

    pub(super) fn query_gid(
        &mut self,
        channel: FileId,
        number: u32,
        port: &mut impl CmPort,
    ) -> Result<Vec<u8>, Errno> {
        let id = self.ids.of(channel, number)?;
        let own = if id.has_device { port.view().gid } else { Gid::ZERO };
        let p_key = id.path.as_ref().map_or(0xffff, |path| path.p_key.0);
        let address = |gid, address: &Option<Address>| {
            let service = address.map_or(ServiceId(0), |it| service_of(&it, id.space));
            Address::Ib(IbAddress {
                p_key,
                flow_info: 0,
                gid,
                service: service.0,
                mask: u64::MAX,
                scope: 0,
            })
        };
        let source = Some(address(own, &id.source));
        let destination = Some(address(id.peer_gid, &id.destination));
        Ok(bytes_of(&addresses(id, source, destination, port)))
    }

    pub(super) fn query_path(&mut self, channel: FileId, number: u32) -> Result<Vec<u8>, Errno> {
        let id = self.ids.of(channel, number)?;
        let num_paths = id.path.is_some().into();
        let mut response = bytes_of(&PathResponse { num_paths, reserved: 0 });
        if let Some(path) = &id.path {
            let record = Bytes(exact(path).to_bytes());
            response.extend(bytes_of(&PathData { flags: PATH_FLAGS, reserved: 0, record }));
        }
        Ok(response)
    }

    pub(super) fn query_route(
        &mut self,
        channel: FileId,
        number: u32,
        port: &mut impl CmPort,
    ) -> Result<Vec<u8>, Errno> {
        let id = self.ids.of(channel, number)?;
        let address = |address: &Option<Address>| {
            Bytes::<28>::padded(&address.map(Address::to_bytes).unwrap_or_default()).0
        };
        let mut response = RouteResponse {
            source: address(&id.source),
            destination: address(&id.destination),
            num_paths: id.path.is_some().into(),
            ..RouteResponse::default()
        };
        if id.has_device {
            let view = port.view();
            response.node_guid = view.node_guid.to_be_bytes();
            response.port_num = 1;
            let p_key = view.p_keys.first().copied().unwrap_or(0xffff);
            response.paths[0] = match &id.path {
                Some(path) => user_path(&exact(path)),
                None => UserPath {
                    dgid: id.peer_gid.0.to_be_bytes(),
                    sgid: view.gid.0.to_be_bytes(),
                    p_key: p_key.to_be_bytes(),
                    ..UserPath::default()
                },
            };
        }
        Ok(bytes_of(&response))
    }
}

/// Returns the response of QUERY with two addresses.
fn addresses(
    id: &CmId,
    source: Option<Address>,
    destination: Option<Address>,
    port: &mut impl CmPort,
) -> AddressResponse {
    let size = |address: Option<Address>| address.map_or(0, |it| it.size() as u16);
    let bytes = |address: Option<Address>| {
        Bytes::padded(&address.map(Address::to_bytes).unwrap_or_default())
    };
    let mut response = AddressResponse {
        source_size: size(source),
        destination_size: size(destination),
        source: bytes(source),
        destination: bytes(destination),
        ..AddressResponse::default()
    };
    if id.has_device {
        let view = port.view();
        let first = view.p_keys.first().copied().unwrap_or(0xffff);
        let p_key = id.path.as_ref().map_or(first, |path| path.p_key.0);
        response.node_guid = view.node_guid.to_be_bytes();
        response.port_num = 1;
        response.p_key = p_key.to_be_bytes();
    }
    response
}

/// Returns the path with selectors that mark its MTU, rate and life time as exact values.
fn exact(path: &PathRecord) -> PathRecord {
    PathRecord {
        mtu_selector: Selector::EXACTLY,
        rate_selector: Selector::EXACTLY,
        life_time_selector: Selector::EXACTLY,
        ..*path
    }
}

fn user_path(path: &PathRecord) -> UserPath {
    UserPath {
        dgid: path.dgid.0.to_be_bytes(),
        sgid: path.sgid.0.to_be_bytes(),
        dlid: path.dlid.to_be_bytes(),
        slid: path.slid.to_be_bytes(),
        raw_traffic: path.raw_traffic.into(),
        flow_label: path.flow_label.to_be_bytes(),
        reversible: path.reversible.into(),
        mtu: path.mtu.0.into(),
        p_key: path.p_key.0.to_be_bytes(),
        hop_limit: path.hop_limit,
        traffic_class: path.traffic_class,
        numb_path: path.numb_path,
        sl: path.sl,
        mtu_selector: path.mtu_selector.0,
        rate_selector: path.rate_selector.0,
        rate: path.rate.0,
        life_time_selector: path.life_time_selector.0,
        life_time: path.life_time.0,
        preference: path.preference,
    }
}
