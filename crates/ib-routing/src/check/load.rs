//! The number of routes over each link.

use super::wiring::Wiring;
use crate::lft::Lfts;
use crate::subnet::{Attachment, Peer, Subnet, SwitchId};

/// Statistics of the number of routes over every directed link.
///
/// A route leads from a port of a channel adapter or router to a LID of another such port. Only routes that arrive are
/// counted. The statistics cover all directed links between switches, including unused ones.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkLoad {
    /// Maximum number of routes over a link.
    pub max: u32,
    /// Mean number of routes over a link; 0 if there are no links.
    pub mean: f64,
    /// Coefficient of variation of the number of routes, i.e. the standard deviation divided by the mean; 0 if the mean
    /// is 0.
    pub cv: f64,
    /// Number of directed links between switches.
    pub links: usize,
    /// Histogram of the number of routes over a link, from 0 to the maximum.
    pub histogram: LoadHistogram,
    /// The links with the most routes, in descending order. Links with equally many routes are ordered by switch and
    /// port.
    pub worst: Vec<LoadedLink>,
    /// Number of routes that leave a switch through a port, indexed by the `offset` of the switch plus the port.
    routes: Vec<u32>,
    offset: Vec<u32>,
}

/// Histogram of the number of routes over a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadHistogram {
    /// Range of each bar, in routes; at least 1. Bar i counts links with i·width to (i + 1)·width - 1 routes.
    pub width: u32,
    /// Number of links in each bar. There are at most 20 bars, and the last one is not empty.
    pub links: Vec<u32>,
}

/// A directed link between two switches, and the number of routes over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadedLink {
    /// The switch that sends packets over the link.
    pub switch: SwitchId,
    /// The port of this switch at which the link starts.
    pub port: u8,
    /// Number of routes over the link.
    pub routes: u32,
}

const BARS: u32 = 20;

impl LinkLoad {
    pub(super) fn new(wiring: &Wiring, routes: Vec<u32>, samples: usize) -> Self {
        let channels: Vec<_> = wiring.switch_channels().collect();
        let loads = || channels.iter().map(|&channel| routes[channel as usize]);
        let max = loads().max().unwrap_or(0);
        let count = channels.len().max(1) as f64;
        let mean = loads().map(u64::from).sum::<u64>() as f64 / count;
        let variance = loads().map(|load| (f64::from(load) - mean).powi(2)).sum::<f64>() / count;
        let mut worst = channels.clone();
        worst.sort_by_key(|&channel| std::cmp::Reverse(routes[channel as usize]));
        let worst = worst
            .iter()
            .take(samples)
            .map(|&channel| {
                let (switch, port) = wiring.port(channel);
                LoadedLink { switch, port, routes: routes[channel as usize] }
            })
            .collect();
        Self {
            max,
            mean,
            cv: if mean > 0.0 { variance.sqrt() / mean } else { 0.0 },
            links: channels.len(),
            histogram: LoadHistogram::new(loads(), max),
            worst,
            routes,
            offset: wiring.offsets().to_vec(),
        }
    }

    /// Returns the number of routes that leave a switch through a port, to a host or a switch. Returns 0 if the switch
    /// has no such port.
    ///
    /// # Panics
    /// Panics on a switch of another subnet.
    #[must_use]
    pub fn load(&self, switch: SwitchId, port: u8) -> u32 {
        let (from, to) = (self.offset[switch.index()], self.offset[switch.index() + 1]);
        self.routes[from as usize..to as usize].get(usize::from(port)).copied().unwrap_or(0)
    }

    /// Returns the number of routes that start at each end port, in the order of [`Subnet::end_ports`]. The number is 0
    /// for port 0 of a switch and for ports that are not linked to a switch.
    ///
    /// Routes that leave a switch come from other switches or from hosts of this switch. Each of these hosts reaches
    /// the same LIDs, except its own LIDs. So the number of routes per host follows from the loads of the links and the
    /// LFT entries for the switch's hosts.
    ///
    /// # Panics
    /// Panics if the subnet or the tables are not those that were checked.
    #[must_use]
    pub fn starting(&self, subnet: &Subnet<'_>, lfts: &Lfts) -> Vec<u32> {
        let switches = subnet.switches().len();
        let mut own = vec![0i64; switches];
        for from in subnet.switch_ids() {
            for (port, peer) in (0..).zip(subnet.peers(from)) {
                let load = i64::from(self.load(from, port));
                own[from.index()] += load;
                if let Peer::Switch(to, _) = *peer {
                    own[to.index()] -= load;
                }
            }
        }
        // For each end port: the number of LIDs of this port that the switch forwards to this port.
        let back: Vec<i64> = subnet
            .end_ports()
            .iter()
            .map(|end| match end.attachment {
                Attachment::Port(switch, number) => {
                    let is_right = |lid: &u16| lfts.port(switch, *lid) == number;
                    end.lid_range().filter(is_right).count() as i64
                }
                Attachment::Management(_) | Attachment::Direct => 0,
            })
            .collect();
        let mut hosts = vec![0; switches];
        for (end, back) in subnet.end_ports().iter().zip(&back) {
            if let Attachment::Port(switch, _) = end.attachment {
                own[switch.index()] += back;
                hosts[switch.index()] += 1;
            }
        }
        let starting = |(end, back): (&crate::subnet::EndPort, i64)| match end.attachment {
            Attachment::Port(switch, _) => {
                (own[switch.index()] / hosts[switch.index()] - back) as u32
            }
            Attachment::Management(_) | Attachment::Direct => 0,
        };
        subnet.end_ports().iter().zip(back).map(starting).collect()
    }
}

impl LoadHistogram {
    fn new(loads: impl Iterator<Item = u32>, max: u32) -> Self {
        let mut histogram = Self { width: max / BARS + 1, links: Vec::new() };
        for load in loads {
            let bar = (load / histogram.width) as usize;
            if histogram.links.len() <= bar {
                histogram.links.resize(bar + 1, 0);
            }
            histogram.links[bar] += 1;
        }
        histogram
    }
}

impl LoadedLink {
    /// Describes the link and the number of its routes in one line.
    #[must_use]
    pub fn describe(&self, subnet: &Subnet<'_>) -> String {
        let from = super::switch_name(subnet, self.switch);
        let to = super::peer_name(subnet, self.switch, self.port);
        format!("{from} port {} to {to}: {} routes", self.port, self.routes)
    }
}
