//! Runs perftest with `ibfabric run` at both ends, over RoCEv2 and on a simulated fabric.

use std::time::Instant;

use conformance::perftest::{lines, run as run_line};

use crate::TaskResult;
use crate::cases::{Selection, loopback_pair};
use crate::running::Running;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
}

pub(crate) fn run(Args { selection }: &Args) -> TaskResult {
    let mut outputs = selection.outputs("perftest-")?;
    let binary = selection.ibfabric_with_library()?;
    let name = format!("perftest-{}", std::process::id());
    let _simulator = Running::fat_tree(&binary, outputs.path(), &name)?;
    let addresses = loopback_pair()?;
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let layers = [
        ("Ethernet", addresses.each_ref().map(|address| words(&["--roce", address]))),
        (
            "InfiniBand",
            ["host-0", "host-7"].map(|node| words(&["--attach", &name, "--node", node])),
        ),
    ];
    let (mut passed, mut failed) = (0, 0);
    for (layer, [server, client]) in &layers {
        for line in lines() {
            let name = format!("{line} | {layer}");
            if !selection.wants(&name)
                || !(selection.all || line.is_short || selection.is_limited())
            {
                continue;
            }
            let begun = Instant::now();
            let result = run_line(&line, &binary, [server, client]);
            let verdict = if result.is_ok() { "ok    " } else { "FAILED" };
            eprintln!("{verdict} {:>5.1} s  {name}", begun.elapsed().as_secs_f64());
            *(if result.is_ok() { &mut passed } else { &mut failed }) += 1;
            if let Err(fault) = result {
                eprintln!("       {}", fault.replace('\n', "\n       "));
            }
        }
    }
    eprintln!("{passed} passed, {failed} failed");
    match (passed, failed) {
        (0, 0) => Err("no case has that name".into()),
        (_, 0) => Ok(()),
        _ => {
            outputs.keep();
            Err("a perftest program failed".into())
        }
    }
}
