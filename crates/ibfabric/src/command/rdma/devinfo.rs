//! `rdma devinfo`: what an adapter is.

use std::io::Write as _;

use serde::Serialize;

use super::stage::Stage;
use crate::cli::rdma::DevinfoArgs;
use crate::failure::{Failure, Verdict};
use crate::output::{Format, Output};

/// What is told; the names are JSON keys.
#[derive(Serialize)]
struct Info {
    address: String,
    udp_port: u16,
    node_guid: String,
    gids: Vec<String>,
    transport: &'static str,
    active_mtu: usize,
    connection_mtu: usize,
    gso: bool,
    gro: bool,
    receive_buffer: usize,
    send_buffer: usize,
    window: u32,
    max_objects: usize,
    max_mr: usize,
    max_qp_wr: u32,
    max_sge: u32,
    max_inline_data: u32,
    max_cqe: u32,
    icrc_sent: &'static str,
    icrc_received: &'static str,
}

pub(super) fn run(args: &DevinfoArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let mut stage = Stage::open(&args.adapter, None)?;
    let device = &mut stage.device;
    let (address, connection_mtu) = (device.address(), device.connection_mtu().bytes());
    let socket = device.socket();
    let (udp_port, gso, gro) = (socket.port(), socket.gso(), socket.gro());
    let (receive_buffer, send_buffer) = socket.buffer_sizes();
    let config = device.hca().config();
    let info = Info {
        address: address.to_string(),
        udp_port,
        node_guid: config.node_guid.to_string(),
        gids: config.gids.iter().map(ToString::to_string).collect(),
        transport: "RoCEv2",
        active_mtu: config.active_mtu.bytes(),
        connection_mtu,
        gso,
        gro,
        receive_buffer,
        send_buffer,
        window: config.window,
        max_objects: config.max_objects,
        max_mr: config.max_mr,
        max_qp_wr: config.max_qp_wr,
        max_sge: config.max_sge,
        max_inline_data: config.max_inline_data,
        max_cqe: config.max_cqe,
        icrc_sent: "always",
        icrc_received: match address.is_ipv4() {
            true => "all but the IPv4 identification, which the system does not tell",
            false => "always",
        },
    };
    match args.format {
        Format::Json => out.json(&info)?,
        Format::Text => print(&info, args.verbose, out)?,
    }
    Ok(Verdict::Good)
}

fn print(info: &Info, verbose: bool, out: &mut Output) -> Result<(), Failure> {
    writeln!(out, "adapter at {} UDP port {}", info.address, info.udp_port)?;
    let mut line = |name: &str, value: &dyn std::fmt::Display| writeln!(out, "\t{name:<18}{value}");
    line("transport:", &info.transport)?;
    line("node_guid:", &info.node_guid)?;
    for gid in &info.gids {
        line("GID:", gid)?;
    }
    line("active_mtu:", &info.active_mtu)?;
    line("connection_mtu:", &info.connection_mtu)?;
    if !verbose {
        return Ok(());
    }
    line("gso, gro:", &format_args!("{}, {}", info.gso, info.gro))?;
    line("buffers:", &format_args!("{} in, {} out", info.receive_buffer, info.send_buffer))?;
    line("window:", &format_args!("{} packets of a connection", info.window))?;
    line("max_qp, _cq, _ah:", &info.max_objects)?;
    line("max_mr:", &info.max_mr)?;
    line("max_qp_wr:", &info.max_qp_wr)?;
    line("max_sge:", &info.max_sge)?;
    line("max_inline_data:", &info.max_inline_data)?;
    line("max_cqe:", &info.max_cqe)?;
    line("ICRC sent:", &info.icrc_sent)?;
    line("ICRC checked:", &info.icrc_received)?;
    Ok(())
}
