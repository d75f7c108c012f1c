//! `rdma devinfo`: the attributes of an HCA, and its counters if a process has it open.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::IpAddr;

use ib_attach::locate;
use ib_control::lines::{LineClient, Reply};
use ib_device::Device;
use ib_hca::DropReason;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use super::stage::{Stage, attach_options, own_address};
use crate::cli::rdma::DevinfoArgs;
use crate::failure::{Failure, Verdict};
use crate::output::{Format, Output};

/// The attributes and counters of an HCA; field names are JSON keys.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct Info {
    address: String,
    #[serde(flatten)]
    udp: Option<Udp>,
    fabric: Option<Fabric>,
    node_guid: String,
    gids: Vec<String>,
    transport: String,
    active_mtu: usize,
    connection_mtu: usize,
    window: u32,
    max_qp: usize,
    max_objects: usize,
    max_mr: usize,
    max_qp_wr: u32,
    max_sge: u32,
    max_inline_data: u32,
    max_cqe: u32,
    icrc_sent: String,
    icrc_received: String,
    /// True if another process has the HCA open and reported these attributes and counters.
    running: bool,
    /// Counters by name.
    counters: BTreeMap<String, u64>,
    /// Dropped packets by reason.
    dropped: BTreeMap<String, u64>,
}

/// The UDP socket of an HCA on Ethernet; field names are JSON keys.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Udp {
    udp_port: u16,
    gso: bool,
    gro: bool,
    receive_buffer: usize,
    send_buffer: usize,
}

/// The port of an HCA in a simulated fabric; field names are JSON keys.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Fabric {
    simulator: String,
    node: String,
    port: u8,
    lid: u16,
    sm_lid: u16,
    active: bool,
    addresses: Vec<String>,
}

/// Returns the name of the control socket of the process that has this HCA open.
pub(super) fn console(device: &Device) -> String {
    match device.attached() {
        Some(port) => {
            let details = port.details();
            console_at_port(port.simulator(), &details.node, details.port.number)
        }
        None => console_at(device.address(), device.port()),
    }
}

fn console_at(address: IpAddr, udp_port: u16) -> String {
    format!("ibfabric-rdma-{address}-{udp_port}")
}

fn console_at_port(simulator: &str, node: &str, number: u8) -> String {
    format!("ibfabric-rdma-{simulator}-{node}:{number}")
}

/// A request to a process that has an HCA open: the line `"devinfo"`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum DevinfoRequest {
    Devinfo,
}

pub(super) fn run(args: &DevinfoArgs, out: &mut Output) -> Result<Verdict, Failure> {
    if args.adapter.capture.pcap.is_some() {
        let message = "--pcap: devinfo sends no packets that could be captured";
        return Err(Failure::Unusable(message.to_owned()));
    }
    let name = match (attach_options(&args.adapter), args.local.from) {
        (Some(options), _) => {
            let place = locate(&options).map_err(Failure::unusable)?;
            let place = place.map(|it| console_at_port(&options.name, &it.node, it.number));
            // If the simulator does not have the port, the name is empty, and opening the HCA below fails.
            place.unwrap_or_default()
        }
        (None, Some(address)) => console_at(address, args.adapter.udp_port),
        (None, None) => console_at(own_address(None)?, args.adapter.udp_port),
    };
    let info = match ask(&name) {
        Some(info) => info,
        None => Info::of(&mut Stage::open(&args.adapter, args.local.from, None)?.device),
    };
    match Format::of(args.json) {
        Format::Json => out.json(&info)?,
        Format::Text => print(&info, args.verbose > 0, out)?,
    }
    Ok(Verdict::Good)
}

/// Executes a request of another process, in the process that has the HCA open.
pub(super) fn reply(line: &str, device: &mut Device) -> Reply {
    match serde_json::from_str(line) {
        Ok(DevinfoRequest::Devinfo) => {
            let info =
                serde_json::to_value(Info::of(device)).expect("`Info` can be represented as JSON");
            Reply::done("", info)
        }
        Err(error) => Reply::failed(format!("found `{line}`, expected \"devinfo\": {error}")),
    }
}

/// Queries the process that has the HCA open; `None` if there is no such process.
fn ask(name: &str) -> Option<Info> {
    let reply = LineClient::connect(name).ok()?.request(&DevinfoRequest::Devinfo).ok()?;
    let info: Info = serde_json::from_value(reply.data).ok()?;
    Some(Info { running: true, ..info })
}

impl Info {
    /// Returns the attributes and counters of an HCA.
    fn of(device: &mut Device) -> Self {
        let (address, connection_mtu) = (device.address(), device.connection_mtu().bytes());
        let (checked, cm) = (device.link_counters(), device.cm().counters());
        let udp = device.socket().map(|socket| {
            let (receive_buffer, send_buffer) = socket.buffer_sizes();
            let (udp_port, gso, gro) = (socket.port(), socket.sender.gso(), socket.receiver.gro());
            Udp { udp_port, gso, gro, receive_buffer, send_buffer }
        });
        let truncated = device.socket().map_or(0, |socket| socket.counters().received.truncated);
        let fabric = device.attached().map(|port| {
            let details = port.details();
            Fabric {
                simulator: port.simulator().to_owned(),
                node: details.node.clone(),
                port: details.port.number,
                lid: details.port.lid,
                sm_lid: details.port.sm_lid,
                active: details.is_active,
                addresses: details.addresses.iter().map(ToString::to_string).collect(),
            }
        });
        let hca = device.hca();
        let engine = hca.counters();
        let counters = [
            ("sent_packets", engine.sent_packets),
            ("sent_bytes", engine.sent_bytes),
            ("received_packets", engine.received_packets),
            ("received_bytes", engine.received_bytes),
            ("retransmitted", engine.retransmitted),
            ("timeouts", engine.timeouts),
            ("sequence_naks_sent", engine.sequence_naks_sent),
            ("sequence_naks_received", engine.sequence_naks_received),
            ("rnr_naks_sent", engine.rnr_naks_sent),
            ("rnr_naks_received", engine.rnr_naks_received),
            ("naks_sent", engine.naks_sent),
            ("icrc_verified", checked.verified),
            ("icrc_consistent", checked.consistent),
            ("without_icrc", checked.without_icrc),
            ("cm_received", cm.received),
            ("cm_sent", cm.sent),
            ("cm_resent", cm.resent),
        ];
        let reasons = DropReason::ALL.map(|why| (why.name(), engine.dropped(why)));
        let others = [
            ("icrc", checked.icrc_errors),
            ("truncated", truncated),
            ("cm_malformed", cm.malformed),
            ("cm_unsupported", cm.unsupported),
            ("cm_unknown", cm.unknown),
            ("cm_unexpected", cm.unexpected),
        ];
        let named = |(name, count): (&str, u64)| (name.to_owned(), count);
        let config = hca.config();
        Self {
            address: address.to_string(),
            node_guid: config.node_guid.to_string(),
            gids: config.gids.iter().map(ToString::to_string).collect(),
            transport: if fabric.is_some() { "InfiniBand, simulated" } else { "RoCEv2" }.to_owned(),
            active_mtu: config.active_mtu.bytes(),
            connection_mtu,
            window: config.window,
            max_qp: config.max_qp(),
            max_objects: config.max_objects,
            max_mr: config.max_mr,
            max_qp_wr: config.max_qp_wr,
            max_sge: config.max_sge,
            max_inline_data: config.max_inline_data,
            max_cqe: config.max_cqe,
            icrc_sent: match &fabric {
                Some(_) => "never: the simulator marks the packets that it corrupts",
                None => "always",
            }
            .to_owned(),
            icrc_received: match address.is_ipv4() {
                _ if fabric.is_some() => "never: corrupted packets are not delivered",
                true => "all but the IPv4 identification, which the system does not report",
                false => "always",
            }
            .to_owned(),
            udp,
            fabric,
            running: false,
            counters: counters.into_iter().map(named).collect(),
            dropped: reasons.into_iter().chain(others).map(named).collect(),
        }
    }
}

fn print(info: &Info, verbose: bool, out: &mut Output) -> Result<(), Failure> {
    let whose = if info.running { " of a running process" } else { "" };
    match (&info.fabric, &info.udp) {
        (Some(at), _) => {
            let Fabric { simulator, node, port, .. } = at;
            writeln!(out, "HCA{whose} at port {port} of {node} of the simulator {simulator}")?;
        }
        (None, Some(Udp { udp_port, .. })) => {
            writeln!(out, "HCA{whose} at {} UDP port {udp_port}", info.address)?;
        }
        (None, None) => writeln!(out, "HCA{whose} at {}", info.address)?,
    }
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        writeln!(out, "\t{:<24}{value}", format_args!("{name}:").to_string())
    };
    line("transport", &info.transport)?;
    line("node_guid", &info.node_guid)?;
    for gid in &info.gids {
        line("GID", gid)?;
    }
    if let Some(at) = &info.fabric {
        let state = if at.active { "PORT_ACTIVE" } else { "not active" };
        line("state", &state)?;
        line("port_lid, sm_lid", &format_args!("{}, {}", at.lid, at.sm_lid))?;
        line("addresses", &at.addresses.join(" "))?;
    }
    line("active_mtu", &info.active_mtu)?;
    line("connection_mtu", &info.connection_mtu)?;
    if !verbose {
        return Ok(());
    }
    if let Some(Udp { gso, gro, receive_buffer, send_buffer, .. }) = info.udp {
        line("gso, gro", &format_args!("{gso}, {gro}"))?;
        line("buffers", &format_args!("{receive_buffer} in, {send_buffer} out"))?;
    }
    line("window", &format_args!("{} packets of a connection", info.window))?;
    line("max_qp", &info.max_qp)?;
    line("max_cq, _ah", &info.max_objects)?;
    line("max_mr", &info.max_mr)?;
    line("max_qp_wr", &info.max_qp_wr)?;
    line("max_sge", &info.max_sge)?;
    line("max_inline_data", &info.max_inline_data)?;
    line("max_cqe", &info.max_cqe)?;
    line("ICRC sent", &info.icrc_sent)?;
    line("ICRC checked", &info.icrc_received)?;
    for (name, count) in &info.counters {
        line(name, count)?;
    }
    for (reason, count) in info.dropped.iter().filter(|(_, count)| **count > 0) {
        line(&format!("dropped, {reason}"), count)?;
    }
    Ok(())
}

/// Returns the JSON Schema of the output with `--json`.
pub(crate) fn schema() -> Schema {
    crate::schemas::of::<Info>()
}
