//! Queries the NodeInfo of a switch by directed route, before and after the switch's cable is
//! pulled. No subnet manager is running.
//!
//! ```text
//! $ cargo run -p ib-sim --example directed_query
//! at … ns: a switch with 5 ports responds
//! at … ns: no response
//! ```

use std::io::Write;

use ib_link::{Datagram, Incoming, Remote};
use ib_sim::{ClientOptions, Options, Sim};
use ib_topology::generate::{self, Kind, generate};
use ib_wire::mad::sm::NodeInfo;
use ib_wire::mad::{AttributeId, Method, TransactionId, smp};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    let fabric = generate(&Kind::parse("mesh", &["2x2"])?, &generate::Options::default())?;
    let mut sim = Sim::new(&fabric, Options::default());
    let port = sim.first_end_port().ok_or("the fabric has no host")?;
    let client = sim.attach(port, ClientOptions::default())?;
    let host = sim.node_name(sim.place(port).0).to_owned();

    for number in 1..=2 {
        let what = (AttributeId::NODE_INFO, 0);
        let mad = smp::directed_request(Method::GET, TransactionId(number), what, &[1]);
        sim.submit(client, &Datagram::new(Remote::directed(), mad));
        sim.settle(sim.now());
        let result = match sim.receive(client) {
            Some(Incoming::Received(answer)) => {
                let info: NodeInfo =
                    answer.mad.attribute().ok_or("the response is not a NodeInfo")?;
                format!("a switch with {} ports responds", info.num_ports)
            }
            Some(Incoming::Lost(_)) => "the request is lost".to_owned(),
            None => "no response".to_owned(),
        };
        writeln!(out, "at {} ns: {result}", sim.now().as_nanos())?;
        if number == 1 {
            sim.run(&format!("Unlink \"{host}\"").parse()?)?;
        }
    }
    Ok(())
}
