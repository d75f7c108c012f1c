//! A fabric of two directly connected hosts, which programs can discover and query through ibsim's
//! sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ib_ibsim::message::{Control, Request, TIMED_OUT, kind};
use ib_ibsim::server::{Address, Input, Server};
use ib_types::Guid;
use ib_wire::mad::sm::{
    LinkSpeedMask, LinkWidthMask, NodeDescription, NodeInfo, NodeType, PhysState, PortInfo,
    PortState,
};
use ib_wire::mad::{Mad, MadStatus, MgmtClass, TransactionId};

/// Requests to this LID get no response.
pub(crate) const SILENT: u16 = 77;

/// Requests to this LID are returned as undelivered.
pub(crate) const UNREACHABLE: u16 = 99;

/// The fabric, which runs in a thread.
pub(crate) struct Fabric {
    pub(crate) name: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Fabric {
    pub(crate) fn start(what: &str) -> Self {
        let name = format!("ibfabric-preload-{}-{what}", std::process::id());
        let mut server =
            Server::bind(Address::Name(name.clone())).expect("the socket name is free");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                while let Some(input) = server.next() {
                    serve(&mut server, input);
                }
                server.flush();
                server.wait(Some(Duration::from_millis(5))).expect("the sockets can be polled");
            }
        });
        Self { name, stop, thread: Some(thread) }
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the thread does not panic");
        }
    }
}

fn serve(server: &mut Server, input: Input) {
    match input {
        Input::Connect { ticket, .. } => drop(server.accept(&ticket, "host-1")),
        Input::Control { client, message } => {
            let mut payload = message.payload;
            match message.kind {
                kind::GET_PORT_INFO => port_info(1).emit(&mut payload),
                kind::GET_NODE_INFO => {
                    let info = payload.first_chunk_mut().expect("the payload has 64 bytes");
                    node_info(1).emit(info);
                }
                kind::GET_GID => {
                    payload[..8].copy_from_slice(&0xfe80_0000_0000_0000_u64.to_be_bytes());
                    payload[8..16].copy_from_slice(&0x10_u64.to_be_bytes());
                }
                kind::GET_PKEYS => payload[..2].fill(0xff),
                _ => {}
            }
            server.answer(client, &Control::new(client, message.kind, &payload));
        }
        Input::Request { client, request } => deliver(server, client, request),
        Input::Gone { .. } | Input::Ready(_) => {}
    }
}

/// Responds to SMPs and delivers other MADs. A request is delivered to the client that has sent it,
/// because the fabric has no other client. A response is delivered to the requester.
fn deliver(server: &mut Server, client: u32, request: Request) {
    let mut mad = Mad(request.mad);
    let back = Request { dlid: request.slid, slid: request.dlid, ..request };
    match (mad.class(), request.dlid) {
        (_, SILENT) => {}
        (_, UNREACHABLE) => server.send(client, &Request { status: TIMED_OUT, ..request }),
        (MgmtClass::SUBN_DIRECTED_ROUTE, _) => {
            let hops = mad.0[7];
            let there = match (hops, mad.0[129]) {
                (0, _) => Some(1),
                (1, 1) => Some(2),
                _ => None,
            };
            let Some(node) = there else {
                return server.send(client, &Request { status: TIMED_OUT, ..request });
            };
            answer(&mut mad, node);
            server.send(client, &Request { mad: mad.0, ..request });
        }
        (MgmtClass::SUBN_LID_ROUTED, lid) => {
            answer(&mut mad, lid);
            server.send(client, &Request { mad: mad.0, ..back });
        }
        (_, _) if mad.method().is_response() => {
            let to = (mad.transaction_id().0 >> 48) as u32;
            server.send(to, &Request { slid: 1, ..request });
        }
        (_, _) => {
            let id = mad.transaction_id().0 & 0xffff_ffff_ffff | u64::from(client) << 48;
            mad.set_transaction_id(TransactionId(id));
            server.send(client, &Request { slid: 1, mad: mad.0, ..request });
        }
    }
}

fn answer(mad: &mut Mad, node: u16) {
    let status = match mad.attribute_id() {
        NodeInfo::ID => {
            mad.set_attribute(&node_info(node));
            MadStatus::OK
        }
        PortInfo::ID => {
            mad.set_attribute(&port_info(node));
            MadStatus::OK
        }
        NodeDescription::ID => {
            mad.set_attribute(&NodeDescription::new(&format!("host-{node}")));
            MadStatus::OK
        }
        _ => MadStatus::BAD_METHOD_ATTRIBUTE,
    };
    mad.answer(status);
    if mad.class() == MgmtClass::SUBN_DIRECTED_ROUTE {
        mad.0[4] |= 0x80;
    }
}

use ib_wire::mad::Attribute as _;

fn node_info(node: u16) -> NodeInfo {
    NodeInfo {
        base_version: 1,
        class_version: 1,
        node_type: NodeType::CHANNEL_ADAPTER,
        num_ports: 1,
        system_image_guid: Guid(u64::from(node) << 4),
        node_guid: Guid(u64::from(node) << 4),
        port_guid: Guid(u64::from(node) << 4 | 1),
        partition_cap: 1,
        local_port: 1,
        ..NodeInfo::parse(&[0; NodeInfo::LENGTH])
    }
}

fn port_info(node: u16) -> PortInfo {
    PortInfo {
        gid_prefix: 0xfe80_0000_0000_0000,
        lid: node,
        master_sm_lid: 1,
        local_port: 1,
        port_state: PortState(4),
        phys_state: PhysState(5),
        link_width_enabled: LinkWidthMask(3),
        link_width_supported: LinkWidthMask(3),
        link_width_active: LinkWidthMask(2),
        link_speed_supported: LinkSpeedMask(7),
        link_speed_enabled: LinkSpeedMask(7),
        link_speed_active: LinkSpeedMask(4),
        ..PortInfo::parse(&[0; PortInfo::LENGTH])
    }
}
