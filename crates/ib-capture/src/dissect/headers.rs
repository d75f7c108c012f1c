//! Shows the headers of a packet as fields.

use ib_wire::packet::{Packet, RoceNetwork};

use super::Dissection;
use super::fields::{Fields, Value};

impl Dissection<'_> {
    /// Returns all fields: addresses, headers in their order on the wire, checksums, and the
    /// protocols above the transport.
    #[must_use]
    pub fn to_fields(&self) -> Fields {
        let packet = &self.packet;
        let mut fields = Fields::new();
        fields.text("src", self.source);
        fields.text("dst", self.destination);
        if let Some(network) = &self.network {
            fields.group("udp", udp(network));
        }
        link(packet, &mut fields);
        let bth = packet.bth();
        fields.put("opcode", bth.opcode.0);
        fields.text("opcode_name", bth.opcode);
        fields.put("qpn", bth.destination.get());
        fields.put("source_qpn", self.source_qpn.map(ib_types::Qpn::get));
        fields.put("psn", bth.psn.get());
        fields.put("p_key", bth.p_key.0);
        fields.put("solicited", bth.solicited_event);
        fields.put("migration", bth.migration);
        fields.put("ack_request", bth.ack_request);
        fields.put("fecn", bth.fecn);
        fields.put("becn", bth.becn);
        fields.put("pad", packet.pad_count() as u32);
        extended(packet, &mut fields);
        fields.put("payload_length", packet.payload().len() as u32);
        fields.put("payload_captured", self.kept as u32);
        fields.put("icrc", self.icrc_ok.map(|_| packet.icrc()));
        fields.put("icrc_ok", self.icrc_ok);
        if packet.is_native() {
            fields.put("vcrc", self.vcrc_ok.and_then(|_| packet.vcrc()));
            fields.put("vcrc_ok", self.vcrc_ok);
        }
        if let Some(mad) = &self.mad {
            fields.group("mad", mad.to_fields());
        }
        if let Some(upper) = &self.upper {
            fields.group("upper", upper.to_fields());
        }
        fields
    }
}

fn udp(network: &RoceNetwork) -> Fields {
    let mut fields = Fields::new();
    fields.put("source_port", network.source_port);
    fields.put("destination_port", network.destination_port);
    fields
}

/// Adds the fields of the headers before the BTH.
fn link(packet: &Packet<'_>, fields: &mut Fields) {
    if let Some(lrh) = packet.lrh() {
        let mut group = Fields::new();
        group.put("vl", lrh.vl.get());
        group.put("link_version", lrh.link_version);
        group.put("sl", lrh.sl.get());
        group.put("next_header", lrh.next_header.0);
        group.put("dlid", lrh.dlid);
        group.put("length", lrh.length);
        group.put("slid", lrh.slid);
        fields.group("lrh", group);
    }
    if let Some(grh) = packet.grh() {
        let mut group = Fields::new();
        group.put("traffic_class", grh.traffic_class);
        group.put("flow_label", grh.flow_label);
        group.put("payload_length", grh.payload_length);
        group.put("next_header", grh.next_header);
        group.put("hop_limit", grh.hop_limit);
        group.text("sgid", grh.source);
        group.text("dgid", grh.destination);
        fields.group("grh", group);
    }
}

/// Adds the fields of the headers after the BTH.
fn extended(packet: &Packet<'_>, fields: &mut Fields) {
    if let Some(rdeth) = packet.rdeth() {
        fields.group("rdeth", with([("ee_context", rdeth.ee_context.into())]));
    }
    if let Some(deth) = packet.deth() {
        let (q_key, source) = (deth.q_key.0.into(), deth.source.get().into());
        fields.group("deth", with([("q_key", q_key), ("source_qpn", source)]));
    }
    if let Some(xrceth) = packet.xrceth() {
        fields.group("xrceth", with([("receive_queue", xrceth.receive_queue.into())]));
    }
    if let Some(reth) = packet.reth() {
        let reth = [
            ("va", reth.virtual_address.into()),
            ("rkey", reth.r_key.into()),
            ("length", reth.dma_length.into()),
        ];
        fields.group("reth", with(reth));
    }
    if let Some(atomic) = packet.atomic_eth() {
        let atomic = [
            ("va", atomic.virtual_address.into()),
            ("rkey", atomic.r_key.into()),
            ("swap_or_add", atomic.swap_or_add.into()),
            ("compare", atomic.compare.into()),
        ];
        fields.group("atomic", with(atomic));
    }
    if let Some(aeth) = packet.aeth() {
        let aeth = [
            ("syndrome", aeth.syndrome.0.into()),
            ("msn", aeth.msn.into()),
            ("meaning", aeth.syndrome.decode().to_string().into()),
        ];
        fields.group("aeth", with(aeth));
    }
    if let Some(atomic) = packet.atomic_ack_eth() {
        fields.group("atomic_ack", with([("original", atomic.original.into())]));
    }
    if let Some(immediate) = packet.immdt() {
        fields.put("immediate", immediate.data);
    }
    if let Some(ieth) = packet.ieth() {
        fields.put("invalidate_rkey", ieth.r_key);
    }
}

fn with<const N: usize>(all: [(&'static str, Value); N]) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in all {
        fields.put(name, value);
    }
    fields
}
