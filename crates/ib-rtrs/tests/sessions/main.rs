//! A client and a server over links that exist only here, in virtual time.

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
