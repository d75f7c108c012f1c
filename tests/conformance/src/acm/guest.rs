//! Requests of librdmacm to ibfabric's ACM service, in a Linux guest.
//!
//! The fabric and two ACM services run in the guest. librdmacm queries the service on the first host of the fabric.
//! This host has the guest's addresses. The second host has the addresses of the machine on which the guest runs. Both
//! hosts have the GIDs that soft RoCE derives from their IPv6 addresses, so programs can connect over the resolved
//! paths.
//!
//! Programs that take only the route from librdmacm, such as rping, can connect. Programs that also take addresses from
//! librdmacm get `AF_IB` addresses and cannot connect, because Linux has no HCA for such addresses on Ethernet.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use interop::guest::FROM_DISK;
use interop::{Finished, Guest, RunError, Running};

use crate::sm::scene::Checked;

/// Time limit for a program to become ready or to respond. Queries of an unknown address take 7 s.
const PATIENCE: Duration = Duration::from_secs(40);

/// The fabric in ibnetdiscover's format, in which each port has a port GUID.
const FABRIC: &str = r#"switchguid=0x100(100)
Switch 4 "S-0000000000000100" # "switch" enhanced port 0 lid 0 lmc 0
[1] "H-0000000000000011"[1](1) # "guest" lid 0 4xEDR
[2] "H-0000000000000012"[1](2) # "beside" lid 0 4xEDR
[3] "H-0000000000000013"[1](3) # "manager" lid 0 4xEDR
caguid=0x11
Ca 1 "H-0000000000000011" # "guest"
[1](1) "S-0000000000000100"[1] # lid 0 lmc 0 "switch" lid 0 4xEDR
caguid=0x12
Ca 1 "H-0000000000000012" # "beside"
[1](2) "S-0000000000000100"[2] # lid 0 lmc 0 "switch" lid 0 4xEDR
caguid=0x13
Ca 1 "H-0000000000000013" # "manager"
[1](3) "S-0000000000000100"[3] # lid 0 lmc 0 "switch" lid 0 4xEDR
"#;

/// Addresses of the fabric's hosts, by port GUID.
const ADDRESSES: &str = "0x1 192.168.77.1 fd00:77::1\n0x2 192.168.77.2 fd00:77::2\n";

const SIMULATOR: &str =
    "ibfabric sim /tmp/pair.net --addresses /tmp/addresses --name lab --mtu 4096";
const MANAGER: &str =
    "SIM_HOST=H-0000000000000013 ibfabric sm --attach=lab --subnet-prefix 0xfd00007700000000";
const SERVICE: &str = "ibfabric acm --attach lab --node H-0000000000000011";
const OTHER: &str = "ibfabric acm --attach lab --node H-0000000000000012 --socket /run/2.sock";

/// An address of the guest that no service knows.
const UNKNOWN: &str = "192.168.77.3";

/// Counters of an ACM service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ServiceCounters {
    resolved: u64,
    failed: u64,
    no_data: u64,
}

/// A guest in which a fabric and its ACM services run.
pub struct Scene<'a> {
    /// Results of the checks.
    pub checked: Checked,
    /// The executed commands, with their outputs.
    pub transcript: String,
    guest: &'a Guest,
    ibfabric: &'a Path,
    service: Running,
    _running: Vec<Running>,
}

impl<'a> Scene<'a> {
    /// Starts the fabric and the services in a guest whose disk contains `ibfabric`.
    ///
    /// # Errors
    /// Fails if a program does not start.
    pub fn open(guest: &'a Guest, ibfabric: &'a Path) -> Result<Self, RunError> {
        let write =
            |path: &str, text: &str| format!("printf '{}' >{path}", text.replace('\n', "\\n"));
        for command in [
            FROM_DISK,
            &write("/tmp/pair.net", FABRIC),
            &write("/tmp/addresses", ADDRESSES),
            &format!("mkdir -p /etc/rdma && ip addr add {UNKNOWN}/24 dev eth0"),
        ] {
            let finished = guest.run(command, PATIENCE)?;
            if !finished.success() {
                let Finished { command, status, output, .. } = finished;
                return Err(RunError::Failed { command, status, output });
            }
        }
        let mut running = Vec::new();
        for (command, ready) in [(SIMULATOR, "READY"), (MANAGER, "SUBNET UP"), (OTHER, "READY")] {
            let started = guest.start(command)?;
            started.until(ready, PATIENCE)?;
            running.push(started);
        }
        let service = serve(guest, SERVICE)?;
        let (checked, transcript) = (Checked::default(), String::new());
        Ok(Self { checked, transcript, guest, ibfabric, service, _running: running })
    }

    /// Checks all queries of librdmacm.
    ///
    /// # Errors
    /// Fails if a program does not end in time.
    pub fn run(&mut self) -> Result<(), RunError> {
        let path = self.path()?;
        self.check_known(&path)?;
        self.check_unknown()?;
        self.check_connections()?;
        self.check_restarts(&path)
    }

    /// Returns the path between the two hosts as `ibfabric acme` prints it. With `-v`, `ibfabric acme` also compares
    /// this path with the SA's path.
    fn path(&mut self) -> Result<String, RunError> {
        let command = "ibfabric acme -f i -s fd00:77::1 -d fd00:77::2 -v";
        let told = self.guest_runs(command, 0, &["SA verification: success"])?.output;
        let lines = told.lines().skip_while(|line| *line != "Path information");
        let path: Vec<&str> =
            lines.take_while(|line| !line.starts_with("SA") && !line.is_empty()).collect();
        for line in ["  dgid: fd00:77::2", "  sgid: fd00:77::1", "  mtu: 5", "  rate: 16"] {
            self.checked.check(path.contains(&line), || format!("expected {line:?} in {told}"));
        }
        self.checked.check(path.len() == 14, || format!("expected a path of 14 lines in {told}"));
        Ok(path.join("\n"))
    }

    /// Queries known addresses of all kinds.
    fn check_known(&mut self, path: &str) -> Result<(), RunError> {
        let route = format!("flags: 0x2b\n{path}\n");
        let result = |family: &str, connect, source: Option<&str>, destination: &str| {
            let source = source.map_or_else(String::new, |it| format!("source: {it}\n"));
            format!(
                "result: family {family}, route of 72 bytes, connect of {connect} bytes\n\
                 {source}destination: {destination}\n{route}"
            )
        };
        let ib = ["1 pkey 0xffff service 0x1060000", "2 pkey 0xffff service 0x1061c06"]
            .map(|end| format!("ib fd00:77::{end}"));
        // For IP addresses, librdmacm returns two results: the first with `AF_IB` addresses, the second with IP
        // addresses. If a query has no source address, the service supplies it.
        let from_ip = |family: &str, network: &str| {
            let own = |end: &str| format!("{family} {network}{end}");
            result("ib", 36, Some(&ib[0]), &ib[1])
                + &result(family, 0, Some(&own("1 port 0")), &own("2 port 7174"))
        };
        let (v4, v6) = (from_ip("ipv4", "192.168.77."), from_ip("ipv6", "fd00:77::"));
        let gid = |source| result("ib", 0, Some(&ib[0]), &ib[1]) + &result("ib", 0, source, &ib[1]);
        for (words, expected) in [
            ("192.168.77.2", &v4),
            ("-s 192.168.77.1 192.168.77.2", &v4),
            ("-n 192.168.77.2", &v4),
            ("fd00:77::2", &v6),
            ("-s fd00:77::1 fd00:77::2", &v6),
            ("-b fd00:77::2", &gid(None)),
            ("-b -s fd00:77::1 fd00:77::2", &gid(Some(&ib[0]))),
        ] {
            self.check_query(words, expected, [1, 0, 0])?;
        }
        Ok(())
    }

    /// Queries unknown addresses.
    fn check_unknown(&mut self) -> Result<(), RunError> {
        let nobody = without_route("ipv4", "", "192.168.77.9");
        self.check_query("-n 192.168.77.9", &nobody, [1, 0, 1])?;
        self.check_query("192.168.77.9", &nobody, [1, 1, 0])?;
        let source = format!("source: ipv4 {UNKNOWN} port 0\n");
        let foreign = without_route("ipv4", &source, "192.168.77.2");
        self.check_query(&format!("-s {UNKNOWN} 192.168.77.2"), &foreign, [1, 1, 0])?;
        let gid = "result: family ib, route of 0 bytes, connect of 0 bytes\n\
             destination: ib fd00:77::9 pkey 0xffff service 0x1061c06\n";
        self.check_query("-b -n fd00:77::9", gid, [1, 1, 0])
    }

    /// Checks which programs can connect over paths from librdmacm.
    fn check_connections(&mut self) -> Result<(), RunError> {
        // Programs that take only the route from librdmacm can connect: to the guest itself, and to ibfabric on the
        // machine that runs the guest.
        let server = self.guest.start("rping -s -a :: -C 3 -v")?;
        self.guest.await_listener(7174, PATIENCE)?;
        self.check_counters([1, 0, 0], |scene| {
            scene.guest_runs("rping -c -a fd00:77::1 -C 3 -v", 0, &["rdma-ping-2"])?;
            Ok(())
        })?;
        server.wait(PATIENCE)?;
        let mut ours = Command::new(self.ibfabric);
        ours.args(["rdma", "serve", "--listen", "fd00:77::2", "--rping"]);
        let ours = self.guest.start_beside(&ours)?;
        ours.until("READY", PATIENCE)?;
        self.check_counters([1, 0, 0], |scene| {
            scene.guest_runs("rping -c -a fd00:77::2 -C 3 -v", 0, &["rdma-ping-2"])?;
            Ok(())
        })?;
        drop(ours);
        // Programs that also take the addresses from librdmacm fail, because Linux has no HCA for `AF_IB` addresses on
        // Ethernet.
        for (command, status) in [
            ("rdma_client -s fd00:77::2 -p 7000", 255),
            ("rdma_xclient -s 192.168.77.2 -p 7000", 255),
            ("ucmatose -s 192.168.77.2", 255),
            ("ucmatose -f gid -b fd00:77::1 -s fd00:77::2", 255),
            ("udaddy -s fd00:77::2", 255),
        ] {
            self.check_counters([1, 0, 0], |scene| {
                scene.guest_runs(command, status, &["No such device"])?;
                Ok(())
            })?;
        }
        // The service does not know the address `UNKNOWN`, so librdmacm's queries for addresses and for a route fail.
        // `rdma_client` and `rdma_server` then connect as they would without a service.
        self.check_counters([2, 2, 0], Self::connect_programs)
    }

    /// Kills the service during a query. Then restarts the service twice: with a TCP socket and with a Unix socket.
    fn check_restarts(&mut self, path: &str) -> Result<(), RunError> {
        let (nobody, known) = ("192.168.77.9", "192.168.77.2");
        let asked = self.guest.start(&format!("rdma-getaddrinfo {nobody} 7174"))?;
        std::thread::sleep(Duration::from_secs(1));
        self.stop(SERVICE)?;
        let finished = asked.wait(PATIENCE)?;
        let lost = without_route("ipv4", "", nobody);
        self.check_finished(&finished, 0, &[]);
        self.checked.check(finished.output == lost, || {
            format!("result when the service is killed: expected\n{lost}found\n{}", finished.output)
        });
        self.check_output(known, &without_route("ipv4", "", known))?;
        self.connect_programs()?;
        // The killed service has left its Unix socket behind. The next service listens on TCP instead.
        let mode = "echo server_mode loop >/etc/rdma/ibacm_opts.cfg";
        self.guest_runs(mode, 0, &[])?;
        self.service = serve(self.guest, SERVICE)?;
        self.guest_runs("cat /run/ibacm.port", 0, &["6125"])?;
        let told = self.guest_runs(&format!("rdma-getaddrinfo {known} 7174"), 0, &["family ib"])?;
        self.checked.check(told.output.matches(path).count() == 2, || {
            format!("over TCP: expected twice\n{path}\nfound\n{}", told.output)
        });
        self.stop(SERVICE)?;
        self.check_output(known, &without_route("ipv4", "", known))?;
        self.guest_runs("rm /etc/rdma/ibacm_opts.cfg /run/ibacm.port", 0, &[])?;
        self.service = serve(self.guest, SERVICE)?;
        self.guest_runs(&format!("rdma-getaddrinfo {known} 7174"), 0, &["family ib", path])?;
        Ok(())
    }

    /// Kills the service.
    fn stop(&mut self, command: &str) -> Result<(), RunError> {
        let placeholder = self.guest.start("true")?;
        let finished = std::mem::replace(&mut self.service, placeholder).kill()?;
        let _ = writeln!(self.transcript, "{command} was killed; its output:\n{}", finished.output);
        Ok(())
    }

    /// Connects `rdma_client` to `rdma_server` at an address that no ACM service knows.
    fn connect_programs(&mut self) -> Result<(), RunError> {
        let server = self.guest.start("rdma_server -p 7000")?;
        self.guest.await_listener(7000, PATIENCE)?;
        let client = format!("rdma_client -s {UNKNOWN} -p 7000");
        self.guest_runs(&client, 0, &["rdma_client: end 0"])?;
        let server = server.wait(PATIENCE)?;
        self.check_finished(&server, 0, &["rdma_server: end 0"]);
        Ok(())
    }

    /// Runs a query of librdmacm. Checks its result, and by how much the service's counters increase.
    fn check_query(
        &mut self,
        words: &str,
        expected: &str,
        gained: [u64; 3],
    ) -> Result<(), RunError> {
        self.check_counters(gained, |scene| scene.check_output(words, expected))
    }

    /// Runs `rdma-getaddrinfo`, a client of librdmacm, in the guest. Checks its output.
    fn check_output(&mut self, words: &str, expected: &str) -> Result<(), RunError> {
        let command = format!("rdma-getaddrinfo {words} 7174");
        let found = self.guest_runs(&command, 0, &[])?.output;
        self.checked
            .check(found == expected, || format!("{command}: expected\n{expected}found\n{found}"));
        Ok(())
    }

    /// Checks by how much the service's counters increase: requests, failed requests, requests without data.
    fn check_counters(
        &mut self,
        [resolved, failed, no_data]: [u64; 3],
        run: impl FnOnce(&mut Self) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        let before = self.counters()?;
        run(self)?;
        let now = self.counters()?;
        let ServiceCounters { resolved: were, failed: had_failed, no_data: had_none } = before;
        let expected = ServiceCounters {
            resolved: were + resolved,
            failed: had_failed + failed,
            no_data: had_none + no_data,
        };
        let last = self.transcript.lines().rfind(|line| line.starts_with('`')).unwrap_or_default();
        self.checked
            .check(now == expected, || format!("{last}: expected {expected:?}, found {now:?}"));
        Ok(())
    }

    fn counters(&self) -> Result<ServiceCounters, RunError> {
        let command = "ibfabric acme -P col";
        let output = self.guest.run(command, PATIENCE)?.output;
        let count = |name: &str| {
            let line = output.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(" : ").parse().ok()
        };
        let [resolved, failed, no_data] = ["Resolve Count", "Error Count", "No Data"].map(count);
        match (resolved, failed, no_data) {
            (Some(resolved), Some(failed), Some(no_data)) => {
                Ok(ServiceCounters { resolved, failed, no_data })
            }
            _ => Err(RunError::Failed { command: command.into(), status: 0, output }),
        }
    }

    /// Runs a command in the guest, and checks its exit status and its output.
    fn guest_runs(
        &mut self,
        command: &str,
        status: u8,
        holds: &[&str],
    ) -> Result<Finished, RunError> {
        let finished = self.guest.run(command, PATIENCE)?;
        self.check_finished(&finished, status, holds);
        Ok(finished)
    }

    fn check_finished(&mut self, finished: &Finished, expected: u8, holds: &[&str]) {
        let Finished { command, status, output, elapsed } = finished;
        let seconds = elapsed.as_secs_f64();
        let said = format!("`{command}`: status {status} after {seconds:.1} s\n{output}");
        let _ = writeln!(self.transcript, "{said}");
        self.checked.check(*status == expected, || format!("expected status {expected}: {said}"));
        for text in holds {
            self.checked.check(output.contains(text), || format!("expected {text:?}: {said}"));
        }
    }
}

/// Starts an ACM service with the given command, and waits until the service has joined its multicast group.
fn serve(guest: &Guest, command: &str) -> Result<Running, RunError> {
    let service = guest.start(command)?;
    service.until("READY", PATIENCE)?;
    let joined = "until ibfabric acm ctl status | grep -q 'in service'; do sleep 0.1; done";
    guest.run(joined, PATIENCE)?;
    Ok(service)
}

/// Returns librdmacm's output for an address that has no route.
fn without_route(family: &str, source: &str, destination: &str) -> String {
    format!(
        "result: family {family}, route of 0 bytes, connect of 0 bytes\n\
         {source}destination: {family} {destination} port 7174\n"
    )
}
