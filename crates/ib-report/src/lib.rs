//! Results of route checks and of correlated captures, as data and as HTML pages. A page is a single file without external
//! resources. Names of nodes are escaped, and the same input yields the same bytes.
//!
//! | module | holds |
//! |---|---|
//! | [`summary`] | [`Summary`](summary::Summary) of a subnet, its tables and their check |
//! | [`routing`] | the HTML page of `route --html` |
//! | [`findings`] | [`Findings`](findings::Findings) of correlated captures |
//! | [`correlation`] | the HTML page of `capture correlate --html` |
//! | `figures` | the verdict, the figures, the problems and the notes of a routed fabric |
//! | `charts` | histograms of hops and link loads |
//! | `worst` | the table of the most loaded links |
//! | `scale` | the classes of link load, their names, and the legend of the drawing |
//! | `drawing` | the fabric: data for the page's script, and a static picture for browsers without script |
//! | `graph`, `layout` | the graph of switches, and the position of each switch |
//! | `html` | escaping, numbers and templates |
//! | `page.html`, `page.css` | template and style of all pages |
//! | `fabric.js`, `explore.js` | the script of the drawing: painting and interaction |
//! | `timeline.js`, `correlation.css` | script and style of the correlation page |
//!
//! # Example
//! ```
//! use ib_report::{routing, summary::Summary};
//! use ib_routing::engine::engine;
//! use ib_routing::{EngineKind, RoutingOptions, Subnet, SubnetOptions, check};
//! use ib_topology::generate::{Kind, Options, generate};
//!
//! let fabric = generate(&Kind::parse("fat-tree", &["4", "2"])?, &Options::default())?;
//! let subnet = Subnet::discover(&fabric, &SubnetOptions::default())?;
//! let routing = engine(EngineKind::UpDown).route(&subnet, &RoutingOptions::default())?;
//! let report = check(&subnet, &routing.lfts, &routing.layers);
//! let summary = Summary::new(&subnet, &routing.layers, &report, None, false);
//! assert!(summary.is_sound());
//!
//! let choice = routing::Choice { fabric: "tree.net", requested: "updn", refusals: &[] };
//! let page = routing::page(&subnet, &routing, &report, &summary, choice);
//! assert!(page.starts_with("<!DOCTYPE html>"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod charts;
pub mod correlation;
mod drawing;
mod figures;
pub mod findings;
mod graph;
mod html;
mod layout;
pub mod routing;
mod scale;
pub mod summary;
mod worst;
