//! Title, verdict, key figures, problems and notes of the page about a routed fabric.

use std::fmt::Write as _;

use ib_routing::check::CheckReport;
use ib_routing::{Routing, Subnet};

use crate::html;
use crate::routing::Choice;
use crate::summary::Summary;

/// Maximum number of cut-off nodes that the page lists.
const CUT_OFF_SHOWN: usize = 64;

/// Returns the title of the HTML page.
pub(crate) fn title(routing: &Routing, summary: &Summary, choice: Choice<'_>) -> String {
    let verdict = if summary.is_sound() { "sound" } else { "faulty" };
    let hosts = html::counted(summary.hosts as u64, "host", "hosts");
    let fabric = html::text(choice.fabric);
    format!("{fabric} routed by {}: {verdict}, {hosts}", routing.engine)
}

/// Returns the heading of the HTML page.
pub(crate) fn heading(choice: Choice<'_>) -> String {
    format!("Routes of {}", html::text(choice.fabric))
}

/// Returns the verdict. If engines of the requested list refused the subnet, a paragraph that names them follows.
pub(crate) fn verdict(routing: &Routing, summary: &Summary, choice: Choice<'_>) -> String {
    let refused: Vec<&str> = choice.refusals.iter().map(|(engine, _)| engine.name()).collect();
    if refused.is_empty() {
        return state(summary);
    }
    format!(
        "{}\n<p class=\"verdict warn\"><strong>Fallback</strong> {} could not route this subnet, {} \
         did. The <a href=\"#notes-heading\">notes</a> give the reason.</p>",
        state(summary),
        refused.join(", "),
        routing.engine
    )
}

fn state(summary: &Summary) -> String {
    if summary.is_sound() {
        return "<p class=\"verdict good\"><strong>Sound</strong> Every LID is reachable, and no \
                deadlock is possible.</p>"
            .to_owned();
    }
    let mut problems = Vec::new();
    if !summary.cut_off.is_empty() {
        problems.push(format!(
            "{} cut off from the subnet manager.",
            html::counted(summary.cut_off.len() as u64, "node", "nodes")
        ));
    }
    if summary.broken_pairs > 0 {
        let pairs = html::counted(summary.broken_pairs, "pair", "pairs");
        problems.push(format!("{pairs} of a switch and a LID without a route."));
    }
    if summary.forwarding_loops > 0 {
        let lids = html::counted(summary.forwarding_loops as u64, "LID", "LIDs");
        problems.push(format!("{lids} with a forwarding loop."));
    }
    if summary.credit_loops > 0 {
        let loops = html::counted(summary.credit_loops as u64, "credit loop", "credit loops");
        problems.push(format!("{loops}: the fabric can deadlock."));
    }
    format!("<p class=\"verdict bad\"><strong>Faulty</strong> {}</p>", problems.join(" "))
}

/// Returns the cards with the key figures.
pub(crate) fn figures(
    subnet: &Subnet<'_>,
    routing: &Routing,
    summary: &Summary,
    choice: Choice<'_>,
) -> String {
    let between: usize = subnet.switch_ids().map(|id| subnet.switch_links(id).count()).sum();
    let fallback = !choice.refusals.is_empty();
    let number = |value: usize| html::count(value as u64);
    let mut groups = vec![
        Group::new("Engine", routing.engine.name(), if fallback { "as fallback" } else { "" })
            .with("requested", html::text(choice.requested))
            .with_some("roots", (!routing.roots.is_empty()).then(|| number(routing.roots.len())))
            .with("layers", number(summary.layers)),
        Group::new("Hosts", &number(summary.hosts), "")
            .with("switches", number(summary.switches))
            .with("links", number(summary.links))
            .with("between switches", number(between / 2))
            .with("LIDs", number(summary.lids)),
        Group::new("Most hops", &number(summary.max_hops), "")
            .with("mean", html::decimal(summary.mean_hops, 2))
            .with("routes that detour", html::count(summary.longer_than_minimum)),
        Group::new("Highest link load", &html::count(summary.link_load.max), "routes")
            .with("mean", html::decimal(summary.link_load.mean, 1))
            .with_some(
                "most over mean",
                (summary.link_load.mean > 0.0).then(|| {
                    html::decimal(f64::from(summary.link_load.max) / summary.link_load.mean, 2)
                }),
            )
            .with("coefficient of variation", html::decimal(summary.link_load.cv, 3)),
        Group::new("Credit loops", &number(summary.credit_loops), "")
            .with("unreachable pairs", html::count(summary.broken_pairs))
            .with("looping LIDs", number(summary.forwarding_loops))
            .with("nodes cut off", number(summary.cut_off.len())),
    ];
    if let Some(metrics) = &summary.metrics {
        let percent = html::decimal(metrics.effective_bisection * 100.0, 1);
        groups.push(
            Group::new("Effective bisection", &format!("{percent} %"), "of full bandwidth")
                .with("flows on a link in the worst shift", html::count(metrics.shift_contention))
                .with("mean over shifts", html::decimal(metrics.shift_contention_mean, 2)),
        );
    }
    groups.iter().map(Group::draw).collect()
}

/// A card: a large key figure, and smaller figures below.
struct Group {
    name: &'static str,
    figure: String,
    unit: &'static str,
    others: Vec<(&'static str, String)>,
}

impl Group {
    fn new(name: &'static str, figure: &str, unit: &'static str) -> Self {
        Self { name, figure: figure.to_owned(), unit, others: Vec::new() }
    }

    fn with(self, name: &'static str, value: String) -> Self {
        self.with_some(name, Some(value))
    }

    fn with_some(mut self, name: &'static str, value: Option<String>) -> Self {
        self.others.extend(value.map(|value| (name, value)));
        self
    }

    fn draw(&self) -> String {
        let mut drawn = format!(
            "<div class=\"card\"><h2>{}</h2><p><strong>{}</strong> {}</p><dl>",
            self.name, self.figure, self.unit
        );
        for (name, value) in &self.others {
            let _ = write!(drawn, "<div><dt>{name}</dt><dd>{value}</dd></div>");
        }
        drawn.push_str("</dl></div>\n");
        drawn
    }
}

/// Returns the HTML section of problems, or an empty string if there are none.
pub(crate) fn faults(subnet: &Subnet<'_>, report: &CheckReport, summary: &Summary) -> String {
    let mut found = String::new();
    if !summary.cut_off.is_empty() {
        let shown = summary.cut_off.iter().take(CUT_OFF_SHOWN).cloned();
        found.push_str("<h3>Cut off from the subnet manager</h3>\n");
        found.push_str(&html::list("ul", shown));
        found.push_str(&more(summary.cut_off.len() as u64, CUT_OFF_SHOWN));
    }
    let reach = &report.reach;
    if reach.unreachable > 0 {
        found.push_str("<h3>Switches that do not reach a LID</h3>\n");
        found.push_str(&html::list("ul", reach.first.iter().map(|pair| pair.describe(subnet))));
        found.push_str(&more(reach.unreachable, reach.first.len()));
    }
    if reach.looping_lids > 0 {
        found.push_str("<h3>Forwarding loops</h3>\n");
        found.push_str(&html::list("ul", reach.loops.iter().map(|found| found.describe(subnet))));
    }
    if report.credit.loops > 0 {
        found.push_str(
            "<h3>Credit loops</h3>\n<p>If packets fill the buffers of all links of a credit loop, \
             none of them can be forwarded. One cycle of each loop is shown: packets on every link \
             wait for the next link, those on the last one for the first.</p>\n",
        );
        for (index, credit_loop) in report.credit.first.iter().enumerate() {
            let channels = credit_loop.channels as u64;
            let _ = writeln!(
                found,
                "<details{}><summary>Loop {} of {}: a cycle of {} of the {} in the loop</summary>{}\
                 </details>",
                if index == 0 { " open" } else { "" },
                index + 1,
                html::count(report.credit.loops as u64),
                credit_loop.cycle.len(),
                html::counted(channels, "channel", "channels"),
                html::list("ol", credit_loop.describe(subnet))
            );
        }
        found.push_str(&more(report.credit.loops as u64, report.credit.first.len()));
    }
    if found.is_empty() {
        return found;
    }
    format!(
        "<section class=\"faults\" aria-labelledby=\"faults-heading\">\n\
         <h2 id=\"faults-heading\">Problems</h2>\n{found}</section>\n"
    )
}

fn more(total: u64, shown: usize) -> String {
    match total.saturating_sub(shown as u64) {
        0 => String::new(),
        more => format!("<p>and {} more</p>\n", html::count(more)),
    }
}

/// Returns the HTML section of notes, or an empty string if there are none.
pub(crate) fn notes(
    subnet: &Subnet<'_>,
    routing: &Routing,
    summary: &Summary,
    choice: Choice<'_>,
) -> String {
    let refusals = choice.refusals.iter().map(|(engine, error)| {
        format!("{engine} cannot route this subnet: {error}; {} routed it instead", routing.engine)
    });
    let pairs = (summary.unreachable_switch_pairs > 0).then(|| {
        format!(
            "{} of switches, or of a host and a switch without hosts, have no route; only LID-routed \
             management packets need these routes",
            html::counted(summary.unreachable_switch_pairs, "pair", "pairs")
        )
    });
    let notes: Vec<String> = refusals
        .chain(routing.notes.iter().cloned())
        .chain(subnet.lid_notes().iter().cloned())
        .chain(pairs)
        .collect();
    if notes.is_empty() {
        return String::new();
    }
    format!(
        "<section aria-labelledby=\"notes-heading\">\n<h2 id=\"notes-heading\">Notes</h2>\n{}\
         </section>\n",
        html::list("ul", notes)
    )
}
