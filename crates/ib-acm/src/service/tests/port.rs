//! A port for unit tests and integration tests.

use ib_acm::{Address, PortState};
use ib_link::LinkPort;
use ib_types::{Guid, PKey};
use ib_wire::mad::sa::RateCode;
use ib_wire::mad::sm::MtuCode;

/// Subnet prefix of all ports.
pub(crate) const PREFIX: u64 = 0xfe80 << 48;

/// Returns the state of an active port in the default partition, the only port of its HCA.
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
