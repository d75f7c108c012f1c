//! Replies to control messages of ibsim clients. The replies contain attributes of the clients' ports.

use ib_ibsim::message::{Control, kind};
use ib_sim::{ClientId, Sim};

/// Returns true if the control message announces that the client is an SM.
pub(super) fn flag(message: &Control) -> bool {
    message.payload[..4] != [0; 4]
}

/// Returns the reply to a control message; if the request is unknown, the reply is an error message.
pub(super) fn answer(sim: &Sim, client: ClientId, message: &Control) -> Control {
    let payload = sim.client_port(client).and_then(|port| payload(sim, port, message));
    match payload {
        Some(payload) => {
            Control { client: message.client, ..Control::new(0, message.kind, &payload) }
        }
        None => Control::new(message.client, kind::ERROR, &[]),
    }
}

fn payload(sim: &Sim, port: ib_topology::PortId, message: &Control) -> Option<Vec<u8>> {
    let info = sim.port_info(port);
    let node = sim.node_info(port);
    let link = sim.link_port(port);
    Some(match message.kind {
        kind::GET_PORT => {
            let [low, high] = info.lid.to_ne_bytes();
            vec![low, high, info.port_state.0]
        }
        kind::GET_VENDOR => {
            let mut bytes = vec![0; 24];
            bytes[..4].copy_from_slice(&node.vendor_id.to_ne_bytes());
            bytes[4..8].copy_from_slice(&u32::from(node.device_id).to_ne_bytes());
            bytes[8..12].copy_from_slice(&node.revision.to_ne_bytes());
            // The firmware version is always 1.
            bytes[16..].copy_from_slice(&1u64.to_ne_bytes());
            bytes
        }
        kind::GET_GID => link.gid().to_bytes().to_vec(),
        kind::GET_GUID => link.port_guid.0.to_be_bytes().to_vec(),
        kind::GET_NODE_INFO => {
            let mut bytes = [0; 40];
            node.emit(&mut bytes);
            let mut padded = bytes.to_vec();
            padded.resize(64, 0);
            padded
        }
        kind::GET_PORT_INFO => {
            let (owner, own) = sim.place(port);
            let number = if message.payload[0] == 0 { own } else { message.payload[0] };
            let mut bytes = [0; 64];
            sim.port_info(sim.find_port(owner, number)?).emit(&mut bytes);
            // LocalPortNum is the number of the port that received the request, as in a PortInfo response.
            bytes[28] = link.number;
            bytes.to_vec()
        }
        kind::SET_IS_SM => message.payload[..4].to_vec(),
        kind::GET_PKEYS => {
            sim.p_key_block(port, 0).iter().flat_map(|key| key.0.to_be_bytes()).collect()
        }
        _ => return None,
    })
}
