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
//! | [`rxe`] | soft RoCE of a guest's kernel, and real RDMA programs, against ibfabric |
//! | [`up`] | many real programs on `ibfabric up` |
//! | [`sm`] | ibfabric's subnet manager on real simulators, with real clients, compared with OpenSM |
//!
//! `cargo xtask conformance` runs a test case with ibfabric and the real peer, and writes checksums of the peer's
//! output. The tests compare ibfabric's output with these checksums, so they do not need the peer.

pub mod acm;
pub mod clients;
pub mod links;
pub mod nbd;
pub mod opensm;
pub mod routing;
pub mod rtrs;
pub mod rxe;
pub mod sm;
pub mod tracer;
pub mod up;
