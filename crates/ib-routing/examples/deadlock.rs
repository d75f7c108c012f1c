//! Routes a torus with two engines and checks the routes for credit loops.
//!
//! ```text
//! $ cargo run -p ib-routing --example deadlock
//! minhop: 0 unreachable, 1 credit loop
//!   0x0002c90000200000 ('sw-x0y0') port 1 to 0x0002c90000200001 ('sw-x1y0') port 2 on VL0
//! …
//! lash: 0 unreachable, 0 credit loops
//! ```

use std::io::Write;

use ib_routing::engine::engine;
use ib_routing::{EngineKind, RoutingOptions, Subnet, SubnetOptions, check};
use ib_topology::generate::{Kind, Options, generate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    let fabric = generate(&Kind::parse("torus", &["4x4"])?, &Options::default())?;
    let subnet = Subnet::discover(&fabric, &SubnetOptions::default())?;
    for which in [EngineKind::MinHop, EngineKind::Lash] {
        let routing = engine(which).route(&subnet, &RoutingOptions::default())?;
        let report = check(&subnet, &routing.lfts, &routing.layers);
        let (unreachable, loops) = (report.reach.unreachable, report.credit.loops);
        let ending = if loops == 1 { "" } else { "s" };
        writeln!(out, "{}: {unreachable} unreachable, {loops} credit loop{ending}", which.name())?;
        for line in report.credit.first.iter().flat_map(|first| first.describe(&subnet)) {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}
