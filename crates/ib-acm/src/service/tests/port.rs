//! A port as tests have it, those of the crate and those beside it.

use ib_acm::{Address, PortState};
use ib_link::LinkPort;
use ib_types::{Guid, PKey};
use ib_wire::mad::sa::RateCode;
use ib_wire::mad::sm::MtuCode;

/// The prefix of the GIDs of all ports.
pub(crate) const PREFIX: u64 = 0xfe80 << 48;

/// Returns the only port of an adapter, in service and in the default partition.
pub(crate) fn port(device: &str, guid: Guid, lid: u16, names: Vec<Address>) -> PortState {
    let link = LinkPort {
        node_guid: guid,
        port_guid: guid,
        gid_prefix: PREFIX,
        number: 1,
        lid,
        sm_lid: 100,
        ..LinkPort::default()
    };
    PortState {
        device: device.into(),
        port_count: 1,
        link,
        is_active: true,
        mtu: MtuCode::MTU_4096,
        rate: RateCode::GBPS_100,
        p_keys: vec![PKey::DEFAULT],
        registrations: 0,
        has_datagrams: true,
        names,
    }
}
