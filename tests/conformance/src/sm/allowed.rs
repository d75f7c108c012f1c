//! What may differ between an answer of OpenSM's subnet administration and one of ours, with the reasons.

use crate::clients::normal::{Allowed, Mask};

const QOS: &str = "without quality of service OpenSM asks no port for this table, and says that all \
                   of it is zero; ours says what the port has";

const PROMISE: &str = "each manager says what it can do, and how fast it answers";

/// The differences that are allowed; everything else must be the same, but for the order of the
/// records of a table, which has none.
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
    Allowed { programs: &["saquery SL2VL"], mask: Mask::Rest("VL:"), reason: QOS },
    Allowed { programs: &["saquery VLAR"], mask: Mask::Rest("VL    :"), reason: QOS },
    Allowed { programs: &["saquery VLAR"], mask: Mask::Rest("Weight:"), reason: QOS },
    Allowed {
        programs: &["saquery CPI", "saquery -c"],
        mask: Mask::Rest("Capability mask"),
        reason: PROMISE,
    },
    Allowed {
        programs: &["saquery CPI", "saquery -c"],
        mask: Mask::Rest("Response time value"),
        reason: PROMISE,
    },
];
