//! x
use ib_topology::{Format, read, read_as};
use std::io::Read;
fn main() {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).unwrap();
    let k = std::env::args().nth(1).unwrap();
    let r = match k.as_str() {
        "s" => read_as(Format::Ibsim, "f", &bytes),
        "n" => read_as(Format::Ibnetdiscover, "f", &bytes),
        "l" => read_as(Format::SubnetList, "f", &bytes),
        "m" => {
            match ib_topology::name_map::parse("f", &bytes) {
                Ok(_) => eprintln!("OK"),
                Err(e) => eprintln!("{e}"),
            }
            return;
        }
        _ => read("f", &bytes),
    };
    match r {
        Ok(f) => eprintln!("OK {} {}", f.node_count(), f.link_count()),
        Err(e) => eprintln!("{e}"),
    }
}
