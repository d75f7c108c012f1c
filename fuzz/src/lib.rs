//! Helpers of the fuzz targets: a small fabric, and a reader of the input.

use std::sync::OnceLock;

use ib_routing::{Subnet, SubnetOptions};
use ib_topology::Fabric;
use ib_topology::generate::{Kind, Options, generate};

/// Returns a tree of two leaf switches, two spine switches and four hosts.
pub fn fabric() -> &'static Fabric {
    static FABRIC: OnceLock<Fabric> = OnceLock::new();
    FABRIC.get_or_init(|| {
        let kind = Kind::parse("xgft", &["2,2", "1,2"]).expect("the parameters are valid");
        generate(&kind, &Options::default()).expect("the kind can be generated")
    })
}

/// Returns the subnet of [`fabric`].
pub fn subnet() -> &'static Subnet<'static> {
    static SUBNET: OnceLock<Subnet<'static>> = OnceLock::new();
    SUBNET.get_or_init(|| {
        Subnet::discover(fabric(), &SubnetOptions::default()).expect("the fabric has a subnet")
    })
}

/// The rest of the input, from which bytes are read. Reading returns zeros after the end of the input.
pub struct Input<'a>(pub &'a [u8]);

impl Input<'_> {
    /// Returns the next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// Returns a number below `bound`, which is at most 256.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// Returns the next two bytes as a big-endian number.
    pub fn short(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }
}
