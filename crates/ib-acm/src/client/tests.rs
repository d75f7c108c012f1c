//! Tests of the client against a scripted server.

mod blocking;
mod pipeline;
mod server;
mod service;

use std::net::Ipv4Addr;

use ib_types::Gid;
use ib_wire::acm::{
    ByteOrder, ClientHeader, ClientOpcode, ClientStatus, EndpointInfo, Entry, EntryFlags,
    HEADER_LENGTH,
};
use ib_wire::mad::sa::PathRecord;

/// Returns a reply to a request, with or without the ACK bit.
fn answer(request: &[u8], ack: bool, status: ClientStatus, data: &[u8]) -> Vec<u8> {
    let mut header = ClientHeader::parse(request.first_chunk().expect("a request has a header"));
    let order = ByteOrder::of(header.opcode);
    if ack {
        header.opcode = header.opcode.answer();
    }
    header.status = status;
    header.src_out = 0;
    if header.opcode.request() == ClientOpcode::PERF_QUERY {
        header.src_out = (data.len() / 8) as u8;
    }
    header.set_length(HEADER_LENGTH + data.len(), order);
    [&header.to_bytes()[..], data].concat()
}

/// Returns a path record with the given destination LID.
fn path(dlid: u16) -> PathRecord {
    let (sgid, dgid) = (Gid(0xfe80 << 112 | 1), Gid(0xfe80 << 112 | u128::from(dlid)));
    PathRecord { sgid, dgid, slid: 1, dlid, reversible: true, ..PathRecord::zeroed() }
}

/// Returns the data of a reply with a path and, optionally, the source that the service has chosen.
fn resolved(dlid: u16, source: Option<[u8; 4]>) -> Vec<u8> {
    let mut data = Entry::path(EntryFlags::PATH, &path(dlid)).to_bytes(ByteOrder::NATIVE).to_vec();
    if let Some(source) = source {
        let source = Entry::ipv4(EntryFlags::SOURCE, Ipv4Addr::from(source));
        data.extend(source.to_bytes(ByteOrder::NATIVE));
    }
    data
}

/// Returns the data of a reply with counters.
fn counters(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}

/// Returns the data of a reply with an endpoint.
fn endpoint(device_guid: u64, names: &[&str]) -> Vec<u8> {
    let field = |text: &str| {
        let mut field = [0; 64];
        field[..text.len()].copy_from_slice(text.as_bytes());
        field
    };
    let info = EndpointInfo {
        device_guid,
        port: 1,
        port_count: 2,
        p_key: 0x8001,
        address_count: names.len() as u16,
        provider: field("ibacmp"),
    };
    let names = names.iter().flat_map(|name| field(name));
    info.to_bytes().into_iter().chain(names).collect()
}
