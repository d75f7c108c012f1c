//! The performance management agent (PMA) of a node, which reads and writes counters.

use ib_topology::PortId;
use ib_types::Instant;
use ib_wire::mad::pm::{
    ALL_PORTS, PortCounters, PortCountersExtended, PortRcvErrorDetails, PortXmitDiscardDetails,
};
use ib_wire::mad::{AttributeId, ClassPortInfo, Mad, MadStatus, Method};

use crate::counters::Counters;
use crate::fabric::FabricState;

/// Capabilities of all nodes: 64-bit counters and `PortXmitWait`. The bits are those of `PerfMgt`
/// ClassPortInfo:CapabilityMask (IBTA volume 1, chapter 16.1.3).
const CAPABILITIES: u16 = 1 << 9 | 1 << 12;
/// Capability of switches: `AllPortSelect`, by which a request can select all ports at once.
const ALL_PORTS_SELECTABLE: u16 = 1 << 8;

/// Changes a request to the PMA at an end port into the response. Returns the status of the
/// response.
pub(crate) fn answer(
    fabric: &mut FabricState,
    now: Instant,
    port: PortId,
    mad: &mut Mad,
) -> MadStatus {
    if mad.base_version() != 1 || mad.0[2] != 1 {
        return MadStatus::BAD_VERSION;
    }
    let set = match mad.method() {
        Method::GET => false,
        Method::SET => true,
        _ => return MadStatus::BAD_METHOD,
    };
    match mad.attribute_id() {
        AttributeId::CLASS_PORT_INFO if !set => {
            let mut info = ClassPortInfo::zeroed();
            (info.base_version, info.class_version) = (1, 1);
            let is_switch = fabric.node_of(port).kind.is_switch();
            info.capability_mask = CAPABILITIES | if is_switch { ALL_PORTS_SELECTABLE } else { 0 };
            mad.set_attribute(&info);
            MadStatus::OK
        }
        AttributeId::PORT_COUNTERS
        | AttributeId::PORT_COUNTERS_EXTENDED
        | AttributeId::PORT_RCV_ERROR_DETAILS
        | AttributeId::PORT_XMIT_DISCARD_DETAILS => {
            let Some(ports) = selected_ports(fabric, port, mad.data()[1]) else {
                return MadStatus::BAD_FIELD;
            };
            if set {
                for &port in &ports {
                    write_counters(fabric, now, port, mad);
                }
            }
            let short = mad.attribute_id() == AttributeId::PORT_COUNTERS;
            let mut total = Counters::default();
            for port in ports {
                total.add(&if short {
                    fabric.short_counters(port, now)
                } else {
                    fabric.counters(port, now)
                });
            }
            show(&total, mad);
            MadStatus::OK
        }
        _ => MadStatus::BAD_METHOD_ATTRIBUTE,
    }
}

/// Returns the ports that a request selects; `None` if the selected port does not exist.
fn selected_ports(fabric: &FabricState, port: PortId, select: u8) -> Option<Vec<PortId>> {
    let id = fabric.port(port).node;
    let node = fabric.node(id);
    let first = u8::from(!node.kind.is_switch());
    let ports: Vec<PortId> = (first..=node.ports)
        .filter(|&number| number == select || select == ALL_PORTS && first == 0)
        .map(|number| fabric.port_id(id, number))
        .collect();
    (!ports.is_empty()).then_some(ports)
}

fn write_counters(fabric: &mut FabricState, now: Instant, port: PortId, mad: &Mad) {
    let (mut full, mut short) = (fabric.counters(port, now), fabric.short_counters(port, now));
    // A counter of both PortCounters and PortCountersExtended has two values. A Set of one
    // attribute writes the value of this attribute only.
    if mad.attribute_id() == AttributeId::PORT_COUNTERS {
        short.write(mad);
    } else {
        full.write(mad);
    }
    fabric.port_mut(port).store_counters(full, &short, now);
}

/// Writes the counters into the requested attribute of the response.
fn show(counters: &Counters, mad: &mut Mad) {
    let port_select = mad.data()[1];
    match mad.attribute_id() {
        AttributeId::PORT_COUNTERS => {
            let mut shown = mad.attribute::<PortCounters>().expect("the attribute ID was matched");
            counters.show(&mut shown);
            mad.set_attribute(&shown);
        }
        AttributeId::PORT_COUNTERS_EXTENDED => {
            let mut shown =
                mad.attribute::<PortCountersExtended>().expect("the attribute ID was matched");
            counters.show_extended(&mut shown);
            mad.set_attribute(&shown);
        }
        AttributeId::PORT_RCV_ERROR_DETAILS => mad.set_attribute(&PortRcvErrorDetails {
            port_select,
            counter_select: 0,
            local_physical_errors: saturated(counters.local_physical_errors),
            malformed_packet_errors: saturated(counters.malformed_packet_errors),
            buffer_overrun_errors: saturated(counters.buffer_overrun_errors),
            dlid_mapping_errors: saturated(counters.dlid_mapping_errors),
            vl_mapping_errors: saturated(counters.vl_mapping_errors),
            looping_errors: saturated(counters.looping_errors),
        }),
        _ => mad.set_attribute(&PortXmitDiscardDetails {
            port_select,
            counter_select: 0,
            inactive_discards: saturated(counters.inactive_discards),
            neighbor_mtu_discards: saturated(counters.neighbor_mtu_discards),
            switch_lifetime_discards: saturated(counters.lifetime_discards),
            switch_hoq_lifetime_discards: saturated(counters.hoq_life_discards),
        }),
    }
}

/// Returns the value of a counter, saturated at 16 bits.
fn saturated(value: u64) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
