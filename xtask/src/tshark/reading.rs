//! Compares the fields that `ibfabric capture read` and tshark read, packet by packet.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::compare::missing;

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// The format in which `capture read` and tshark print a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A number in any base.
    Number,
    /// A flag: `capture read` prints true or false, tshark prints 1 or 0.
    Flag,
    /// Bytes that tshark prints in hexadecimal and `capture read` prints as a number.
    Bytes,
    /// Text.
    Text,
    /// A list, whose items tshark separates by [`BETWEEN`].
    List,
}

use Kind::{Bytes, Flag, List, Number, Text};

/// The character that separates several values of a field in tshark's output.
const BETWEEN: char = '\u{1}';

/// Pairs of a JSON path of `capture read` and tshark's name of the field. The order is: the frame, the headers up to
/// the BTH, checksums, the headers after the BTH.
const FIELDS: &[(&str, &str, Kind)] = &[
    ("number", "frame.number", Number),
    ("time", "frame.time_epoch", Text),
    ("length", "frame.len", Number),
    ("captured", "frame.cap_len", Number),
    ("interface", "frame.interface_name", Text),
    ("comments", "frame.comment", List),
    ("lrh/vl", "infiniband.lrh.vl", Number),
    ("lrh/sl", "infiniband.lrh.sl", Number),
    ("lrh/next_header", "infiniband.lrh.lnh", Number),
    ("lrh/dlid", "infiniband.lrh.dlid", Number),
    ("lrh/slid", "infiniband.lrh.slid", Number),
    ("lrh/length", "infiniband.lrh.pktlen", Number),
    ("grh/traffic_class", "infiniband.grh.tclass", Number),
    ("grh/flow_label", "infiniband.grh.flowlabel", Number),
    ("grh/payload_length", "infiniband.grh.paylen", Number),
    ("grh/hop_limit", "infiniband.grh.hoplmt", Number),
    ("grh/sgid", "infiniband.grh.sgid", Text),
    ("grh/dgid", "infiniband.grh.dgid", Text),
    ("udp/source_port", "udp.srcport", Number),
    ("udp/destination_port", "udp.dstport", Number),
    ("opcode", "infiniband.bth.opcode", Number),
    ("solicited", "infiniband.bth.se", Flag),
    ("migration", "infiniband.bth.m", Flag),
    ("pad", "infiniband.bth.padcnt", Number),
    ("p_key", "infiniband.bth.p_key", Number),
    ("qpn", "infiniband.bth.destqp", Number),
    ("ack_request", "infiniband.bth.a", Flag),
    ("psn", "infiniband.bth.psn", Number),
    ("icrc", "infiniband.invariant.crc", Number),
    ("vcrc", "infiniband.variant.crc", Number),
    ("deth/q_key", "infiniband.deth.q_key", Number),
    ("deth/source_qpn", "infiniband.deth.srcqp", Number),
    // For the address and the R_Key in an AtomicETH, tshark uses the names of the fields in an RETH.
    ("reth/va|atomic/va", "infiniband.reth.va", Number),
    ("reth/rkey|atomic/rkey", "infiniband.reth.r_key", Number),
    ("reth/length", "infiniband.reth.dmalen", Number),
    ("atomic/swap_or_add", "infiniband.atomiceth.swapdt", Number),
    ("atomic/compare", "infiniband.atomiceth.cmpdt", Number),
    ("aeth/syndrome", "infiniband.aeth.syndrome", Number),
    ("aeth/msn", "infiniband.aeth.msn", Number),
    ("atomic_ack/original", "infiniband.atomicacketh.origremdt", Number),
    ("immediate", "infiniband.immdt", Bytes),
    ("invalidate_rkey", "infiniband.ieth", Bytes),
    ("mad/base_version", "infiniband.mad.baseversion", Number),
    ("mad/class", "infiniband.mad.mgmtclass", Number),
    ("mad/class_version", "infiniband.mad.classversion", Number),
    ("mad/method", "infiniband.mad.method", Number),
    ("mad/tid", "infiniband.mad.transactionid", Number),
    ("mad/attribute_id", "infiniband.mad.attributeid", Number),
    ("mad/attribute_modifier", "infiniband.mad.attributemodifier", Number),
];

/// The first field in [`FIELDS`] that belongs to a header after the BTH.
const EXTENDED: &str = "deth/q_key";

/// Fields of CM messages: message, JSON path of `capture read`, and tshark's name. tshark has separate names for each
/// message.
const MESSAGES: &[(&str, &str, &str)] = &[
    ("REQ", "local_comm_id", "infiniband.cm.req"),
    ("REQ", "service_id", "infiniband.cm.req.serviceid"),
    ("REQ", "local_ca_guid", "infiniband.cm.req.localcaguid"),
    ("REQ", "local_qpn", "infiniband.cm.req.localqpn"),
    ("REQ", "starting_psn", "infiniband.cm.req.startpsn"),
    ("REQ", "retry_count", "infiniband.cm.req.retrcount"),
    ("REQ", "p_key", "infiniband.cm.req.pkey"),
    ("REQ", "path_mtu", "infiniband.cm.req.pppmtu"),
    ("REQ", "primary_path/local_ack_timeout", "infiniband.cm.req.prim_localacktout"),
    ("REQ", "cma/source_port", "infiniband.cm.req.ip_cm.sport"),
    ("REP", "local_comm_id", "infiniband.cm.rep"),
    ("REP", "remote_comm_id", "infiniband.cm.rep.remotecommid"),
    ("REP", "local_qpn", "infiniband.cm.rep.localqpn"),
    ("REP", "starting_psn", "infiniband.cm.rep.startpsn"),
    ("REP", "target_ack_delay", "infiniband.cm.rep.tgtackdelay"),
    ("RTU", "local_comm_id", "infiniband.cm.rtu.localcommid"),
    ("RTU", "remote_comm_id", "infiniband.cm.rtu.remotecommid"),
    ("REJ", "local_comm_id", "infiniband.cm.rej.localcommid"),
    ("REJ", "remote_comm_id", "infiniband.cm.rej.remotecommid"),
    ("REJ", "reason", "infiniband.cm.rej.reason"),
    ("DREQ", "local_comm_id", "infiniband.cm.dreq.localcommid"),
    ("DREQ", "remote_comm_id", "infiniband.cm.dreq.remotecommid"),
    ("DREQ", "remote_qpn", "infiniband.cm.req.remoteqpneecn"),
    ("DREP", "local_comm_id", "infiniband.cm.drsp.localcommid"),
    ("DREP", "remote_comm_id", "infiniband.cm.drsp.remotecommid"),
];

/// Fields by which ICMP messages are recognized. tshark also decodes a packet that an ICMP error quotes. The fields of
/// such a packet are not compared, because `capture read` ignores it.
const QUOTES: [&str; 2] = ["icmp.type", "icmpv6.type"];

/// The result of a comparison.
#[derive(Default)]
pub(crate) struct Compared {
    /// Number of compared files.
    files: usize,
    frames: usize,
    /// Number of RDMA packets in the files.
    packets: usize,
    fields: usize,
    /// Number of checksums that tshark does not show.
    hidden: usize,
    /// Number of packets whose headers tshark misreads.
    misread: usize,
    pub(crate) faults: Vec<String>,
}

/// Returns true if tshark is installed.
pub(crate) fn is_installed() -> bool {
    Command::new("tshark").arg("--version").output().is_ok()
}

impl Compared {
    /// Returns how many files were compared.
    pub(crate) const fn files(&self) -> usize {
        self.files
    }

    /// Returns how many RDMA packets the compared files contain.
    pub(crate) const fn packets(&self) -> usize {
        self.packets
    }

    pub(crate) fn print(&self) {
        let Self { files, frames, packets, fields, hidden, misread, faults } = self;
        let differ = faults.len();
        eprintln!(
            "capture read: {files} files, {frames} frames, {packets} packets, {fields} fields compared, {differ} differ"
        );
        eprintln!(
            "tshark does not show {hidden} checksums, and misreads the headers of {misread} packets (RD, XRC)"
        );
    }

    /// Compares the fields that `capture read` and tshark read from a capture file. `ports` are UDP ports that are used
    /// for RoCEv2 in addition to 4791.
    pub(crate) fn file(&mut self, binary: &Path, file: &Path, ports: &[u16]) -> Fallible<()> {
        let ours = ours(binary, file, ports)?;
        let theirs = theirs(file, ports)?;
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if ours.len() != theirs.len() {
            let (ours, theirs) = (ours.len(), theirs.len());
            return Err(format!("{name}: capture read finds {ours} frames, tshark {theirs}").into());
        }
        self.files += 1;
        for (object, row) in ours.iter().zip(&theirs) {
            self.frame(&name, object, row);
        }
        Ok(())
    }

    fn frame(&mut self, file: &str, object: &Value, row: &[String]) {
        self.frames += 1;
        let is_foreign = !object["foreign"].is_null();
        self.packets += usize::from(!is_foreign);
        let service = object["opcode"].as_u64().map(|code| code >> 5);
        // In reliable datagrams (transport service 2), tshark 4.0 expects the headers after the RDETH at offsets that
        // are too large by eight bytes. It does not know the XRCETH (transport service 5).
        let is_misread = matches!(service, Some(2 | 5));
        self.misread += usize::from(is_misread);
        let mut is_extended = false;
        let is_quoted = row[row.len() - QUOTES.len()..].iter().any(|found| !found.is_empty());
        for ((path, name, kind), found) in FIELDS.iter().zip(row) {
            is_extended |= *path == EXTENDED;
            // Skips the UDP ports of frames that are not RDMA packets, and headers that tshark misreads.
            if is_foreign && name.starts_with("udp.") || is_misread && is_extended {
                continue;
            }
            if is_foreign && is_quoted && name.starts_with("infiniband.") {
                continue;
            }
            let wanted = at(object, path);
            if name.ends_with(".crc") && (found.is_empty() || is_misread) {
                // tshark does not show checksums after some payloads that it cannot decode.
                self.hidden += usize::from(!wanted.is_null());
                continue;
            }
            self.compare(file, object, (path, &wanted), (name, found), *kind);
        }
        let message = object["upper"]["message"].as_str().unwrap_or_default();
        for ((of, path, name), found) in MESSAGES.iter().zip(&row[FIELDS.len()..]) {
            if *of == message && object["upper"]["protocol"] == "cm" {
                let wanted = at(&object["upper"], path);
                self.compare(file, object, (path, &wanted), (name, found), Number);
            }
        }
    }

    fn compare(
        &mut self,
        file: &str,
        object: &Value,
        (path, wanted): (&str, &Value),
        (name, found): (&str, &str),
        kind: Kind,
    ) {
        if wanted.is_null() && found.is_empty() {
            return;
        }
        self.fields += 1;
        if !same(wanted, found, kind) {
            let number = &object["number"];
            self.faults.push(format!(
                "{file}, packet {number}: {path} is {wanted}, but tshark's {name} is {found:?}"
            ));
        }
    }
}

/// Returns the value at the first of the given paths that exists in the object.
fn at(object: &Value, paths: &str) -> Value {
    let find = |path: &str| path.split('/').fold(object, |value, part| &value[part]).clone();
    paths.split('|').map(find).find(|value| !value.is_null()).unwrap_or_default()
}

fn same(ours: &Value, theirs: &str, kind: Kind) -> bool {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    match kind {
        Number => {
            let ours = ours.as_u64().or_else(|| ours.as_str().and_then(number));
            ours.is_some() && ours == number(theirs)
        }
        Flag => ours.as_bool() == number(theirs).map(|flag| flag == 1),
        Bytes => ours.as_u64() == u64::from_str_radix(&theirs.replace(':', ""), 16).ok(),
        Text => ours.as_str() == Some(theirs),
        List => {
            let all = ours.as_array().into_iter().flatten().filter_map(Value::as_str);
            let theirs = theirs.split(BETWEEN).filter(|comment| !comment.is_empty());
            all.eq(theirs)
        }
    }
}

/// Returns the JSON objects that `capture read` prints.
fn ours(binary: &Path, file: &Path, ports: &[u16]) -> Fallible<Vec<Value>> {
    let mut command = Command::new(binary);
    command.args(["capture", "read", "--json"]).arg(file);
    for port in ports {
        command.args(["--udp-port", &port.to_string()]);
    }
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || !said.is_empty() {
        return Err(format!("capture read failed for {}: {said}", file.display()).into());
    }
    let lines = String::from_utf8(output.stdout)?;
    Ok(lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

/// Returns the values of [`FIELDS`], [`MESSAGES`] and [`QUOTES`] that tshark reads from each frame. Fails if tshark
/// prints a warning.
fn theirs(file: &Path, ports: &[u16]) -> Fallible<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).arg("-n");
    // Disables two dissectors of tshark whose heuristics match arbitrary payloads.
    command.args(["--disable-protocol", "rpcordma", "--disable-protocol", "infiniband.eoib"]);
    for port in ports {
        command.args(["-d", &format!("udp.port=={port},infiniband")]);
    }
    command.args(["-T", "fields", "-E", "separator=/t", "-E", "occurrence=a"]);
    command.args(["-E", &format!("aggregator={BETWEEN}")]);
    let names = FIELDS.iter().map(|field| field.1).chain(MESSAGES.iter().map(|field| field.2));
    for name in names.chain(QUOTES) {
        command.args(["-e", name]);
    }
    let output = command.output().map_err(missing)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // tshark also warns if it runs as root. This warning does not concern the capture file.
    let warned = said.lines().any(|line| !line.is_empty() && !line.starts_with("Running as user"));
    if !output.status.success() || warned {
        return Err(format!("tshark failed for {}: {said}", file.display()).into());
    }
    let lines = String::from_utf8(output.stdout)?;
    let row = |line: &str| -> Vec<String> {
        let values = line.split('\t').enumerate();
        values
            .map(|(index, value)| match FIELDS.get(index) {
                Some((_, _, List)) => value.to_owned(),
                // If a field has several values, only the first one is compared, which is that of the outermost header.
                _ => value.split(BETWEEN).next().unwrap_or_default().to_owned(),
            })
            .collect()
    };
    Ok(lines.lines().map(row).collect())
}
