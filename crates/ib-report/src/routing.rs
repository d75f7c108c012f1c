//! The HTML page that `route --html` writes.

use ib_routing::check::CheckReport;
use ib_routing::engine::Refusal;
use ib_routing::{Routing, Subnet};

use crate::drawing::Drawing;
use crate::layout::Layout;
use crate::scale::Scale;
use crate::summary::Summary;
use crate::{charts, figures, html, worst};

/// Template of the page's main part, with placeholders for its sections.
const MAIN: &str = "\
<div class=\"cards\">
{{figures}}</div>
{{faults}}
{{drawing}}
<div class=\"charts\">
{{charts}}</div>
{{worst}}
{{notes}}
";
const ABOUT: &str = "\
A route leads from the port of a host to a LID of another host; \
hosts are channel adapters and routers. Hops are links between switches. \
Link loads count the routes over each direction of each link between switches, used or not.";

const STYLE: &str = include_str!("page.css");

/// The names of the fabric and of the engines that the page shows.
#[derive(Clone, Copy)]
pub struct Choice<'a> {
    /// Name of the fabric file.
    pub fabric: &'a str,
    /// Requested list of engines, in the notation of the command line.
    pub requested: &'a str,
    /// Engines of the list that refused the fabric, with their reasons.
    pub refusals: &'a [Refusal],
}

/// Returns the HTML page about the LFTs of a subnet.
#[must_use]
pub fn page(
    subnet: &Subnet<'_>,
    routing: &Routing,
    report: &CheckReport,
    summary: &Summary,
    choice: Choice<'_>,
) -> String {
    let scale = Scale::new(&report.load);
    let layout = Layout::new(subnet, &routing.roots);
    let drawing = Drawing::new(subnet, report, &scale, &layout);
    let main = html::fill(
        MAIN,
        &[
            ("figures", &figures::figures(subnet, routing, summary, choice)),
            ("faults", &figures::faults(subnet, report, summary)),
            ("drawing", &drawing.figure()),
            ("charts", &charts::both(subnet, report, &scale)),
            ("worst", &worst::section(subnet, report, &scale)),
            ("notes", &figures::notes(subnet, routing, summary, choice)),
        ],
    );
    let page = html::Page {
        title: &figures::title(routing, summary, choice),
        heading: &figures::heading(choice),
        style: STYLE,
        verdict: &figures::verdict(routing, summary, choice),
        main: &main,
        about: ABOUT,
        script: &drawing.script(),
    };
    page.fill()
}

#[cfg(test)]
mod tests;
