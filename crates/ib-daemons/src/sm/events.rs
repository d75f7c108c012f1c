//! Log lines for events of the SM.

use ib_link::Datagram;
use ib_sm::fault::PortName;
use ib_sm::{DiscoveryStart, LinkChange, PortChange, SweepReport};
use ib_wire::mad::sm::{Notice, TrapNumber};

use super::console::quality_words;
use crate::log::{INFO, VERBOSE};

/// The log level and the text of a line.
pub(super) type Line = (u8, String);

pub(super) fn discovery_start(DiscoveryStart { reason, is_full }: &DiscoveryStart) -> Line {
    let what = if *is_full { "Heavy sweep" } else { "Partial sweep" };
    (INFO, format!("{what}: {reason}"))
}

/// Returns the log line for a port that was discovered or removed. Its level is `VERBOSE` if the subnet came up for the
/// first time, else `INFO`.
pub(super) fn port(change: &PortChange) -> Line {
    let PortChange { guid, lids: (first, last), at, is_new, is_first } = change;
    let what = if *is_new { "Discovered new" } else { "Removed" };
    let place = port_text(at);
    let text = format!("{what} port with GUID:{guid} LID range [{first},{last}] of node: {place}");
    (if *is_first { VERBOSE } else { INFO }, text)
}

pub(super) fn link(LinkChange { ends: (one, other), is_new }: &LinkChange) -> Line {
    let what = if *is_new { "Discovered new" } else { "Removed" };
    (INFO, format!("{what} link between {} and {}", port_text(one), port_text(other)))
}

fn port_text(at: &PortName) -> String {
    let PortName { description, node_guid, port, .. } = at;
    let port = port.map_or_else(String::new, |port| format!(" port {port}"));
    format!("{description} ({node_guid}){port}")
}

/// Returns the log line for a trap. Its level is `INFO` if the trap shows a change of the subnet, else `VERBOSE`.
pub(super) fn trap(notice: &Notice) -> Line {
    let Notice { is_generic, notice_type, producer, trap, issuer_lid, .. } = notice;
    let kind = notice_type.0;
    if !is_generic {
        let device = trap.0;
        let text = format!(
            "Received Vendor Notice type:{kind} vendor:{producer:#08x} device:{device} from \
             LID:{issuer_lid}"
        );
        return (VERBOSE, text);
    }
    let from = match producer {
        1 => "channel adapter",
        2 => "switch",
        3 => "router",
        4 => "class manager",
        _ => "unknown",
    };
    let number = trap.0;
    let text = format!(
        "Received Generic Notice type:{kind} num:{number} ({trap}) Producer:{producer} ({from}) from \
         LID:{issuer_lid}"
    );
    let changes = [
        TrapNumber::LINK_STATE_CHANGE,
        TrapNumber::LOCAL_CHANGES,
        TrapNumber::SYSTEM_IMAGE_GUID_CHANGE,
    ];
    (if changes.contains(trap) { INFO } else { VERBOSE }, text)
}

/// Returns two log lines: the size of the subnet, and the durations and SMP counts of the sweep.
pub(super) fn up(report: &SweepReport) -> [Line; 2] {
    let SweepReport { plan, written, nodes, smps, retries, cached, .. } = report;
    let lids: usize = plan.end_ports.values().map(|&(_, lids)| usize::from(lids)).sum();
    let cached = if *cached { " (cached)" } else { "" };
    let kept = if plan.is_kept { " (tables in use kept)" } else { "" };
    let what = format!(
        "{nodes} nodes, {} switches, {lids} LIDs, routed with {}{cached}{kept}; {}",
        plan.switches.len(),
        plan.routing.engine,
        quality_words(report.quality)
    );
    let ms = |time: std::time::Duration| time.as_millis();
    let took = format!(
        "explored in {} ms, planned in {} ms, written in {} ms; {smps} SMPs, {retries} retransmissions, \
         {} LFT blocks",
        ms(report.discover),
        ms(report.plan_time),
        ms(report.program),
        written.lft_blocks
    );
    [(INFO, what), (VERBOSE, took)]
}

/// Returns the log line for a MAD that was sent or received.
pub(super) fn datagram(verb: &str, datagram: &Datagram) -> String {
    let mad = &datagram.mad;
    let (method, class) = (mad.method(), mad.class());
    let attribute = mad.attribute_id();
    let name = attribute.name(class).map_or_else(|| format!("{attribute:?}"), str::to_owned);
    format!(
        "{verb} {class} {method}({name}) modifier {:#010x} TID:{:#018x} status {} LID:{} QP:{}",
        mad.attribute_modifier(),
        mad.transaction_id().0,
        mad.status(),
        datagram.remote.lid,
        datagram.remote.qpn
    )
}

#[cfg(test)]
mod tests;
