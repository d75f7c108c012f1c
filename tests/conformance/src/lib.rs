//! Cases on which ibfabric and real peers must agree.
//!
//! | module | holds |
//! |---|---|
//! | [`routing`] | fabrics, engines and options whose forwarding tables must be OpenSM's |
//! | [`opensm`] | running a real OpenSM on a real ibsim, once |
//! | [`clients`] | the programs that a simulator of ibsim's protocol serves, and what they must say |
//! | [`acm`] | our service of IB ACM, asked by a real `ib_acme`, and by librdmacm in a guest |
//! | [`links`] | our own links against a real ibsim, Debian's umad library and OpenSM |
//! | [`tracer`] | our tracer on real simulators, beside `ibtracert` and `ibping` |
//! | [`rtrs`] | RTRS and RNBD of the kernel in a guest, and ours beside it |
//! | [`rxe`] | the kernel's soft RoCE in a guest, and real RDMA programs |
//! | [`up`] | a crowd of real programs on `ibfabric up` |
//! | [`sm`] | our subnet manager on real simulators, with real clients, beside a real OpenSM |
//!
//! A case is run through both peers by `cargo xtask conformance`, which also writes the check sums
//! of what the real peer said; the tests compare ibfabric with those sums, so they need no peer.

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
