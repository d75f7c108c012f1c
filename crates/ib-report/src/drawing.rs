//! The drawing of the fabric: the data and code of the page's script, and a static picture for browsers without
//! scripts.

use std::collections::BTreeMap;

use ib_routing::check::{CheckReport, LinkLoad};
use ib_routing::{Attachment, Subnet, SwitchId};
use serde::Serialize;

use crate::html;
use crate::layout::{Layout, Shape};
use crate::scale::Scale;

mod still;

const SCRIPT: &str = concat!(include_str!("fabric.js"), include_str!("explore.js"));

/// Minimum load of a hot link, as a multiple of the mean link load.
const HOT: f64 = 1.25;

/// All links between two switches.
struct Bundle {
    /// Indices of the two switches, in ascending order.
    ends: (usize, usize),
    /// Offset of the middle of the drawn curve from the straight line between the switches.
    bend: f64,
    cables: Vec<Cable>,
}

/// A link between two switches: its port at each end, and the number of routes that leave each end.
struct Cable {
    ports: (u8, u8),
    routes: (u32, u32),
}

impl Bundle {
    /// Returns the highest number of routes on one link of the bundle, in each direction.
    fn most(&self) -> (u32, u32) {
        let most = |of: &dyn Fn(&Cable) -> u32| self.cables.iter().map(of).max().unwrap_or(0);
        (most(&|cable| cable.routes.0), most(&|cable| cable.routes.1))
    }
}

/// The fabric with the position of each switch and the load of each link.
pub(crate) struct Drawing<'a> {
    subnet: &'a Subnet<'a>,
    load: &'a LinkLoad,
    /// Number of credit loops, including loops that are not drawn.
    loops: usize,
    layout: &'a Layout,
    scale: &'a Scale,
    bundles: Vec<Bundle>,
    data: Data<'a>,
}

/// Data of the script as JSON; the script reads these field names.
#[derive(Serialize)]
struct Data<'a> {
    shape: &'static str,
    /// Node descriptions of the switches. This field and the fields up to `room` are indexed by switch.
    names: Vec<&'a str>,
    guids: Vec<String>,
    lids: Vec<u16>,
    /// Node descriptions of the hosts of each switch, in the order of the switch's ports.
    hosts: Vec<Vec<&'a str>>,
    x: Vec<i64>,
    y: Vec<i64>,
    /// Width for the name of each switch. In a layout with rows, it is at most the distance to the nearest switch of
    /// the same row.
    room: Vec<i64>,
    /// Width and height of the drawing.
    extent: (i64, i64),
    /// One entry per pair of linked switches. It begins with the indices of the switches and the offset of the drawn
    /// curve ([`Bundle::bend`]). Four numbers per link follow: its port at each switch, and the number of routes that
    /// leave each port.
    bundles: Vec<Vec<i64>>,
    /// Rows of a tree from the top down, each with its vertical position and label.
    rows: Vec<(i64, String)>,
    mean: f64,
    bounds: [u32; 8],
    /// Hot links (see [`HOT`]) as index of the switch and output port, the most loaded link first.
    hot: Vec<(u16, u8)>,
    /// Credit loops, each as a list of output ports: index of the switch and port number.
    loops: Vec<Vec<(u16, u8)>>,
    /// Indices of the switches that drop packets or send them into a forwarding loop.
    faulty: Vec<u16>,
}

impl<'a> Drawing<'a> {
    pub(crate) fn new(
        subnet: &'a Subnet<'a>,
        report: &'a CheckReport,
        scale: &'a Scale,
        layout: &'a Layout,
    ) -> Self {
        let bundles = bundles(subnet, report, layout);
        let worst = report.load.worst.iter();
        let data = Data {
            shape: layout.shape.name(),
            names: names(subnet),
            guids: subnet.switches().iter().map(|switch| switch.guid.to_string()).collect(),
            lids: subnet.switch_ids().map(|switch| subnet.switch_lid(switch).get()).collect(),
            hosts: hosts(subnet),
            x: layout.places.iter().map(|place| whole(place.0)).collect(),
            y: layout.places.iter().map(|place| whole(place.1)).collect(),
            room: layout.rooms().into_iter().map(whole).collect(),
            extent: (whole(layout.extent().0), whole(layout.extent().1)),
            bundles: bundles.iter().map(flattened).collect(),
            rows: layout
                .rows()
                .into_iter()
                .map(|(at, rank, switches)| {
                    (whole(at), format!("rank {rank}: {}", html::count(switches as u64)))
                })
                .collect(),
            mean: scale.mean,
            bounds: scale.bounds,
            hot: worst
                .filter(|link| scale.times_mean(link.routes) >= HOT)
                .map(|link| (link.switch.0, link.port))
                .collect(),
            loops: report
                .credit
                .first
                .iter()
                .map(|found| found.cycle.iter().map(|held| (held.switch.0, held.port)).collect())
                .collect(),
            faulty: faulty(report),
        };
        Self {
            subnet,
            load: &report.load,
            loops: report.credit.loops,
            layout,
            scale,
            bundles,
            data,
        }
    }

    /// Returns the script elements with data and code, or an empty string if the subnet has no switch.
    pub(crate) fn script(&self) -> String {
        if self.data.names.is_empty() {
            return String::new();
        }
        let json = serde_json::to_string(&self.data).expect("the data can be serialised");
        // In this JSON, `<` occurs only within strings, where `\u003c` has the same meaning. Without `<`, no name can
        // close the script element.
        let json = json.replace('<', "\\u003c");
        format!(
            "<script type=\"application/json\" id=\"fabric-data\">{json}</script>\n\
             <script type=\"module\">\n{SCRIPT}</script>\n"
        )
    }

    /// Returns the HTML section with the drawing.
    pub(crate) fn figure(&self) -> String {
        if self.data.names.is_empty() {
            return "<section><p>There is no switch to draw.</p></section>".to_owned();
        }
        let switches = html::counted(self.data.names.len() as u64, "switch", "switches");
        let arranged = match self.layout.shape {
            Shape::Rows => "in rows by rank, the switches with hosts at the bottom",
            Shape::Grid => "in a grid detected from their ports",
            Shape::Circle => "on a circle, with neighbours close together",
        };
        let cables = || self.bundles.iter().flat_map(|bundle| &bundle.cables);
        let described = format!(
            "{switches} {arranged}, and {} between them. The half of a link next to a switch shows \
             the routes that leave the switch there.",
            html::counted(cables().count() as u64, "link", "links"),
        );
        let still = still::picture(self).unwrap_or_else(|| {
            "<p class=\"still\">A fabric of this size is drawn by a script; the rest of this page \
             needs none.</p>"
                .to_owned()
        });
        html::fill(
            include_str!("drawing.html"),
            &[
                ("described", &described),
                ("height", &still::height(self.layout).to_string()),
                ("hot", if self.data.hot.is_empty() { "hidden" } else { "" }),
                ("loops-shown", &self.loops_shown()),
                ("loops", if self.data.loops.is_empty() { "hidden" } else { "" }),
                ("still", &still),
                ("legend", &self.scale.legend(self.subnet, self.load)),
            ],
        )
    }

    /// Returns the label of the check box that shows the credit loops.
    fn loops_shown(&self) -> String {
        match (self.data.loops.len(), self.loops) {
            (shown, all) if shown < all => {
                format!("first {shown} of {} credit loops", html::count(all as u64))
            }
            (_, 1) => "credit loop".to_owned(),
            _ => "credit loops".to_owned(),
        }
    }
}

fn bundles(subnet: &Subnet<'_>, report: &CheckReport, layout: &Layout) -> Vec<Bundle> {
    let mut bundles: BTreeMap<(usize, usize), Vec<Cable>> = BTreeMap::new();
    for from in subnet.switch_ids() {
        for (port, to, there) in subnet.switch_links(from).filter(|&(_, to, _)| from < to) {
            let routes = (report.load.load(from, port), report.load.load(to, there));
            let cable = Cable { ports: (port, there), routes };
            bundles.entry((from.index(), to.index())).or_default().push(cable);
        }
    }
    bundles
        .into_iter()
        .map(|(ends, cables)| Bundle { ends, bend: layout.bend(ends.0, ends.1), cables })
        .collect()
}

fn flattened(bundle: &Bundle) -> Vec<i64> {
    let mut numbers = vec![bundle.ends.0 as i64, bundle.ends.1 as i64, whole(bundle.bend)];
    for Cable { ports, routes } in &bundle.cables {
        numbers.extend([i64::from(ports.0), ports.1.into(), routes.0.into(), routes.1.into()]);
    }
    numbers
}

/// Converts a length from layout units to tenths of a layout unit, in which the script expects lengths.
fn whole(length: f64) -> i64 {
    (length * 10.0).round() as i64
}

fn names<'a>(subnet: &'a Subnet<'_>) -> Vec<&'a str> {
    subnet.switch_ids().map(|switch| subnet.switch_node(switch).description.as_str()).collect()
}

fn hosts<'a>(subnet: &'a Subnet<'_>) -> Vec<Vec<&'a str>> {
    let mut hosts: Vec<Vec<(u8, &str)>> = vec![Vec::new(); subnet.switches().len()];
    for id in subnet.end_port_ids() {
        if let Attachment::Port(switch, port) = subnet.end_port(id).attachment {
            hosts[switch.index()].push((port, subnet.end_port_node(id).description.as_str()));
        }
    }
    for hosts in &mut hosts {
        hosts.sort_unstable();
    }
    hosts.into_iter().map(|hosts| hosts.into_iter().map(|(_, name)| name).collect()).collect()
}

fn faulty(report: &CheckReport) -> Vec<u16> {
    let lost = report.reach.faulty.iter().copied();
    let looping = report.reach.loops.iter().flat_map(|found| found.steps.iter().map(|step| step.0));
    let mut switches: Vec<u16> = lost.chain(looping).map(|SwitchId(number)| number).collect();
    switches.sort_unstable();
    switches.dedup();
    switches
}
