//! Runs unmodified programs of libibverbs and librdmacm with `ibfabric run`, on two nodes of a simulated fabric and
//! over RoCEv2 on loopback.
//!
//! The programs come from the Debian packages ibverbs-utils, ibverbs-providers, rdmacm-utils, perftest, ucx-utils,
//! openmpi-bin and python3-mpi4py. A missing program is reported and skipped.

use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

#[path = "../program/mod.rs"]
mod program;
#[path = "../program/verbs.rs"]
mod verbs;

mod rdmacm;

use program::{Running, ibfabric, text};
use verbs::{is_installed, library, on};

/// Starts a simulator of a fat tree.
fn simulator(name: &str) -> (Running, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let fabric = directory.path().join("fabric.net");
    let fabric = fabric.to_str().expect("the path is UTF-8");
    let made = ibfabric(&["gen", "fat-tree", "4", "-o", fabric])
        .status()
        .expect("the program can be started");
    assert!(made.success());
    let words = ["sim", fabric, "--name", name, "--sm", "--mtu", "4096"];
    (Running::ready(ibfabric(&words)), directory)
}

/// Runs a program as server and client, which exchange addresses over TCP. Returns the output of the client.
fn pair(ports: [&[&str]; 2], words: &[&str]) -> Output {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let port = 20_000 + (std::process::id() % 12_000) as u16 + NEXT.fetch_add(1, Ordering::Relaxed);
    let port = port.to_string();
    let words = [words, &["-p", &port]].concat();
    let mut command = on(ports[0], &words);
    let mut server = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let words = [&words[..], &["localhost"]].concat();
    // A client that starts before the server listens fails immediately, so it is restarted.
    let mut client = None;
    for _ in 0..50 {
        std::thread::sleep(Duration::from_millis(200));
        let output = on(ports[1], &words).output().expect("the program can be started");
        let printed = format!("{}{}", text(&output.stdout), text(&output.stderr));
        let is_early =
            ["Couldn't connect", "Connection refused"].iter().any(|it| printed.contains(it));
        client = Some(output);
        if !is_early {
            break;
        }
    }
    let client = client.expect("the program can be started");
    let limit = Instant::now() + Duration::from_secs(30);
    while server.try_wait().expect("the process can be awaited").is_none() {
        if Instant::now() > limit {
            server.kill().expect("the server is a child of this process");
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = server.wait_with_output().expect("the process can be awaited");
    for (end, output) in [("server", &output), ("client", &client)] {
        let printed = format!("{}\n{}", text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{end} of {words:?}: {}\n{printed}", output.status);
    }
    client
}

#[test]
fn device_has_the_name_and_the_attributes_of_the_port() {
    if !is_installed("ibv_devinfo") {
        return;
    }
    let name = format!("run-devinfo-{}", std::process::id());
    let _simulator = simulator(&name);
    let port = ["--attach", &name, "--node", "host-3", "--device", "mlx5_0"];
    let output = on(&port, &["ibv_devinfo", "-v"]).output().expect("the program can be started");
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{printed}{}", text(&output.stderr));
    for line in ["hca_id:\tmlx5_0", "PORT_ACTIVE (4)", "active_mtu:\t\t4096 (5)", "InfiniBand"] {
        assert!(printed.contains(line), "found no {line:?} in {printed}");
    }
    let output = on(&["--roce", "127.0.0.1"], &["ibv_devinfo"])
        .output()
        .expect("the program can be started");
    let printed = text(&output.stdout);
    assert!(printed.contains("hca_id:\trxe0") && printed.contains("Ethernet"), "{printed}");
}

#[test]
fn pingpongs_run_between_two_nodes_and_over_roce() {
    let name = format!("run-pingpong-{}", std::process::id());
    let _simulator = simulator(&name);
    let fabric = |node| ["--attach", &name, "--node", node];
    let nodes = [&fabric("host-0")[..], &fabric("host-7")[..]];
    let addresses = [&["--roce", "127.0.0.1"][..], &["--roce", "127.0.0.2"][..]];
    for kind in ["rc", "uc", "ud", "srq"] {
        let program = format!("ibv_{kind}_pingpong");
        if !is_installed(&program) {
            continue;
        }
        for more in [&[][..], &["-e"]] {
            let words = [&[&program[..], "-n", "200"], more].concat();
            let output = pair(nodes, &words);
            assert!(text(&output.stdout).contains("200 iters in"), "{}", text(&output.stdout));
        }
        if matches!(kind, "rc" | "srq") {
            let output = pair(addresses, &[&program, "-n", "200", "-g", "0"]);
            assert!(text(&output.stdout).contains("200 iters in"), "{}", text(&output.stdout));
        } else {
            // UC and UD do not retransmit, so a lost UDP packet blocks the ping-pong forever. Few messages are sent, so
            // that a loss is unlikely. With `-e`, the server waits for the completion event of its last send, although
            // no packet arrives after this send.
            for _ in 0..5 {
                let output = pair(addresses, &[&program, "-n", "3", "-g", "0", "-e"]);
                assert!(text(&output.stdout).contains("3 iters in"), "{}", text(&output.stdout));
            }
        }
    }
    for program in ["ib_send_bw", "ib_write_bw", "ib_read_lat", "ib_atomic_lat"] {
        if is_installed(program) {
            pair(nodes, &[program, "-n", "200", "-F"]);
        }
    }
}

/// UCX uses two of its transports, `rc_verbs` and `ud_verbs`, over the device. It posts a receive to an SRQ as soon as
/// it has polled a completion.
#[test]
fn ucx_transfers_between_two_nodes() {
    if !is_installed("ucx_perftest") {
        return;
    }
    let name = format!("run-ucx-{}", std::process::id());
    let _simulator = simulator(&name);
    let ports = ["host-0", "host-3"].map(|node| ["--attach", &name, "--node", node]);
    for test in ["tag_lat", "tag_bw", "stream_bw", "ucp_put_bw", "ucp_get"] {
        let words = ["env", "UCX_TLS=rc_verbs,ud_verbs", "UCX_NET_DEVICES=rxe0:1", "ucx_perftest"];
        let words = [&words[..], &["-t", test, "-n", "1000", "-s", "4096"]].concat();
        let printed = text(&pair(ports.each_ref().map(|port| &port[..]), &words).stdout);
        assert!(printed.contains("Final:"), "{test}: {printed}");
    }
}

/// Four ranks of Open MPI check the results of collective operations. Each has a node of the fabric.
#[test]
fn open_mpi_runs_over_ucx_on_four_nodes() {
    let program = "
from array import array
from mpi4py import MPI
world = MPI.COMM_WORLD
size, rank = world.Get_size(), world.Get_rank()
for length in (1, 1000, 100000):
    own = array('q', range(rank * length, (rank + 1) * length))
    total = array('q', [0] * length)
    world.Allreduce(own, total)
    assert list(total) == [sum(r * length + i for r in range(size)) for i in range(length)]
    whole = array('q', [0] * length * size)
    world.Allgather(own, whole)
    assert list(whole) == list(range(length * size))
    world.Barrier()
if rank == 0:
    print(size, 'ranks')
";
    let has_bindings = Command::new("/usr/bin/python3").args(["-c", "import mpi4py"]).output();
    if !is_installed("mpirun") || !has_bindings.is_ok_and(|output| output.status.success()) {
        return;
    }
    let name = format!("run-mpi-{}", std::process::id());
    let (_simulator, directory) = simulator(&name);
    let script = directory.path().join("ranks.py");
    std::fs::write(&script, program).expect("the file can be written");
    let script = script.to_str().expect("the path is UTF-8");
    let library = library();
    let library = library.to_str().expect("the path is UTF-8");
    let rank = format!(
        "exec {} run --library {library} --attach {name} --node host-$OMPI_COMM_WORLD_RANK -- \
         /usr/bin/python3 {script}",
        env!("CARGO_BIN_EXE_ibfabric"),
    );
    let output = Command::new("mpirun")
        .args([
            "--oversubscribe",
            "-n",
            "4",
            "--mca",
            "pml",
            "ucx",
            "--mca",
            "btl",
            "^vader,openib",
        ])
        .args(["sh", "-c", &rank])
        .env("UCX_TLS", "rc_verbs,ud_verbs,self")
        .env("UCX_NET_DEVICES", "rxe0:1")
        // mpirun refuses root otherwise.
        .envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")])
        .output()
        .expect("the program can be started");
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{printed}{}", text(&output.stderr));
    assert_eq!(printed, "4 ranks\n");
}

#[test]
fn device_can_be_reopened_at_once() {
    let script = "for (1..300) { open(my $file, '+<', '/dev/infiniband/uverbs0') or die; }";
    let output = on(&["--roce", "127.0.0.9"], &["perl", "-e", script]).output();
    let output = output.expect("the program can be started");
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// The child of a fork has the parent's context. Its commands must fail without an effect on the parent, which then
/// still uses its completion queue.
#[test]
fn commands_of_a_forked_child_do_not_change_the_parent() {
    let script = "
import os, errno
from pyverbs.device import Context
from pyverbs.cq import CQ
from pyverbs.pyverbs_error import PyverbsRDMAError
context = Context(name='rxe0')
cq = CQ(context, 10)
child = os.fork()
if child == 0:
    for name in os.listdir('/proc/self/fd'):
        if int(name) < 512 and os.readlink('/proc/self/fd/' + name).startswith('/memfd:uverbs'):
            try:
                os.write(os.dup(int(name)), b'x' * 4096)
                os._exit(3)
            except OSError as error:
                if error.errno != errno.ENODEV:
                    os._exit(4)
    try:
        CQ(context, 10)
    except PyverbsRDMAError as error:
        os._exit(0 if error.error_code == errno.ENODEV else 2)
    os._exit(1)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(status, cq.poll(1)[0], CQ(context, 10).poll(1)[0])
";
    let has_pyverbs = Command::new("/usr/bin/python3").args(["-c", "import pyverbs"]).output();
    if !has_pyverbs.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: pyverbs is not installed (Debian: python3-pyverbs)");
        return;
    }
    let words = ["timeout", "20", "/usr/bin/python3", "-c", script];
    let output = on(&["--roce", "127.0.0.13"], &words).output();
    let output = output.expect("the program can be started");
    assert_eq!(text(&output.stdout), "0 0 0\n", "{}", text(&output.stderr));
}

/// A shell passes low descriptors to `dup2` without having opened them. The library must not use these descriptors.
#[test]
fn shell_can_use_low_descriptors() {
    let script = "
        for fd in 4 5 6 7 8 9; do
            eval \"exec $fd<>/dev/infiniband/uverbs0\"; eval \"exec $fd>&-\"
        done
        exec 3<>/dev/infiniband/uverbs0
        for fd in 4 5 6 7 8 9; do eval \"exec $fd</dev/null\"; eval \"exec $fd<&-\"; done
        exec 3>&-
        echo finished";
    let output = on(&["--roce", "127.0.0.10"], &["sh", "-c", script]).output();
    let output = output.expect("the program can be started");
    let printed = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && printed.0 == "finished\n", "{printed:?}");
}

#[test]
fn missing_ports_and_programs_are_reported() {
    let output = on(&["--attach", "no-such-simulator"], &["true"])
        .output()
        .expect("the program can be started");
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(error.contains("no simulator listens on @no-such-simulator:data"), "{error}");
    let output = on(&["--roce", "127.0.0.1"], &["no-such-program"])
        .output()
        .expect("the program can be started");
    assert_eq!(output.status.code(), Some(127), "{}", text(&output.stderr));
    let library = library();
    let library = library.to_str().expect("the path is UTF-8");
    let words = ["run", "--library", library, "--roce", "127.0.0.1", "--env"];
    let output = ibfabric(&words).output().expect("the program can be started");
    let printed = text(&output.stdout);
    assert!(printed.contains("export IBFABRIC_ROCE='127.0.0.1'"), "{printed}");
    assert!(printed.contains("unset IBFABRIC_ATTACH"), "{printed}");
}

#[test]
fn unusable_ports_devices_and_libraries_are_refused() {
    let cases: [(&[&str], &str); 5] = [
        (&["--roce", "127.0.0.1", "--node", "host-0"], "--node"),
        (&["--roce", "127.0.0.1", "--device", "a b"], "--device"),
        (&["--roce", "127.0.0.1", "--device", "../.."], "--device"),
        (&["--roce", "192.0.2.1"], "192.0.2.1"),
        (&["--roce", "127.0.0.1", "--library", "/etc/passwd"], "/etc/passwd"),
    ];
    for (words, subject) in cases {
        let words = [&["run"], words, &["--", "true"]].concat();
        let output = ibfabric(&words).output().expect("the program can be started");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(text(&output.stderr).contains(subject), "{words:?}: {}", text(&output.stderr));
    }
}
