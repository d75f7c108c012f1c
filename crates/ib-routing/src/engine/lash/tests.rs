use ib_topology::Fabric;
use ib_topology::generate::{Kind, Options, generate};
use ib_types::Lmc;
use proptest::prelude::*;

use super::*;
use crate::check::{CheckOptions, Scope, check_with};
use crate::lids::LidOptions;
use crate::subnet::SubnetOptions;

fn fabric(kind: &str, drop_links: f64, seed: u64) -> Fabric {
    let mut words = kind.split(' ');
    let name = words.next().expect("`split` returns at least one word");
    let kind = Kind::parse(name, &words.collect::<Vec<_>>())
        .expect("the kind and its arguments are valid");
    generate(&kind, &Options { drop_links, seed, ..Options::default() })
        .expect("the parameters of the fabric are valid")
}

fn subnet(fabric: &Fabric) -> Subnet<'_> {
    Subnet::discover(fabric, &SubnetOptions::default()).expect("the fabric has a linked host")
}

fn vls(count: u8) -> RoutingOptions {
    RoutingOptions { virtual_lanes: count, ..RoutingOptions::default() }
}

/// Routes a fabric and checks all properties that lash guarantees. Returns the number of layers.
fn sound(fabric: &Fabric) -> usize {
    let subnet = subnet(fabric);
    let routing = Lash.route(&subnet, &vls(15)).expect("15 VLs are enough");
    let options = CheckOptions { scope: Scope::Everything, ..CheckOptions::default() };
    let report = check_with(&subnet, &routing.lfts, &routing.layers, &options);
    assert_eq!(report.reach.unreachable, 0);
    assert_eq!(report.reach.unreachable_switch_pairs, 0);
    assert_eq!(report.credit.loops, 0, "{:?}", report.credit.first);
    assert_eq!(report.hops.longer_than_minimum, 0);
    for a in subnet.switch_ids() {
        for b in subnet.switch_ids() {
            assert_eq!(routing.layers.level(a, b), routing.layers.level(b, a));
        }
    }
    routing.layers.count()
}

#[test]
fn known_fabrics_need_the_expected_layers() {
    for (kind, layers) in [
        ("mesh 1x1 hosts=2", 1),
        ("mesh 5x4", 1),
        ("hypercube 5", 1),
        ("torus 5", 2),
        ("torus 8", 2),
        ("k-ary-n-tree 2 2", 1),
    ] {
        assert_eq!(sound(&fabric(kind, 0.0, 0)), layers, "{kind}");
    }
}

#[test]
fn large_torus_needs_at_most_eight_vls() {
    let fabric = fabric("torus 8x8x8 hosts=2", 0.0, 0);
    let subnet = subnet(&fabric);
    let routing = Lash.route(&subnet, &vls(8)).expect("8 VLs are enough");
    assert!(routing.layers.count() <= 8);
    let report = crate::check::check(&subnet, &routing.lfts, &routing.layers);
    assert!(report.is_sound());
}

#[test]
fn damaged_and_irregular_fabrics_are_routed_as_well() {
    for (kind, dropped) in [
        ("torus 4x4x4 hosts=2", 0.1),
        ("hypercube 5 hosts=2", 0.1),
        ("dragonfly a=4 p=2 h=2", 0.1),
        ("xgft 4,4,4 1,4,4", 0.1),
        ("xgft 4,4,4 1,4,4", 0.0),
    ] {
        for seed in 0..3 {
            sound(&fabric(kind, dropped, seed));
        }
    }
}

#[test]
fn lash_needs_no_more_layers_than_opensm() {
    for kind in
        ["torus 5x5", "torus 4x4x4", "dragonfly a=4 p=2 h=2", "random switches=30 ports=8 hosts=2"]
    {
        for dropped in [0.0, 0.1] {
            let fabric = fabric(kind, dropped, 1);
            let subnet = subnet(&fabric);
            let hops = HopMatrix::shortest(&subnet, &LinkWeights::default());
            let network = Network::new(&subnet, &hops);
            let unplaced = vec![NONE; network.switches() * network.switches()];
            let pairs = routes::open_pairs(&network, &unplaced);
            let theirs =
                first_fit::first_fit(&network, first_fit::lowest_ports(&network), &pairs, 64);
            let theirs = theirs.expect("64 layers are enough").count();
            let ours = Lash.route(&subnet, &vls(15)).expect("15 VLs are enough").layers.count();
            assert!(ours <= theirs, "{kind}: {ours} layers, OpenSM has {theirs}");
        }
    }
}

#[test]
fn paths_are_spread_evenly_over_the_layers() {
    let fabric = fabric("torus 6x6 hosts=2", 0.0, 0);
    let subnet = subnet(&fabric);
    let routing = Lash.route(&subnet, &RoutingOptions::default()).expect("8 VLs are enough");
    let mut pairs = [0usize; 16];
    for a in subnet.switch_ids() {
        for b in subnet.switch_ids().filter(|&b| b != a) {
            pairs[usize::from(routing.layers.level(a, b).get())] += 1;
        }
    }
    let used: Vec<usize> = pairs.into_iter().filter(|&pairs| pairs > 0).collect();
    let (most, least) =
        (used.iter().max().expect("a layer is used"), used.iter().min().expect("a layer is used"));
    assert!(most - least <= most / 4, "{used:?}");
}

#[test]
fn unsupported_options_are_refused_with_a_reason() {
    let fabric = fabric("torus 5x5", 0.0, 0);
    let refusal = |lids: LidOptions, options: &RoutingOptions| {
        let options_of = SubnetOptions { sm_port: None, lids };
        let subnet = Subnet::discover(&fabric, &options_of).expect("the fabric has a linked host");
        Lash.route(&subnet, options).expect_err("lash does not support the options").to_string()
    };
    let lmc = LidOptions { lmc: Lmc::new(1).expect("1 is a valid LMC"), ..LidOptions::default() };
    assert_eq!(refusal(lmc, &vls(8)), "lash: LMC is 1; expected 0");
    assert_eq!(
        refusal(LidOptions::default(), &RoutingOptions { lash_start_vl: 8, ..vls(8) }),
        "lash: the starting VL is 8; expected less than 8, the number of data VLs"
    );
    let few = refusal(LidOptions::default(), &vls(1));
    assert!(few.ends_with("layers are needed; expected at most 1, the VLs from 0 on"), "{few}");
}

#[test]
fn starting_vl_is_the_lowest_service_level() {
    let fabric = fabric("torus 5x5 hosts=2", 0.0, 0);
    let subnet = subnet(&fabric);
    let options = RoutingOptions { lash_start_vl: 3, ..vls(8) };
    let routing = Lash.route(&subnet, &options).expect("five VLs are available");
    let lowest = subnet
        .switch_ids()
        .flat_map(|a| subnet.switch_ids().map(move |b| (a, b)))
        .map(|(a, b)| routing.layers.level(a, b).get())
        .min();
    assert_eq!(lowest, Some(3));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_fabrics_are_sound_for_any_number_of_threads(switches in 3u32..24, seed in 0u64..1000) {
        let kind = format!("random switches={switches} ports=7 hosts=2");
        let fabric = fabric(&kind, 0.0, seed);
        sound(&fabric);
        let subnet = subnet(&fabric);
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.expect("the thread pool starts")
                .install(|| Lash.route(&subnet, &vls(15)).expect("15 VLs are enough"))
        };
        let (one, four) = (with(1), with(4));
        prop_assert!(one.lfts == four.lfts && one.layers == four.layers);
    }
}
