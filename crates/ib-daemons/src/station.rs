//! A port that a program speaks through which manages nothing.

use ib_ibsim::client::{Attach, IbsimLink, ServerAddress};
use ib_link::{Datagram, Incoming, LinkError, LinkPort, MadLink};
use ib_os::alarm::{Alarm, AlarmedLink};
use ib_types::Instant;
use ib_umad::{UmadDevice, UmadLink, UmadOptions};

use crate::error::DaemonError;
use crate::host::device_and_port;

/// The choice of a port outside of this process.
#[derive(Clone, Debug, Default)]
pub struct StationConfig {
    /// The name of the simulator, as `--attach` has it; empty for that of the environment.
    pub attach: Option<String>,
    /// The name of the simulator, as `--ibsim` has it; empty for that of the environment.
    pub ibsim: Option<String>,
    /// The node of the simulated fabric.
    pub node: Option<String>,
    /// The HCA of this machine, as `DEV` or `DEV:PORT`.
    pub device: Option<String>,
    /// The port number of the HCA.
    pub port: Option<u8>,
}

/// A port outside of this process.
pub enum Station {
    /// Of a simulator.
    Ibsim(Box<IbsimLink>),
    /// Of an HCA.
    Umad(Box<UmadLink>),
}

impl Station {
    /// Opens a port; one that `serves` is handed requests. Simulators hand these to ports with the duty of
    /// a subnet manager only.
    ///
    /// # Errors
    /// Fails if there is no such port, or it cannot be opened.
    pub fn open(
        args: &StationConfig,
        umad: &UmadOptions,
        serves: bool,
    ) -> Result<Self, DaemonError> {
        let name = args.attach.as_ref().or(args.ibsim.as_ref());
        if name.is_some() || args.node.is_some() {
            let attach = Attach::from_environment().map_err(DaemonError::failed)?;
            let server = match name.map_or("", String::as_str) {
                "" => attach.server.clone(),
                name => ServerAddress::Name(name.to_owned()),
            };
            let node = args.node.clone().or_else(|| attach.node.clone());
            let attach = Attach { server, node, is_sm: serves, ..attach };
            let link = IbsimLink::attach(&attach).map_err(DaemonError::failed)?;
            return Ok(Self::Ibsim(Box::new(link)));
        }
        let device = device(args)?;
        let link = UmadLink::open(&device, umad).map_err(DaemonError::failed)?;
        Ok(Self::Umad(Box::new(link)))
    }

    /// Returns what the link waits with.
    fn link(&mut self) -> &mut dyn MadLink {
        match self {
            Self::Ibsim(link) => &mut **link,
            Self::Umad(link) => &mut **link,
        }
    }
}

/// Finds the port of an adapter that is asked for.
fn device(args: &StationConfig) -> Result<UmadDevice, DaemonError> {
    let no_ports = |error: ib_umad::UmadError| {
        let hint = "a simulated fabric is reached with --ibsim, --attach or --sim";
        DaemonError::Failed(format!("{error}; {hint}"))
    };
    let Some(text) = &args.device else {
        let devices = UmadDevice::list().map_err(no_ports)?;
        let fits = |device: &&UmadDevice| args.port.is_none_or(|port| device.port == port);
        let mut fitting = devices.iter().filter(fits);
        let linked = fitting.clone().find(|device| device.is_linked().unwrap_or(false));
        return linked.or(fitting.next()).cloned().ok_or_else(|| {
            let which = args.port.map_or_else(String::new, |port| format!(" with number {port}"));
            DaemonError::Failed(format!("there is no InfiniBand port{which} in this machine"))
        });
    };
    let (name, number) = device_and_port("-I", text)?;
    if let (Some(one), Some(other)) = (number, args.port)
        && one != other
    {
        return Err(DaemonError::Failed(format!("-I {text} -p {other}: expected one port")));
    }
    UmadDevice::find(name, number.or(args.port)).map_err(no_ports)
}

impl MadLink for Station {
    fn port(&mut self) -> Result<LinkPort, LinkError> {
        self.link().port()
    }

    fn send(&mut self, datagram: &Datagram) -> Result<(), LinkError> {
        self.link().send(datagram)
    }

    fn receive(&mut self) -> Result<Option<Incoming>, LinkError> {
        self.link().receive()
    }

    fn wait(&mut self, until: Instant) -> Result<(), LinkError> {
        self.link().wait(until)
    }

    fn now(&self) -> Instant {
        match self {
            Self::Ibsim(link) => link.now(),
            Self::Umad(link) => link.now(),
        }
    }
}

impl AlarmedLink for Station {
    fn wait_alarmed(&mut self, until: Instant, alarm: &Alarm) -> Result<(), LinkError> {
        match self {
            Self::Ibsim(link) => link.wait_alarmed(until, alarm),
            Self::Umad(link) => link.wait_alarmed(until, alarm),
        }
    }
}
