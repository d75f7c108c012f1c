//! Our subnet manager on real simulators, with real clients, beside a real OpenSM.
//!
//! | module | holds |
//! |---|---|
//! | [`cases`] | the list of cases, and what each is to show |
//! | [`scene`] | a simulator with clients on it, and what was checked there |
//! | [`ours`] | `ibfabric sm` as a process |
//! | [`up`] | a fabric comes up: links, tables, traces |
//! | [`answers`] | the SA answers as OpenSM's does |
//! | [`beside`] | OpenSM and ours at once, each on a simulator of its own |
//! | [`questions`] | what `saquery` is asked |
//! | [`allowed`] | what may differ in an answer, with the reasons |
//! | [`flows`] | what passes of osmtest with OpenSM passes with ours |
//! | [`files`] | under OpenSM's name the same command line leaves the same files |
//! | [`keys`] | both programs read the same value from a line of opensm.conf, or the line is refused |
//! | [`partitions`] | a partition file says the same to both |
//! | [`handover`] | a subnet passes between OpenSM and ours, in both directions |
//! | [`guarded`] | a port that is guarded by a key which the manager does not know |
//! | [`records`] | long answers arrive whole |
//!
//! What a manager did is read by programs that are not ours: `iblinkinfo`, `ibnetdiscover`,
//! `dump_lfts`, `ibtracert`, `smpquery`, `sminfo` and `saquery`.

pub mod allowed;
pub mod answers;
pub mod beside;
pub mod cases;
pub mod files;
pub mod flows;
pub mod guarded;
pub mod handover;
pub mod keys;
pub mod ours;
pub mod partitions;
pub mod questions;
pub mod reach;
pub mod records;
pub mod scene;
pub mod up;

use ib_types::LinkSpeed;

use crate::clients::fabrics::Plan;

/// Returns a whole fabric of a kind, of which nothing is special.
const fn plan(kind: &'static str) -> Plan {
    Plan { kind, speed: LinkSpeed::Hdr, drop_links: 0.0, lmc: 0, flood: false, long: false }
}
