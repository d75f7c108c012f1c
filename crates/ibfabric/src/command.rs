//! The subcommands, one file each.

pub(crate) mod acm;
pub(crate) mod acme;
pub(crate) mod agent;
pub(crate) mod capture;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod console;
pub(crate) mod gen_fabric;
pub(crate) mod hca;
pub(crate) mod nbd;
pub(crate) mod rdma;
pub(crate) mod route;
pub(crate) mod rtrs;
pub(crate) mod run;
pub(crate) mod sim;
pub(crate) mod sm;
pub(crate) mod summary;
pub(crate) mod tracer;
pub(crate) mod up;
