//! `ibfabric agent`: responds to ibtracer and ibping at a port.

use std::io::Write;

use ib_link::{Arrival, Incoming, MadLink, NodeAgent};
use ib_os::alarm::{Alarm, AlarmedLink};
use ib_os::daemon;
use ib_os::signals::{Order, Orders};
use ib_tracer::TracerAgent;
use ib_types::Instant;
use ib_umad::{UmadAgent, UmadOptions};
use ib_wire::mad::{Method, MgmtClass};

use crate::error::{DaemonError, Verdict};
use crate::mad_port::{MadPort, MadPortConfig};
use crate::message::{note, say};

/// Configuration of the agent.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// The MAD port at which the agent responds.
    pub station: MadPortConfig,
    /// Node name in responses; `None` for the name of this machine.
    pub host_name: Option<String>,
}

/// Responds to ibtracer and ibping at a port until a signal stops the process.
///
/// # Errors
/// Fails if the port cannot be opened, or if the connection to the simulator or HCA is lost.
pub fn run(args: &AgentConfig, out: &mut dyn Write) -> Result<Verdict, DaemonError> {
    let agents = [MgmtClass::TRACER, MgmtClass::PING];
    let mut umad = UmadOptions::classes(&[]);
    umad.agents.extend(agents.map(|class| UmadAgent {
        class,
        oui: 0x00_1405,
        methods: 1 << Method::GET.0,
    }));
    let mut link = MadPort::open(&args.station, &umad, true)?;
    let port = link.port().map_err(DaemonError::failed)?;
    let name = args.host_name.clone().unwrap_or_else(host_name);
    let mut agent = TracerAgent::new(name);
    let failed = |error| DaemonError::Failed(format!("cannot wait for signals: {error}"));
    let alarm = Alarm::new().map_err(failed)?;
    let mut signals = Orders::catch(&alarm.bell()).map_err(failed)?;
    // A switch receives the requests of all its ports over port 0. The link does not report at which port they have
    // arrived.
    let arrival_port = (port.number > 0).then_some(port.number);
    if arrival_port.is_none() {
        note!(
            "port 0 of switch {}: the link does not report the port of arrival of requests; responses \
            state this",
            port.node_guid
        );
    }
    writeln!(out, "READY")?;
    out.flush()?;
    if let Err(error) = daemon::notify("READY=1") {
        say!("cannot notify the service manager: {error}");
    }
    loop {
        alarm.silence();
        if let Some(Order::End) = signals.take() {
            break;
        }
        link.wait_alarmed(Instant::NEVER, &alarm).map_err(DaemonError::failed)?;
        while let Some(incoming) = link.receive().map_err(DaemonError::failed)? {
            let Incoming::Received(datagram) = incoming else { continue };
            if !agents.contains(&datagram.mad.class()) {
                continue;
            }
            let lid = link.port().map_err(DaemonError::failed)?.lid;
            let now = link.now();
            agent.handle(now, Arrival { port: arrival_port, lid }, &datagram);
            while let Some(answer) = agent.poll_transmit(now) {
                if let Err(error) = link.send(&answer) {
                    say!("cannot respond to LID {}: {error}", answer.remote.lid);
                }
            }
        }
    }
    let counters = agent.counters();
    note!(
        "{} requests answered, {} of them arrived at another port than expected; {} refused, {} ignored",
        counters.answered,
        counters.mismatches,
        counters.refused,
        counters.ignored
    );
    Ok(Verdict::Good)
}

/// Returns the name of this machine.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_owned(),
        name => name.to_owned(),
    }
}
