//! Programs that access a simulator over ibsim's socket protocol, and their expected output.
//!
//! | module | holds |
//! |---|---|
//! | [`fabrics`] | the fabrics on which the clients run |
//! | [`server`] | the simulator under test: Debian's ibsim or `ibfabric sim` |
//! | [`manager`] | a real OpenSM that keeps running on the simulator |
//! | [`program`] | runs a client and records its output |
//! | [`questions`] | the list of clients to run on a fabric |
//! | [`normal`] | permitted differences between two simulators, with reasons |
//! | [`tables`] | parses the forwarding tables that different programs print |
//! | [`stage`] | a simulator, its SM and its clients, and the record of their output |
//! | [`steps`] | steps of a stage: bring-up, queries, counters, lost links, osmtest |
//! | [`expect`] | the client output that is expected for a given fabric |
//! | [`capture`] | captures of `ibfabric sim` while clients run |
//! | [`process`] | processes that are killed at the end of the run |
//!
//! Two stages on the same fabric produce two [`stage::Record`]s, which are compared client by client. Only the
//! simulator, the net file and the preloaded library of the stages differ.

pub mod capture;
pub mod expect;
pub mod fabrics;
pub mod manager;
pub mod normal;
pub mod process;
pub mod program;
pub mod questions;
pub mod server;
pub mod stage;
pub mod steps;
pub mod tables;
