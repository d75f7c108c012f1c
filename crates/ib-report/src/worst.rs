//! The table of the most loaded links.

use std::fmt::Write as _;

use ib_routing::check::CheckReport;
use ib_routing::{Peer, Subnet, SwitchId};

use crate::html;
use crate::scale::{self, Scale};

/// Returns the table as HTML, or an empty string if no link is used.
pub(crate) fn section(subnet: &Subnet<'_>, report: &CheckReport, scale: &Scale) -> String {
    if report.load.max == 0 {
        return String::new();
    }
    let mut rows = String::new();
    for (index, link) in report.load.worst.iter().enumerate() {
        let Some(&Peer::Switch(to, there)) = subnet.peers(link.switch).get(usize::from(link.port))
        else {
            continue;
        };
        let _ = writeln!(
            rows,
            "<tr><td><button type=\"button\" data-link=\"{},{}\" aria-label=\"Show link {place} in \
             the drawing\">{place}</button></td><td>{}</td><td>{}</td><td>{}</td><td>{there}</td>\
             <td>{}</td><td><i class=\"load-{}\"></i>{}</td></tr>",
            link.switch.0,
            link.port,
            switch(subnet, link.switch),
            link.port,
            switch(subnet, to),
            html::count(link.routes),
            scale.class(link.routes),
            html::decimal(scale.times_mean(link.routes), 2),
            place = index + 1,
        );
    }
    let most = scale::loads(subnet, &report.load).filter(|&load| load == report.load.max).count();
    format!(
        "<section aria-labelledby=\"worst-heading\">\n\
         <h2 id=\"worst-heading\">Most loaded links</h2>\n\
         <p>{} the most: {} routes.</p>\n\
         <div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table>\n<thead><tr><th scope=\"col\">#</th>\
         <th scope=\"col\">From</th><th scope=\"col\">Port</th><th scope=\"col\">To</th>\
         <th scope=\"col\">Port</th><th scope=\"col\">Routes</th><th scope=\"col\">× mean</th></tr>\
         </thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n</section>\n",
        html::counted(most as u64, "directed link carries", "directed links carry"),
        html::count(report.load.max)
    )
}

fn switch(subnet: &Subnet<'_>, switch: SwitchId) -> String {
    let node = subnet.switch_node(switch);
    format!("<bdi>{}</bdi> <code>{}</code>", html::text(&node.description), node.guid)
}
