//! Test cases that compare ibfabric with real peers.
//!
//! | module | holds |
//! |---|---|
//! | [`routing`] | fabrics, engines and options whose LFTs must equal OpenSM's |
//! | [`opensm`] | one run of a real OpenSM on a real ibsim |
//! | [`clients`] | clients of a simulator that use ibsim's protocol, and their expected output |
//! | [`acm`] | ibfabric's ACM service with `ib_acme`, and with librdmacm in a guest |
//! | [`links`] | ibfabric's `MadLink`s and SA queries with a real ibsim, Debian's umad library and OpenSM |
//! | [`tracer`] | the tracer on real simulators, compared with `ibtracert` and `ibping` |
//! | [`rtrs`] | RTRS and RNBD between a guest's kernel and ibfabric on the host |
//! | [`nbd`] | NBD clients on a device that `ibfabric nbd` exports |
//! | [`perftest`] | command lines of perftest, with `ibfabric run` at both ends |
//! | [`rxe`] | soft RoCE of a guest's kernel, and real RDMA programs, against ibfabric |
//! | [`up`] | many real programs on `ibfabric up` |
//! | [`sm`] | ibfabric's subnet manager on real simulators, with real clients, compared with OpenSM |
//!
//! `cargo xtask conformance` runs the test cases with ibfabric and the real peers. `cargo xtask conformance opensm
//! --write-goldens` also writes checksums of OpenSM's tables. `cargo test` compares ibfabric's tables with these
//! checksums, so it does not need OpenSM.

pub mod acm;
pub mod clients;
pub mod links;
pub mod nbd;
pub mod opensm;
pub mod perftest;
pub mod routing;
pub mod rtrs;
pub mod rxe;
pub mod sm;
pub mod tracer;
pub mod up;
