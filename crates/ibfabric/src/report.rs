//! The HTML pages of `route --report` and `capture correlate --html`: one file each that needs nothing but a browser.
//!
//! | module | holds |
//! |---|---|
//! | `findings` | the verdict, the figures, what is wrong, and notes |
//! | `charts` | histograms of hops and link loads |
//! | `worst` | the table of the most loaded links |
//! | `scale` | the classes of link load, their colours' names and the legend |
//! | `drawing` | the fabric: what the page's script draws, and a still picture without script |
//! | `graph`, `layout` | the switches and links alone, and where each switch is drawn |
//! | `html` | escaping, numbers and the filling of templates |
//! | `page.html`, `page.css` | what all pages have, and their looks |
//! | `fabric.js`, `explore.js` | the drawing's script: painting, and what the reader does with it |
//! | `correlation` | the page of `capture correlate --html`, with `correlation.css` and `timeline.js` |
//!
//! Whatever a fabric calls its nodes is text to the page, never markup or script. The same input
//! makes the same bytes.

use ib_routing::check::CheckReport;
use ib_routing::engine::Refusal;
use ib_routing::{Routing, Subnet};

use crate::command::summary::Summary;

mod charts;
pub(crate) mod correlation;
mod drawing;
mod findings;
mod graph;
mod html;
mod layout;
mod scale;
mod worst;

use drawing::Drawing;
use layout::Layout;
use scale::Scale;

/// What stands on the page of a report, and what its words mean.
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
A route leads from the port of a host to a LID of another one; \
hosts are channel adapters and routers. Hops are links between switches. \
Link loads count the routes over each direction of each link between switches, used or not.";

const STYLE: &str = include_str!("report/page.css");
const SCRIPT: &str = concat!(include_str!("report/fabric.js"), include_str!("report/explore.js"));

/// What was routed, the list of engines that was asked for, and who refused.
#[derive(Clone, Copy)]
pub(crate) struct Choice<'a> {
    /// The name of the fabric file.
    pub(crate) fabric: &'a str,
    /// The list of engines as the command line has it.
    pub(crate) requested: &'a str,
    /// The engines that were tried before the one that served.
    pub(crate) refusals: &'a [Refusal],
}

/// Writes the page about the tables of a subnet.
pub(crate) fn page(
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
            ("figures", &findings::figures(subnet, routing, summary, choice)),
            ("faults", &findings::faults(subnet, report, summary)),
            ("drawing", &drawing.figure()),
            ("charts", &charts::both(subnet, report, &scale)),
            ("worst", &worst::section(subnet, report, &scale)),
            ("notes", &findings::notes(subnet, routing, summary, choice)),
        ],
    );
    let page = html::Page {
        title: &findings::title(routing, summary, choice),
        heading: &findings::heading(choice),
        style: STYLE,
        verdict: &findings::verdict(routing, summary, choice),
        main: &main,
        about: ABOUT,
        script: &drawing.script(),
    };
    page.fill()
}

#[cfg(test)]
mod tests;
