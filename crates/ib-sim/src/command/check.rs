//! Checks commands before they are run: their targets have to exist, and their values have to be in
//! range.

use ib_wire::layout::FieldInfo;
use ib_wire::mad::pm::{PortCounters, PortCountersExtended};

use super::{Command, CommandError, Fault, Ignored};
use crate::fabric::FabricState;
use crate::node::LINEAR_BLOCKS;

/// Checks the targets of a command, and its port numbers, counter name, LFT blocks, faults and
/// number of repetitions.
pub(crate) fn check(fabric: &FabricState, command: &Command) -> Result<(), CommandError> {
    match command {
        Command::Link(one, other) | Command::Swap(one, other) => {
            one.find_external_port(fabric)?;
            other.find_external_port(fabric)?;
        }
        Command::Unlink(target) | Command::Relink(target) => {
            target.find_external_ports(fabric)?;
        }
        Command::Fault(target, faults) => {
            target.find_external_ports(fabric)?;
            check_faults(faults)?;
        }
        Command::Flap(target, _, _, times) => {
            target.find_external_port(fabric)?;
            if *times == 0 {
                return Err(CommandError::Value {
                    found: "0 times".to_owned(),
                    expected: "at least 1",
                });
            }
        }
        Command::Clear(target) | Command::Guid(target, _) | Command::Error(target, ..) => {
            target.find_ports(fabric)?;
        }
        Command::Power(target, _) => {
            target.find_whole_node(fabric)?;
        }
        Command::PerformanceSet(target, field, _) => {
            target.find_port(fabric)?;
            counter(field)?;
        }
        Command::BaseLid(target, ..) | Command::MKey(target, ..) => {
            target.find_end_port(fabric)?;
        }
        Command::Misroute(target, pair) => {
            let last = fabric.node(target.find_switch(fabric)?).ports;
            let mut ports = pair.iter().flat_map(|&(from, to)| [from, to]);
            if let Some(port) = ports.find(|port| !(1..=last).contains(port)) {
                return Err(target.no_such_port(port, 1, last));
            }
            if let Some((from, to)) = pair.filter(|(from, to)| from == to) {
                return Err(CommandError::Value {
                    found: format!("port {to} for port {from}"),
                    expected: "a different port",
                });
            }
        }
        Command::IgnoreLft(target, ignored) => {
            target.find_switch(fabric)?;
            if let Ignored::Blocks(blocks) = ignored
                && let Some(block) = blocks.iter().find(|&&block| block >= LINEAR_BLOCKS)
            {
                const _: () =
                    assert!(LINEAR_BLOCKS == 768, "the error text gives 767 as the last block");
                return Err(CommandError::Value {
                    found: format!("block {block}"),
                    expected: "blocks of 64 LIDs, 0 to 767",
                });
            }
        }
    }
    Ok(())
}

/// Refuses `held`, the maximum delay of reordered packets, without `reorder`: if no packets are
/// reordered, `held` has no effect.
fn check_faults(faults: &[Fault]) -> Result<(), CommandError> {
    let holds = faults.iter().any(|fault| matches!(fault, Fault::HeldBack(_)));
    let reorders = |fault: &Fault| matches!(fault, Fault::Reordering(part) if *part > 0.0);
    if holds && !faults.iter().any(reorders) {
        return Err(CommandError::Value {
            found: "held without reorder".to_owned(),
            expected: "`reorder` as well",
        });
    }
    Ok(())
}

/// Width of a counter in PortCountersExtended in bits. Other fields have other widths.
const COUNTER_BITS: usize = 64;

/// Returns the counter of PortCountersExtended with this name.
pub(super) fn counter(name: &str) -> Result<&'static FieldInfo, CommandError> {
    let wanted = normalized(name);
    PortCountersExtended::FIELDS
        .iter()
        .filter(|known| known.at.width == COUNTER_BITS)
        .find(|known| normalized(known.name) == wanted || perfquery_name(known.name) == wanted)
        .ok_or_else(|| CommandError::Value {
            found: name.to_owned(),
            expected: "the name of a counter, such as SymbolErrorCounter or PortXmitData",
        })
}

/// Returns the maximum value of a counter in PortCounters; `None` if PortCounters does not contain
/// the counter.
pub(super) fn highest(name: &str) -> Option<u64> {
    let known = counter(name).ok()?;
    let short = PortCounters::FIELDS.iter().find(|field| field.name == known.name)?;
    Some(u64::MAX >> (64 - short.at.width))
}

/// Returns a name in lower case without separators.
fn normalized(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// Returns the name by which perfquery and ibsim call a counter, in lower case without separators.
fn perfquery_name(field: &str) -> String {
    let known = match field {
        "symbol_errors" => "SymbolErrorCounter",
        "link_error_recoveries" => "LinkErrorRecoveryCounter",
        "link_downed" => "LinkDownedCounter",
        "local_link_integrity_errors" => "LocalLinkIntegrityErrors",
        "excessive_buffer_overrun_errors" => "ExcessiveBufferOverrunErrors",
        "vl15_dropped" => "VL15Dropped",
        "xmit_packets" => "PortXmitPkts",
        "rcv_packets" => "PortRcvPkts",
        other => return format!("port{}", normalized(other)),
    };
    normalized(known)
}
