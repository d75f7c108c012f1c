//! Benchmarks of the engines, the check and the LID assignment, on fabrics of a few hundred switches.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use ib_routing::engine::engine;
use ib_routing::{EngineKind, RoutingOptions, Subnet, SubnetOptions, check};
use ib_topology::Fabric;
use ib_topology::generate::{Kind, Options, generate};

fn fabric(kind: &str) -> Fabric {
    let mut words = kind.split(' ');
    let name = words.next().expect("the text starts with a kind");
    let kind = Kind::parse(name, &words.collect::<Vec<_>>())
        .expect("the kind and its arguments are valid");
    generate(&kind, &Options::default()).expect("the fabric can be generated")
}

fn engines(criterion: &mut Criterion) {
    use EngineKind::{Dor, FatTree, Lash, MinHop, UpDown};
    let cases = [
        ("xgft 12,12,24 1,12,12", &[MinHop, UpDown, Dor, FatTree][..]),
        ("torus 6x6x6 hosts=2", &[MinHop, Dor, Lash]),
        ("hypercube 8 hosts=4", &[Dor, Lash]),
    ];
    let mut group = criterion.benchmark_group("engine");
    group.sample_size(10);
    for (kind, engines) in cases {
        let fabric = fabric(kind);
        let subnet = Subnet::discover(&fabric, &SubnetOptions::default())
            .expect("the fabric has a linked port");
        let options = RoutingOptions::default();
        for &which in engines {
            let id = BenchmarkId::new(which.name(), kind);
            group.bench_function(id, |bencher| {
                bencher.iter(|| {
                    engine(which).route(&subnet, &options).expect("the engine supports the subnet")
                });
            });
        }
    }
    group.finish();
}

fn around(criterion: &mut Criterion) {
    let fabric = fabric("xgft 12,12,24 1,12,12");
    let options = SubnetOptions::default();
    let subnet = Subnet::discover(&fabric, &options).expect("the fabric has a linked port");
    let routing = engine(EngineKind::MinHop)
        .route(&subnet, &RoutingOptions::default())
        .expect("minhop routes every subnet");
    let mut group = criterion.benchmark_group("around");
    group.sample_size(10);
    group.bench_function("discover", |bencher| {
        bencher.iter(|| Subnet::discover(&fabric, &options).expect("the fabric has a linked port"));
    });
    group.bench_function("check", |bencher| {
        bencher.iter(|| check(&subnet, &routing.lfts, &routing.layers));
    });
    group.finish();
}

criterion_group!(benches, engines, around);
criterion_main!(benches);
