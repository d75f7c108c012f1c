//! ibfabric's subnet manager on real simulators, with real clients, compared with OpenSM.
//!
//! | module | holds |
//! |---|---|
//! | [`cases`] | the list of cases |
//! | [`scene`] | a simulator with clients, and the checks |
//! | [`ours`] | `ibfabric sm` as a process |
//! | [`up`] | bring-up of a fabric: links, tables, traces |
//! | [`answers`] | SA responses equal OpenSM's |
//! | [`pair`] | OpenSM and `ibfabric sm` at the same time, each on its own simulator |
//! | [`questions`] | the queries of `saquery` |
//! | [`allowed`] | permitted differences of SA responses, with reasons |
//! | [`flows`] | flows of osmtest that pass with OpenSM pass with `ibfabric sm` |
//! | [`files`] | under OpenSM's name the same command line writes the same files |
//! | [`keys`] | both programs read the same value from a line of opensm.conf, or the line is refused |
//! | [`partitions`] | a partition file gives both the same partitions |
//! | [`handover`] | handover between OpenSM and `ibfabric sm`, in both directions |
//! | [`guarded`] | a port with an M_Key that the SM does not have |
//! | [`records`] | long SA responses arrive completely |
//!
//! Third-party tools read the results of an SM: `iblinkinfo`, `ibnetdiscover`, `dump_lfts`, `ibtracert`, `smpquery`,
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

/// Returns a complete fabric of a kind.
const fn plan(kind: &'static str) -> Plan {
    Plan { kind, speed: LinkSpeed::Hdr, drop_links: 0.0, lmc: 0, flood: false, long: false }
}
