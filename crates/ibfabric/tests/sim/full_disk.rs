//! When the disk is full, the capture, the record and the log of the simulator end, but the simulated fabric keeps
//! running.

use std::fs;

use ib_pcap::Reader;

use super::*;

const KIB: u32 = 20;

#[test]
fn full_disk_ends_recordings_but_not_the_fabric() {
    let files = ["--pcap", "pcap", "--record", "record", "--log", "log", "--log-level", "hops"];
    let simulator = Simulator::on_full_disk(KIB, &[&["--sm"], &files[..]].concat());
    let client = Client::attach(&simulator.socket, 1).expect("the simulator accepts clients");
    client.send(&node_info(7, &[1]), 0xffff);
    assert_eq!(Mad(client.receive().mad).transaction_id(), TransactionId(7));
    let place = simulator.place.path().to_owned();
    let file = move |name: &str| fs::read(place.join(name)).expect("the file can be read");
    let [pcap, record, log] = ["pcap", "record", "log"].map(file);
    let (status, printed) = simulator.end("-TERM");
    assert_eq!(status, Some(1), "{printed}");
    for name in ["pcap", "record", "log"] {
        let expected = format!("{name}: File too large");
        assert_eq!(printed.lines().filter(|line| line.contains(&expected)).count(), 1, "{printed}");
    }
    for bytes in [&pcap, &record, &log] {
        let most = KIB as usize * 1024;
        assert!((most - 2048..=most).contains(&bytes.len()), "{}", bytes.len());
    }
    assert!(record.ends_with(b"\n") && log.ends_with(b"\n"));
    let mut reader = Reader::new(&pcap[..]).expect("the file is a capture");
    while reader.next_event().expect("the capture has only complete blocks").is_some() {}
}

#[test]
fn record_cut_by_full_disk_is_replayable() {
    let words = ["--sm", "--record", "record", "--seed", "5"];
    let simulator = Simulator::on_full_disk(KIB, &words);
    let (net, record) = (simulator.place.path().join("net"), simulator.place.path().join("record"));
    let mut replay = Command::new(PROGRAM);
    replay.arg("sim").arg(net).args(["--seed", "5", "--replay"]).arg(record);
    let output = replay.output().expect("the program can be started");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}
