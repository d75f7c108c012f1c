//! Throughput of a requester: requests per second, and bytes of RMPP responses per second.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ib_link::{Incoming, Remote};
use ib_mad::{Request, Requester, RequesterConfig, Responder, ResponderConfig, ResponderEvent};
use ib_types::Instant;
use ib_wire::mad::{Mad, MadStatus, Method, MgmtClass, TransactionId};

/// Measures requests of one MAD, each of which is answered immediately.
fn plain(criterion: &mut Criterion) {
    const REQUESTS: usize = 10_000;
    let mut group = criterion.benchmark_group("requests");
    group.throughput(Throughput::Elements(REQUESTS as u64)).sample_size(20);
    for window in [1, 16, 1024] {
        let id = BenchmarkId::new("window", window);
        group.bench_function(id, |bencher| bencher.iter(|| run(REQUESTS, window)));
    }
    group.finish();
}

fn run(requests: usize, window: usize) {
    let config = RequesterConfig { window, ..RequesterConfig::default() };
    let mut requester = Requester::new(config);
    let mad = Mad::new(MgmtClass::PERFORMANCE, Method::GET, TransactionId(0));
    let mut now = Instant::ZERO;
    for _ in 0..requests {
        requester.start(Request::new(Remote::gsi(9), mad)).expect("Get has a response");
    }
    let mut ended = 0;
    let mut flying = Vec::with_capacity(window);
    while ended < requests {
        flying.extend(std::iter::from_fn(|| requester.poll_transmit(now)));
        for mut datagram in flying.drain(..) {
            datagram.mad.answer(MadStatus::OK);
            now = Instant::from_nanos(now.as_nanos() + 1_000);
            requester.handle(now, &Incoming::Received(datagram));
        }
        ended += std::iter::from_fn(|| black_box(requester.poll_event())).count();
    }
}

/// Measures the transfer of a table of 1 MiB from a responder.
fn table(criterion: &mut Criterion) {
    const LENGTH: usize = 1 << 20;
    let mut group = criterion.benchmark_group("table");
    group.throughput(Throughput::Bytes(LENGTH as u64)).sample_size(20);
    group.bench_function("1 MiB", |bencher| bencher.iter(|| transfer(LENGTH)));
    group.finish();
}

fn transfer(length: usize) -> usize {
    let now = Instant::ZERO;
    let mut requester = Requester::new(RequesterConfig::default());
    let mut responder = Responder::new(ResponderConfig::default());
    let mad = Mad::new(MgmtClass::SUBN_ADM, Method::GET_TABLE, TransactionId(0));
    requester.start(Request::new(Remote::gsi(9), mad)).expect("GetTable has a response");
    loop {
        while let Some(datagram) = requester.poll_transmit(now) {
            responder.handle(now, &Incoming::Received(datagram));
        }
        while let Some(event) = responder.poll_event() {
            let ResponderEvent::Request(request) = event else { continue };
            let mut header = *request.mad();
            header.answer(MadStatus::OK);
            responder
                .respond_message(request.datagram(), header, vec![1; length])
                .expect("no other response is being sent");
        }
        while let Some(datagram) = responder.poll_transmit(now) {
            requester.handle(now, &Incoming::Received(datagram));
        }
        if let Some(end) = requester.poll_event() {
            return end.result.expect("no MAD was lost").data().len();
        }
    }
}

criterion_group!(benches, plain, table);
criterion_main!(benches);
