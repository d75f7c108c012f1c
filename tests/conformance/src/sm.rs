//! ibfabric's subnet manager on real simulators, checked with real clients and compared with OpenSM.
//!
//! | module | holds |
//! |---|---|
//! | [`cases`] | the list of cases |
//! | [`scene`] | a simulator with clients, and the checks |
//! | [`ours`] | `ibfabric sm` as a process |
//! | [`up`] | bring-up of a fabric: links, tables, traces |
//! | [`answers`] | SA responses of `ibfabric sm` must equal OpenSM's |
//! | [`pair`] | OpenSM and `ibfabric sm` at the same time, each on its own simulator |
//! | [`questions`] | the queries of `saquery` |
//! | [`allowed`] | permitted differences of SA responses, with reasons |
//! | [`flows`] | osmtest flows that pass with OpenSM must pass with `ibfabric sm` |
//! | [`files`] | if `ibfabric` is called `opensm`, the same command line must write the same files |
//! | [`keys`] | `ibfabric sm` must read the same value as OpenSM from a line of opensm.conf, or reject the line |
//! | [`partitions`] | a partition file must have the same effect in OpenSM and `ibfabric sm` |
//! | [`handover`] | handover between OpenSM and `ibfabric sm`, in both directions |
//! | [`guarded`] | a port with an M_Key that the SM does not know |
//! | [`records`] | a client must receive long SA responses completely |
//!
//! Third-party tools check the results of an SM: `iblinkinfo`, `ibnetdiscover`, `dump_lfts`, `ibtracert`, `smpquery`,
//! `sminfo` and `saquery`.

pub mod allowed;
pub mod answers;
pub mod cases;
pub mod files;
pub mod flows;
pub mod guarded;
pub mod handover;
pub mod keys;
pub mod ours;
pub mod pair;
pub mod partitions;
pub mod questions;
pub mod reach;
pub mod records;
pub mod scene;
pub mod up;

use ib_types::LinkSpeed;

use crate::clients::fabrics::Plan;

/// Returns the plan of a fabric of the given kind, without omitted links.
const fn plan(kind: &'static str) -> Plan {
    Plan { kind, speed: LinkSpeed::Hdr, drop_links: 0.0, lmc: 0, flood: false, long: false }
}
