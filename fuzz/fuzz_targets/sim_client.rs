//! Clients of a simulated fabric execute arbitrary operations.
//!
//! Checks that packets are not forwarded indefinitely, and that no client has lost more MADs than it has sent.
#![no_main]

use std::time::Duration;

use ib_link::{Datagram, Incoming, Remote};
use ib_sim::{ClientId, ClientOptions, Command, Options, Packet, Payload, Sim};
use ib_types::{Guid, PKey, QKey, Qpn, ServiceLevel};
use ib_wire::mad::Mad;
use libfuzzer_sys::fuzz_target;

const COMMANDS: [&str; 10] = [
    "Unlink A",
    "ReLink A",
    "Power A off",
    "Power A on",
    "Fault A loss=0.2 duplicate=0.5",
    "Fault A reorder=0.5 held=9us corrupt=0.2",
    "Fault A none",
    "Flap A[1] 3us 2us 2",
    "Error A 50",
    "MKey A 5 2",
];

/// The rest of the input, from which operations are read.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn word(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }

    fn take(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

fn remote(bytes: &mut Bytes<'_>) -> Option<Remote> {
    let (lid, qpn, level) = (bytes.word()?, bytes.byte()?, bytes.byte()?);
    Some(Remote {
        lid: if lid & 0xff00 == 0xff00 { 0xffff } else { lid },
        qpn: Qpn::truncated(u32::from(qpn)),
        q_key: QKey::GSI,
        sl: ServiceLevel::new(level & 15).unwrap_or_default(),
        p_key: PKey::DEFAULT,
        path_bits: level >> 4,
        grh: None,
    })
}

/// Executes the next operation of the input. Returns `None` at the end of the input.
fn operate(
    sim: &mut Sim,
    (clients, last): (&mut Vec<ClientId>, &mut Option<Datagram>),
    bytes: &mut Bytes<'_>,
) -> Option<()> {
    let nodes: Vec<_> = sim.node_ids().collect();
    let operation = bytes.byte()?;
    let index = usize::from(bytes.byte()?);
    let node = nodes[index % nodes.len()];
    let end = sim.end_port(node)?;
    let client = clients.get(index % clients.len().max(1)).copied();
    match operation % 8 {
        0 => {
            let options = ClientOptions {
                is_sm: index & 16 != 0,
                queue_pair: 2,
                reports_losses: true,
                ..ClientOptions::default()
            };
            clients.push(sim.attach(end, options).ok()?);
        }
        1 => sim.detach(client?),
        2 | 3 => {
            let remote = remote(bytes)?;
            let mut mad = Mad::default();
            let taken = bytes.take(256);
            mad.0[..taken.len()].copy_from_slice(taken);
            if operation & 0x80 == 0 {
                (mad.0[0], mad.0[2]) = (1, 1);
            }
            sim.submit(client?, &Datagram::new(remote, mad));
        }
        4 => {
            let mut datagram = (*last)?;
            datagram.mad.0[3] ^= operation & 0x80;
            sim.submit(client?, &datagram);
        }
        5 => {
            let (dlid, level) = (bytes.word()?, bytes.byte()?);
            let payload = Payload::Transport(bytes.take(usize::from(level)).to_vec());
            let sl = ServiceLevel::new(level & 15).unwrap_or_default();
            sim.open(end);
            sim.send_packet(end, Packet { slid: 1, dlid, sl, grh: None, payload });
            while sim.receive_packet(end).is_some() {}
        }
        6 => {
            let name = format!("\"{}\"", sim.node_name(node));
            let text = COMMANDS[usize::from(operation >> 3) % COMMANDS.len()].replace('A', &name);
            let command: Command = text.parse().expect("the command is valid");
            let _ = sim.run(&command);
            let _ = sim
                .run(&Command::Guid(ib_sim::Target { node: name, port: None }, Guid(index as u64)));
        }
        _ => sim.run_until(sim.now() + Duration::from_nanos(u64::from(bytes.word()?) << 4)),
    }
    Some(())
}

fuzz_target!(|input: &[u8]| {
    let mut sim = Sim::new(ib_fuzz::fabric(), Options::default());
    for (number, node) in (1u16..).zip(sim.node_ids().collect::<Vec<_>>()) {
        let target = ib_sim::Target { node: sim.node_name(node).to_owned(), port: None };
        sim.run(&Command::BaseLid(target, number, 0)).expect("the node exists");
    }
    let (mut clients, mut last) = (Vec::new(), None);
    let mut bytes = Bytes(input);
    while operate(&mut sim, (&mut clients, &mut last), &mut bytes).is_some() {
        while let Some(client) = sim.next_woken() {
            while let Some(incoming) = sim.receive(client) {
                if let Incoming::Received(datagram) = incoming {
                    last = Some(datagram);
                }
            }
        }
    }
    let hops = sim.stats().hops;
    sim.settle(sim.now());
    sim.run_until(sim.now() + Duration::from_secs(40));
    sim.settle(sim.now());
    assert!(sim.stats().hops < hops + 100_000, "packets are forwarded indefinitely");
    for client in clients {
        let report = sim.client_report(client);
        assert!(report.lost <= report.sent);
    }
});
