//! Parses packets that Linux kernels have sent, rebuilds them, and compares the bytes.

use std::collections::BTreeSet;

use super::*;
use crate::packet::header::ICRC;

/// Reads the description and the bytes of each IP packet in `kernel.txt`.
fn goldens() -> Vec<(&'static str, Vec<u8>)> {
    let mut packets: Vec<(&str, Vec<u8>)> = Vec::new();
    for line in include_str!("kernel.txt").lines().skip(3).filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_prefix("# ") {
            packets.push((name, Vec::new()));
            continue;
        }
        let (_, bytes) = packets.last_mut().expect("a name precedes the bytes");
        for word in line.split(' ') {
            let byte = |at: usize| {
                u8::from_str_radix(&word[at..at + 2], 16).expect("a byte has two hex digits")
            };
            match word.split_once('*') {
                Some((_, count)) => {
                    let count: usize = count.parse().expect("a number follows `*`");
                    bytes.resize(bytes.len() + count, byte(0));
                }
                None => bytes.extend((0..word.len()).step_by(2).map(byte)),
            }
        }
    }
    packets
}

/// Parses an IP packet and rebuilds it from the parsed fields.
fn rebuild(ip: &[u8]) -> Vec<u8> {
    let (network, udp) = RoceNetwork::parse(ip).expect("the IP and UDP headers are valid");
    let packet = Packet::parse_roce(udp).expect("the UDP payload is a RoCEv2 packet");
    assert_eq!(packet.check_roce_icrc(&network), Ok(()));
    let hop = match network.addresses {
        RoceAddresses::V4 { .. } => {
            RoceHop { traffic_class: ip[1], hop_limit: ip[8], flow_label: 0 }
        }
        RoceAddresses::V6 { .. } => {
            let word = u32::from_be_bytes([ip[0], ip[1], ip[2], ip[3]]);
            let traffic_class = (word >> 20) as u8;
            RoceHop { traffic_class, hop_limit: ip[7], flow_label: word & 0xf_ffff }
        }
    };
    let headers = network.length();
    let mut bytes = vec![0xee; ip.len() + 8];
    let builder = Builder::from_packet(&packet);
    let length =
        builder.emit_roce(&network, &mut bytes[headers..]).expect("the buffer is long enough");
    network.emit(hop, length, &mut bytes);
    bytes.truncate(headers + length);
    bytes
}

#[test]
fn rebuilt_kernel_packets_are_identical() {
    let goldens = goldens();
    assert_eq!(goldens.len(), 38);
    let mut kinds = BTreeSet::new();
    for (name, ip) in &goldens {
        assert_eq!(&rebuild(ip), ip, "{name}");
        let (network, udp) = RoceNetwork::parse(ip).expect("the IP and UDP headers are valid");
        let packet = Packet::parse_roce(udp).expect("the UDP payload is a RoCEv2 packet");
        let version = if network.length() == 28 { "IPv4" } else { "IPv6" };
        let opcode = packet.bth().opcode;
        let operation = name.strip_prefix(version).expect("the name starts with the IP version");
        let operation = operation.split(':').next().unwrap_or_default().trim();
        let written = opcode.to_string().to_lowercase().replace("rc ", "").replace("rdma ", "");
        assert_eq!(written, operation.to_lowercase().replace("rdma ", ""), "{name}");
        kinds.insert((version, opcode));
    }
    // 18 opcodes over IPv4: "UD SEND only" and 17 of the 23 RC opcodes. 10 opcodes over IPv6: "UD SEND
    // only" and 9 RC opcodes.
    assert_eq!(kinds.iter().filter(|(version, _)| *version == "IPv4").count(), 18);
    assert_eq!(kinds.iter().filter(|(version, _)| *version == "IPv6").count(), 10);
}

#[test]
fn icrc_detects_changes_of_kernel_packets() {
    for (name, ip) in goldens() {
        let header = if ip[0] >> 4 == 4 { 28 } else { 48 };
        for at in [header, header + 3, header + 7, header + 11, ip.len() - ICRC - 1, ip.len() - 1] {
            let mut changed = ip.clone();
            changed[at] ^= 0x10;
            let (network, udp) = RoceNetwork::parse(&changed).expect("the IP header is valid");
            let Ok(packet) = Packet::parse_roce(udp) else { continue };
            assert!(packet.check_roce_icrc(&network).is_err(), "{name}: byte {at}");
        }
    }
}
