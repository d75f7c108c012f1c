//! Cases that compare ibfabric with real peers.
//!
//! | module | holds |
//! |---|---|
//! | [`routing`] | fabrics, engines and options whose LFTs must equal OpenSM's |
//! | [`opensm`] | one run of a real OpenSM on a real ibsim |
//! | [`clients`] | clients of a simulator with ibsim's protocol, and their expected output |
//! | [`acm`] | ibfabric's ACM service with `ib_acme`, and with librdmacm in a guest |
//! | [`links`] | ibfabric's links with a real ibsim, Debian's umad library and OpenSM |
//! | [`tracer`] | the tracer on real simulators, compared with `ibtracert` and `ibping` |
//! | [`rtrs`] | RTRS and RNBD of a guest's kernel, and ibfabric's on the host |
//! | [`rxe`] | soft RoCE of a guest's kernel, and real RDMA programs |
//! | [`up`] | many real programs on `ibfabric up` |
//! | [`sm`] | ibfabric's subnet manager on real simulators, with real clients, compared with OpenSM |
//!
//! `cargo xtask conformance` runs a case with both peers, and writes check sums of the real peer's output. The tests
//! compare ibfabric with these sums, so they need no peer.

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
