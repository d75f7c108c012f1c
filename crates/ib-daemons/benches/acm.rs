//! Counts the SA queries and multicast requests that are sent while every host of a fabric resolves every other host.
//!
//! The benchmark runs twice: with routes that the services derive from multicast groups, and with routes that they
//! query from the SA. It prints a JSON object for each run.
//!
//! Optional arguments: the kind of the fabric and its parameters [default: `fat-tree 16 3`, which has 1024 hosts].

#[expect(dead_code, reason = "the tests use more of it")]
#[path = "../tests/acm/lab.rs"]
mod lab;

#[path = "../tests/acm/everyone.rs"]
mod everyone;

use std::io::Write as _;
use std::time::Instant;

use ib_acm::config::options::RouteProtocol;
use serde_json::json;

fn main() {
    let words: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let kind = if words.is_empty() { "fat-tree 16 3".to_owned() } else { words.join(" ") };
    for (name, routes) in [("acm", RouteProtocol::Acm), ("sa", RouteProtocol::Sa)] {
        let begun = Instant::now();
        let figures = everyone::everyone(&kind, "minhop", routes);
        let everyone::Figures { hosts, resolutions, wrong, .. } = figures;
        let object = json!({
            "routes": name, "kind": kind, "hosts": hosts, "resolutions": resolutions, "wrong": wrong,
            "announcements": figures.announcements, "multicasts": figures.multicasts,
            "sa_queries": figures.sa_queries, "joins": figures.joins,
            "sent": figures.sent, "arrived": figures.arrived,
            "seconds": begun.elapsed().as_secs_f64(),
        });
        writeln!(std::io::stdout().lock(), "{object}").expect("standard output is open");
    }
}
