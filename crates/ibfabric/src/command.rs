//! The subcommands, one file each.

pub(crate) mod check;
pub(crate) mod gen_fabric;
pub(crate) mod route;
pub(crate) mod sim;
pub(crate) mod sm;
pub(crate) mod summary;
