//! Applies arbitrary requests to the trees of statistics and controls of an RTRS client and an RTRS server.
//!
//! Each line of the input is a request in the protocol of the control socket, or `PATH=VALUE`. In both trees, the fuzz
//! target lists and reads the path of the line, and writes its value. It checks that every entry of a directory listing
//! exists in the tree.
#![no_main]

use std::time::Duration;

use ib_rtrs::tree::{ClientTree, PortName, Ports, ServerTree, Tree};
use ib_rtrs::{AdapterId, Errno, PathAddress, PathSpec};
use ib_storage::rtrs::control::{ControlRequest, Reply};
use libfuzzer_sys::fuzz_target;

#[allow(dead_code, unreachable_pub, reason = "the tests use more of this module")]
#[path = "../../crates/ib-rtrs/tests/sessions/lab.rs"]
mod lab;
#[allow(dead_code, unreachable_pub, reason = "the tests use more of this module")]
#[path = "../../crates/ib-rtrs/tests/sessions/wire.rs"]
mod wire;

use lab::{Lab, Nodes, quick_client, small_server};

/// The maximum number of lines of the input that are executed.
const MOST: usize = 64;

impl Ports for Nodes {
    fn port_name(&self, id: AdapterId) -> Option<PortName> {
        Some(PortName { adapter: format!("lab{}", id.0), number: 1 })
    }

    fn find_path(&mut self, _: &PathAddress) -> Result<PathSpec, (Errno, String)> {
        Err((Errno::EHOSTUNREACH, "there is no path".to_owned()))
    }
}

fuzz_target!(|input: &[u8]| {
    let mut lab = Lab::connected(1, 2, quick_client(), small_server());
    let mut tree = ClientTree::default();
    let text = String::from_utf8_lossy(input);
    for (ticket, line) in text.lines().take(MOST).enumerate() {
        let (path, value) = match ControlRequest::parse(line) {
            Ok(
                ControlRequest::List(path)
                | ControlRequest::Kind(path)
                | ControlRequest::Read(path),
            ) => (path, String::new()),
            Ok(ControlRequest::Write { path, value }) => (path, value),
            Ok(ControlRequest::Metrics) => {
                assert!(tree.metrics(&lab.client).ends_with('\n'));
                continue;
            }
            Err(reply) => {
                let copy: Reply =
                    serde_json::from_str(&reply.to_line()).expect("the reply is valid");
                assert_eq!(copy, reply);
                let Some((path, value)) = line.split_once('=') else { continue };
                (path.to_owned(), value.to_owned())
            }
        };
        for entry in tree.list(&lab.client, &path).unwrap_or_default() {
            let below = format!("{path}/{}", entry.name);
            assert_eq!(tree.kind(&lab.client, &below), Ok(entry.kind));
        }
        for entry in ServerTree.list(&lab.server, &path).unwrap_or_default() {
            let below = format!("{path}/{}", entry.name);
            assert_eq!(ServerTree.kind(&lab.server, &below), Ok(entry.kind));
        }
        let Lab { client, server, sides: [near, far], now, .. } = &mut lab;
        let _ = tree.read(client, near, &path);
        let _ = ServerTree.read(server, far, &path);
        let _ = tree.write(*now, client, near, &path, value.as_bytes(), ticket as u64);
        let _ = ServerTree.write(*now, server, far, &path, value.as_bytes());
        let told = lab.events.len();
        lab.run_for(Duration::from_micros(50));
        let Lab { client, sides: [near, _], now, events, .. } = &mut lab;
        for (_, event) in &events[told..] {
            tree.handle_event(*now, client, near, event);
        }
        while tree.poll().is_some() {}
    }
});
