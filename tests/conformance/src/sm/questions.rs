//! The queries of `saquery`: all records of each type, records by the fields that identify them, and paths by all
//! supported fields.

use crate::clients::program::Question;
use crate::clients::questions::{Actors, Host, Switch};

use super::scene::patient;

/// Queries for all records of a type, and other queries that are the same for all fabrics.
const WHOLE: [&str; 32] = [
    "saquery",
    "saquery NR",
    "saquery PIR",
    "saquery SL2VL",
    "saquery PKTR",
    "saquery --smkey 1 PKTR",
    "saquery VLAR",
    "saquery IIR",
    "saquery --smkey 1 IIR",
    "saquery LR",
    "saquery SR",
    "saquery --smkey 1 SR",
    "saquery PR",
    "saquery --smkey 1 PR",
    "saquery MCMR",
    "saquery --smkey 1 MCMR",
    "saquery LFTR",
    "saquery MFTR",
    "saquery GIR",
    "saquery SWIR",
    "saquery SMIR",
    "saquery CPI",
    "saquery -p",
    "saquery -s",
    "saquery -g",
    "saquery -m",
    "saquery -m 0xC000",
    "saquery -x",
    "saquery -c",
    "saquery -S",
    "saquery -I",
    "saquery -D",
];

/// Returns all queries for a fabric.
#[must_use]
pub fn all(actors: &Actors) -> Vec<Question> {
    let Actors { manager, second, last, leaf, far, other } = actors;
    let mut lines: Vec<String> = WHOLE.iter().map(|&line| line.to_owned()).collect();
    for host in [manager, second, last] {
        lines.extend(about_host(host));
    }
    for switch in [leaf, far, other] {
        lines.extend(about_switch(switch));
    }
    lines.extend(about_paths(actors));
    lines.extend(about_groups());
    lines.extend([
        "saquery NR 49151".to_owned(),
        "saquery PIR 49151".to_owned(),
        "saquery LFTR 49151".to_owned(),
        "saquery LR 49151".to_owned(),
        format!("saquery LFTR {}/700", leaf.lid),
        format!("saquery GIR {}/9", last.lid),
        format!("saquery PIR {}/99", last.lid),
        format!("saquery VLAR {}/1/7", last.lid),
        format!("saquery LR {}/{} {}", leaf.lid, leaf.port, far.lid),
        format!("saquery LR {} {}", manager.lid, last.lid),
    ]);
    lines.iter().map(|line| patient(line).on(&second.name)).collect()
}

fn about_host(host: &Host) -> Vec<String> {
    let Host { name, guid, lid, .. } = host;
    vec![
        format!("saquery NR {lid}"),
        format!("saquery {name}"),
        format!("saquery NR {guid}"),
        format!("saquery -L {name}"),
        format!("saquery -l {name}"),
        format!("saquery -G {name}"),
        format!("saquery -L {lid}"),
        format!("saquery -G {lid}"),
        format!("saquery -O {lid}"),
        format!("saquery -U {guid}"),
        format!("saquery PIR {lid}"),
        format!("saquery PIR {lid}/1"),
        format!("saquery PIR {lid}/1/1"),
        format!("saquery GIR {lid}"),
        format!("saquery GIR {lid}/0"),
        format!("saquery PKTR {lid}"),
        format!("saquery --smkey 1 PKTR {lid}/1/0"),
        format!("saquery SL2VL {lid}"),
        format!("saquery SL2VL {lid}/0/1"),
        format!("saquery VLAR {lid}"),
        format!("saquery VLAR {lid}/1/1"),
        format!("saquery VLAR {lid}/1/3"),
        format!("saquery LR {lid}"),
        format!("saquery LR {lid}/1"),
        format!("saquery SMIR {lid}"),
        format!("saquery SWIR {lid}"),
        format!("saquery LFTR {lid}"),
    ]
}

fn about_switch(switch: &Switch) -> Vec<String> {
    let Switch { name, guid, lid, port, .. } = switch;
    vec![
        format!("saquery NR {lid}"),
        format!("saquery -L {name}"),
        format!("saquery -U {guid}"),
        format!("saquery PIR {lid}"),
        format!("saquery PIR {lid}/0"),
        format!("saquery PIR {lid}/{port}"),
        format!("saquery SWIR {lid}"),
        format!("saquery LFTR {lid}"),
        format!("saquery LFTR {lid}/0"),
        format!("saquery MFTR 0xC000/0/0"),
        format!("saquery LR {lid}"),
        format!("saquery LR {lid}/{port}"),
        format!("saquery SL2VL {lid}"),
        format!("saquery SL2VL {lid}/{port}/1"),
        format!("saquery SL2VL {lid}/0/{port}"),
        format!("saquery VLAR {lid}/{port}"),
        format!("saquery VLAR {lid}/{port}/1"),
        format!("saquery --smkey 1 PKTR {lid}/0/0"),
        format!("saquery --smkey 1 PKTR {lid}/{port}/0"),
        format!("saquery GIR {lid}/0"),
    ]
}

fn about_paths(actors: &Actors) -> Vec<String> {
    let Actors { manager, second, last, leaf, .. } = actors;
    let gid = |host: &Host| {
        let [a, b, c, d] = [48, 32, 16, 0].map(|shift| (host.guid.0 >> shift) & 0xffff);
        format!("fe80::{a:x}:{b:x}:{c:x}:{d:x}")
    };
    let (from, to) = (gid(second), gid(last));
    let between = format!("saquery PR --slid {} --dlid {}", second.lid, last.lid);
    let mut lines = vec![
        between.clone(),
        format!("saquery PR --slid {}", second.lid),
        format!("saquery PR --dlid {}", last.lid),
        format!("saquery PR --slid {} --dlid {}", last.lid, leaf.lid),
        format!("saquery PR --slid {} --dlid {}", leaf.lid, last.lid),
        format!("saquery PR --slid {0} --dlid {0}", last.lid),
        format!("saquery PR --slid {} --dlid 49151", last.lid),
        format!("saquery -p --src-to-dst {}:{}", second.lid, last.lid),
        format!("saquery -p --src-to-dst {}:{}", second.name, last.name),
        format!("saquery -p --sgid-to-dgid {from}-{to}"),
        format!("saquery PR --sgid {from} --dgid {to}"),
        format!("saquery PR --sgid {from}"),
        format!("saquery PR --dgid {to}"),
        format!("saquery PR --sgid {from} --dlid {}", manager.lid),
        "saquery PR --dgid fe80::1:2:3:4".to_owned(),
        format!("saquery PR --dgid fec0::{:x}", last.guid.0 & 0xffff),
    ];
    for more in [
        "--pkey 0xffff",
        "--pkey 0x7fff",
        "--pkey 0x1234",
        "--sl 0",
        "--sl 3",
        "--sl 15",
        "--mtu 4",
        "--mtu 0x84",
        "--mtu 0x85",
        "--mtu 0x05",
        "--mtu 0x45",
        "--mtu 0xc4",
        "--rate 3",
        "--rate 0x83",
        "--rate 0x87",
        "--rate 0x03",
        "--rate 0x43",
        "--rate 0xc3",
        "--rate 0x90",
        "--reversible 1",
        "--reversible 0",
        "--numb_path 1",
        "--numb_path 0",
        "--numb_path 2",
        "--pkt_lifetime 18",
        "--pkt_lifetime 0x92",
        "--pkt_lifetime 0x41",
        "--pkt_lifetime 0x01",
        "--pkt_lifetime 0xc1",
        "--tclass 0",
        "--tclass 7",
        "--qos_class 0",
        "--qos_class 1",
        "--flow_label 0",
        "--flow_label 77",
        "--hop_limit 0",
        "--hop_limit 3",
        "--service_id 0",
        "--service_id 0x0000000001060000",
    ] {
        lines.push(format!("{between} {more}"));
    }
    lines.push(format!("saquery PR --sgid {from} --dgid {to} --numb_path 127"));
    lines.push(format!("saquery PR --sgid {from} --dgid {to} --reversible 1 --numb_path 1"));
    lines
}

/// Returns queries for the multicast group of the default partition, and for groups that do not exist.
fn about_groups() -> Vec<String> {
    [
        "--mlid 0xC000",
        "--mlid 0xC123",
        "--mgid ff12:401b:ffff::ffff:ffff",
        "--mgid ff12:601b:ffff::1",
        "--pkey 0xffff",
        "--pkey 0x7fff",
        "--pkey 0x1234",
        "--mtu 0x84",
        "--mtu 0x04",
        "--rate 0x83",
        "--rate 0x03",
        "--sl 0",
        "--sl 5",
        "--scope 2",
        "--scope 5",
        "--tclass 0",
        "--qkey 0x0b1b",
        "--join_state 1",
        "--gid fe80::1",
    ]
    .iter()
    .flat_map(|by| [format!("saquery MCMR {by}"), format!("saquery --smkey 1 MCMR {by}")])
    .collect()
}
