//! What several fuzz targets share: one small fabric.

use std::sync::OnceLock;

use ib_routing::{Subnet, SubnetOptions};
use ib_topology::Fabric;
use ib_topology::generate::{Kind, Options, generate};

/// Returns a tree of two leaves and two spines with four hosts.
pub fn fabric() -> &'static Fabric {
    static FABRIC: OnceLock<Fabric> = OnceLock::new();
    FABRIC.get_or_init(|| {
        let kind = Kind::parse("xgft", &["2,2", "1,2"]).expect("a kind of fabric");
        generate(&kind, &Options::default()).expect("a fabric")
    })
}

/// Returns its subnet.
pub fn subnet() -> &'static Subnet<'static> {
    static SUBNET: OnceLock<Subnet<'static>> = OnceLock::new();
    SUBNET.get_or_init(|| Subnet::discover(fabric(), &SubnetOptions::default()).expect("a subnet"))
}
