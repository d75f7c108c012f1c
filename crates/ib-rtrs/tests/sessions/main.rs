//! Tests of client and server engines over simulated links, in virtual time.

mod abuse;
mod bounds;
mod campaign;
mod failures;
mod faults;
mod hostile;
mod lab;
mod paths;
mod requests;
mod states;
mod tree;
mod wire;
