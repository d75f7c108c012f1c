//! Dissects CM messages.

use ib_wire::mad::cm::connect::ConnectPath;
use ib_wire::mad::cm::path::Apr;
use ib_wire::mad::cm::{CmaHeader, Drep, Dreq, Lap, Mra, Rej, Rep, Req, Rtu, SidrRep, SidrReq};
use ib_wire::mad::{AttributeId, Mad};
use ib_wire::rtrs::{ConnectRequest, ConnectResponse};

use super::fields::{Fields, hex};
use super::layer::Layer;
use super::rtrs;

/// A CM message.
#[derive(Clone, Debug)]
pub(super) enum Message {
    Req(Box<Req>),
    Mra(Box<Mra>),
    Rej(Box<Rej>),
    Rep(Box<Rep>),
    Rtu(Box<Rtu>),
    Dreq(Box<Dreq>),
    Drep(Box<Drep>),
    SidrReq(Box<SidrReq>),
    SidrRep(Box<SidrRep>),
    Lap(Box<Lap>),
    Apr(Box<Apr>),
}

impl Message {
    /// Parses a MAD of the CM class.
    pub(super) fn read(mad: &Mad) -> Option<Self> {
        Some(match mad.attribute_id() {
            AttributeId::CM_REQ => Self::Req(Box::new(mad.attribute()?)),
            AttributeId::CM_MRA => Self::Mra(Box::new(mad.attribute()?)),
            AttributeId::CM_REJ => Self::Rej(Box::new(mad.attribute()?)),
            AttributeId::CM_REP => Self::Rep(Box::new(mad.attribute()?)),
            AttributeId::CM_RTU => Self::Rtu(Box::new(mad.attribute()?)),
            AttributeId::CM_DREQ => Self::Dreq(Box::new(mad.attribute()?)),
            AttributeId::CM_DREP => Self::Drep(Box::new(mad.attribute()?)),
            AttributeId::CM_SIDR_REQ => Self::SidrReq(Box::new(mad.attribute()?)),
            AttributeId::CM_SIDR_REP => Self::SidrRep(Box::new(mad.attribute()?)),
            AttributeId::CM_LAP => Self::Lap(Box::new(mad.attribute()?)),
            AttributeId::CM_APR => Self::Apr(Box::new(mad.attribute()?)),
            _ => return None,
        })
    }

    /// Returns the layer of the message.
    pub(super) fn layer(&self) -> Layer {
        match self {
            Self::Req(req) => request(req),
            Self::Rep(rep) => {
                let mut layer = plain("REP", Rep::FIELDS, &rep.to_bytes()).about(format!(
                    "qp {:#x} psn {} id {:#x} to {:#x}",
                    rep.local_qpn.get(),
                    rep.starting_psn.get(),
                    rep.local_comm_id,
                    rep.remote_comm_id
                ));
                private(&mut layer.fields, &rep.private_data);
                layer.carries(response(&rep.private_data))
            }
            Self::Rej(rej) => {
                let about = format!("{} refused: {}", rej.message, rej.reason);
                let mut layer = plain("REJ", Rej::FIELDS, &rej.to_bytes()).about(about);
                layer.fields.put("what", rej.message.0);
                layer.fields.text("reason_name", rej.reason);
                layer.fields.text("info", hex(&rej.info));
                private(&mut layer.fields, &rej.private_data);
                layer.carries(response(&rej.private_data))
            }
            Self::Mra(mra) => {
                let about = format!("{}, timeout {}", mra.message, mra.service_timeout);
                let mut layer = plain("MRA", Mra::FIELDS, &mra.to_bytes()).about(about);
                layer.fields.put("what", mra.message.0);
                private(&mut layer.fields, &mra.private_data);
                layer
            }
            Self::Rtu(rtu) => {
                let about = ids(rtu.local_comm_id, rtu.remote_comm_id);
                let mut layer = plain("RTU", Rtu::FIELDS, &rtu.to_bytes()).about(about);
                private(&mut layer.fields, &rtu.private_data);
                layer
            }
            Self::Dreq(dreq) => {
                let about = format!("qp {:#x}", dreq.remote_qpn.get());
                let mut layer = plain("DREQ", Dreq::FIELDS, &dreq.to_bytes()).about(about);
                private(&mut layer.fields, &dreq.private_data);
                layer
            }
            Self::Drep(drep) => {
                let about = ids(drep.local_comm_id, drep.remote_comm_id);
                let mut layer = plain("DREP", Drep::FIELDS, &drep.to_bytes()).about(about);
                private(&mut layer.fields, &drep.private_data);
                layer
            }
            Self::SidrReq(req) => {
                let (cma, rest) = header(&req.private_data);
                let mut layer = plain("SIDR_REQ", SidrReq::FIELDS, &req.to_bytes()).about(format!(
                    "service 0x{:016x}{}",
                    req.service_id,
                    asks(cma.as_ref())
                ));
                addresses(&mut layer.fields, cma.as_ref());
                private(&mut layer.fields, rest);
                layer
            }
            Self::SidrRep(rep) => {
                let about = format!("{}, qp {:#x}", rep.status, rep.qpn.get());
                let mut layer = plain("SIDR_REP", SidrRep::FIELDS, &rep.to_bytes()).about(about);
                layer.fields.text("status_name", rep.status);
                layer.fields.text("info", hex(&rep.info));
                private(&mut layer.fields, &rep.private_data);
                layer
            }
            Self::Lap(lap) => {
                let about = format!("qp {:#x}", lap.remote_qpn.get());
                let mut layer = plain("LAP", Lap::FIELDS, &lap.to_bytes()).about(about);
                private(&mut layer.fields, &lap.private_data);
                layer
            }
            Self::Apr(apr) => {
                let about = apr.status.to_string();
                let mut layer = plain("APR", Apr::FIELDS, &apr.to_bytes()).about(about);
                layer.fields.text("status_name", apr.status);
                layer.fields.text("info", hex(&apr.info));
                private(&mut layer.fields, &apr.private_data);
                layer
            }
        }
    }
}

/// Returns the `rdma_cm` header of private data, if any, and the data after the header.
pub(super) fn header(data: &[u8]) -> (Option<CmaHeader>, &[u8]) {
    let Some((header, rest)) = data.split_first_chunk() else { return (None, data) };
    match CmaHeader::parse(header) {
        Some(header) => (Some(header), rest),
        None => (None, data),
    }
}

/// Returns the RTRS connect request in the private data of a REQ.
pub(super) fn rtrs_request(req: &Req) -> Option<ConnectRequest> {
    let (_, rest) = header(&req.private_data);
    ConnectRequest::read(rest).ok()
}

fn request(req: &Req) -> Layer {
    let (cma, rest) = header(&req.private_data);
    let bytes = req.to_bytes();
    let mut layer = plain("REQ", Req::FIELDS, &bytes).about(format!(
        "service 0x{:016x}{} qp {:#x} psn {} id {:#x}",
        req.service_id,
        asks(cma.as_ref()),
        req.local_qpn.get(),
        req.starting_psn.get(),
        req.local_comm_id
    ));
    let fields = &mut layer.fields;
    fields.text("transport_name", req.transport);
    for (name, path) in
        [("primary_path", &req.primary_path), ("alternate_path", &req.alternate_path)]
    {
        if *path != ConnectPath::zeroed() {
            let mut group = Fields::new();
            group.layout(ConnectPath::FIELDS, &path.to_bytes(), &[]);
            fields.group(name, group);
        }
    }
    addresses(fields, cma.as_ref());
    private(fields, rest);
    layer.carries(rtrs_request(req).map(|request| rtrs::connect_request(&request)))
}

fn response(data: &[u8]) -> Option<Layer> {
    let response = ConnectResponse::read(data).ok()?;
    Some(rtrs::connect_response(&response))
}

/// Creates the layer of a CM message with the fields of its layout. The caller adds the fields in `except` itself.
fn plain(name: &'static str, fields: &[ib_wire::layout::FieldInfo], bytes: &[u8]) -> Layer {
    let mut layer = Layer::new("cm", name);
    let except = ["private_data", "info", "message", "primary_path", "alternate_path"];
    layer.fields.layout(fields, bytes, &except);
    layer
}

fn private(fields: &mut Fields, data: &[u8]) {
    fields.text("private_data", hex(data));
}

fn addresses(fields: &mut Fields, cma: Option<&CmaHeader>) {
    let Some(CmaHeader { source, destination }) = cma else { return };
    let mut group = Fields::new();
    group.text("source", source.ip());
    group.put("source_port", source.port());
    group.text("destination", destination);
    fields.group("cma", group);
}

fn asks(cma: Option<&CmaHeader>) -> String {
    cma.map_or(String::new(), |cma| format!(" {} → {}", cma.source, cma.destination))
}

fn ids(local: u32, remote: u32) -> String {
    format!("id {local:#x} to {remote:#x}")
}
