//! The programs that a simulator of ibsim's socket protocol serves, and what they must say.
//!
//! | module | holds |
//! |---|---|
//! | [`fabrics`] | the fabrics on which everything is run |
//! | [`server`] | the simulator under test: Debian's ibsim or `ibfabric sim` |
//! | [`manager`] | a real OpenSM that stays on the simulator |
//! | [`program`] | running a client and keeping what it says |
//! | [`questions`] | the list of clients that are run, for a fabric |
//! | [`normal`] | what may differ between two simulators, with the reasons |
//! | [`tables`] | forwarding tables, whoever wrote them, in one form |
//! | [`stage`] | a simulator, its manager and its clients, and the record of what they said |
//! | [`steps`] | what a stage does: bring-up, questions, counters, lost links, osmtest |
//! | [`expect`] | what a client must say by the fabric itself |
//! | [`capture`] | what `ibfabric sim` captures while clients run on it |
//! | [`process`] | processes that end with the run whatever happens |
//!
//! Two stages on the same fabric give two [`stage::Record`]s, which are compared entry by
//! entry. The simulator, the net file and the preloaded library are all that differ.

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
