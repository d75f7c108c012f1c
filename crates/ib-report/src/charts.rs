//! Histograms of hops and link loads.

use std::fmt::Write as _;

use ib_routing::Subnet;
use ib_routing::check::CheckReport;

use crate::html;
use crate::scale::{self, CLASSES, Scale};

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 46.0;

/// Maximum width of a bar, in the units of the SVG view box.
const MAX_BAR: f64 = 64.0;

/// Returns the histograms of hops and of link loads as HTML. A histogram without routes is left out.
pub(crate) fn both(subnet: &Subnet<'_>, report: &CheckReport, scale: &Scale) -> String {
    let mut section = String::new();
    if report.hops.routes() > 0 {
        section.push_str(&hops(report));
    }
    if report.load.max > 0 {
        section.push_str(&loads(subnet, report, scale));
    }
    section
}

fn hops(report: &CheckReport) -> String {
    let routes = report.hops.routes() as f64;
    let bars: Vec<Bar> = report
        .hops
        .histogram
        .iter()
        .enumerate()
        .map(|(hops, &count)| Bar {
            parts: vec![("hops".to_owned(), count)],
            label: Some(hops.to_string()),
            title: format!(
                "{}: {} ({:.1} %)",
                html::counted(hops as u64, "hop", "hops"),
                html::counted(count, "route", "routes"),
                count as f64 / routes * 100.0
            ),
        })
        .collect();
    Chart {
        id: "hops",
        heading: "Hops",
        description: "Number of host-to-host routes by hops, i.e. by the number of links between \
                      switches on the route."
            .to_owned(),
        across: "hops",
        up: "routes",
        mark: None,
    }
    .draw(&bars)
}

fn loads(subnet: &Subnet<'_>, report: &CheckReport, scale: &Scale) -> String {
    let histogram = &report.load.histogram;
    let count = histogram.links.len();
    let mut links = vec![[0_u64; CLASSES]; count];
    for load in scale::loads(subnet, &report.load) {
        links[(load / histogram.width) as usize][scale.class(load)] += 1;
    }
    let bars: Vec<Bar> = (0_u32..)
        .zip(&links)
        .map(|(index, links)| {
            let (from, to) = (index * histogram.width, (index + 1) * histogram.width - 1);
            let to = to.min(report.load.max);
            let range = if from == to {
                html::counted(from, "route", "routes")
            } else {
                format!("{} to {} routes", html::count(from), html::count(to))
            };
            // Labels every bar if there are at most seven, and otherwise four to seven of them.
            let labelled = (index as usize).is_multiple_of(count.div_ceil(7));
            let total: u64 = links.iter().sum();
            let style = |class: usize| format!("load-{class}");
            Bar {
                parts: links.iter().enumerate().map(|(class, &n)| (style(class), n)).collect(),
                label: labelled.then(|| html::count(from)),
                title: format!("{range}: {}", html::counted(total, "link", "links")),
            }
        })
        .collect();
    let mean = (report.load.mean + 0.5) / (f64::from(histogram.width) * count as f64);
    Chart {
        id: "loads",
        heading: "Link load",
        description:
            "Number of directed links between switches by the number of routes over each link."
                .to_owned(),
        across: "routes over a link (lower bound of the bar)",
        up: "links",
        mark: Some((mean, format!("mean {}", html::decimal(report.load.mean, 1)))),
    }
    .draw(&bars)
}

pub(crate) struct Bar {
    /// Parts of the bar from the bottom up, each with its style and its value.
    pub(crate) parts: Vec<(String, u64)>,
    /// Label below the bar.
    pub(crate) label: Option<String>,
    /// Tooltip.
    pub(crate) title: String,
}

impl Bar {
    fn value(&self) -> u64 {
        self.parts.iter().map(|(_, number)| number).sum()
    }
}

pub(crate) struct Chart {
    pub(crate) id: &'static str,
    pub(crate) heading: &'static str,
    pub(crate) description: String,
    /// Name of the horizontal axis.
    pub(crate) across: &'static str,
    /// Name of the vertical axis.
    pub(crate) up: &'static str,
    /// A vertical line across the chart: its position as a fraction of the width, and its label.
    pub(crate) mark: Option<(f64, String)>,
}

impl Chart {
    pub(crate) fn draw(&self, bars: &[Bar]) -> String {
        let Self { id, heading, description, across, up, .. } = self;
        let mut svg = format!(
            "<section aria-labelledby=\"{id}-heading\">\n<h2 id=\"{id}-heading\">{heading}</h2>\n\
             <p>{description}</p>\n<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             role=\"img\" aria-label=\"{}\">\n",
            self.spoken(bars)
        );
        let floor = HEIGHT - BOTTOM;
        let highest = bars.iter().map(Bar::value).max().unwrap_or(0).max(1);
        let step = tick(highest);
        let top = highest.div_ceil(step) * step;
        let height = |value: u64| value as f64 / top as f64 * (floor - TOP);
        for value in (0..=top).step_by(step as usize) {
            let y = floor - height(value);
            let _ = write!(
                svg,
                "<path class=\"rule\" d=\"M{LEFT} {y:.1}H{}\"/><text x=\"{}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.0,
                html::short(value)
            );
        }
        let room = WIDTH - LEFT - RIGHT;
        let pitch = room / bars.len() as f64;
        let width = (pitch * 0.8).min(MAX_BAR);
        for (index, bar) in bars.iter().enumerate() {
            let middle = LEFT + (index as f64 + 0.5) * pitch;
            let _ = write!(svg, "\n<g><title>{}</title>", bar.title);
            let mut y = floor;
            for (style, number) in bar.parts.iter().filter(|(_, number)| *number > 0) {
                let tall = height(*number).max(1.0);
                y -= tall;
                let _ = write!(
                    svg,
                    "<rect class=\"bar {style}\" x=\"{:.1}\" y=\"{y:.1}\" \
                     width=\"{width:.1}\" height=\"{tall:.1}\"/>",
                    middle - width / 2.0
                );
            }
            if bar.value() > 0 {
                let _ = write!(
                    svg,
                    "<text class=\"value\" x=\"{middle:.1}\" y=\"{:.1}\" \
                     text-anchor=\"middle\">{}</text>",
                    y - 4.0,
                    if pitch > 50.0 { html::count(bar.value()) } else { html::short(bar.value()) }
                );
            }
            if let Some(label) = &bar.label {
                let _ = write!(
                    svg,
                    "<text x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                    floor + 16.0
                );
            }
            svg.push_str("</g>");
        }
        if let Some((at, name)) = &self.mark {
            let x = LEFT + at * room;
            let (shift, anchor) = if *at > 0.5 { (-5.0, "end") } else { (5.0, "start") };
            let _ = write!(
                svg,
                "\n<path class=\"mark\" d=\"M{x:.1} 10V{floor}\"/>\
                 <text class=\"mark\" x=\"{:.1}\" y=\"18\" text-anchor=\"{anchor}\">{name}</text>",
                x + shift
            );
        }
        let _ = write!(
            svg,
            "\n<text class=\"axis\" x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{across}</text>\
             <text class=\"axis\" x=\"4\" y=\"14\">{up}</text>\n</svg>\n</section>\n",
            LEFT + room / 2.0,
            HEIGHT - 8.0
        );
        svg
    }

    /// Describes the bars for screen readers.
    fn spoken(&self, bars: &[Bar]) -> String {
        let bars: Vec<&str> =
            bars.iter().filter(|bar| bar.value() > 0).map(|bar| bar.title.as_str()).collect();
        format!("{} {}", self.description, bars.join("; "))
    }
}

/// Returns the distance between grid lines: the smallest round number with which five lines above zero suffice to reach
/// the highest bar.
fn tick(highest: u64) -> u64 {
    let mut unit = 1;
    loop {
        for step in [unit, 2 * unit, 5 * unit] {
            if highest.div_ceil(step) <= 5 {
                return step;
            }
        }
        unit *= 10;
    }
}
