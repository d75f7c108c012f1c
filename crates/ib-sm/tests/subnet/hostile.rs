//! The SM gets inconsistent responses and malformed requests. It must neither panic nor loop, and must bring the subnet
//! up once all responses are correct.
//!
//! `HOSTILE_RUNS` is the number of runs, and `HOSTILE_FIRST` is the seed of the first run.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use ib_link::{Datagram, Incoming, Remote};
use ib_sm::{Fault, SmConfig};
use ib_types::Guid;
use ib_wire::mad::sa::{ComponentMask, NodeRecord};
use ib_wire::mad::sm::{NodeInfo, PhysState, PortInfo, PortState, SmState};
use ib_wire::mad::{AttributeId, Mad, Method, MgmtClass, TransactionId};

use crate::lab::Lab;

const SECOND: Duration = Duration::from_secs(1);

/// Generates random numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Corrupts a MAD: changes one or two bytes, the transaction ID, the status, the method or the attribute.
fn corrupt(random: &mut Random, datagram: &mut Datagram) {
    let mad = &mut datagram.mad;
    match random.below(8) {
        0 => mad.set_transaction_id(TransactionId(random.below(1 << 40))),
        1 => mad.0[4 + random.below(2) as usize] = random.below(256) as u8,
        2 => mad.set_attribute_id(AttributeId(random.below(0x40) as u16)),
        3 => mad.set_method(Method(random.below(256) as u8)),
        4 => mad.0[6 + random.below(2) as usize] = random.below(256) as u8,
        5 => mad.0.fill(random.below(256) as u8),
        _ => {
            for _ in 0..=random.below(4) {
                mad.0[64 + random.below(64) as usize] = random.below(256) as u8;
            }
        }
    }
}

#[test]
fn malformed_responses_are_survived() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("the variable is a number"))
    };
    let (first, runs) = (number("HOSTILE_FIRST", 0), number("HOSTILE_RUNS", 60));
    for seed in first..first + runs {
        if std::env::var_os("HOSTILE_FIRST").is_some() {
            eprintln!("seed {seed}");
        }
        let mut random = Random(seed);
        let mut lab = Lab::new(["torus 3x3 hosts=1", "xgft 2,2,4 1,2,2"][seed as usize % 2]);
        let every = 2 + random.below(200);
        let mut left = 1 + random.below(300);
        let mut after = random.below(500);
        lab.corrupt(move |datagram| {
            if after > 0 {
                after -= 1;
            } else if left > 0 && random.below(every) == 0 {
                left -= 1;
                corrupt(&mut random, datagram);
            }
        });
        let interval = Some(5 * SECOND);
        lab.add(0, SmConfig { sweep_interval: interval, ..SmConfig::default() });
        lab.run_for(20 * SECOND);
        lab.corrupt(|_| {});
        // An SM trusts a wrong response that contradicts no other response, until a light sweep gets a different one.
        // Therefore a new SM, which has received only correct responses, has to bring the subnet up.
        let port = lab.sms[0].port();
        lab.kill(0);
        lab.add_at(port, SmConfig::default());
        lab.run_for(20 * SECOND);
        assert_eq!(lab.sms[0].manager.info().state, SmState::MASTER, "seed {seed}");
        assert!(!lab.sms[0].reports.is_empty(), "seed {seed}");
        lab.check();
    }
}

#[test]
fn persistent_inconsistency_is_reported_once() {
    let mut lab = Lab::new("torus 3x3 hosts=1");
    let victim = lab.sim.link_port(lab.host(5)).node_guid;
    lab.corrupt(move |datagram| {
        let info: Option<NodeInfo> = datagram.mad.attribute();
        if let Some(info) = info.filter(|info| info.node_guid == victim) {
            datagram.mad.set_attribute(&NodeInfo { num_ports: 255, ..info });
        }
    });
    lab.add(0, SmConfig { sweep_interval: Some(SECOND), ..SmConfig::default() });
    lab.run_for(60 * SECOND);
    let [fault] = &lab.sms[0].faults[..] else { panic!("{:?}", lab.sms[0].faults) };
    assert!(matches!(fault, Fault::Inconsistent { .. }), "{fault}");
    assert!(fault.to_string().contains("255 ports"), "{fault}");
    assert_eq!(lab.sms[0].last().nodes, 17, "all other nodes are discovered");
}

#[test]
fn light_sweep_detects_a_reset_port_with_few_smps() {
    for is_trunk in [false, true] {
        let mut lab = Lab::new("torus 3x3 hosts=1");
        let leaf = lab.sim.peer(lab.host(3)).expect("host 3 is linked to a switch");
        let to_host = u32::from(lab.sim.place(leaf).1);
        lab.add(0, SmConfig { sweep_interval: Some(SECOND), ..SmConfig::default() });
        // Light sweeps first query the ports of each switch whose `PortStateChange` the SM has cleared. These queries
        // end within 20 s, so they are not counted below.
        lab.run_for(20 * SECOND);
        let asked = Rc::new(Cell::new(0));
        let counted = Rc::clone(&asked);
        let of_ports = |mad: &Mad| mad.attribute::<PortInfo>();
        lab.corrupt(move |datagram| {
            counted.set(counted.get() + of_ports(&datagram.mad).iter().count());
        });
        lab.run_for(60 * SECOND);
        assert!(asked.get() <= 61 * 6, "{} SMPs in 60 light sweeps", asked.get());
        assert_eq!(lab.sms[0].reports.len(), 1, "without a change, the SM makes no heavy sweep");
        // One response now reports that a switch port is in state Init, although the port at the other end of its link
        // is Active.
        let mut is_told = false;
        lab.corrupt(move |datagram| {
            let is_it = (datagram.mad.attribute_modifier() != to_host) == is_trunk;
            // Selects external ports of switches: their LID is 0.
            let info = of_ports(&datagram.mad).filter(|info| info.lid == 0 && is_it && !is_told);
            if let Some(info) = info {
                is_told = true;
                let port_state = PortState::INIT;
                datagram.mad.set_attribute(&PortInfo { port_state, ..info });
            }
        });
        lab.run_for(20 * SECOND);
        let sm = &lab.sms[0];
        assert!(sm.changes.iter().any(|it| it.contains("was reset")), "{:?}", sm.changes);
        assert_eq!(sm.reports.len(), 2);
        lab.check();
    }
}

#[test]
fn link_that_comes_up_during_discovery_is_found() {
    let mut lab = Lab::new("torus 3x3 hosts=1");
    let leaf = lab.sim.peer(lab.host(3)).expect("host 3 is linked to a switch");
    let to_host = u32::from(lab.sim.place(leaf).1);
    // The switch that is discovered last reports in one response that its port to the host is down. No trap reports
    // later that the port is up.
    let mut seen = 0;
    lab.corrupt(move |datagram| {
        let is_it = datagram.mad.attribute_modifier() == to_host;
        let info: Option<PortInfo> = datagram.mad.attribute();
        if let Some(info) = info.filter(|info| is_it && info.lid == 0) {
            seen += 1;
            if seen == 9 {
                let (port_state, phys_state) = (PortState::DOWN, PhysState::POLLING);
                datagram.mad.set_attribute(&PortInfo { port_state, phys_state, ..info });
            }
        }
    });
    lab.add(0, SmConfig { sweep_interval: Some(SECOND), ..SmConfig::default() });
    lab.run_while(|lab| lab.sms[0].reports.is_empty());
    let out_of_service = |lab: &Lab| {
        let hosts = (0..9)
            .filter(|&host| lab.sim.port_info(lab.host(host)).port_state != PortState::ACTIVE);
        hosts.count()
    };
    assert_eq!(out_of_service(&lab), 1);
    lab.run_for(30 * SECOND);
    assert_eq!(out_of_service(&lab), 0);
    lab.check();
}

#[test]
fn duplicate_guid_is_reported_and_other_nodes_come_up() {
    let mut lab = Lab::new("torus 3x3 hosts=1");
    let guid = |lab: &Lab, host: usize| lab.sim.link_port(lab.host(host)).node_guid;
    let (twin, of) = (guid(&lab, 5), guid(&lab, 2));
    lab.corrupt(move |datagram| {
        let info: Option<NodeInfo> = datagram.mad.attribute();
        if let Some(info) = info.filter(|info| info.node_guid == twin) {
            let port_guid = Guid(of.0 + 1);
            datagram.mad.set_attribute(&NodeInfo { node_guid: of, port_guid, ..info });
        }
    });
    lab.add(0, SmConfig::default());
    lab.run_for(5 * SECOND);
    let sm = &lab.sms[0];
    assert!(
        sm.faults.iter().any(|it| matches!(it, Fault::DuplicateGuid { guid, .. } if *guid == of)),
        "{:?}",
        sm.faults
    );
    assert_eq!(sm.last().nodes, 17);
}

#[test]
fn ports_with_the_same_lid_get_different_ones() {
    let mut lab = Lab::managed("torus 3x3 hosts=1");
    lab.run_while(|lab| lab.sms[0].reports.is_empty());
    let (one, other) = (lab.lid(3), lab.lid(6));
    assert_ne!(one, other);
    lab.kill(0);
    // The SM that replaces the killed SM reads the same LID at two ports.
    let mut lies = 4;
    lab.corrupt(move |datagram| {
        let info: Option<PortInfo> = datagram.mad.attribute();
        if let Some(info) = info.filter(|info| info.lid == other && lies > 0)
            && datagram.mad.method() == Method::GET_RESP
        {
            lies -= 1;
            datagram.mad.set_attribute(&PortInfo { lid: one, ..info });
        }
    });
    lab.add(0, SmConfig::default());
    lab.run_while(|lab| lab.sms[0].reports.is_empty());
    let (one, other) = (lab.lid(3), lab.lid(6));
    assert_ne!(one, other);
    let notes = &lab.sms[0].last().plan.notes;
    assert!(notes.iter().any(|note| note.contains("LID")), "{notes:?}");
    lab.corrupt(|_| {});
    lab.check();
}

#[test]
fn flood_of_requests_uses_bounded_memory() {
    let mut lab = Lab::managed("torus 3x3 hosts=1");
    lab.run_while(|lab| lab.sms[0].reports.is_empty());
    let now = lab.sim.now();
    let mut random = Random(7);
    for number in 0..200_000_u64 {
        let mut mad = Mad::new(MgmtClass::SUBN_ADM, Method::GET_TABLE, TransactionId(number));
        for byte in &mut mad.0[24..] {
            *byte = random.below(256) as u8;
        }
        mad.set_attribute_id(AttributeId(random.below(0x40) as u16));
        let remote = Remote::gsi(1 + random.below(18) as u16);
        let incoming = Incoming::Received(Datagram::new(remote, mad));
        lab.sms[0].manager.handle(now, &incoming);
        while lab.sms[0].manager.poll_transmit(now).is_some() {}
    }
    let mut sa_client = lab.sa_client(2);
    let all = (Method::GET_TABLE, ComponentMask::of(&[]));
    let answer = lab.ask_records(&mut sa_client, all, &NodeRecord::zeroed());
    assert_eq!(answer.records::<NodeRecord>().count(), 18);
    lab.check();
}
