//! What may differ between an answer of OpenSM's subnet administration and one of ours, with the reasons.

use crate::clients::normal::{Allowed, Mask};

/// The differences that are allowed; everything else must be the same.
pub const ALLOWED: &[Allowed] = &[
    Allowed {
        programs: &[],
        mask: Mask::Number("ibwarn: ["),
        reason: "the process ID of the client",
    },
    Allowed {
        programs: &["saquery"],
        mask: Mask::Number("ActCount"),
        reason: "each manager counts its activity in its own way",
    },
];
