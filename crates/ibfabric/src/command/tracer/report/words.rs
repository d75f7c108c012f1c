//! The texts of verdicts and of their evidence.

use ib_tracer::{
    Component, FabricModel, Hop, Judgement, NodeNumber, Observation, PacketFate, Probe, Reason,
    Suspicion, Verdict, Witness,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::Names;

/// Returns the JSON value of a judgement.
pub(in super::super) const fn judgement(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::ProvenGood => "good",
        Judgement::ProvenBad => "bad",
        Judgement::NotProven => "not_proven",
    }
}

/// Returns the JSON value of a verdict.
pub(in super::super) const fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Validated => "validated",
        Verdict::Observed { by: Witness::Agent | Witness::Management } => "seen",
        Verdict::Observed { by: Witness::CombinedRoute } => "seen_by_launch",
        Verdict::Observed { by: Witness::Counters } => "counted",
        Verdict::Observed { by: Witness::Cable } => "cable",
        Verdict::Own => "own",
        Verdict::Misdirected { .. } => "misdirected",
        Verdict::Detour { .. } => "detour",
        Verdict::OtherTable { .. } => "other_table",
        Verdict::OtherLink { .. } => "other_link",
        Verdict::Inconsistent { .. } => "inconsistent",
        Verdict::Duplicate { .. } => "duplicate",
        Verdict::Suspected(_) => "suspected",
        Verdict::NotProbed => "not_asked",
    }
}

/// Returns a sentence about a hop.
pub(in super::super) fn detail(
    hop: &Hop,
    verdict: &Verdict,
    (names, model): (&Names, &FabricModel),
) -> String {
    match verdict {
        Verdict::Validated => "validated".to_owned(),
        Verdict::Observed { by: Witness::Agent } => {
            "seen: requests to an agent from the local port arrive over this link".to_owned()
        }
        Verdict::Observed { by: Witness::Management } => {
            "seen: SMPs from the local port arrive over this link".to_owned()
        }
        Verdict::Observed { by: Witness::CombinedRoute } => {
            "seen: a combined-route probe from the preceding switch arrives over this link"
                .to_owned()
        }
        Verdict::Observed { by: Witness::Counters } => {
            format!("counted: the preceding switch sends packets out of port {}", hop.out)
        }
        Verdict::Observed { by: Witness::Cable } => {
            "a cable that carries management in both directions".to_owned()
        }
        Verdict::Own => "the local port".to_owned(),
        Verdict::Misdirected { actual: None, left: None } => format!(
            "the preceding switch does not send LID-routed packets out of port {}, although it answers SMPs over that cable",
            hop.out
        ),
        Verdict::Misdirected { actual, left } => {
            let does = match left {
                Some(PacketFate::Sent(port)) => format!("sends packets out of port {port}"),
                Some(PacketFate::Discarded(port)) => format!("discards packets at port {port}"),
                Some(PacketFate::Dropped(port)) => {
                    format!("does not relay packets received at port {port}")
                }
                None => "sends packets out of another port".to_owned(),
            };
            let outcome = match actual {
                Some(actual) => {
                    format!("they arrive at port {actual}, expected port {}", hop.enters)
                }
                None => "they are not answered".to_owned(),
            };
            format!("the preceding switch {does}, expected out of port {}: {outcome}", hop.out)
        }
        Verdict::Detour { by } => format!(
            "the preceding switch sends packets out of port {by}, expected out of port {}: they arrive nevertheless",
            hop.out
        ),
        Verdict::OtherTable { holds: 255 } => format!(
            "the table of the preceding switch has no entry, expected port {} as in the SA's records",
            hop.out
        ),
        Verdict::OtherTable { holds } => format!(
            "the table of the preceding switch has port {holds}, expected port {} as in the SA's records",
            hop.out
        ),
        Verdict::OtherLink { what } => {
            format!("not the link in the SA's records: {what}")
        }
        Verdict::Inconsistent { what } => format!("the node's responses are inconsistent: {what}"),
        Verdict::Duplicate { what } => format!("a duplicate: {what}"),
        Verdict::Suspected(why) => suspicion(why, (names, model)),
        Verdict::NotProbed => "not probed".to_owned(),
    }
}

/// Returns a sentence with the reason why a hop is not proven, and the suspects.
fn suspicion(why: &Suspicion, (names, model): (&Names, &FabricModel)) -> String {
    let reason = reason(&why.reason);
    let mut text = format!("not proven: {reason}");
    if !why.suspects.is_empty() {
        let all: Vec<String> =
            why.suspects.iter().map(|&it| component(it, (names, model))).collect();
        text += &format!("; suspects: {}", all.join(", "));
    }
    if let Some(probe) = &why.apart {
        text += &format!("; {probe} would distinguish them");
    }
    text
}

/// Returns the text of the reason why a hop is not proven.
pub(super) const fn reason(reason: &Reason) -> &'static str {
    match reason {
        Reason::Unanswered => "probes over this link are not answered",
        Reason::Lossy => "probes over this link are not answered, which packet loss can explain",
        Reason::NoRelay => {
            "switches do not forward combined-route probes, and no other probe shows at which port packets arrive"
        }
        Reason::NoCounters => "no probe tests this link alone, and the counters are inconclusive",
        Reason::AnswersLost => "the responses to probes are lost at a faulty port",
        Reason::OtherLevel => "the node responds on service level 0, but not on the level of --sl",
        Reason::NoLid => "the node has no LID",
        Reason::TableChanged => "a table on the path changed during the trace",
    }
}

/// Returns the text for a component that may be faulty.
pub(super) fn component(it: Component, (names, model): (&Names, &FabricModel)) -> String {
    match it {
        Component::Forwarding(node, port) => format!("port {port} of {}", names.of(model, node)),
        Component::Identity(node) => format!("the LID of {}", names.of(model, node)),
        Component::Relay(node) => {
            format!("forwarding of combined-route probes by {}", names.of(model, node))
        }
        Component::Cable(node, port) => {
            format!("the cable at port {port} of {} or the node behind it", names.of(model, node))
        }
        Component::Responder(node) => {
            format!("responses of {} to combined-route probes", names.of(model, node))
        }
    }
}

/// Observations of a hop; field names are JSON keys.
#[derive(Serialize, JsonSchema)]
pub(super) struct EvidenceReport {
    probe: &'static str,
    lid: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    sent: u32,
    answered: u32,
    controls: u32,
    controls_answered: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    arrived_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arrived_by: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_by: Option<u8>,
}

impl EvidenceReport {
    pub(super) fn new(
        (probe, seen): &(Probe, Observation),
        (names, model): (&Names, &FabricModel),
    ) -> Self {
        let name = |node: NodeNumber| Some(names.of(model, node).to_owned());
        let (word, lid, from) = match *probe {
            Probe::Agent { lid } => ("agent", lid, None),
            Probe::Management { lid } => ("management", lid, None),
            Probe::CombinedRoute { from, lid } => ("launch", lid, name(from)),
            Probe::Counters { from, lid } => ("counters", lid, name(from)),
        };
        Self {
            probe: word,
            lid,
            from,
            sent: seen.sent,
            answered: seen.answered,
            controls: seen.control_sent,
            controls_answered: seen.control_answered,
            arrived_at: seen.arrival.map(|(guid, _)| guid.to_string()),
            arrived_by: seen.arrival.map(|(_, port)| port),
            left_by: match seen.left {
                Some(PacketFate::Sent(port)) => Some(port),
                _ => None,
            },
        }
    }
}

/// Returns the evidence on a hop in one line.
pub(super) fn evidence(
    all: &[(Probe, Observation)],
    hop: &Hop,
    (names, model): (&Names, &FabricModel),
) -> String {
    let parts = all.iter().map(|(probe, seen)| {
        let Observation { sent, answered, .. } = seen;
        let arrived = seen
            .arrival
            .map_or_else(String::new, |(guid, port)| format!(", arrived at port {port} of {guid}"));
        match *probe {
            Probe::Agent { lid } => {
                format!("{sent} requests to the agent at LID {lid}: {answered} answered")
            }
            Probe::Management { lid } => {
                format!("{sent} SMPs to LID {lid}: {answered} answered{arrived}")
            }
            Probe::CombinedRoute { from, lid } => {
                let name = names.of(model, from);
                let controls = match (seen.control_sent, seen.control_answered) {
                    (0, _) => String::new(),
                    (sent, answered) => {
                        format!("; {sent} controls over the same cables: {answered} answered")
                    }
                };
                format!(
                    "{sent} combined-route probes through {name} port {} to LID {lid}: {answered} \
                     answered{arrived}{controls}",
                    hop.out
                )
            }
            Probe::Counters { from, lid } => {
                let name = names.of(model, from);
                let left = match seen.left {
                    Some(PacketFate::Sent(port)) => format!("were sent out of port {port}"),
                    Some(PacketFate::Discarded(port)) => format!("were discarded at port {port}"),
                    Some(PacketFate::Dropped(port)) => format!("were dropped at port {port}"),
                    None => "are not found in the counters".to_owned(),
                };
                format!("{sent} combined-route probes through {name} to LID {lid} {left}")
            }
        }
    });
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join("; ") }
}
