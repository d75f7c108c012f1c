//! Runs `ibfabric capture read` on complete, truncated, non-RDMA and invalid files.

use std::fs;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use ib_pcap::{Interface, LinkType, Packet as Captured, PacketFlags, Section, Statistics, Writer};
use ib_types::{Psn, QKey, Qpn};
use ib_wire::mad::cm::{Rep, Req};
use ib_wire::mad::{Attribute, Mad, Method, MgmtClass, TransactionId};
use ib_wire::packet::roce::{RoceAddresses, RoceHop, RoceNetwork};
use ib_wire::packet::{Aeth, Bth, Builder, Deth, Lrh, Opcode, Reth, Syndrome};
use serde_json::Value;

fn read(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ibfabric"));
    command.args(["capture", "read"]).args(words).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the output is UTF-8")
}

fn lines(output: &Output) -> Vec<String> {
    text(&output.stdout).lines().map(str::to_owned).collect()
}

fn objects(output: &Output) -> Vec<Value> {
    let parse = |line: &String| serde_json::from_str(line).expect("the text is JSON");
    lines(output).iter().map(parse).collect()
}

/// A temporary directory for capture files.
struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory can be created"))
    }

    fn file(&self, name: &str, content: &[u8]) -> String {
        let path: PathBuf = self.0.path().join(name);
        fs::write(&path, content).expect("the file can be written");
        path.display().to_string()
    }
}

/// Returns a RoCEv2 frame to the given UDP port, from the client to the server or in the opposite direction.
fn frame(to_server: bool, port: u16, builder: Builder<'_>) -> Vec<u8> {
    let [client, server] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
    let (source, destination) = if to_server { (client, server) } else { (server, client) };
    let addresses = RoceAddresses::V4 { source, destination, identification: 1, fragment: 0x4000 };
    let network = RoceNetwork { addresses, source_port: 0xc123, destination_port: port };
    let mut buffer = vec![0; 600];
    let headers = 14 + network.length();
    let length =
        builder.emit_roce(&network, &mut buffer[headers..]).expect("the buffer is large enough");
    network.emit(RoceHop::default(), length, &mut buffer[14..]);
    buffer[12..14].copy_from_slice(&[0x08, 0x00]);
    buffer.truncate(headers + length);
    buffer
}

fn bth(opcode: Opcode, to: u32, psn: u32) -> Bth {
    Bth { opcode, destination: Qpn::truncated(to), psn: Psn::truncated(psn), ..Bth::default() }
}

fn message(to_server: bool, attribute: &impl Attribute) -> Vec<u8> {
    let mut mad = Mad::new(MgmtClass::COMMUNICATION, Method::SEND, TransactionId(7));
    mad.set_attribute(attribute);
    let builder = Builder::new(bth(Opcode::UD_SEND_ONLY, 1, 0));
    let deth = Deth { q_key: QKey::GSI, source: Qpn::GSI };
    frame(to_server, 4791, builder.deth(deth).payload(&mad.0))
}

/// Returns a capture file with six Ethernet frames on one interface and a native InfiniBand packet on another.
fn sample() -> Vec<u8> {
    let mut req = Req { local_qpn: Qpn::truncated(0x11), local_comm_id: 5, ..Req::zeroed() };
    req.service_id = 0x0106_1c06;
    let mut rep = Rep { local_qpn: Qpn::truncated(0x22), remote_comm_id: 5, ..Rep::zeroed() };
    rep.local_comm_id = 6;
    let reth = Reth { virtual_address: 0xffff_0000_1000, r_key: 0x99, dma_length: 5 };
    let write = Builder::new(bth(Opcode::RC_WRITE_ONLY, 0x22, 70)).reth(reth).payload(b"hello");
    let aeth = Aeth { syndrome: Syndrome::ACK, msn: 1 };
    let ack = Builder::new(bth(Opcode::RC_ACKNOWLEDGE, 0x11, 70)).aeth(aeth);
    let send = Builder::new(bth(Opcode::RC_SEND_ONLY, 0x33, 1)).payload(b"elsewhere");
    let mut wrong = frame(true, 4791, send);
    *wrong.last_mut().expect("the frame ends with an ICRC") ^= 1;
    let frames = [
        message(true, &req),
        message(false, &rep),
        frame(true, 4791, write),
        frame(false, 4791, ack),
        wrong,
        frame(true, 4800, send),
    ];
    let mut writer = Writer::new(Vec::new(), &Section::default()).expect("a vector accepts data");
    let ethernet = Interface::new(LinkType::ETHERNET).named("eth0");
    let ethernet = writer.interface(&ethernet).expect("a vector accepts data");
    let fabric = writer.interface(&Interface::new(LinkType::ERF)).expect("a vector accepts data");
    for (index, frame) in frames.iter().enumerate() {
        let flags = if index % 2 == 0 { PacketFlags::OUTBOUND } else { PacketFlags::INBOUND };
        let time = 1_700_000_000_000_000_000 + 1001 * index as u64;
        let mut packet = Captured::new(ethernet, time, frame).flags(flags);
        if index == 2 {
            packet = Captured { dropped: Some(3), ..packet }.comment("sent again").comment("so");
        }
        writer.packet(&packet).expect("a vector accepts data");
    }
    let lrh = Lrh { slid: 3, dlid: 9, ..Lrh::default() };
    let mut native = [0; 64];
    let length = send.lrh(lrh).emit(&mut native).expect("the buffer is large enough");
    let packet = Captured::new(fabric, 1_700_000_001_000_000_000, &native[..length]);
    writer.infiniband(&packet, 0).expect("a vector accepts data");
    let statistics = Statistics {
        interface: ethernet,
        received: Some(9),
        dropped: Some(4),
        ..Statistics::default()
    };
    writer.statistics(&statistics).expect("a vector accepts data");
    writer.finish().expect("a vector accepts data")
}

#[test]
fn file_is_printed_as_lines() {
    let directory = Directory::new();
    let file = directory.file("good.pcapng", &sample());
    let output = read(&[&file]);
    assert_eq!(output.status.code(), Some(0));
    let expected = [
        "     1 0.000000000 \"eth0\" 192.0.2.1 → 192.0.2.2 UD SEND only qp 0x1 → 0x1 psn 0 len 256 \
         CM REQ service 0x0000000001061c06 qp 0x11 psn 0 id 0x5",
        "     2 0.000001001 \"eth0\" 192.0.2.2 → 192.0.2.1 UD SEND only qp 0x1 → 0x1 psn 0 len 256 \
         CM REP qp 0x22 psn 0 id 0x6 to 0x5",
        "     3 0.000002002 \"eth0\" 192.0.2.1 → 192.0.2.2 RC RDMA WRITE only qp 0x11 → 0x22 psn 70 \
         va 0xffff00001000 rkey 0x99 of 5 len 5 [3 missing before] [sent again] [so]",
        "     4 0.000003003 \"eth0\" 192.0.2.2 → 192.0.2.1 RC acknowledge qp 0x22 → 0x11 psn 70 \
         ACK msn 1",
        "     5 0.000004004 \"eth0\" 192.0.2.1 → 192.0.2.2 RC SEND only qp 0x33 psn 1 len 9 wrong ICRC",
        "     6 0.000005005 \"eth0\" non-RDMA: UDP port 4800: expected 4791 or a port given by \
         --udp-port",
        "     7 1.000000000 lid 3 → lid 9 RC SEND only qp 0x33 psn 1 len 9",
    ];
    assert_eq!(lines(&output), expected);
    let printed = text(&output.stderr);
    assert_eq!(
        printed,
        format!(
            "ibfabric: {file}: 7 frames, 6 packets, 1 non-RDMA; 4 missing in the capture\n\
             ibfabric: {file}: 1 packets with a wrong ICRC\n\
             ibfabric: eth0: 9 seen, 4 missed\n"
        )
    );
    let output = read(&[&file, "--verbose", "--opcode", "rdma-write"]);
    let found = text(&output.stdout);
    for part in ["    reth:\n        va: 0xffff00001000\n", "    icrc_ok: yes\n"] {
        assert!(found.contains(part), "{found}");
    }
}

#[test]
fn file_is_printed_as_objects() {
    let directory = Directory::new();
    let file = directory.file("good.pcapng", &sample());
    let output = read(&[&file, "--json"]);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    let found = objects(&output);
    assert_eq!(found.len(), 7);
    let write = &found[2];
    let keys: Vec<&String> = write.as_object().expect("the value is an object").keys().collect();
    let expected = [
        "ack_request",
        "becn",
        "captured",
        "comments",
        "direction",
        "dst",
        "fecn",
        "icrc",
        "icrc_ok",
        "interface",
        "length",
        "lost",
        "migration",
        "number",
        "opcode",
        "opcode_name",
        "p_key",
        "pad",
        "payload_captured",
        "payload_length",
        "psn",
        "qpn",
        "reth",
        "solicited",
        "source_qpn",
        "src",
        "time",
        "udp",
    ];
    assert_eq!(keys, expected);
    assert_eq!((&write["number"], &write["qpn"]), (&3.into(), &0x22.into()));
    assert_eq!((&write["time"], &write["lost"]), (&"1700000000.000002002".into(), &3.into()));
    assert_eq!(write["reth"]["va"], "0xffff00001000");
    assert_eq!(write["comments"], serde_json::json!(["sent again", "so"]));
    assert_eq!((&write["pad"], &write["icrc_ok"]), (&3.into(), &true.into()));
    assert_eq!(
        (&found[0]["mad"]["class"], &found[0]["upper"]["message"]),
        (&7.into(), &"REQ".into())
    );
    assert_eq!(found[4]["icrc_ok"], false);
    let foreign = "UDP port 4800: expected 4791 or a port given by --udp-port";
    assert_eq!(found[5]["foreign"], foreign);
    assert_eq!((&found[6]["interface"], &found[6]["lrh"]["dlid"]), (&Value::Null, &9.into()));
    // The length is that of the packet on the link, without the ERF header.
    assert_eq!((&found[6]["length"], &found[6]["vcrc_ok"]), (&38.into(), &true.into()));
}

#[test]
fn filters_select_packets() {
    let directory = Directory::new();
    let file = directory.file("good.pcapng", &sample());
    for (words, expected) in [
        (&["--qpn", "0x22"][..], &[3, 4][..]),
        (&["--qpn", "17", "--qpn", "0x33"], &[3, 4, 5, 7]),
        (&["--opcode", "4"], &[5, 7]),
        (&["--opcode", "RC SEND only", "--opcode", "acknowledge"], &[4, 5, 7]),
        (&["--class", "cm"], &[1, 2]),
        (&["--class", "ComMgt", "--direction", "send"], &[1]),
        (&["--class", "sa"], &[]),
        (&["--direction", "receive"], &[2, 4, 6]),
        (&["--udp-port", "4800", "--qpn", "0x33"], &[5, 6, 7]),
        (&["--count", "3"], &[1, 2, 3]),
        (&["--qpn", "0x33", "--count", "1"], &[5]),
    ] {
        let output = read(&[&[&file, "--json"], words].concat());
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        let found: Vec<u64> =
            objects(&output).iter().filter_map(|object| object["number"].as_u64()).collect();
        assert_eq!(found, expected, "{words:?}");
    }
}

#[test]
fn packets_of_a_cut_off_file_are_printed() {
    let directory = Directory::new();
    let whole = sample();
    let all = lines(&read(&[&directory.file("whole", &whole)]));
    let mut most = 0;
    for length in (0..whole.len()).step_by(97) {
        let file = directory.file("cut", &whole[..length]);
        let output = read(&[&file]);
        let printed = text(&output.stderr);
        let shown = lines(&output);
        assert_eq!(shown[..], all[..shown.len()], "{length} bytes");
        assert!(shown.len() >= most, "{length} bytes");
        most = shown.len();
        if output.status.code() != Some(0) {
            assert_eq!(output.status.code(), Some(2), "{length} bytes: {printed}");
            assert!(printed.contains(&format!("{file}: byte ")), "{length} bytes: {printed}");
        }
    }
    assert!(most > 4);
}

#[test]
fn file_that_is_not_a_capture_is_rejected() {
    let directory = Directory::new();
    for (name, content, expected) in [
        ("text", &b"vendid=0x2c9\ndevid=0xb924\n"[..], "byte 0: the magic number is 0x76656e64"),
        ("empty", b"", "byte 0: the file ends within the magic number"),
    ] {
        let file = directory.file(name, content);
        let output = read(&[&file]);
        let printed = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        assert!(printed.starts_with(&format!("ibfabric: {file}: {expected}")), "{printed}");
        assert_eq!(printed.lines().count(), 1, "{printed}");
    }
    let output = read(&["/nowhere/at/all.pcapng"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("cannot read /nowhere/at/all.pcapng: No such file"));
}

#[test]
fn invalid_option_values_are_rejected() {
    for (words, expected) in [
        (["-", "--opcode", "SEEND"], "expected a code of 0 to 255, or words"),
        (["-", "--opcode", "256"], "expected a code of 0 to 255, or words"),
        (["-", "--class", "nothing"], "expected sm, sa, pm, cm, acm"),
        (["-", "--qpn", "0x1000000"], "expected a number of 0 to 0xffffff"),
        (["-", "--count", "0"], "0 is not in 1.."),
    ] {
        let output = read(&words);
        let printed = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {printed}");
        assert!(printed.contains(expected), "{words:?}: {printed}");
    }
}

#[test]
fn standard_input_is_read() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ibfabric"));
    command.args(["capture", "read", "-", "--qpn", "0x22"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program runs");
    let sample = sample();
    child
        .stdin
        .take()
        .expect("standard input is piped")
        .write_all(&sample)
        .expect("the program reads its input");
    let output = child.wait_with_output().expect("the process can be awaited");
    assert_eq!((output.status.code(), lines(&output).len()), (Some(0), 2));
    assert!(text(&output.stderr).starts_with("ibfabric: standard input: 7 frames, 6 packets"));
}

#[test]
fn closed_standard_output_is_no_error() {
    let directory = Directory::new();
    let mut many = sample();
    // The capture file has enough sections that the output exceeds the buffer of the pipe.
    while many.len() < 2_000_000 {
        many.extend(sample());
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_ibfabric"));
    command.args(["capture", "read", "-v", &directory.file("many", &many)]);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the process can be awaited");
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
}

#[test]
fn missing_udp_port_option_is_suggested() {
    let directory = Directory::new();
    let mut writer = Writer::new(Vec::new(), &Section::default()).expect("a vector accepts data");
    let interface =
        writer.interface(&Interface::new(LinkType::ETHERNET)).expect("a vector accepts data");
    let send = Builder::new(bth(Opcode::RC_SEND_ONLY, 0x33, 1)).payload(b"elsewhere");
    let frame = frame(true, 4800, send);
    writer.packet(&Captured::new(interface, 5, &frame)).expect("a vector accepts data");
    let file = directory.file("other", &writer.finish().expect("a vector accepts data"));
    let printed = text(&read(&[&file]).stderr);
    assert!(printed.contains("but 1 frames to port 4800: expected --udp-port 4800"), "{printed}");
}
