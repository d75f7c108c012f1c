//! A software host channel adapter (HCA): the semantics of verbs over any link.
//!
//! It owns no socket, thread or clock: packets and the time come in, packets, completions and the next
//! deadline come out. Names are those of libibverbs.

pub mod cm;
