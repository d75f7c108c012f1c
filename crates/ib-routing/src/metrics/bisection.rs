//! Effective bisection bandwidth.

use ib_types::rng::Rng;
use rayon::prelude::*;

use super::routes::Routes;
use crate::check::wiring::Channel;
use crate::subnet::EndPortId;

/// Returns the mean share of the full rate that a flow gets, over all random bisections.
pub(super) fn effective_bisection(
    routes: &Routes<'_>,
    nodes: &[EndPortId],
    bisections: u32,
    seed: u64,
    advance: &(dyn Fn(usize) + Sync),
) -> f64 {
    if nodes.len() < 2 || bisections == 0 {
        return 1.0;
    }
    let rates = routes.rates();
    let shares: Vec<f64> = (0..bisections)
        .into_par_iter()
        .map_init(
            || Bisection::new(routes, &rates),
            |bisection, number| {
                let mut order = nodes.to_vec();
                Rng::stream(seed, u64::from(number)).shuffle(&mut order);
                let (senders, receivers) = order.split_at(nodes.len() / 2);
                let share = bisection.mean_share(senders, receivers);
                advance(1);
                share
            },
        )
        .collect();
    // The sum has a fixed order, so that the result does not depend on the number of threads.
    shares.iter().sum::<f64>() / f64::from(bisections)
}

/// The flows of one random bisection, in buffers that a thread reuses.
struct Bisection<'a> {
    routes: &'a Routes<'a>,
    rates: &'a [u32],
    /// Number of flows over each channel.
    flows: Vec<u32>,
    /// The channels of all flows, one flow after the other.
    channels: Vec<Channel>,
    /// For each flow: the index in `channels` after its last channel, and true if the flow arrives.
    ends: Vec<(usize, bool)>,
}

impl<'a> Bisection<'a> {
    fn new(routes: &'a Routes<'a>, rates: &'a [u32]) -> Self {
        let flows = vec![0; routes.channels()];
        Self { routes, rates, flows, channels: Vec::new(), ends: Vec::new() }
    }

    /// Returns the mean share of the full rate that the flows get. Each sender sends to the receiver with the same
    /// index.
    fn mean_share(&mut self, senders: &[EndPortId], receivers: &[EndPortId]) -> f64 {
        self.channels.clear();
        self.ends.clear();
        for (&from, &to) in senders.iter().zip(receivers) {
            let arrives = self
                .routes
                .entry(from)
                .is_none_or(|switch| self.routes.append(switch, to, &mut self.channels));
            self.ends.push((self.channels.len(), arrives));
        }
        self.flows.fill(0);
        for &channel in &self.channels {
            self.flows[channel as usize] += 1;
        }
        let mut start = 0;
        let mut total = 0.0;
        for ((&from, &to), &(end, arrives)) in senders.iter().zip(receivers).zip(&self.ends) {
            if arrives {
                total += self.share(from, to, &self.channels[start..end]);
            }
            start = end;
        }
        total / senders.len() as f64
    }

    fn share(&self, from: EndPortId, to: EndPortId, path: &[Channel]) -> f64 {
        let wanted = f64::from(self.host_rate(from).min(self.host_rate(to)));
        let part = |&channel: &Channel| {
            f64::from(self.rates[channel as usize]) / f64::from(self.flows[channel as usize])
        };
        path.iter().map(part).fold(wanted, f64::min) / wanted
    }

    fn host_rate(&self, port: EndPortId) -> u32 {
        let subnet = self.routes.subnet;
        subnet.fabric().port(subnet.end_port(port).port).rate.megabits_per_second()
    }
}
