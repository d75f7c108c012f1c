//! Reads OpenSM's `opensm-subnet.lst`.

use super::line::Fault;
use crate::fabric::Fabric;

pub(super) fn parse(_text: &str) -> Result<Fabric, Fault> {
    Ok(Fabric::new())
}
