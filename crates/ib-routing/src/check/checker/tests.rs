use ib_topology::PortId;
use ib_types::rng::Rng;
use ib_types::{Lmc, NodeKind};
use proptest::prelude::*;

use super::*;
use crate::check::tests::net::{Net, corrupt};
use crate::engine::minhop::MinHop;
use crate::engine::updn::UpDown;
use crate::engine::{Engine, RoutingOptions};

/// Pulls a cable between two switches, or plugs the last pulled cable in again.
fn replug(net: &mut Net, pulled: &mut Option<(PortId, PortId)>, rng: &mut Rng) {
    if let Some((one, other)) = pulled.take() {
        let end = |port: PortId| (net.fabric.port(port).node, net.fabric.port(port).number);
        let (one, other) = (end(one), end(other));
        let _ = net.fabric.connect(one, other, ib_topology::LinkRate::DEFAULT);
        return;
    }
    let node = |port: PortId| net.fabric.node(net.fabric.port(port).node);
    let is_switch = |port: PortId| node(port).kind == NodeKind::Switch;
    let links: Vec<_> =
        net.fabric.links().filter(|&(one, other)| is_switch(one) && is_switch(other)).collect();
    if !links.is_empty() {
        let (one, other) = links[rng.below(links.len())];
        net.fabric.disconnect(one);
        *pulled = Some((one, other));
    }
}

proptest! {
    #[test]
    fn report_does_not_depend_on_earlier_checks(seed: u64) {
        let mut rng = Rng::new(seed);
        let mut net = Net::random(&mut rng);
        let lmc = Lmc::new(rng.below(2) as u8).expect("an LMC of 0 or 1 is valid");
        let (mut checker, mut pulled) = (Checker::default(), None);
        let mut kept: Option<Lfts> = None;
        let percent = [0, 0, 1, 5, 30][rng.below(5)];
        for _ in 0..6 {
            let subnet = net.subnet_with(lmc);
            let engine: &dyn Engine = if rng.below(2) == 0 { &MinHop } else { &UpDown };
            let Ok(routing) = engine.route(&subnet, &RoutingOptions::default()) else { continue };
            let mut lfts = routing.lfts;
            corrupt(&subnet, &mut lfts, &mut rng, percent);
            // In half of the rounds, the tables of the previous round are kept, so that only cables have changed.
            let fits = |old: &&Lfts| {
                (old.max_lid(), old.switches()) == (lfts.max_lid(), lfts.switches())
            };
            if let Some(old) = kept.as_ref().filter(fits).filter(|_| rng.below(2) == 0) {
                lfts = old.clone();
            }
            kept = Some(lfts.clone());
            let report = checker.check(&subnet, &lfts, &routing.layers);
            prop_assert_eq!(report, check(&subnet, &lfts, &routing.layers));
            if rng.below(3) > 0 {
                replug(&mut net, &mut pulled, &mut rng);
            }
        }
    }
}

/// Ten switches in a cycle have one host each; the routes are shortest paths.
#[test]
fn unchanged_lids_are_not_checked() {
    let net = (0..10).fold(Net::new(&[4; 10]), |net, switch| {
        net.link((switch, 1), ((switch + 1) % 10, 2)).host((switch, 3))
    });
    let subnet = net.subnet();
    let routing =
        MinHop.route(&subnet, &RoutingOptions::default()).expect("minhop routes every subnet");
    let mut checker = Checker::default();
    let first = checker.check(&subnet, &routing.lfts, &routing.layers);
    assert_eq!(checker.checked_lids(), 20);
    assert_eq!(checker.check(&subnet, &routing.lfts, &routing.layers), first);
    assert_eq!(checker.checked_lids(), 0);
    let mut lfts = routing.lfts.clone();
    let lid = usize::from(subnet.end_ports()[7].base_lid.get());
    lfts.table_mut(SwitchId(0))[lid] = 255;
    let broken = checker.check(&subnet, &lfts, &routing.layers);
    assert_eq!((checker.checked_lids(), broken.reach.lids), (1, 20));
    assert_ne!(broken.reach.first, first.reach.first);
    // LIDs with a fault are checked again, and so are LIDs whose fault was repaired.
    assert_eq!(checker.check(&subnet, &routing.lfts, &routing.layers), first);
    assert_eq!(checker.checked_lids(), 1);
}
