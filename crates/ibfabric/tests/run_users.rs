//! Programs of two users on one machine: a program reaches the memory of the other one only through the fabric, and
//! only with the right key.
//!
//! The test needs root, `setpriv` and pyverbs. Otherwise it is reported and skipped.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// User IDs of the server program, which owns the memory, and of the client program.
const USERS: [&str; 2] = ["64901", "64902"];

/// Python program of both ends. Its arguments are the role and the peer's IP address. Each end prints the address and
/// the R_Key of its memory, and its QPNs. It then reads those of its peer from standard input.
const SCRIPT: &str = r#"
import sys, time
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR
import pyverbs.enums as e
role, peer = sys.argv[1:3]
context = Context(name='rxe0')
pd = PD(context)
cq = CQ(context, 16)
access = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_WRITE
mr = MR(pd, 4096, access)
mr.write((b'secret' if role == 'server' else b'public').ljust(16), 16)
init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(max_send_wr=4, max_recv_wr=4))
attr = QPAttr(port_num=1)
attr.qp_access_flags = access
qps = [QP(pd, init, attr) for _ in range(4)]
print(mr.buf, mr.rkey, *[qp.qp_num for qp in qps], flush=True)
gid = '0000:' * 5 + 'ffff:%02x%02x:%02x%02x' % tuple(int(part) for part in peer.split('.'))
theirs = [int(word) for word in sys.stdin.readline().split()]
for qp, number in zip(qps, theirs[2:]):
    attr = QPAttr(port_num=1)
    attr.dest_qp_num = number
    attr.path_mtu = e.IBV_MTU_1024
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
    attr.qp_access_flags = access
    attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.min_rnr_timer = 14, 7, 7, 12
    route = GlobalRoute(dgid=GID(gid), sgid_index=0)
    attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
    qp.to_rts(attr)
print('connected', flush=True)
sys.stdin.readline()
if role == 'client':
    address, key = theirs[:2]
    statuses = []
    for qp, opcode, rkey in [(qps[0], e.IBV_WR_RDMA_READ, key ^ 1), (qps[1], e.IBV_WR_RDMA_WRITE, key ^ 0x100),
                             (qps[2], e.IBV_WR_RDMA_READ, key), (qps[3], e.IBV_WR_RDMA_WRITE, key)]:
        before = mr.read(16, 0)
        wr = SendWR(opcode=opcode, num_sge=1, sg=[SGE(mr.buf, 16, mr.lkey)])
        wr.set_wr_rdma(rkey, address)
        qp.post_send(wr)
        count, wcs = 0, []
        while count == 0:
            count, wcs = cq.poll(1)
        statuses.append(wcs[0].status)
        if len(statuses) == 2:
            untouched = mr.read(6, 0)
    print(*statuses, untouched.decode().strip('\0') or 'empty', mr.read(6, 0).decode().strip('\0') or 'empty', flush=True)
sys.stdin.readline()
print(mr.read(16, 0)[:6].hex(), flush=True)
"#;

/// A program of one user. The program's standard input and output are pipes.
struct End {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl End {
    fn start(directory: &Path, user: usize, role: &str) -> Self {
        let addresses = ["127.0.0.31", "127.0.0.32"];
        let binary = directory.join("ibfabric");
        let mut command = as_user(USERS[user], &[binary.to_str().expect("the path is UTF-8")]);
        command.args(["run", "--roce", addresses[user], "--", "/usr/bin/python3", "-c", SCRIPT]);
        command.args([role, addresses[1 - user]]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("setpriv can be started");
        let output = BufReader::new(child.stdout.take().expect("standard output is piped"));
        Self { child, output }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the output is UTF-8");
        line.trim().to_owned()
    }

    fn send(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("standard input is piped");
        writeln!(input, "{line}").expect("the program reads its standard input");
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // The program may have exited already.
        self.child.kill().ok();
        self.child.wait().expect("the process can be awaited");
    }
}

/// Returns a command that runs as the user, without privileges.
fn as_user(user: &str, words: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user, "--regid", user, "--clear-groups", "--bounding-set=-all"]);
    command.args(["--inh-caps=-all"]).args(words).current_dir("/");
    command
}

/// Returns true if the test can run. Prints the reason otherwise.
fn can_run() -> bool {
    let has_pyverbs = Command::new("/usr/bin/python3").args(["-c", "import pyverbs"]).output();
    let has_pyverbs = has_pyverbs.is_ok_and(|output| output.status.success());
    let has_users = as_user(USERS[0], &["true"]).status().is_ok_and(|status| status.success());
    if !has_users {
        eprintln!("skipped: programs of two users need root and setpriv (Debian: util-linux)");
    } else if !has_pyverbs {
        eprintln!("skipped: pyverbs is not installed (Debian: python3-pyverbs, ibverbs-providers)");
    }
    has_users && has_pyverbs
}

#[test]
fn memory_of_other_users_needs_the_key() {
    if !can_run() {
        return;
    }
    // Both users must be able to read `ibfabric` and its preload library.
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let test = std::env::current_exe().expect("the path of the test program is known");
    let library = test.parent().expect("the path has a parent").join("libib_preload.so");
    for (from, to) in
        [(Path::new(env!("CARGO_BIN_EXE_ibfabric")), "ibfabric"), (&library, "libib_preload.so")]
    {
        std::fs::copy(from, directory.path().join(to)).expect("the file can be copied");
    }
    let readable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), readable).expect("the test owns the directory");
    let mut server = End::start(directory.path(), 0, "server");
    let mut client = End::start(directory.path(), 1, "client");
    let (of_server, of_client) = (server.line(), client.line());
    server.send(&of_client);
    client.send(&of_server);
    assert_eq!((server.line(), client.line()), ("connected".into(), "connected".into()));
    // The client's user can open neither the descriptors nor the memory of the server process. The descriptors include
    // the sockets and the rings, which are files in memory.
    let process = format!("/proc/{}", server.child.id());
    let script = format!(
        "ls {process}/fd {process}/map_files && exit 1
        for file in {process}/fd/* {process}/mem {process}/maps {process}/environ; do
            (cat $file) && exit 1
        done; for fd in $(seq 0 600); do (exec 3<{process}/fd/$fd) && exit 1; done; exit 0"
    );
    let output = as_user(USERS[1], &["sh", "-c", &script]).output().expect("setpriv runs");
    assert!(
        output.status.success() && output.stdout.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    // The server's user can open these files, so the check above does not pass because of a wrong path.
    let own = as_user(USERS[0], &["cat", &format!("{process}/maps")]).output();
    assert!(own.expect("setpriv runs").status.success());
    server.send("");
    client.send("");
    // 10 is IBV_WC_REM_ACCESS_ERR. With the right key, the same requests succeed.
    assert_eq!(client.line(), "10 10 0 0 public secret");
    client.send("");
    server.send("");
    assert_eq!(server.line(), "736563726574");
}
