//! Classes of link load. Their bounds are fixed multiples of the mean, so that colours have the same meaning on all
//! pages.

use ib_routing::Subnet;
use ib_routing::check::LinkLoad;

use crate::html;

/// Bounds between classes, as multiples of the mean load.
const MULTIPLES: [f64; 8] = [0.5, 0.75, 0.9, 1.1, 1.25, 1.5, 2.0, 3.0];

/// Names of the classes. Class `n` has the CSS class `load-n`.
const NAMES: [&str; CLASSES] = [
    "unused",
    "below 0.5",
    "0.5 to 0.75",
    "0.75 to 0.9",
    "0.9 to 1.1",
    "1.1 to 1.25",
    "1.25 to 1.5",
    "1.5 to 2",
    "2 to 3",
    "3 and more",
];

/// Number of classes of link load. Unused links are a class, too.
pub(crate) const CLASSES: usize = MULTIPLES.len() + 2;

/// Returns the load of each directed link between switches, in routes.
pub(crate) fn loads(subnet: &Subnet<'_>, load: &LinkLoad) -> impl Iterator<Item = u32> {
    subnet.switch_ids().flat_map(move |switch| {
        subnet.switch_links(switch).map(move |(port, ..)| load.load(switch, port))
    })
}

/// Assigns loads to classes: class 0 for unused links, up to class 9 for at least three times the mean.
pub(crate) struct Scale {
    pub(crate) mean: f64,
    /// For each class from class 2 on: the minimum load in routes.
    pub(crate) bounds: [u32; MULTIPLES.len()],
}

impl Scale {
    pub(crate) fn new(load: &LinkLoad) -> Self {
        Self { mean: load.mean, bounds: MULTIPLES.map(|times| (times * load.mean).ceil() as u32) }
    }

    pub(crate) fn class(&self, load: u32) -> usize {
        if load == 0 { 0 } else { 1 + self.bounds.partition_point(|&bound| bound <= load) }
    }

    /// Returns the load of a link as a multiple of the mean; 0 if no link is used.
    pub(crate) fn times_mean(&self, load: u32) -> f64 {
        if self.mean > 0.0 { f64::from(load) / self.mean } else { 0.0 }
    }

    /// Returns the legend as HTML, with the number of directed links of each class.
    pub(crate) fn legend(&self, subnet: &Subnet<'_>, load: &LinkLoad) -> String {
        let mut links = [0_u64; CLASSES];
        for load in loads(subnet, load) {
            links[self.class(load)] += 1;
        }
        let items: String = NAMES
            .iter()
            .zip(links)
            .enumerate()
            .map(|(class, (name, links))| {
                let empty = if links == 0 { " class=\"none\"" } else { "" };
                format!(
                    "<li{empty}><i class=\"load-{class}\"></i>{name} <b>{}</b></li>",
                    html::count(links)
                )
            })
            .collect();
        format!(
            "<p>Each class is a range of link loads: routes over a link, divided by the mean of {} \
            routes per link. The bold number counts the directed links of the class.</p>\n\
            <ol class=\"legend\">{items}</ol>",
            html::decimal(self.mean, 1)
        )
    }
}
