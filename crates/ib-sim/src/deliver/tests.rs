use ib_link::Datagram;
use ib_types::PKey;
use proptest::collection::vec;
use proptest::prelude::*;

use ib_link::{Incoming, Remote};
use ib_types::{Instant, QKey, Qpn, ServiceLevel};
use ib_wire::mad::TransactionId;

use super::*;
use crate::ids::ClientId;
use crate::lab::{self, lid, node, port};
use crate::options::Options;

/// An agent that responds after a delay. Its response contains the port at which the request
/// arrived.
#[derive(Default)]
struct Echo {
    answers: Vec<(Instant, Datagram)>,
}

const CLASS: MgmtClass = MgmtClass(0x30);

impl ib_link::NodeAgent for Echo {
    fn classes(&self) -> &[MgmtClass] {
        &[CLASS]
    }

    fn handle(&mut self, now: Instant, arrival: Arrival, datagram: &Datagram) {
        let mut mad = datagram.mad;
        mad.answer(MadStatus::OK);
        mad.0[100] = arrival.port.unwrap_or(0xff);
        let at = now + std::time::Duration::from_millis(5);
        self.answers.push((at, datagram.reply(mad)));
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        let index = self.answers.iter().position(|(at, _)| *at <= now)?;
        Some(self.answers.remove(index).1)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.answers.iter().map(|(at, _)| *at).min()
    }
}

#[test]
fn hosted_agent_gets_the_arrival_port_and_may_respond_late() {
    let mut sim = lab::ready(&lab::row(2), Options::default());
    let s2 = node(&sim, "s2");
    sim.host(s2, Box::new(Echo::default()));
    let client = lab::client(&mut sim, "h1");
    let mad = Mad::new(CLASS, Method::GET, TransactionId(5));
    let remote = Remote::gsi(lid(&sim, "s2"));
    assert_eq!(lab::query(&mut sim, client, remote, mad), None, "the agent has not responded yet");
    assert_eq!(sim.next_at(), sim.agents.wakes(0));
    sim.run_until(sim.now() + std::time::Duration::from_millis(6));
    let Some(Incoming::Received(answer)) = sim.receive(client) else { panic!("no response") };
    assert_eq!((answer.mad.transaction_id().0, answer.mad.0[100]), (5, 1));
    lab::check_settled(&sim);
    assert!((lab::assigned(&sim) == 0));
    // A second agent of the same class replaces the first one.
    sim.host(s2, Box::new(Echo::default()));
    lab::query(&mut sim, client, remote, mad);
    assert!(sim.agents.wakes(1).is_some());
}

#[test]
fn mad_sent_as_bytes_is_parsed() {
    let mut sim = lab::ready(&lab::row(1), Options::default());
    let (from, to) = (port(&sim, "h1.1"), lid(&sim, "s1"));
    sim.open(from);
    let mad = lab::performance(Method::GET, AttributeId::PORT_COUNTERS);
    let options = crate::ClientOptions { is_sm: true, ..Default::default() };
    let client = sim.attach(from, options).unwrap();
    let datagram = Datagram::new(Remote::gsi(to), mad);
    let packet = sim.fabric().datagram_packet(from, &datagram);
    let bytes = packet.to_bytes(ib_types::VirtualLane::default());
    let bytes = bytes[8..bytes.len() - 6].to_vec();
    sim.send_packet(from, Packet { payload: Payload::Transport(bytes), ..packet });
    sim.settle(sim.now());
    assert_eq!(sim.stats().answered, 1);
    let counters = std::iter::from_fn(|| sim.receive(client)).find_map(|incoming| match incoming {
        Incoming::Received(answer) => answer.mad.attribute::<ib_wire::mad::pm::PortCounters>(),
        Incoming::Lost(_) => None,
    });
    assert!(counters.is_some());
}

/// An action of clients, ports or the user.
#[derive(Clone, Debug)]
enum Action {
    Attach {
        node: usize,
        is_sm: bool,
        told: bool,
    },
    Detach(usize),
    Send {
        client: usize,
        remote: Remote,
        local: u32,
        mad: Vec<u8>,
        plausible: bool,
    },
    /// Lets a client send the last MAD that any client has received, unchanged or as a response.
    Return {
        client: usize,
        respond: bool,
    },
    Packet {
        node: usize,
        dlid: u16,
        level: u8,
        length: usize,
    },
    Command(usize),
    Run(u32),
}

const COMMANDS: [&str; 10] = [
    "Unlink s1[2]",
    "ReLink s1[2]",
    "Power s2 off",
    "Power s2 on",
    "Fault s1 loss=0.1 duplicate=0.3 reorder=0.2 held=5us corrupt=0.1",
    "Fault s1 none",
    "Flap h2[1] 3us 2us 2",
    "MKey h2 5 2",
    "Swap h1[1] h2[1]",
    "Error s2 20",
];

fn any_remote() -> impl Strategy<Value = Remote> {
    let lid = prop_oneof![0u16..12, Just(0xffff), 0xc000u16..0xc004, any::<u16>()];
    let qpn = prop_oneof![Just(0u32), Just(1), any::<u32>()];
    (lid, qpn, 0u8..16, any::<u8>()).prop_map(|(lid, qpn, level, path_bits)| Remote {
        lid,
        qpn: Qpn::truncated(qpn & 0xff_ffff),
        q_key: QKey::GSI,
        sl: ServiceLevel::new(level).unwrap_or_default(),
        p_key: PKey::DEFAULT,
        path_bits,
        grh: None,
    })
}

fn any_action() -> impl Strategy<Value = Action> {
    prop_oneof![
        1 => (0usize..4, any::<bool>(), any::<bool>())
            .prop_map(|(node, is_sm, told)| Action::Attach { node, is_sm, told }),
        1 => (0usize..8).prop_map(Action::Detach),
        8 => (0usize..8, any_remote(), 0u32..3, vec(any::<u8>(), 256), any::<bool>())
            .prop_map(|(client, remote, local, mad, plausible)| Action::Send {
                client, remote, local, mad, plausible
            }),
        3 => (0usize..8, any::<bool>())
            .prop_map(|(client, respond)| Action::Return { client, respond }),
        2 => (0usize..4, any::<u16>(), 0u8..16, 0usize..5000)
            .prop_map(|(node, dlid, level, length)| Action::Packet { node, dlid, level, length }),
        1 => (0..COMMANDS.len()).prop_map(Action::Command),
        2 => (0u32..2_000_000).prop_map(Action::Run),
    ]
}

/// Sets fields of a random MAD to plausible values, so that agents do not reject it by the first
/// checks.
fn plausible(mad: &mut Mad) {
    let pick = |byte: u8, from: &[u8]| from[usize::from(byte) % from.len()];
    let bytes = &mut mad.0;
    bytes[0] = 1;
    bytes[1] = pick(bytes[1], &[1, 0x81, 0x81, 3, 4, 7, 0x30]);
    bytes[2] = if bytes[1] == 3 { 2 } else { 1 };
    bytes[3] = pick(bytes[3], &[1, 2, 1, 2, 3, 5, 7, 0x81, 0x12, 0x92, 0x86]);
    bytes[4] &= 0x80;
    [bytes[6], bytes[7]] = [bytes[6] % 4, bytes[7] % 4];
    [bytes[8], bytes[9]] = [0, bytes[9] % 8];
    bytes[16] = pick(bytes[16], &[0, 0, 0, 0xff]);
    bytes[17] = pick(
        bytes[17],
        &[2, 0x10, 0x11, 0x12, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1b, 0x1d, 0x20, 0x90],
    );
    let modifier = bytes[20..24].iter().fold(0, |all, byte| all ^ byte);
    if modifier % 2 == 0 {
        (bytes[20], bytes[21], bytes[22], bytes[23]) = (0, bytes[21] % 5, 0, bytes[23] % 5);
    }
    bytes[24..32].fill(0);
    for at in [32, 34] {
        if bytes[at].is_multiple_of(3) {
            bytes[at] = 0;
            bytes[at + 1] %= 8;
        } else {
            bytes[at..at + 2].fill(0xff);
        }
    }
    for path in [128, 192] {
        for byte in &mut bytes[path..path + 8] {
            *byte = *byte % 4 + 1;
        }
    }
}

/// A fabric and its clients, to which actions are applied.
struct Scenario {
    sim: Sim,
    clients: Vec<ClientId>,
    last: Option<Datagram>,
}

impl Scenario {
    fn new() -> Self {
        let sim = lab::ready(&lab::row(2), Options { tap: true, ..Options::default() });
        Self { sim, clients: Vec::new(), last: None }
    }

    fn client(&self, index: usize) -> Option<ClientId> {
        (!self.clients.is_empty()).then(|| self.clients[index % self.clients.len()])
    }

    fn make(&mut self, what: Action) {
        let sim = &mut self.sim;
        let end = |sim: &Sim, index: usize| {
            sim.end_port(node(sim, ["h1", "h2", "s1", "s2"][index])).expect("nodes have end ports")
        };
        match what {
            Action::Attach { node, is_sm, told } => {
                let options = crate::ClientOptions {
                    is_sm,
                    queue_pair: 2,
                    reports_losses: told,
                    class: None,
                };
                let at = end(sim, node);
                self.clients.push(sim.attach(at, options).unwrap());
            }
            Action::Detach(index) => {
                if let Some(client) = self.client(index) {
                    self.sim.detach(client);
                }
            }
            Action::Send { client, remote, local, mad, plausible: fits } => {
                let Some(client) = self.client(client) else { return };
                let mut mad = Mad(mad.try_into().expect("the MAD has 256 bytes"));
                if fits {
                    plausible(&mut mad);
                }
                let mut datagram = Datagram::new(remote, mad);
                datagram.local_qpn = Qpn::truncated(local);
                self.sim.submit(client, &datagram);
            }
            Action::Return { client, respond } => {
                let (Some(client), Some(mut datagram)) = (self.client(client), self.last) else {
                    return;
                };
                if respond {
                    let method = datagram.mad.method().0 | Method::RESPONSE_BIT;
                    datagram.mad.set_method(Method(method));
                }
                self.sim.submit(client, &datagram);
            }
            Action::Packet { node, dlid, level, length } => {
                let from = end(sim, node);
                let packet = lab::data(sim, from, dlid, level, length);
                sim.send_packet(from, packet);
            }
            Action::Command(index) => {
                let command = COMMANDS[index].parse().expect("the command is valid");
                let _ = sim.run(&command);
            }
            Action::Run(nanos) => {
                let until = sim.now() + std::time::Duration::from_nanos(nanos.into());
                sim.run_until(until);
            }
        }
        while let Some(client) = self.sim.next_woken() {
            while let Some(incoming) = self.sim.receive(client) {
                if let Incoming::Received(datagram) = incoming {
                    self.last = Some(datagram);
                }
            }
        }
        lab::check(&self.sim);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("SIM_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(200)
    ))]

    /// Checks that whatever clients send, the simulator does not panic, becomes idle and keeps no
    /// packets.
    #[test]
    fn no_client_action_breaks_the_fabric(actions in vec(any_action(), 1..60)) {
        let mut play = Scenario::new();
        for what in actions {
            play.make(what);
        }
        let hops = play.sim.stats().hops;
        play.sim.settle(play.sim.now());
        prop_assert!(play.sim.stats().hops < hops + 100_000);
        lab::check_settled(&play.sim);
        // After 60 s, every request that has reached a client or agent is answered or has failed.
        play.sim.run_until(play.sim.now() + std::time::Duration::from_secs(60));
        play.sim.settle(play.sim.now());
        lab::check_settled(&play.sim);
        prop_assert!(lab::assigned(&play.sim) == 0);
        prop_assert!(play.sim.outstanding() == 0);
    }
}
