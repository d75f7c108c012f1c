//! Tests of RNBD over RTRS over software HCAs, with failing paths, in virtual time.

mod campaign;
#[path = "../../../ib-rtrs/tests/sessions/faults.rs"]
mod faults;
mod lab;
mod model;
mod outcomes;
#[allow(dead_code, reason = "the tests of sessions share it")]
#[path = "../../../ib-rtrs/tests/sessions/wire.rs"]
mod wire;
