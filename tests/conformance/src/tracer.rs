//! Compares ibfabric's tracer with `ibtracert`, and tests ibfabric's agents with `ibping`. The simulators are ibsim and
//! `ibfabric sim`.
//!
//! `ibfabric sm` brings a fabric up on each simulator. Then `ibtracert` and `ibfabric tracer` trace the same paths and
//! must print the same lines. The tracer must report no bad path and no bad hop. If the nodes have agents, the tracer
//! must report validated hops. If they have none, it must report no validated hop. `ibping` must receive responses from
//! the agents.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use ib_types::Guid;
use serde_json::Value;

use crate::clients::fabrics::Plan;
use crate::clients::program::Question;
use crate::clients::server::Kind;
use crate::clients::stage::StageError;
use crate::sm::ours::Options;
use crate::sm::scene::{Gear, Outcome, Scene, patient};

pub mod damaged;

/// Minimum number of paths that a case traces. If the fabric has fewer paths, all of them are traced.
const PAIRS: usize = 120;

/// Options of `ibfabric tracer`: a timeout of 200 ms and one retry. Both are small, because simulators do not respond
/// to some probes.
const HASTE: [&str; 4] = ["-t", "200", "-r", "1"];

/// A test case: a fabric, a routing engine and a simulator.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    kind: &'static str,
    engine: &'static str,
    server: Server,
    /// True if the case modifies a path in ibfabric's output. The comparison with `ibtracert` must then fail.
    pub wrong: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    Ibsim,
    Ours,
    WithAgents,
}

/// Returns all cases. If `wrong` is true, returns a case with a deliberate error instead.
#[must_use]
pub fn cases(wrong: bool) -> Vec<Case> {
    let fabrics = [
        ("xgft 4,4 1,4", "minhop"),
        ("fat-tree 8 oversubscription=2:1 parallel=2", "ftree"),
        ("torus 4x4 hosts=2", "lash"),
        ("mesh 4x3", "dor"),
        ("xgft 3,3,3 1,3,3", "updn"),
        ("dragonfly a=4 p=1 h=1", "minhop"),
    ];
    let servers = [Server::Ibsim, Server::Ours, Server::WithAgents];
    let all = fabrics.into_iter().flat_map(|(kind, engine)| {
        servers.map(|server| Case { kind, engine, server, wrong: false })
    });
    if wrong {
        return all.take(1).map(|case| Case { wrong: true, ..case }).collect();
    }
    all.collect()
}

impl Case {
    /// Returns the name of the case.
    #[must_use]
    pub fn name(&self) -> String {
        let server = match self.server {
            Server::Ibsim => "ibsim",
            Server::Ours => "ibfabric sim",
            Server::WithAgents => "ibfabric sim --agents",
        };
        let wrong = if self.wrong { " | deliberate error: a modified path" } else { "" };
        format!("{} | {} | {server}{wrong}", self.kind, self.engine)
    }

    /// Runs the case. Its files are written to the given directory.
    ///
    /// # Errors
    /// Fails if a program cannot be started.
    pub fn run(&self, gear: &Gear, directory: &Path) -> Outcome {
        fs::create_dir_all(directory)?;
        let fabric =
            Plan::of(self.kind).fabric().map_err(|error| StageError::Failed(error.to_string()))?;
        let kind = match self.server {
            Server::Ibsim => Kind::Ibsim,
            Server::Ours => Kind::Ibfabric(gear.ibfabric.clone()),
            Server::WithAgents => Kind::WithAgents(gear.ibfabric.clone()),
        };
        let mut scene = Scene::open(gear, &kind, &fabric, &gear.debian, directory)?;
        let options = Options { engine: self.engine, ..Options::default() };
        let mut ours = scene.manage(&options)?;
        // LIDs of switches are skipped, because up/down routing has no paths between some switches.
        let is_host = |guid: &Guid| {
            fabric
                .find_port_guid(*guid)
                .is_some_and(|port| !fabric.node(fabric.port(port).node).kind.is_switch())
        };
        let lids = scene.lids()?.into_iter().filter(|(guid, _)| is_host(guid));
        let lids: Vec<u16> = lids.map(|(_, lid)| lid).collect();
        let pairs = pairs(&lids);
        let file = scene.directory.join("pairs");
        let mut text = String::new();
        for (from, to) in &pairs {
            writeln!(text, "{from} {to}").expect("writing to a string succeeds");
        }
        fs::write(&file, text)?;
        self.compare_paths(&mut scene, &file, pairs.len())?;
        self.check_validation(&mut scene, &file, pairs.len())?;
        self.check_agents(&mut scene, &lids)?;
        if self.server == Server::WithAgents {
            check_misroute(&mut scene, &lids)?;
        }
        scene.check(ours.is_alive(), || {
            format!("ibfabric sm has ended unexpectedly: {}", ours.output())
        });
        drop(ours);
        Ok(scene.close())
    }

    /// Compares ibfabric's paths with those of `ibtracert`. ibfabric traces them twice: over ibsim's protocol and over
    /// the umad device.
    fn compare_paths(
        &self,
        scene: &mut Scene<'_>,
        file: &Path,
        count: usize,
    ) -> Result<(), StageError> {
        let (theirs, kept) = scene.run_client(&patient("ibtracert --ports-file ../pairs"))?;
        let expected = theirs.output.matches("\nTo ").count();
        scene.check(expected == count, || {
            format!("ibtracert shows {expected} of {count} paths ({})", kept.display())
        });
        let file = file.display().to_string();
        let what = ["--pairs", &file, "--no-agents", "--format", "ibtracert"];
        let mut own = tracer(scene, &what)?;
        if self.wrong {
            own = own.replacen("\n[1] ->", "\n[2] ->", 1);
        }
        compare_lines(scene, "the ibsim link", &own, &theirs.output);
        let words = [
            vec![scene.gear.ibfabric.display().to_string(), "tracer".to_owned()],
            ["-I", "ibsim0"].map(str::to_owned).to_vec(),
            what.map(str::to_owned).to_vec(),
        ];
        let question = Question { words: words.concat(), ..patient("") };
        let (answer, _) = scene.run_client(&question)?;
        compare_lines(scene, "the umad device", &answer.output, &theirs.output);
        Ok(())
    }

    /// Checks that the tracer reports no bad path or hop, and that it reports validated hops exactly if the nodes have
    /// agents.
    fn check_validation(
        &self,
        scene: &mut Scene<'_>,
        file: &Path,
        count: usize,
    ) -> Result<(), StageError> {
        let file = file.display().to_string();
        let more = [&["--pairs", &file, "--json"][..], &HASTE].concat();
        let found = json(&tracer(scene, &more)?)?;
        let number = |pointer: &str| found.pointer(pointer).and_then(Value::as_u64).unwrap_or(9999);
        // On ibsim, unproven paths are accepted. ibsim does not relay combined-route probes, which take a directed
        // route and are then routed by LID. Without them, the tracer can test only links on paths from its local port.
        let unproven = if self.server == Server::Ibsim { number("/not_proven") } else { 0 };
        let judged = (number("/good") + unproven, number("/bad"), number("/hops/bad"));
        scene.check(judged == (count as u64, 0, 0), || {
            format!("expected verdicts on {count} paths, all good, found {found}")
        });
        let has_agents = self.server == Server::WithAgents;
        let validated = number("/hops/validated") > 0;
        scene.check(validated == has_agents, || {
            format!("validated hops: {validated}, agents: {has_agents}: {found}")
        });
        if !has_agents {
            let one = fs::read_to_string(&file)?;
            let to = one.split_whitespace().nth(1).unwrap_or_default().to_owned();
            let more = [&["-l", &to, "-v"][..], &HASTE].concat();
            let said = tracer(scene, &more)?;
            scene.check(!said.contains("path validated"), || {
                format!("the tracer validates a path although no node has an agent: {said}")
            });
        }
        Ok(())
    }

    /// Checks that `ibping` receives responses from an ibfabric agent, and that the tracer reports the hop to the agent
    /// as validated. If the simulator contains no agents, the check starts `ibfabric agent`.
    fn check_agents(&self, scene: &mut Scene<'_>, lids: &[u16]) -> Result<(), StageError> {
        let last = scene.fabric.nodes().filter(|(_, node)| !node.kind.is_switch()).last();
        let Some((_, node)) = last else { return Err(StageError::NoActors) };
        let name = node.name.clone();
        let address = scene.client_output("ibaddr -l", &name)?;
        let lid = address.split_whitespace().nth(2).and_then(|lid| lid.strip_prefix("0x"));
        let lid = lid.and_then(|lid| u16::from_str_radix(lid, 16).ok()).unwrap_or(0);
        scene.check(lids.contains(&lid), || {
            format!("unexpected output of ibaddr for {name}: {address}")
        });
        let lid = lid.to_string();
        let mut agent = None;
        let mut host = name.clone();
        if self.server != Server::WithAgents {
            host = "agent.example".to_owned();
            let binary = scene.gear.ibfabric.display().to_string();
            let socket = format!("--attach={}", scene.seat.socket);
            let words = [&*binary, "agent", &*socket, "--node", &*name, "--host-name", &*host];
            let words = words.map(str::to_owned).to_vec();
            agent = Some(scene.start_client(&Question { words, ..patient("") })?);
            std::thread::sleep(Duration::from_millis(500));
        }
        let (answer, kept) = scene.run_client(&patient(&format!("ibping -c 3 {lid}")))?;
        let pongs = answer.output.matches(&format!("Pong from {host}")).count();
        scene.check(pongs == 3, || {
            format!("ibping received {pongs} of 3 responses ({})", kept.display())
        });
        let more = [&["-l", &*lid, "--json"][..], &HASTE].concat();
        let found = json(&tracer(scene, &more)?)?;
        let verdict = found.pointer("/traces/0/hops").and_then(Value::as_array);
        let verdict = verdict.and_then(|hops| hops.last()).map(|hop| hop["verdict"].clone());
        scene.check(verdict == Some("validated".into()), || {
            format!("expected the last hop to be validated, found {found}")
        });
        drop(agent);
        Ok(())
    }
}

/// Makes a switch of a path misroute packets, and checks that the tracer names the hop from this switch.
fn check_misroute(scene: &mut Scene<'_>, lids: &[u16]) -> Result<(), StageError> {
    let to = lids.iter().max().map(u16::to_string).unwrap_or_default();
    let trace = |scene: &Scene<'_>| {
        let more = [&["-l", &*to, "--json"][..], &HASTE].concat();
        json(&tracer(scene, &more)?)
    };
    let before = trace(scene)?;
    let hops = before.pointer("/traces/0/hops").and_then(Value::as_array).cloned();
    let hops = hops.unwrap_or_default();
    // The first hop ends at the switch that will misroute. The second hop leaves this switch by port `out`.
    let [first, second, ..] = &hops[..] else { return Ok(()) };
    let (guid, out) = (first["guid"].as_str().unwrap_or_default(), second["out"].as_u64());
    let name = format!("S-{}", guid.trim_start_matches("0x"));
    let out = out.unwrap_or_default();
    let other = if out == 1 { 2 } else { out - 1 };
    let socket = scene.seat.socket.clone();
    let lie = format!("Misroute \"{name}\" {out} {other}");
    scene.run_own(&["sim", "ctl", "--name", &socket, &lie])?;
    let after = trace(scene)?;
    let hop = after.pointer("/traces/0/hops/1").cloned().unwrap_or_default();
    let said = after.pointer("/traces/0/result").and_then(Value::as_str).unwrap_or_default();
    let names = said.contains(&format!("hop 2, switch {}", hop["guid"].as_str().unwrap_or("none")))
        || said.contains(&format!("hop 2, ca {}", hop["guid"].as_str().unwrap_or("none")));
    scene.check(names && after["bad"] == 1, || {
        format!("expected one bad path that fails at hop 2 after {lie}: {after}")
    });
    let mend = format!("Misroute \"{name}\" none");
    scene.run_own(&["sim", "ctl", "--name", &socket, &mend])?;
    let mended = trace(scene)?;
    scene.check(mended["bad"] == 0, || format!("expected no bad path after {mend}: {mended}"));
    Ok(())
}

/// Runs ibfabric's tracer on the node on which `ibtracert` and `ibping` run, and returns its output.
fn tracer(scene: &Scene<'_>, more: &[&str]) -> Result<String, StageError> {
    let socket = format!("--attach={}", scene.seat.socket);
    let words = ["tracer", &*socket, "--node", &*scene.seat.node];
    scene.run_own(&[&words[..], more].concat())
}

fn json(text: &str) -> Result<Value, StageError> {
    serde_json::from_str(text).map_err(|error| {
        StageError::Failed(format!("the tracer printed invalid JSON: {error}: {text}"))
    })
}

/// Compares the paths in the outputs of ibfabric's tracer and of `ibtracert` line by line.
fn compare_lines(scene: &mut Scene<'_>, over: &str, ours: &str, theirs: &str) {
    let lines = |text: &str| -> Vec<String> {
        // Lines that do not belong to a path, such as the number of pairs, are skipped.
        let is_way = |line: &&str| ["From ", "[", "To "].iter().any(|head| line.starts_with(head));
        let paths = text.lines().filter(is_way);
        paths.map(str::to_owned).collect()
    };
    let (ours, theirs) = (lines(ours), lines(theirs));
    let first = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
    scene.check(ours == theirs, || {
        let (own, other) = (ours.len(), theirs.len());
        format!(
            "the tracer prints {own} lines over {over}, ibtracert prints {other}; first difference: {first:?}"
        )
    });
}

/// Returns pairs of different LIDs, taken evenly from the list of all pairs.
fn pairs(lids: &[u16]) -> Vec<(u16, u16)> {
    let all = lids.iter().flat_map(|&from| lids.iter().map(move |&to| (from, to)));
    let all: Vec<(u16, u16)> = all.filter(|(from, to)| from != to).collect();
    let step = (all.len() / PAIRS).max(1);
    all.into_iter().step_by(step).collect()
}
