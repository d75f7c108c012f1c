//! The statistics and control tree of connected sessions.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ib_link::Route;
use ib_rtrs::tree::{
    ClientTree, Entry, Kind, PortName, Ports, ServerTree, Tree, TreeError, WriteStatus,
};
use ib_rtrs::{
    AdapterId, Address, ClientConfig, Direction, Errno, PathAddress, PathSpec, PathState, Policy,
    Request, Segment,
};
use ib_types::{Gid, Mtu};

use crate::lab::{Lab, Nodes, PORT, quick_client, small_server};

const SOON: Duration = Duration::from_secs(5);
const FIRST: &str = "rtrs-client/a-client/paths/ip:10.0.0.1@ip:10.0.0.2";
const SECOND: &str = "rtrs-client/a-client/paths/ip:10.0.1.1@ip:10.0.1.2";

impl Ports for Nodes {
    fn port_name(&self, id: AdapterId) -> Option<PortName> {
        Some(PortName { adapter: format!("lab{}", id.0), number: 1 })
    }

    /// The address 10.0.N.2 is reached over link N.
    fn find_path(&mut self, address: &PathAddress) -> Result<PathSpec, (Errno, String)> {
        let unreachable = || (Errno::EHOSTUNREACH, format!("no route to {}", address.destination));
        let Address::Ip(IpAddr::V4(to)) = address.destination else { return Err(unreachable()) };
        let link = usize::from(to.octets()[2]);
        let near = self.0.get(link).ok_or_else(unreachable)?;
        let far = Gid(u128::from(to.to_ipv6_mapped()));
        let route =
            Route { source: near.gid, destination: far, is_global: true, ..Route::default() };
        let from = SocketAddr::new(near.address.into(), 50_000);
        let to = SocketAddr::new(to.into(), PORT);
        Ok(PathSpec::new(AdapterId(link as u32), from, to, route, Mtu::B1024))
    }
}

/// A lab, with the control tree of its client.
struct TreeLab {
    lab: Lab,
    client: ClientTree,
    /// Number of the lab's events that were already passed to the tree.
    handled: usize,
    results: Vec<(u64, Result<(), TreeError>)>,
}

impl TreeLab {
    fn new(lab: Lab) -> Self {
        let handled = lab.events.len();
        Self { lab, client: ClientTree::default(), handled, results: Vec::new() }
    }

    /// Advances the lab to its next event, by at most 1 s, and passes the client's events to the tree.
    fn step(&mut self) {
        let Self { lab, client, handled, results } = self;
        lab.step(lab.now + Duration::from_secs(1));
        for (_, event) in &lab.events[*handled..] {
            client.handle_event(lab.now, &mut lab.client, &mut lab.sides[0], event);
        }
        *handled = lab.events.len();
        if client.poll_timeout().is_some_and(|at| at <= lab.now) {
            client.handle_timeout(lab.now, &mut lab.client, &mut lab.sides[0]);
        }
        results.extend(std::iter::from_fn(|| client.poll()));
    }

    fn read(&self, path: &str) -> Result<String, Errno> {
        let read = self.client.read(&self.lab.client, &self.lab.sides[0], path);
        read.map_err(|error| error.errno)
    }

    fn list(&self, path: &str) -> Vec<String> {
        let entries = self.client.list(&self.lab.client, path).expect("the path is a directory");
        entries.into_iter().map(|entry| entry.name).collect()
    }

    /// Writes to a file and waits for the result. Returns the error number, if the write fails.
    fn write(&mut self, path: &str, value: &str) -> Result<(), Errno> {
        let Self { lab, client, .. } = self;
        let value = value.as_bytes();
        let status = client.write(lab.now, &mut lab.client, &mut lab.sides[0], path, value, 7);
        match status {
            Ok(WriteStatus::Done) => return Ok(()),
            Err(error) => return Err(error.errno),
            Ok(WriteStatus::Pending) => {}
        }
        let end = self.lab.now + Duration::from_secs(100);
        while self.results.is_empty() {
            self.step();
            assert!(self.lab.now < end, "the write to {path} has not completed");
        }
        let (ticket, result) = self.results.remove(0);
        assert_eq!((ticket, self.results.len()), (7, 0));
        result.map_err(|error| error.errno)
    }

    /// Executes `count` RTRS writes one after the other.
    fn requests(&mut self, count: u64) {
        for user in 0..count {
            self.lab.io(Direction::Write, 0, (0, 4096), user).expect("a path is connected");
            self.lab.run_until(SOON, |lab| lab.done.len() == 1);
            assert!(self.lab.done.remove(0).outcome.errno().is_ok());
        }
    }
}

/// Calls a function for each file, with its path, and with true if the file is writable.
fn each_file(list: &dyn Fn(&str) -> Vec<Entry>, path: &str, take: &mut dyn FnMut(&str, bool)) {
    for Entry { name, kind } in list(path) {
        let below = format!("{path}/{name}");
        match kind {
            Kind::Directory => each_file(list, &below, take),
            Kind::File { is_writable } => take(&below, is_writable),
        }
    }
}

#[test]
fn every_file_is_readable_and_other_names_fail() {
    let lab = Lab::connected(1, 2, quick_client(), small_server());
    let tree = TreeLab::new(lab);
    let lab = &tree.lab;
    let mut count = 0;
    let list = |path: &str| tree.client.list(&lab.client, path).expect("the path is a directory");
    each_file(&list, "", &mut |path, _| {
        count += 1;
        let text = tree.read(path).expect("the file can be read");
        assert!(text.ends_with('\n') && text.len() <= 4096, "{path}: {text:?}");
    });
    // The layouts of IBTRS and Linux each have three files of the session. For each path, IBTRS has 15 files, and Linux
    // has 14.
    assert_eq!(count, 3 + 2 * 15 + 3 + 2 * 14);
    let list = |path: &str| ServerTree.list(&lab.server, path).expect("the path is a directory");
    let mut count = 0;
    each_file(&list, "", &mut |path, _| {
        count += 1;
        let text = ServerTree.read(&lab.server, &lab.sides[1], path).expect("the file can be read");
        assert!(text.ends_with('\n'), "{path}: {text:?}");
    });
    assert_eq!(count, 2 * (8 + 6));
    for (path, errno) in [
        ("rtrs-client/a-client/paths/ip:10.0.0.1@ip:10.0.0.9/state", Errno::ENOENT),
        ("rtrs-client/another/add_path", Errno::ENOENT),
        ("../etc/passwd", Errno::ENOENT),
        ("rtrs-client/a-client", Errno::EISDIR),
        ("", Errno::EISDIR),
    ] {
        assert_eq!(tree.read(path), Err(errno), "{path}");
    }
    let error = tree.client.list(&lab.client, &format!("{FIRST}/state")).unwrap_err();
    assert_eq!(error.errno, Errno::ENOTDIR);
}

#[test]
fn path_files_show_state_port_and_addresses() {
    let mut tree = TreeLab::new(Lab::connected(1, 2, quick_client(), small_server()));
    let read = |tree: &TreeLab, file: &str| tree.read(&format!("{SECOND}/{file}")).unwrap();
    assert_eq!(read(&tree, "state"), "connected\n");
    assert_eq!(read(&tree, "hca_name"), "lab1\n");
    assert_eq!(read(&tree, "hca_port"), "1\n");
    assert_eq!(read(&tree, "src_addr"), "ip:10.0.1.1\n");
    assert_eq!(read(&tree, "dst_addr"), "ip:10.0.1.2\n");
    assert_eq!(read(&tree, "cur_latency"), "0 ns\n");
    assert_eq!(read(&tree, "reconnect"), "Usage: echo 1 > reconnect\n");
    assert_eq!(
        tree.read("ibtrs-client/a-client/add_path").unwrap(),
        "Usage: echo <[source addr,]destination addr> > add_path\n  \
         *addr ::= [ ip:<ipv4|ipv6> | gid:<gid> ]\n"
    );
    let usage = |root: &str| {
        let file = format!("{root}/a-client/paths/ip:10.0.0.1@ip:10.0.0.2/stats/reset_all");
        tree.read(&file).unwrap()
    };
    assert_eq!(usage("ibtrs-client"), "Usage: echo 0 > reset_all\n");
    assert_eq!(usage("rtrs-client"), "Usage: echo 1 > reset_all\n");
    tree.lab.run_for(Duration::from_secs(6));
    assert_ne!(read(&tree, "cur_latency"), "0 ns\n");
    let far = "rtrs-server/a-client/paths/ip:10.0.1.1@ip:10.0.1.2";
    let read = |file: &str| {
        ServerTree.read(&tree.lab.server, &tree.lab.sides[1], &format!("{far}/{file}")).unwrap()
    };
    assert_eq!(read("src_addr"), "ip:10.0.1.1\n");
    assert_eq!(read("dst_addr"), "ip:10.0.1.2\n");
    assert_eq!(read("hca_name"), "lab1\n");
    assert_eq!(read("disconnect"), "Usage: echo 1 > disconnect\n");
}

#[test]
fn path_is_added_and_removed_with_requests_in_flight() {
    let mut lab = Lab::new(3, 2, quick_client(), small_server());
    lab.add_path(0);
    lab.run_until(SOON, |lab| lab.has(&ib_rtrs::ClientEvent::Up));
    let mut tree = TreeLab::new(lab);
    tree.lab.backend = Box::new(|rng, _| Duration::from_micros(rng.below(300)));
    for user in 0..16 {
        tree.lab.io(Direction::Write, 0, (0, 4096), user).expect("a path is connected");
    }
    let add = "ibtrs-client/a-client/add_path";
    assert_eq!(tree.write(add, "ip:10.0.1.1,ip:10.0.1.2\n"), Ok(()));
    assert_eq!(tree.read(&format!("{SECOND}/state")).unwrap(), "connected\n");
    assert_eq!(tree.list("rtrs-client/a-client/paths").len(), 2);
    assert_eq!(tree.write(add, "ip:10.0.1.2"), Err(Errno::EEXIST));
    assert_eq!(tree.write(add, "ip:10.0.7.2"), Err(Errno::EHOSTUNREACH));
    assert_eq!(tree.write(add, "10.0.7.2"), Err(Errno::EINVAL));
    assert_eq!(tree.write(&format!("{SECOND}/remove_path"), "yes"), Err(Errno::EINVAL));
    assert_eq!(tree.write(&format!("{FIRST}/remove_path"), "1"), Ok(()));
    assert_eq!(tree.read(&format!("{FIRST}/state")), Err(Errno::ENOENT));
    tree.lab.run_until(SOON, |lab| lab.done.len() == 16);
    assert!(tree.lab.done.iter().all(|it| it.outcome.errno().is_ok()));
    assert_eq!(tree.list("rtrs-client/a-client/paths"), ["ip:10.0.1.1@ip:10.0.1.2"]);
    // The user removes the only path of the session. Requests then continue over a new path.
    assert_eq!(tree.write(&format!("{SECOND}/remove_path"), "1"), Ok(()));
    tree.lab.done.clear();
    assert_eq!(tree.write(add, "ip:10.0.0.2"), Ok(()));
    tree.requests(3);
}

#[test]
fn unreachable_path_is_not_added() {
    let mut tree = TreeLab::new(Lab::connected(1, 1, quick_client(), small_server()));
    let add = "rtrs-client/a-client/add_path";
    // The server does not have the address 10.0.0.77. The REQ for 10.0.0.78 is lost, because the link is cut.
    assert!(tree.write(add, "ip:10.0.0.1@ip:10.0.0.77").is_err());
    tree.lab.links[0].is_cut = true;
    assert_eq!(tree.write(add, "ip:10.0.0.1@ip:10.0.0.78"), Err(Errno::EHOSTUNREACH));
    assert_eq!(tree.list("rtrs-client/a-client/paths"), ["ip:10.0.0.1@ip:10.0.0.2"]);
    assert_eq!(tree.client.poll_timeout(), None);
}

#[test]
fn paths_are_disconnected_and_reconnected() {
    let mut tree = TreeLab::new(Lab::connected(1, 2, quick_client(), small_server()));
    let disconnect = format!("{FIRST}/disconnect");
    let reconnect = format!("{FIRST}/reconnect");
    for bad in ["0", "2", "", "on"] {
        assert_eq!(tree.write(&disconnect, bad), Err(Errno::EINVAL), "{bad}");
    }
    assert_eq!(tree.write(&disconnect, "1\n"), Ok(()));
    assert_eq!(tree.read(&format!("{FIRST}/state")).unwrap(), "disconnected\n");
    assert_eq!(tree.lab.server.paths().count(), 1);
    assert_eq!(tree.write(&disconnect, "1"), Ok(()));
    assert_eq!(tree.write(&reconnect, "1"), Ok(()));
    assert_eq!(tree.read(&format!("{FIRST}/state")).unwrap(), "connected\n");
    assert_eq!(tree.read(&format!("{FIRST}/stats/reconnects")).unwrap(), "1 0\n");
    // The user reconnects a path that is still connected.
    assert_eq!(tree.write(&reconnect, "1"), Ok(()));
    assert_eq!(tree.read(&format!("{FIRST}/stats/reconnects")).unwrap(), "2 0\n");
    tree.lab.links[0].is_cut = true;
    assert!(tree.write(&reconnect, "1").is_err());
    let path = tree.lab.paths[0];
    assert_eq!(tree.lab.client.path_state(path), Some(PathState::Waiting));
    assert_eq!(tree.read(&format!("{FIRST}/stats/reconnects")).unwrap(), "2 1\n");
}

#[test]
fn concurrent_actions_on_a_path_both_complete() {
    let mut tree = TreeLab::new(Lab::connected(1, 2, quick_client(), small_server()));
    let TreeLab { lab, client, .. } = &mut tree;
    let (reconnect, remove) = (format!("{FIRST}/reconnect"), format!("{FIRST}/remove_path"));
    let mut write = |path: &str, ticket| {
        let near = &mut lab.sides[0];
        client.write(lab.now, &mut lab.client, near, path, b"1", ticket)
    };
    assert_eq!(write(&reconnect, 1), Ok(WriteStatus::Pending));
    assert_eq!(write(&reconnect, 2).map_err(|error| error.errno), Err(Errno::EBUSY));
    assert_eq!(write(&remove, 3), Ok(WriteStatus::Pending));
    while tree.results.len() < 2 {
        tree.step();
    }
    let mut ended: Vec<_> = tree.results.drain(..).collect();
    ended.sort_by_key(|(ticket, _)| *ticket);
    assert_eq!(ended[0].0, 1);
    let error = ended[0].1.as_ref().unwrap_err();
    assert_eq!(error.errno, Errno::ECONNABORTED);
    assert_eq!(error.path, reconnect);
    assert_eq!(ended[1], (3, Ok(())));
}

#[test]
fn policy_and_reconnect_attempts_are_writable() {
    let mut tree = TreeLab::new(Lab::connected(1, 2, quick_client(), small_server()));
    let [old, new] = ["ibtrs-client/a-client/mp_policy", "rtrs-client/a-client/mpath_policy"];
    assert_eq!(tree.write(old, "round-robin\n"), Ok(()));
    assert_eq!(tree.lab.client.config().policy, Policy::RoundRobin);
    assert_eq!(tree.read(new).unwrap(), "round-robin (RR: 0)\n");
    assert_eq!(tree.write(new, "ML"), Ok(()));
    assert_eq!(tree.read(old).unwrap(), "min-latency (2)\n");
    assert_eq!(tree.write(new, "fastest"), Err(Errno::EINVAL));
    let attempts = "rtrs-client/a-client/max_reconnect_attempts";
    assert_eq!(tree.read(attempts).unwrap(), "-1\n");
    assert_eq!(tree.write(attempts, "0"), Ok(()));
    assert_eq!(tree.read("ibtrs-client/a-client/max_reconnect_attempts").unwrap(), "0\n");
    assert_eq!(tree.write(attempts, "-7"), Err(Errno::EINVAL));
    // If `max_reconnect_attempts` is 0, the client does not reconnect a failed path.
    let far = tree.lab.server.paths().next().unwrap();
    tree.lab.server.disconnect_path(tree.lab.now, &mut tree.lab.sides[1], far);
    tree.lab.run_for(Duration::from_secs(30));
    let path = tree.lab.paths[0];
    assert_eq!(tree.lab.client.path_state(path), Some(PathState::Disconnected));
}

#[test]
fn statistics_match_executed_requests() {
    let mut tree = TreeLab::new(Lab::connected(1, 1, quick_client(), small_server()));
    // The lab submits requests alternately on processors 0 and 1, and polls all completions on processor 0.
    tree.requests(6);
    let lab = &mut tree.lab;
    let data = [0, 4096, 8192].map(|offset| Segment { buffer: lab.buffer, offset, length: 512 });
    let (direction, header) = (Direction::Read, &0_u64.to_le_bytes()[..]);
    let request = Request { cpu: 1, direction, header, data: &data, user: 0, is_admin: false };
    lab.client.request(lab.now, &mut lab.sides[0], &request).expect("a path is connected");
    lab.run_until(SOON, |lab| lab.done.len() == 1);
    let old = "ibtrs-client/a-client/paths/ip:10.0.0.1@ip:10.0.0.2/stats";
    let read = |tree: &TreeLab, file: &str| tree.read(&format!("{old}/{file}")).unwrap();
    assert_eq!(read(&tree, "rdma"), format!("1 {} 6 {} 0 0\n", 1536 + 8, 6 * (4096 + 8)));
    assert_eq!(read(&tree, "cpu_migration"), "      cpu0 cpu1\nfrom:    0    4\nto:      4    0\n");
    let table = read(&tree, "sg_entries");
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows[1].starts_with("cpu0:    3 0 0"), "{table}");
    assert!(rows[2].starts_with("cpu1:    3 0 1"), "{table}");
    assert!(read(&tree, "rdma_lat").starts_with(" 1 ms: 1 6\n 2 ms: 0 0\n"));
    assert!(read(&tree, "rdma_lat").ends_with("maximum ms: 1 1\n"));
    let completions = read(&tree, "wc_completion");
    assert!(completions.starts_with("1 1") || completions.starts_with("2 1"), "{completions}");
    assert_eq!(tree.read(&format!("{FIRST}/stats/cpu_migration_from")).unwrap(), "0 4 \n");
    let far = "ibtrs-server/a-client/paths/ip:10.0.0.1@ip:10.0.0.2/stats";
    let served = |lab: &Lab, path: &str| ServerTree.read(&lab.server, &lab.sides[1], path).unwrap();
    assert_eq!(served(&tree.lab, &format!("{far}/rdma")), "1 1544 6 24624 0\n");
    let new = far.replace("ibtrs", "rtrs");
    assert_eq!(served(&tree.lab, &format!("{new}/rdma")), "1 1544 6 24624\n");
    assert!(!served(&tree.lab, &format!("{far}/wc_completion")).starts_with("0 "));
}

#[test]
fn statistics_are_reset_by_0_and_by_1() {
    let config = ClientConfig { policy: Policy::RoundRobin, ..quick_client() };
    let mut tree = TreeLab::new(Lab::connected(1, 1, config, small_server()));
    let files = [
        ("ibtrs", "sg_entries"),
        ("ibtrs", "cpu_migration"),
        ("ibtrs", "rdma_lat"),
        ("ibtrs", "wc_completion"),
        ("ibtrs", "rdma"),
        ("ibtrs", "reconnects"),
        ("rtrs", "cpu_migration_from"),
        ("rtrs", "cpu_migration_to"),
        ("rtrs", "reconnects"),
        ("rtrs", "rdma"),
    ];
    let path = |root: &str, file: &str| {
        format!("{root}-client/a-client/paths/ip:10.0.0.1@ip:10.0.0.2/stats/{file}")
    };
    let fresh = |tree: &TreeLab| files.map(|(root, file)| tree.read(&path(root, file)).unwrap());
    assert_eq!(tree.write(&path("rtrs", "reset_all"), "1"), Ok(()));
    let zeros = fresh(&tree);
    for value in ["0", "1\n"] {
        for (index, (root, file)) in files.iter().enumerate() {
            assert_eq!(tree.write(&path("rtrs", "../reconnect"), "1"), Err(Errno::ENOENT));
            assert_eq!(tree.write(&format!("{FIRST}/reconnect"), "1"), Ok(()));
            tree.requests(4);
            let before = fresh(&tree);
            assert_ne!(before[index], zeros[index], "{file}");
            assert_eq!(tree.write(&path(root, file), "2"), Err(Errno::EINVAL));
            assert_eq!(tree.write(&path(root, file), value), Ok(()));
            assert_eq!(fresh(&tree)[index], zeros[index], "{file}");
        }
        for root in ["ibtrs", "rtrs"] {
            tree.requests(4);
            assert_eq!(tree.write(&path(root, "reset_all"), value), Ok(()));
            assert_eq!(fresh(&tree), zeros);
        }
    }
    // The statistics of the server can be reset like those of the client.
    let lab = &mut tree.lab;
    let far = |root: &str, file: &str| path(root, file).replace("client/a", "server/a");
    for (root, file) in
        [("ibtrs", "rdma"), ("ibtrs", "wc_completion"), ("ibtrs", "reset_all"), ("rtrs", "rdma")]
    {
        for value in [&b"0"[..], b"1"] {
            lab.io(Direction::Write, 0, (0, 512), 0).expect("a path is connected");
            lab.run_until(SOON, |lab| lab.done.len() == 1);
            lab.done.clear();
            let shown = if file == "reset_all" { "rdma" } else { file };
            let read = |lab: &Lab| {
                let path = far(root, shown);
                ServerTree.read(&lab.server, &lab.sides[1], &path).unwrap()
            };
            assert!(read(lab).bytes().any(|byte| (b'1'..=b'9').contains(&byte)));
            let Lab { server, sides, now, .. } = lab;
            let path = far(root, file);
            ServerTree
                .write(*now, server, &mut sides[1], &path, value)
                .expect("a path is connected");
            assert!(!read(lab).bytes().any(|byte| (b'1'..=b'9').contains(&byte)), "{path}");
        }
    }
}

#[test]
fn read_only_files_are_not_written() {
    let mut tree = TreeLab::new(Lab::connected(1, 1, quick_client(), small_server()));
    for file in ["state", "hca_name", "hca_port", "src_addr", "dst_addr", "cur_latency"] {
        assert_eq!(tree.write(&format!("{FIRST}/{file}"), "1"), Err(Errno::EACCES), "{file}");
    }
    assert_eq!(tree.write(&format!("{FIRST}/stats"), "1"), Err(Errno::EISDIR));
    assert_eq!(tree.write(&format!("{FIRST}/stats/none"), "1"), Err(Errno::ENOENT));
    let Lab { server, sides, now, .. } = &mut tree.lab;
    let far = "rtrs-server/a-client/paths/ip:10.0.0.1@ip:10.0.0.2";
    let mut write = |file: &str, value: &[u8]| {
        let written =
            ServerTree.write(*now, server, &mut sides[1], &format!("{far}/{file}"), value);
        written.map_err(|error| error.errno)
    };
    assert_eq!(write("src_addr", b"1"), Err(Errno::EACCES));
    assert_eq!(write("disconnect", b"0"), Err(Errno::EINVAL));
    assert_eq!(write("disconnect", b"1"), Ok(()));
    assert_eq!(write("disconnect", b"1"), Err(Errno::ENOENT));
    assert_eq!(ServerTree.list(server, "rtrs-server").unwrap(), []);
}

#[test]
fn metrics_match_the_files() {
    let mut tree = TreeLab::new(Lab::connected(1, 2, quick_client(), small_server()));
    tree.requests(5);
    let page = tree.client.metrics(&tree.lab.client);
    check_page(&page);
    let labels = "session=\"a-client\",path=\"ip:10.0.0.1@ip:10.0.0.2\"";
    let value = |page: &str, name: &str, labels: &str| -> f64 {
        let start = format!("{name}{{{labels}}} ");
        let line = page.lines().find_map(|line| line.strip_prefix(&start));
        line.unwrap_or_else(|| panic!("{start} is missing in {page}"))
            .parse()
            .expect("the value is a number")
    };
    let sum: f64 = [0, 1]
        .map(|link| {
            let labels = labels.replace("10.0.0", &format!("10.0.{link}"));
            value(&page, "ibfabric_rtrs_client_writes_total", &labels)
        })
        .iter()
        .sum();
    assert_eq!(sum, 5.0);
    assert_eq!(value(&page, "ibfabric_rtrs_client_path_up", labels), 1.0);
    let name = "ibfabric_rtrs_client_latency_seconds";
    let of = format!("{labels},direction=\"write\"");
    let count = value(&page, &format!("{name}_count"), &of);
    assert_eq!(value(&page, &format!("{name}_bucket"), &format!("{of},le=\"+Inf\"")), count);
    assert_eq!(value(&page, &format!("{name}_bucket"), &format!("{of},le=\"0.001\"")), count);
    assert!(value(&page, &format!("{name}_sum"), &of) > 0.0);
    let page = ServerTree.metrics(&tree.lab.server);
    check_page(&page);
    assert!(page.contains("ibfabric_rtrs_server_sessions 1\n"));
    assert!(page.contains(&format!("ibfabric_rtrs_server_inflight{{{labels}}} 0\n")));
}

/// Checks that a Prometheus page declares the type of each metric, and contains no sample twice.
fn check_page(page: &str) {
    let mut types = Vec::new();
    let mut samples = Vec::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            types.push(rest.split(' ').next().expect("`split` returns a first part").to_owned());
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').expect("the sample has a value");
            assert!(value.parse::<f64>().is_ok(), "{line}");
            let bare = name.split('{').next().expect("`split` returns a first part");
            let bare = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|end| bare.strip_suffix(end))
                .filter(|bare| types.iter().any(|name| name == bare))
                .unwrap_or(bare);
            assert_eq!(types.last().map(String::as_str), Some(bare), "{line}");
            assert!(!samples.contains(&name.to_owned()), "{line}");
            samples.push(name.to_owned());
        }
    }
    assert!(samples.len() > 5);
}

/// Writes random values to random files while links fail. Returns how many writes were pending, and how many were
/// refused.
fn write_anything(seed: u64) -> (usize, usize) {
    let config = ClientConfig {
        reconnect_delay: Duration::from_millis(200),
        connect_timeout: Duration::from_secs(3),
        io_timeout: Some(Duration::from_secs(2)),
        ..quick_client()
    };
    let mut lab = Lab::connected(seed, 3, config, small_server());
    lab.backend = Box::new(|rng, _| Duration::from_micros(rng.below(300)));
    let mut tree = TreeLab::new(lab);
    let (mut asked, mut refused, mut tickets) = (0, 0, 0);
    let mut open = Vec::new();
    for step in 0..600 {
        for _ in 0..4 {
            if tree.lab.io(Direction::Write, 0, (0, 4096), asked).is_ok() {
                asked += 1;
            }
        }
        let lab = &mut tree.lab;
        if lab.rng.chance(0.05) {
            let link = lab.rng.below(3) as usize;
            lab.links[link].is_cut = !lab.links[link].is_cut;
        }
        let root = ["rtrs-client/a-client", "ibtrs-client/a-client"][lab.rng.below(2) as usize];
        let link = lab.rng.below(3);
        let of = format!("{root}/paths/ip:10.0.{link}.1@ip:10.0.{link}.2");
        let (path, value) = match lab.rng.below(10) {
            0..3 => (format!("{root}/add_path"), format!("ip:10.0.{link}.2")),
            3 => (format!("{of}/remove_path"), "1".to_owned()),
            4 => (format!("{of}/disconnect"), "1".to_owned()),
            5 | 6 => (format!("{of}/reconnect"), "1".to_owned()),
            7 => (format!("{of}/stats/reset_all"), "0".to_owned()),
            8 => (format!("{root}/max_reconnect_attempts"), (lab.rng.below(9)).to_string()),
            _ => (format!("{root}/mpath_policy"), lab.rng.below(4).to_string()),
        };
        tickets += 1;
        let value = value.as_bytes();
        let (client, ports) = (&mut lab.client, &mut lab.sides[0]);
        match tree.client.write(lab.now, client, ports, &path, value, tickets) {
            Ok(WriteStatus::Pending) => open.push(tickets),
            Ok(WriteStatus::Done) => {}
            Err(_) => refused += 1,
        }
        let far = lab.server.paths().next();
        if let Some(far) = far.filter(|_| lab.rng.chance(0.1)) {
            lab.server.disconnect_path(lab.now, &mut lab.sides[1], far);
        }
        for _ in 0..1 + step % 40 {
            tree.step();
        }
    }
    for link in 0..3 {
        tree.lab.links[link].is_cut = false;
    }
    // Every pending write completes exactly once.
    let end = tree.lab.now + Duration::from_secs(200);
    while tree.lab.now < end && (tree.results.len() < open.len() || tree.lab.client.requests() > 0)
    {
        tree.step();
        // If all paths are disconnected, the user reconnects the first one. If there is no path, the user adds one.
        let paths: Vec<_> = tree.lab.client.paths().collect();
        let idle = |id: &_| tree.lab.client.path_state(*id) == Some(PathState::Disconnected);
        if paths.iter().all(idle) {
            let Lab { client, sides, now, .. } = &mut tree.lab;
            match paths.first() {
                Some(first) => drop(client.reconnect_path(*now, &mut sides[0], *first)),
                None => drop(tree.lab.add_path(0)),
            }
        }
    }
    // The last calls to the client may have completed requests. The lab polls their completions only if it runs again.
    tree.lab.run_for(Duration::from_millis(1));
    let mut ended: Vec<u64> = tree.results.iter().map(|(ticket, _)| *ticket).collect();
    ended.sort_unstable();
    assert_eq!(ended, open, "seed {seed}");
    assert_eq!(tree.lab.client.requests(), 0, "seed {seed}");
    assert_eq!(tree.lab.done.len() as u64, asked, "seed {seed}");
    (open.len(), refused)
}

#[test]
fn random_writes_and_all_requests_complete() {
    let (mut later, mut refused) = (0, 0);
    for seed in 0..12 {
        let (begun, wrong) = write_anything(seed);
        later += begun;
        refused += wrong;
    }
    assert!(later > 500 && refused > 500, "{later} pending, {refused} refused");
}
