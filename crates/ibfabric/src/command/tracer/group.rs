//! The tree of a multicast group.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use ib_link::{LinkPort, MadLink, Remote};
use ib_mad::{Client, Request, RequesterConfig};
use ib_tracer::{Branch, BranchEnd, FabricModel, Judgement, Tracer, Tree};
use ib_types::{Gid, Guid};
use ib_wire::mad::sa::{ComponentMask, MCMemberRecord, SaHeader};
use ib_wire::mad::{Mad, Method, MgmtClass, TransactionId};
use schemars::JsonSchema;
use serde::Serialize;

use super::pairs::timing;
use super::report::{Names, detail, judgement, kind, word};
use crate::cli::tracer::{TraceFormat, TracerArgs};
use crate::failure::{Failure, Verdict};
use crate::output::Output;

/// A multicast group: its MLID, and the port GUIDs of its members if known.
struct Group {
    mlid: u16,
    members: Option<BTreeSet<Guid>>,
}

/// The result of tracing a multicast group; field names are JSON keys.
#[derive(Serialize, JsonSchema)]
pub(super) struct GroupReport {
    mgid: Option<String>,
    mlid: u16,
    good: bool,
    judgement: &'static str,
    /// Number of members other than the local port, which does not receive its own packets. `None` if not known.
    members: Option<usize>,
    reached: usize,
    missing: Vec<String>,
    twice: Vec<String>,
    /// True if the local port, the root of the tree, is a member. `None` if the members are not known.
    own_is_member: Option<bool>,
    strangers: Vec<String>,
    branches: Vec<BranchReport>,
    mads: u64,
    retries: u64,
    timeouts: u64,
}

/// A link of the tree; field names are JSON keys.
#[derive(Serialize, JsonSchema)]
struct BranchReport {
    depth: usize,
    from: String,
    out: u8,
    r#in: u8,
    kind: &'static str,
    guid: String,
    name: String,
    end: &'static str,
    bad: bool,
    verdict: &'static str,
    detail: String,
}

/// Traces the tree of a group, and reports the result.
pub(super) fn trace(
    args: &TracerArgs,
    names: &Names,
    (link, tracer, own): (&mut dyn MadLink, &mut Tracer, &LinkPort),
    out: &mut Output,
) -> Result<Verdict, Failure> {
    if args.output() == TraceFormat::Ibtracert {
        let message = "--format ibtracert prints paths between two ports, not multicast trees";
        return Err(Failure::Unusable(message.to_owned()));
    }
    let group = find(args, link, own)?;
    tracer.start_tree(group.mlid).map_err(Failure::unusable)?;
    let tree = loop {
        let now = link.now();
        while let Some(datagram) = tracer.poll_transmit(now) {
            link.send(&datagram).map_err(Failure::unusable)?;
        }
        if let Some((_, tree)) = tracer.poll_tree() {
            break tree.map_err(Failure::unusable)?;
        }
        super::listen(link, tracer)?;
    };
    let report = report(args, names, (&group, &tree), (tracer, own));
    let status = super::status(group_judgement(&report, &tree));
    match args.output() {
        TraceFormat::Json => out.json(&report)?,
        _ => print(args, &report, out)?,
    }
    Ok(status)
}

/// Queries the SA for a multicast group.
fn find(args: &TracerArgs, link: &mut dyn MadLink, own: &LinkPort) -> Result<Group, Failure> {
    let Some(mgid) = args.mgid else {
        return Ok(Group { mlid: args.mlid.unwrap_or_default() as u16, members: None });
    };
    let failed = |why: String| {
        Failure::Unusable(format!(
            "--mgid {mgid}: the query of the SA at the SM's LID failed: {why}; the query needs a running SM"
        ))
    };
    let mut mad = Mad::new(MgmtClass::SUBN_ADM, Method::GET_TABLE, TransactionId(0));
    mad.set_attribute(&MCMemberRecord { mgid, ..MCMemberRecord::zeroed() });
    let component_mask = ComponentMask::of(&[0]);
    mad.set_sa(&SaHeader { component_mask, sm_key: args.smkey.unwrap_or(1), ..mad.sa() });
    let remote = Remote { sl: own.sm_sl, ..Remote::gsi(own.sm_lid) };
    let request = Request::new(remote, mad).with_timing(timing(args));
    let config = RequesterConfig { tag: 2, ..RequesterConfig::default() };
    let answer =
        Client::new(config).call(link, request).map_err(|error| failed(error.to_string()))?;
    if !answer.status().is_ok() {
        return Err(failed(answer.status().to_string()));
    }
    let records: Vec<MCMemberRecord> = answer.records().collect();
    let Some(first) = records.first() else { return Err(failed("no such group".to_owned())) };
    let told = records.iter().all(|record| record.port_gid != Gid::ZERO);
    let members = told.then(|| records.iter().map(|record| record.port_gid.guid()).collect());
    Ok(Group { mlid: first.mlid, members })
}

fn report(
    args: &TracerArgs,
    names: &Names,
    (group, tree): (&Group, &Tree),
    (tracer, own): (&Tracer, &LinkPort),
) -> GroupReport {
    let model = tracer.model();
    let deliveries = tree.deliveries(model);
    let called = port_names(names, model, tree);
    let name = |guid: &Guid| called.get(guid).cloned().unwrap_or_else(|| guid.to_string());
    let members = group.members.as_ref();
    let wanted = || members.into_iter().flatten().filter(|&&guid| guid != own.port_guid);
    let missing: Vec<String> =
        wanted().filter(|guid| !deliveries.contains_key(guid)).map(name).collect();
    let mut twice: Vec<String> =
        deliveries.iter().filter(|&(_, &count)| count > 1).map(|(guid, _)| name(guid)).collect();
    twice.extend(tree.duplicates().map(|branch| {
        let before = names.full(model, branch.hop.from);
        format!("{} behind port {} of {before}", names.full(model, branch.hop.node), branch.hop.out)
    }));
    let strangers: Vec<String> = deliveries
        .keys()
        .filter(|guid| members.is_some_and(|members| !members.contains(guid)))
        .map(name)
        .collect();
    let counters = tracer.counters();
    let mut report = GroupReport {
        judgement: "",
        mgid: args.mgid.map(|mgid| mgid.to_string()),
        mlid: tree.mlid,
        // Every group has a member. So a tree that reaches no port is bad, even if the members are unknown.
        good: (members.is_some() || !deliveries.is_empty())
            && missing.is_empty()
            && twice.is_empty()
            && !tree.branches.iter().any(is_bad),
        members: members.map(|_| wanted().count()),
        reached: wanted().filter(|guid| deliveries.contains_key(guid)).count(),
        missing,
        twice,
        own_is_member: members.map(|members| members.contains(&own.port_guid)),
        strangers,
        branches: tree.branches.iter().map(|it| branch_report(names, model, it)).collect(),
        mads: counters.traffic.sent,
        retries: counters.traffic.retries,
        timeouts: counters.timeouts,
    };
    report.judgement = judgement(group_judgement(&report, tree));
    report
}

/// Returns the judgement on a tree, which is proven good only if every branch is proven good.
fn group_judgement(report: &GroupReport, tree: &Tree) -> Judgement {
    let is_unproven =
        |branch: &Branch| branch.verdict.judgement() == Judgement::NotProven && !is_bad(branch);
    match report.good {
        false => Judgement::ProvenBad,
        true if tree.branches.iter().any(is_unproven) => Judgement::NotProven,
        true => Judgement::ProvenGood,
    }
}

fn is_bad(branch: &Branch) -> bool {
    branch.verdict.is_bad() || matches!(branch.end, BranchEnd::Broken(_))
}

/// Returns the names of the ports of a tree.
fn port_names(names: &Names, model: &FabricModel, tree: &Tree) -> BTreeMap<Guid, String> {
    let places = tree.branches.iter().map(|branch| (branch.hop.node, branch.hop.enters));
    let named = places.filter_map(|place| {
        let end = model.end(place)?;
        Some((end.guid, names.full(model, place.0)))
    });
    named.collect()
}

fn branch_report(names: &Names, model: &FabricModel, branch: &Branch) -> BranchReport {
    let hop = &branch.hop;
    let node = model.node(hop.node);
    let (end, more) = match &branch.end {
        BranchEnd::Delivered => ("delivered", None),
        BranchEnd::Sent(ports) if ports.is_empty() => ("dropped", Some("dropped".to_owned())),
        BranchEnd::Sent(ports) => {
            let ports: Vec<String> = ports.iter().map(u8::to_string).collect();
            ("sent", Some(format!("sent out of ports {}", ports.join(" "))))
        }
        BranchEnd::Duplicate => {
            ("again", Some("already received the packet over another link".to_owned()))
        }
        BranchEnd::Broken(why) => ("broken", Some(format!("no response: {why}"))),
    };
    let seen = detail(hop, &branch.verdict, (names, model));
    BranchReport {
        depth: branch.depth,
        from: names.full(model, hop.from),
        out: hop.out,
        r#in: hop.enters,
        kind: kind(node.kind),
        guid: node.guid.to_string(),
        name: names.of(model, hop.node).to_owned(),
        end,
        bad: is_bad(branch),
        verdict: word(&branch.verdict),
        detail: more.map_or_else(|| seen.clone(), |more| format!("{more}; {seen}")),
    }
}

fn print(args: &TracerArgs, report: &GroupReport, out: &mut Output) -> Result<(), Failure> {
    if args.verbose > 0 {
        for branch in &report.branches {
            let BranchReport { depth, out: leaves, r#in: enters, kind, guid, name, detail, .. } =
                branch;
            let indent = "  ".repeat(*depth);
            writeln!(out, "{indent}[{leaves}] -> [{enters}] {kind} {guid} ('{name}'): {detail}")?;
        }
    }
    for (what, ports) in
        [("missing", &report.missing), ("twice", &report.twice), ("no member", &report.strangers)]
    {
        for port in ports {
            writeln!(out, "{what}: {port}")?;
        }
    }
    for branch in report.branches.iter().filter(|branch| branch.bad) {
        let BranchReport { from, out: leaves, kind, guid, name, detail, .. } = branch;
        writeln!(out, "bad: {kind} {guid} ('{name}') behind port {leaves} of {from}: {detail}")?;
    }
    let group = match &report.mgid {
        Some(mgid) => format!("group {mgid}, LID {:#06x}", report.mlid),
        None => format!("LID {:#06x}", report.mlid),
    };
    if report.own_is_member == Some(false) {
        writeln!(
            out,
            "the local port is not a member: its switch may drop its packets to the group"
        )?;
    }
    let reached = match report.members {
        Some(members) => format!("{} of {members} members reached", report.reached),
        None if !report.good && report.branches.iter().all(|branch| branch.end != "delivered") => {
            "no port is reached: the group does not exist, or has no other member".to_owned()
        }
        None => "members are not known".to_owned(),
    };
    writeln!(out, "{group}: {} links, {reached}", report.branches.len())?;
    if args.verbose > 0 {
        let GroupReport { mads, retries, timeouts, .. } = report;
        writeln!(out, "{mads} MADs sent, {retries} retries, {timeouts} timeouts")?;
    }
    Ok(())
}
