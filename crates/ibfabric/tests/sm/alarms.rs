//! Checks the SM's alarms in the output of `sm ctl` and in the metrics.

use std::process::Command;

use serde_json::Value;

use crate::lab::{Lab, PROGRAM};

/// Starts a ring of five switches with an SM.
fn ring(options: &[&str]) -> Lab {
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let net = place.path().join("net");
    let words = ["gen", "torus", "5", "hosts=1", "-o", net.to_str().expect("the path is UTF-8")];
    assert!(
        Command::new(PROGRAM).args(words).status().expect("the program can be started").success()
    );
    Lab::again(place, options)
}

/// Returns the value of the metric with this name and this label `kind`.
fn alarm_metric(lab: &Lab, name: &str, kind: &str) -> Option<f64> {
    let metrics = lab.query_manager(&["metrics"]);
    let samples = metrics.as_array().expect("the value is a list");
    let found = samples.iter().find(|it| it["name"] == name && it["labels"]["kind"] == kind);
    found.and_then(|it| it["value"].as_f64())
}

#[test]
fn accepted_credit_loops_are_shown_until_they_are_resolved() {
    let lab = ring(&["--sm=minhop"]);
    let status = lab.query_manager(&["status"]);
    let alarms = status["alarms"].as_array().expect("the value is a list");
    assert_eq!(alarms.len(), 1, "{status}");
    let alarm = &alarms[0];
    assert_eq!(alarm["kind"], "credit_loops");
    assert_eq!((&alarm["engine"], &alarm["avoided_by"]), (&"minhop".into(), &"lash".into()));
    assert_eq!(alarm["first"].as_array().map(Vec::len), Some(5));
    assert!(alarm["since"].as_f64() > Some(0.0));
    assert_eq!(
        (&status["up"]["unreachable"], &status["up"]["credit_loops"]),
        (&0.into(), &2.into())
    );
    assert_eq!(alarm_metric(&lab, "ibfabric_sm_alarm", "credit_loops"), Some(1.0));
    assert_eq!(alarm_metric(&lab, "ibfabric_sm_alarm", "unreachable"), Some(0.0));
    let since = alarm_metric(&lab, "ibfabric_sm_alarm_since_timestamp_seconds", "credit_loops");
    assert_eq!(since, alarm["since"].as_f64());
    // After a link of the ring is cut, the new routes have no credit loop.
    let node = alarm["first"][0].as_str().and_then(|text| text.split('\'').nth(1));
    lab.run_command(&format!("unlink \"{}\"[1]", node.expect("the text contains a quoted name")));
    crate::lab::wait_for("routes without a credit loop", || {
        lab.query_manager(&["status"])["alarms"] == Value::Array(Vec::new())
    });
}

#[test]
fn default_engines_route_ring_without_alarm() {
    let lab = ring(&["--sm"]);
    let routes = lab.query_manager(&["routes"]);
    assert_eq!((&routes["requested"], &routes["engine"]), (&"auto".into(), &"lash".into()));
    assert_eq!(lab.query_manager(&["status"])["alarms"], Value::Array(Vec::new()));
}
