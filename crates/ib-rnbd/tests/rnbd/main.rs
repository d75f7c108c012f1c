//! Tests of RNBD over RTRS between software HCAs in virtual time. Paths fail during the tests.

mod campaign;
#[path = "../../../ib-rtrs/tests/sessions/faults.rs"]
mod faults;
mod lab;
mod model;
mod outcomes;
#[allow(dead_code, reason = "the tests of sessions share it")]
#[path = "../../../ib-rtrs/tests/sessions/wire.rs"]
mod wire;
