//! JSON Schemas of the output of `--json`.
//!
//! The schemas are generated from the types that are printed. They describe one JSON object or array; commands whose
//! output is a stream print one on each line.

use std::collections::BTreeMap;

use ib_control::capture::message::CaptureInfo;
use ib_daemons::acm::{AcmCachedAddress, AcmFlushed, AcmStatus};
use ib_daemons::rtrs::bench::BenchReport;
use ib_daemons::sm::{MetricSample, SmRoutes, SmStatus, SmTable};
use ib_storage::rtrs::control::{EntryData, FileData};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::command;
use crate::command::console::TextReply;

/// The routing result, or the LFT of one switch.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only the schema is used")]
enum Routes {
    All(SmRoutes),
    Table(SmTable),
}

/// Returns the schema of a type's output.
pub(crate) fn of<T: JsonSchema>() -> Schema {
    generator().into_root_schema_for::<T>()
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().for_serialize().into_generator()
}

/// Returns the schema of the output of each command with `--json`, by the name of the command's man page without
/// `ibfabric-`.
#[must_use]
pub fn schemas() -> BTreeMap<&'static str, Schema> {
    let mut schemas = BTreeMap::from([
        ("route", command::route::schema()),
        ("check", command::check::schema()),
        ("sim-ctl", command::sim::ctl::schema()),
        ("sm", command::sm::report::schema()),
        ("sm-ctl-status", of::<SmStatus>()),
        ("sm-ctl-sweep", of::<TextReply<'_>>()),
        ("sm-ctl-routes", of::<Routes>()),
        ("sm-ctl-metrics", of::<Vec<MetricSample>>()),
        ("acm-ctl-status", of::<AcmStatus>()),
        ("acm-ctl-cache", of::<Vec<AcmCachedAddress>>()),
        ("acm-ctl-flush", of::<AcmFlushed>()),
        ("acm-ctl-reload", of::<TextReply<'_>>()),
        ("acm-ctl-metrics", of::<BTreeMap<String, u64>>()),
        ("acme", command::acme::result::schema()),
        ("tracer", command::tracer::schema()),
        ("rdma-devinfo", command::rdma::devinfo::schema()),
        ("rdma-ping", command::rdma::rping::schema()),
        ("rdma-cmatose", command::rdma::cmatose::schema()),
        ("rdma-pingpong", command::rdma::pingpong::schema()),
        ("rdma-bw", command::rdma::perf::schema()),
        ("rdma-lat", command::rdma::perf::schema()),
        ("rtrs-bench", of::<BenchReport>()),
        ("rtrs-ctl-get", of::<FileData>()),
        ("rtrs-ctl-set", of::<TextReply<'_>>()),
        ("rtrs-ctl-list", of::<Vec<EntryData>>()),
        ("rtrs-ctl-metrics", of::<TextReply<'_>>()),
        ("selftest", ib_daemons::up::report_schema(generator())),
        ("capture-list", command::capture::live::list_schema()),
        ("capture-start", of::<CaptureInfo>()),
        ("capture-change", of::<CaptureInfo>()),
        ("capture-stop", of::<CaptureInfo>()),
        ("capture-read", command::capture::read::schema()),
        ("capture-correlate", command::capture::correlate::schema()),
    ]);
    for (name, schema) in &mut schemas {
        let command = name.replace('-', " ");
        schema.insert("title".to_owned(), format!("Output of `ibfabric {command} --json`").into());
    }
    schemas
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Command;

    use super::*;

    /// Collects the commands that have the option `--json`, except those that only group other commands.
    fn with_json(command: &Command, name: &str, found: &mut BTreeSet<String>) {
        let has_json = command.get_arguments().any(|argument| argument.get_id() == "json");
        // `sm` runs without a subcommand, too.
        let is_group = command.is_subcommand_required_set() || name.ends_with("-ctl");
        let subcommands: Vec<&Command> = command.get_subcommands().collect();
        if has_json && (!is_group || subcommands.is_empty()) {
            found.insert(name.to_owned());
        }
        for command in subcommands.into_iter().filter(|command| command.get_name() != "help") {
            let prefix = if name.is_empty() { String::new() } else { format!("{name}-") };
            with_json(command, &format!("{prefix}{}", command.get_name()), found);
        }
    }

    #[test]
    fn every_command_with_json_output_has_a_schema() {
        let mut command = crate::cli::command();
        command.build();
        let mut found = BTreeSet::new();
        with_json(&command, "", &mut found);
        let known: BTreeSet<String> = schemas().keys().map(ToString::to_string).collect();
        assert_eq!(found, known);
    }
}
