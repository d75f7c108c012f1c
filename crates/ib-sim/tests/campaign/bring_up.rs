//! Configures a fabric as a subnet manager does: LIDs, forwarding tables and port states.

use ib_link::Remote;
use ib_mad::{Client, Request, RequesterConfig};
use ib_routing::engine::engine;
use ib_routing::{EngineKind, RoutingOptions, Subnet, SubnetOptions};
use ib_sim::{Options, Sim, SimLink};
use ib_topology::Fabric;
use ib_wire::mad::sm::{LinearForwardingBlock, PhysState, PortInfo, PortState, SwitchInfo};
use ib_wire::mad::{Attribute, Mad, Method, TransactionId, smp};

use crate::paths::paths;

/// Lists of the SMPs that a subnet manager at the first host sends. Each list begins with the SMPs to the nearest
/// nodes. A list is sent after the responses to the SMPs of the preceding list have arrived.
pub(crate) struct Configuration(Vec<Vec<Mad>>);

impl Configuration {
    pub(crate) fn of(fabric: &Fabric) -> Self {
        let subnet = Subnet::discover(fabric, &SubnetOptions::default())
            .expect("the fabric can be discovered");
        let options = RoutingOptions::default();
        let routing =
            engine(EngineKind::MinHop).route(&subnet, &options).expect("the subnet can be routed");
        let sim = Sim::new(fabric, Options::default());
        let manager = subnet.end_port(subnet.sm_port()).base_lid.get();
        let (mut tables, mut armed, mut active) = (Vec::new(), Vec::new(), Vec::new());
        for (node, path) in paths(fabric) {
            if let Some(id) = subnet.switch_of(node) {
                let mut info = SwitchInfo::zeroed();
                info.linear_fdb_top = subnet.max_lid();
                tables.push(set(&path, &info, 0));
                let mut ports = [0xff; 64];
                let entries = routing.lfts.table(id);
                assert!(
                    entries.len() < ports.len(),
                    "the LFT fits into one block, in which at least one entry is free"
                );
                ports[..entries.len()].copy_from_slice(entries);
                tables.push(set(&path, &LinearForwardingBlock { ports }, 0));
            }
            for (id, port) in fabric.ports_of(node) {
                let number = u32::from(port.number);
                let end = subnet.end_ports().iter().find(|end| end.port == id);
                let now = PortInfo { phys_state: PhysState::NO_CHANGE, ..sim.port_info(id) };
                if let Some(end) = end {
                    let port_state = PortState::NO_CHANGE;
                    let lid = end.base_lid.get();
                    let named = PortInfo { lid, master_sm_lid: manager, port_state, ..now };
                    tables.push(set(&path, &named, number));
                }
                if port.peer.is_some() {
                    let lid = end.map_or(now.lid, |end| end.base_lid.get());
                    let now = PortInfo { lid, master_sm_lid: manager, ..now };
                    let port_state = PortState::ARMED;
                    armed.push(set(&path, &PortInfo { port_state, ..now }, number));
                    let port_state = PortState::ACTIVE;
                    active.push(set(&path, &PortInfo { port_state, ..now }, number));
                }
            }
        }
        Self(vec![tables, armed, active])
    }
}

/// Applies the whole configuration to a fabric without faults.
pub(crate) fn run(link: &mut SimLink<'_>, configuration: &Configuration) {
    let mut client = Client::new(RequesterConfig { tag: 2, ..RequesterConfig::default() });
    for part in &configuration.0 {
        let requests = part.iter().map(|&mad| Request::new(Remote::directed(), mad)).collect();
        for answer in client.call_all(link, requests).expect("a simulated link does not fail") {
            assert!(answer.expect("each SMP gets a response").status().is_ok());
        }
    }
}

fn set<A: Attribute>(path: &[u8], value: &A, modifier: u32) -> Mad {
    let what = (A::ID, modifier);
    let mut mad = smp::directed_request(Method::SET, TransactionId(0), what, path);
    mad.set_attribute(value);
    mad
}
