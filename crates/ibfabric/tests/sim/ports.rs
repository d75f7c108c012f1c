//! Checks the P_Key and the source LID of a client's packets.

use std::process::Command;

use ib_ibsim::message::{Request, TIMED_OUT};
use ib_types::PKey;
use ib_wire::mad::sm::{PKeyTable, PhysState, PortInfo, PortState};
use ib_wire::mad::{Attribute, AttributeId, Mad, Method, MgmtClass, TransactionId, smp};

use crate::lab::{Client, PROGRAM, Simulator, request};

const PAIR: &str =
    "caguid=0x1000\nCa 1 \"h1\"\n[1] \"h2\"[1]\n\ncaguid=0x2000\nCa 1 \"h2\"\n[1] \"h1\"[1]\n";

/// The base LIDs of the hosts; the LMC is 1.
const LIDS: [u16; 2] = [4, 8];

/// A fabric of two linked hosts, and a client at each host.
struct Pair {
    simulator: Simulator,
    hosts: [Client; 2],
}

impl Pair {
    /// Starts the simulator and both clients. Writes `key` to the P_Key table of each port, and activates the ports.
    fn with_key(key: PKey, options: &[&str]) -> Self {
        let simulator = Simulator::of(PAIR, options);
        let hosts = [(1, "h1"), (2, "h2")].map(|(id, node)| {
            Client::attach_to(&simulator.socket, id, node).expect("the simulator accepts clients")
        });
        for (host, lid) in hosts.iter().zip(LIDS) {
            let mut table = PKeyTable::zeroed();
            table.keys[0] = key;
            set(host, &table, 0);
            set_port(host, |info| (info.lid, info.lmc, info.master_sm_lid) = (lid, 1, LIDS[0]));
        }
        for state in [PortState::ARMED, PortState::ACTIVE] {
            for host in &hosts {
                set_port(host, |info| info.port_state = state);
            }
        }
        Self { simulator, hosts }
    }

    /// Queries the port counters of the second host from the first host, with the source LID `slid`.
    fn query(&self, slid: u16) -> Request {
        let mut mad = Mad::new(MgmtClass::PERFORMANCE, Method::GET, TransactionId(9));
        mad.set_attribute_id(AttributeId::PORT_COUNTERS);
        mad.data_mut()[1] = 1;
        let request = Request {
            slid,
            destination_queue_pair: 1,
            source_queue_pair: 1,
            ..request(&mad, LIDS[1])
        };
        self.hosts[0].data.send(&request.to_bytes()).expect("the message can be sent");
        self.hosts[0].receive()
    }
}

fn get<A: Attribute>(client: &Client, modifier: u32) -> A {
    query_attribute(
        client,
        smp::directed_request(Method::GET, TransactionId(1), (A::ID, modifier), &[]),
    )
}

fn set<A: Attribute>(client: &Client, attribute: &A, modifier: u32) {
    let what = (A::ID, modifier);
    let mut mad = smp::directed_request(Method::SET, TransactionId(2), what, &[]);
    mad.set_attribute(attribute);
    let _: A = query_attribute(client, mad);
}

fn set_port(client: &Client, change: impl FnOnce(&mut PortInfo)) {
    let mut info: PortInfo = get(client, 1);
    (info.port_state, info.phys_state) = (PortState::NO_CHANGE, PhysState::NO_CHANGE);
    change(&mut info);
    set(client, &info, 1);
}

fn query_attribute<A: Attribute>(client: &Client, mad: Mad) -> A {
    client.send(&mad, 0xffff);
    let answer = Mad(client.receive().mad);
    assert!(answer.status().is_ok(), "{answer}");
    answer.attribute().expect("the response contains the attribute")
}

#[test]
fn datagram_has_pkey_of_its_port() {
    // Limited members cannot communicate with each other.
    let limited = Pair::with_key(PKey(0x7fff), &[]);
    assert_eq!(limited.query(0).status, TIMED_OUT);
    assert_eq!(limited.simulator.json(&["stats"])["data"]["lost"]["partition"], 1);
    let info: PortInfo = get(&limited.hosts[1], 1);
    assert_eq!(info.p_key_violations, 1);
    // Full members can communicate. Their partition is not the default partition.
    let members = Pair::with_key(PKey(0x8001), &[]);
    let answer = members.query(0);
    assert_eq!((answer.status, Mad(answer.mad).method()), (0, Method::GET_RESP));
}

#[test]
fn request_has_its_chosen_source_lid() {
    let options = ["--record", "record", "--log", "log", "--log-level", "hops"];
    let mut pair = Pair::with_key(PKey(0x8001), &options);
    for (slid, from) in [(0, 4), (4, 4), (5, 5)] {
        let answer = pair.query(slid);
        assert_eq!((answer.status, answer.slid, answer.dlid), (0, 8, from), "source LID {slid}");
    }
    assert_eq!(pair.query(6).status, TIMED_OUT, "LID 6 belongs to no client");
    // If a request is lost, the simulator returns it to the client with an error status and its original LIDs.
    pair.simulator.ctl(&["unlink", "h1[1]"]);
    let lost = pair.query(5);
    assert_eq!((lost.status, lost.slid, lost.dlid), (TIMED_OUT, 5, 8));
    pair.simulator.ctl(&["quit"]);
    assert!(pair.simulator.child.wait().expect("the process can be awaited").success());
    let record = pair.simulator.file("record");
    // Reads the path bits (source LID minus base LID) of each `mad` line in the record. They stand between the two
    // texts below.
    let bits: Vec<&str> = record
        .lines()
        .filter_map(|line| {
            line.strip_prefix("mad 0 8 1 1 2147549184 ")?.split(" 32769 0 - 256 ").next()
        })
        .collect();
    assert_eq!(bits, ["0", "0", "1", "1"]);
    // A replay of the record sends the same packets.
    let words = ["sim", "net", "--replay", "record", "--log", "again", "--log-level", "hops"];
    let place = pair.simulator.place.path();
    let output = Command::new(PROGRAM)
        .args(words)
        .current_dir(place)
        .output()
        .expect("the program can be started");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(pair.simulator.file("again"), pair.simulator.file("log"));
}
