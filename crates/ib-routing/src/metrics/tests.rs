use std::collections::BTreeMap;

use ib_topology::LinkRate;
use ib_types::rng::Rng;
use ib_types::{Guid, LinkSpeed, LinkWidth};
use proptest::prelude::*;

use super::*;
use crate::check::tests::net::{Net, corrupt, host_lid, tables};
use crate::engine::Engine;
use crate::engine::minhop::MinHop;
use crate::lft::NO_PATH;
use crate::subnet::{Peer, SwitchId};

/// Returns two leaves with four hosts each at ports 1 to 4. The leaves are joined by cables, which use the ports from 5
/// on.
fn leaves(rate: LinkRate, cables: u8) -> Net {
    let net = (0..cables)
        .fold(Net::new(&[8; 2]), |net, cable| net.link_at((0, 5 + cable), (1, 5 + cable), rate));
    (0..8).fold(net, |net, host| net.host((host / 4, 1 + (host % 4) as u8)))
}

fn measure(subnet: &Subnet<'_>, lfts: &Lfts) -> Metrics {
    metrics(subnet, lfts, &MetricsOptions::default())
}

#[test]
fn crossbar_has_no_contention() {
    let net = (1..=9).fold(Net::new(&[9]), |net, port| net.host((0, port)));
    let subnet = net.subnet();
    let measured = measure(&subnet, &tables(&subnet, |_, _, _| NO_PATH));
    assert_eq!(measured.effective_bisection, 1.0);
    assert_eq!(measured.shift_contention, ShiftContention { max: 1, mean: 1.0 });
}

#[test]
fn single_host_has_no_contention() {
    let net = Net::new(&[2]).host((0, 1));
    let subnet = net.subnet();
    let measured = measure(&subnet, &tables(&subnet, |_, _, _| NO_PATH));
    assert_eq!(measured.effective_bisection, 1.0);
    assert_eq!(measured.shift_contention, ShiftContention { max: 0, mean: 0.0 });
}

/// Two leaves with four hosts each are joined by one cable. In the middle shift, four flows use the cable in each
/// direction.
#[test]
fn thin_trunk_is_shared_by_all_flows() {
    let net = leaves(LinkRate::DEFAULT, 1);
    let subnet = net.subnet();
    let lfts = tables(&subnet, |_, _, _| 5);
    let order: Vec<_> =
        (0..8).map(|host| subnet.find_end_port(Guid(0x10_0001 + 2 * host))).collect();
    let options = MetricsOptions { ca_order: &order, ..Default::default() };
    let measured = metrics(&subnet, &lfts, &options);
    // In the shifts 1 to 7, the cable has 1, 2, 3, 4, 3, 2 and 1 flows in each direction.
    assert_eq!(measured.shift_contention, ShiftContention { max: 4, mean: 16.0 / 7.0 });
    assert!((0.2..0.9).contains(&measured.effective_bisection), "{measured:?}");
}

#[test]
fn fast_trunk_carries_more_flows() {
    let fast = LinkRate { width: LinkWidth::X4, speed: LinkSpeed::Qdr };
    let net = leaves(fast, 1);
    let subnet = net.subnet();
    // The cable has four times the rate of a host link, so four flows over it have the full rate.
    assert_eq!(measure(&subnet, &tables(&subnet, |_, _, _| 5)).effective_bisection, 1.0);
}

#[test]
fn one_cable_per_host_avoids_shift_contention() {
    let net = leaves(LinkRate::DEFAULT, 4);
    let subnet = net.subnet();
    let order: Vec<_> =
        (0..8).map(|host| subnet.find_end_port(Guid(0x10_0001 + 2 * host))).collect();
    let cable_of: BTreeMap<u16, u8> =
        (0..8).map(|host| (host_lid(&subnet, host), 5 + (host % 4) as u8)).collect();
    let lfts = tables(&subnet, |_, _, lid| cable_of.get(&lid).copied().unwrap_or(5));
    let options = MetricsOptions { ca_order: &order, ..Default::default() };
    let measured = metrics(&subnet, &lfts, &options);
    assert_eq!(measured.shift_contention, ShiftContention { max: 1, mean: 1.0 });
    assert_eq!(measured.effective_bisection, 1.0, "each cable has at most one flow per direction");
}

#[test]
fn dummies_have_no_flows() {
    let net = leaves(LinkRate::DEFAULT, 1);
    let subnet = net.subnet();
    let lfts = tables(&subnet, |_, _, _| 5);
    let host = |index: u64| subnet.find_end_port(Guid(0x10_0001 + 2 * index));
    let options = MetricsOptions { ca_order: &[host(0), None], ..Default::default() };
    assert_eq!(metrics(&subnet, &lfts, &options).shift_contention.max, 0);
    let order = [host(0), None, None, host(4)];
    let measured =
        metrics(&subnet, &lfts, &MetricsOptions { ca_order: &order, ..Default::default() });
    // Only in the shifts 1 and 3, the two nodes are partners.
    assert_eq!(measured.shift_contention, ShiftContention { max: 1, mean: 2.0 / 3.0 });
    assert_eq!(measured.effective_bisection, 1.0);
}

#[test]
fn lost_flows_have_no_bandwidth() {
    let net = leaves(LinkRate::DEFAULT, 1);
    let subnet = net.subnet();
    let measured = measure(&subnet, &Lfts::new(&subnet));
    assert_eq!(measured.effective_bisection, 0.0);
    assert_eq!(measured.shift_contention.max, 1, "a lost flow still counts on its host's link");
}

#[test]
fn result_does_not_depend_on_threads_and_path_memory() {
    let kind = ib_topology::generate::Kind::parse("torus", &["3x4", "hosts=2"])
        .expect("the kind and its arguments are valid");
    let fabric = ib_topology::generate::generate(&kind, &Default::default())
        .expect("the parameters of the fabric are valid");
    let subnet =
        Subnet::discover(&fabric, &Default::default()).expect("the fabric has a linked host");
    let lfts = MinHop.route(&subnet, &Default::default()).expect("minhop routes every subnet").lfts;
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("the thread pool starts");
        pool.install(|| measure(&subnet, &lfts))
    };
    let one = with(1);
    assert_eq!(one, with(4));
    assert!(one.effective_bisection < 1.0 && one.shift_contention.max > 1);
    let routes = Routes::new(&subnet, &lfts);
    let order: Vec<_> = routes.adapters_by_lid().into_iter().map(Some).collect();
    assert_eq!(shift::shift_contention(&routes, &order, 0, &|_| {}), one.shift_contention);
    let other = metrics(&subnet, &lfts, &MetricsOptions { seed: 1, ..Default::default() });
    assert_ne!(other.effective_bisection, one.effective_bisection);
}

/// Follows a flow by the forwarding tables and the links of the subnet, without `Routes`. Returns the output ports on
/// its path; `None` if the flow does not arrive.
fn path(
    subnet: &Subnet<'_>,
    lfts: &Lfts,
    from: EndPortId,
    to: EndPortId,
) -> Option<Vec<(SwitchId, u8)>> {
    let mut at =
        subnet.end_port(from).attachment.switch().expect("all hosts are linked to switches");
    let mut links = Vec::new();
    while links.len() <= subnet.switches().len() {
        let port = lfts.port(at, subnet.end_port(to).base_lid.get());
        links.push((at, port));
        match *subnet.peers(at).get(usize::from(port))? {
            Peer::Switch(next, _) => at = next,
            Peer::EndPort(end) => return (end == to).then_some(links),
            Peer::None => return None,
        }
    }
    None
}

proptest! {
    #[test]
    fn contention_matches_individual_flows(seed: u64, percent in 0usize..20) {
        let mut rng = Rng::new(seed);
        let net = Net::random(&mut rng);
        let subnet = net.subnet();
        let mut lfts =
            MinHop.route(&subnet, &Default::default()).expect("minhop routes every subnet").lfts;
        corrupt(&subnet, &mut lfts, &mut rng, percent);
        let mut order: Vec<Option<EndPortId>> =
            subnet.end_port_ids().filter(|&id| !subnet.end_port(id).is_switch()).map(Some).collect();
        order.extend((0..rng.below(3)).map(|_| None));
        rng.shuffle(&mut order);

        let contention = |shift: usize| {
            let mut flows = BTreeMap::new();
            let mut any = 0;
            for (index, from) in order.iter().enumerate() {
                let to = order[(index + shift) % order.len()];
                if let (Some(from), Some(to)) = (*from, to) {
                    any = 1;
                    for link in path(&subnet, &lfts, from, to).unwrap_or_default() {
                        *flows.entry(link).or_insert(0) += 1;
                    }
                }
            }
            flows.into_values().max().unwrap_or(0).max(any)
        };
        let all: Vec<u32> = (1..order.len()).map(contention).collect();
        let mean = f64::from(all.iter().sum::<u32>()) / all.len().max(1) as f64;
        let max = all.iter().copied().max().unwrap_or(0);
        let options = MetricsOptions { ca_order: &order, bisections: 3, seed, progress: None };
        let measured = metrics(&subnet, &lfts, &options);
        prop_assert_eq!(measured.shift_contention, ShiftContention { max, mean });

        let nodes: Vec<EndPortId> = order.iter().flatten().copied().collect();
        let mut total = 0.0;
        for number in 0..3 {
            let mut nodes = nodes.clone();
            Rng::stream(seed, number).shuffle(&mut nodes);
            let half = nodes.len() / 2;
            let paths: Vec<_> = (0..half)
                .map(|pair| path(&subnet, &lfts, nodes[pair], nodes[half + pair]))
                .collect();
            let flows = |link| paths.iter().flatten().flatten().filter(|&l| *l == link).count();
            let share = |path: &Option<Vec<_>>| {
                let worst = path.as_ref().map(|path| path.iter().map(|&link| flows(link)).max());
                worst.flatten().map_or(0.0, |flows| 1.0 / flows as f64)
            };
            total += paths.iter().map(share).sum::<f64>() / half.max(1) as f64;
        }
        let expected = if nodes.len() < 2 { 1.0 } else { total / 3.0 };
        prop_assert!((measured.effective_bisection - expected).abs() < 1e-9);
    }
}
