//! The static picture, for browsers without script and for print.

use std::fmt::Write as _;

use super::{Bundle, Drawing};
use crate::html;
use crate::layout::{Layout, PITCH, Shape};
use crate::scale::{CLASSES, Scale};

/// Maximum number of pairs of linked switches in a static picture. A fabric with more of them is drawn only by the
/// script.
const MAX_BUNDLES: usize = 4000;

/// Width of the picture in SVG units, about the width of the page.
const WIDTH: f64 = 1180.0;

/// Margin of the picture in SVG units, for the names of the outermost switches.
const MARGIN: f64 = 84.0;

/// Maximum distance between neighbouring switches in SVG units.
const MAX_PITCH: f64 = 130.0;

/// Returns the height of the static picture of a layout, in SVG units.
pub(super) fn height(layout: &Layout) -> u32 {
    let (wide, high) = layout.extent();
    let inner = match layout.shape {
        Shape::Rows => 190.0 * layout.rows().len().saturating_sub(1) as f64,
        Shape::Grid => high * (WIDTH - 2.0 * MARGIN) / wide.max(high),
        Shape::Circle => 640.0,
    };
    (inner + 2.0 * MARGIN).clamp(260.0, 760.0) as u32
}

/// Returns the static picture as SVG; `None` if the fabric has too many links.
pub(super) fn picture(drawing: &Drawing<'_>) -> Option<String> {
    if drawing.bundles.len() > MAX_BUNDLES {
        return None;
    }
    let frame = Frame::new(drawing.layout);
    let height = height(drawing.layout);
    let mut svg = format!(
        "<svg class=\"still\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-labelledby=\"drawn\">\n"
    );
    for (class, path) in halves(&frame, &drawing.bundles, drawing.scale).iter().enumerate() {
        if !path.is_empty() {
            let _ = writeln!(svg, "<path class=\"link load-{class}\" d=\"{path}\"/>");
        }
    }
    for (switch, name) in drawing.data.names.iter().enumerate() {
        draw_switch(&mut svg, drawing, &frame, switch, name);
    }
    svg.push_str("</svg>");
    Some(svg)
}

/// Returns an SVG path for each load class. It draws the halves of links whose load is in this class.
fn halves(frame: &Frame<'_>, bundles: &[Bundle], scale: &Scale) -> [String; CLASSES] {
    let mut paths = [const { String::new() }; CLASSES];
    for bundle in bundles {
        let (a, b) = (frame.at(bundle.ends.0), frame.at(bundle.ends.1));
        let pulled = bundle.bend;
        let upright = (a.0 - b.0).abs() < 0.5;
        let pull =
            if upright { (pulled * frame.scale.0, 0.0) } else { (0.0, pulled * frame.scale.1) };
        let middle = ((a.0 + b.0) / 2.0 + pull.0 / 2.0, (a.1 + b.1) / 2.0 + pull.1 / 2.0);
        let most = bundle.most();
        for (end, routes) in [(a, most.0), (b, most.1)] {
            let path = &mut paths[scale.class(routes)];
            let (from, to) = (point(end), point(middle));
            let _ = if pulled == 0.0 {
                write!(path, "M{from}L{to}")
            } else {
                // The two halves of a curved link meet with a common tangent, parallel to the line between the two
                // switches.
                let aside = ((end.0 + (a.0 + b.0) / 2.0) / 2.0, (end.1 + (a.1 + b.1) / 2.0) / 2.0);
                let control = point((aside.0 + pull.0 / 2.0, aside.1 + pull.1 / 2.0));
                write!(path, "M{from}Q{control} {to}")
            };
        }
    }
    paths
}

fn draw_switch(
    svg: &mut String,
    drawing: &Drawing<'_>,
    frame: &Frame<'_>,
    switch: usize,
    name: &str,
) {
    let (x, y) = frame.at(switch);
    let hosts = drawing.data.hosts[switch].len();
    let side = (frame.scale.0 * PITCH * 0.55).clamp(2.0, 22.0);
    let kind = if hosts > 0 { "leaf" } else { "spine" };
    let name = html::text(name);
    let corner = point((x - side / 2.0, y - side / 2.0));
    let (left, top) = corner.split_once(' ').unwrap_or(("0", "0"));
    let _ = writeln!(
        svg,
        "<rect class=\"{kind}\" x=\"{left}\" y=\"{top}\" width=\"{side:.1}\" height=\"{side:.1}\">\
         <title>{name}: {}</title></rect>",
        html::counted(hosts as u64, "host", "hosts")
    );
    if drawing.data.names.len() <= 64 {
        let turn = match drawing.layout.shape {
            Shape::Rows => {
                if drawing.layout.ranks[switch] == 0 {
                    60.0
                } else {
                    -60.0
                }
            }
            Shape::Grid => 20.0,
            Shape::Circle => {
                (y - f64::from(height(drawing.layout)) / 2.0).atan2(x - WIDTH / 2.0).to_degrees()
            }
        };
        // Names on the left half of a circle are turned by 180°, so that they are not upside down.
        let (turn, shift, anchor) =
            if turn.abs() > 90.0 { (turn - 180.0, -side, "end") } else { (turn, side, "start") };
        let _ = writeln!(
            svg,
            "<text transform=\"translate({}) rotate({turn:.0})\" x=\"{shift:.0}\" dy=\"0.3em\" \
             text-anchor=\"{anchor}\">{name}</text>",
            point((x, y))
        );
    }
}

/// Scale and offset that transform positions of a layout into points of the picture.
struct Frame<'a> {
    layout: &'a Layout,
    scale: (f64, f64),
    origin: (f64, f64),
}

impl<'a> Frame<'a> {
    fn new(layout: &'a Layout) -> Self {
        let (wide, high) = layout.extent();
        let height = f64::from(height(layout));
        let fit =
            |room: f64, size: f64| ((room - 2.0 * MARGIN) / size.max(1.0)).min(MAX_PITCH / PITCH);
        let (across, down) = (fit(WIDTH, wide), fit(height, high));
        let scale = match layout.shape {
            Shape::Rows => (across, down),
            Shape::Grid | Shape::Circle => (across.min(down), across.min(down)),
        };
        let least =
            |of: &dyn Fn(&(f64, f64)) -> f64| layout.places.iter().map(of).fold(f64::MAX, f64::min);
        let origin = (
            (WIDTH - wide * scale.0) / 2.0 - least(&|place| place.0) * scale.0,
            (height - high * scale.1) / 2.0 - least(&|place| place.1) * scale.1,
        );
        Self { layout, scale, origin }
    }

    fn at(&self, switch: usize) -> (f64, f64) {
        let (x, y) = self.layout.places[switch];
        (self.origin.0 + x * self.scale.0, self.origin.1 + y * self.scale.1)
    }
}

/// Formats a point for an SVG path, with one decimal place.
fn point((x, y): (f64, f64)) -> String {
    format!("{x:.1} {y:.1}")
}
