//! Ports that send and receive MADs: of a fabric that this process simulates, of a simulator in another process, or of
//! an HCA.

use ib_ibsim::client::{Attach, IbsimLink, ServerAddress};
use ib_link::{Datagram, Incoming, LinkError, LinkPort, MadLink};
use ib_os::alarm::{Alarm, AlarmedLink};
use ib_sim::SimLink;
use ib_types::Instant;
use ib_umad::{IsSmHolder, UmadDevice, UmadLink, UmadOptions};

use crate::error::DaemonError;
use crate::host::device_and_port;

/// Options that select a port outside of this process: of a simulator or of an HCA.
#[derive(Clone, Debug, Default)]
pub struct MadPortConfig {
    /// Name of the simulator from the option `--attach`. If the name is empty, the environment names the simulator.
    pub attach: Option<String>,
    /// The node of the simulated fabric at whose port MADs are sent and received.
    pub node: Option<String>,
    /// The HCA of this machine, as `DEV` or `DEV:PORT`; `None` accepts any HCA.
    pub device: Option<String>,
    /// The port number at the HCA; `None` accepts any port.
    pub port: Option<u8>,
}

/// A port that sends and receives MADs.
pub enum MadPort<'s> {
    /// A port of a fabric that this process simulates in virtual time.
    Sim(SimLink<'s>),
    /// A port of a simulator in another process.
    Ibsim(Box<IbsimLink>),
    /// A port of an HCA. An SM also keeps `IsSM` set, which excludes other SMs of this machine from the port.
    Umad(Box<UmadLink>, Option<IsSmHolder>),
}

impl MadPort<'_> {
    /// Opens a port of a simulator or of an HCA. If `serves` is true, the port also receives requests. At a simulator
    /// it then sets `IsSM`, because simulators pass requests only to ports of SMs.
    ///
    /// # Errors
    /// Fails if the port does not exist or cannot be opened.
    pub fn open(
        args: &MadPortConfig,
        umad: &UmadOptions,
        serves: bool,
    ) -> Result<Self, DaemonError> {
        let name = args.attach.as_ref();
        if name.is_some() || args.node.is_some() {
            let attach = attach(name.map_or("", String::as_str), args.node.as_deref())?;
            let attach = Attach { is_sm: serves, ..attach };
            let link = IbsimLink::attach(&attach).map_err(DaemonError::failed)?;
            return Ok(Self::Ibsim(Box::new(link)));
        }
        let device = device(args)?;
        let link = UmadLink::open(&device, umad).map_err(DaemonError::failed)?;
        Ok(Self::Umad(Box::new(link), None))
    }

    fn link(&mut self) -> &mut dyn MadLink {
        match self {
            Self::Sim(link) => link,
            Self::Ibsim(link) => &mut **link,
            Self::Umad(link, _) => &mut **link,
        }
    }

    /// Returns true if the port has virtual time, which advances only while the process waits.
    pub(crate) const fn is_virtual(&self) -> bool {
        matches!(self, Self::Sim(_))
    }

    /// Returns true if the port belongs to a real HCA, whose subnet other users may depend on.
    pub(crate) const fn is_real(&self) -> bool {
        matches!(self, Self::Umad(..))
    }
}

/// Returns the options for attaching to a port of a simulator. If `name` is empty or `node` is `None`, the environment
/// supplies the value.
pub(crate) fn attach(name: &str, node: Option<&str>) -> Result<Attach, DaemonError> {
    let attach = Attach::from_environment().map_err(DaemonError::failed)?;
    let server = match name {
        "" => attach.server.clone(),
        name => ServerAddress::Name(name.to_owned()),
    };
    let node = node.map(str::to_owned).or_else(|| attach.node.clone());
    Ok(Attach { server, is_sm: false, node, ..attach })
}

/// Finds the port of an HCA that the options select.
fn device(args: &MadPortConfig) -> Result<UmadDevice, DaemonError> {
    let no_ports = |error: ib_umad::UmadError| {
        let hint = "a simulated fabric is reached with --attach or --sim";
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

impl MadLink for MadPort<'_> {
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
            Self::Sim(link) => link.now(),
            Self::Ibsim(link) => link.now(),
            Self::Umad(link, _) => link.now(),
        }
    }
}

impl AlarmedLink for MadPort<'_> {
    /// Waits until a MAD arrives, until the given time, or until the alarm is rung. In virtual time the alarm is
    /// ignored.
    fn wait_alarmed(&mut self, until: Instant, alarm: &Alarm) -> Result<(), LinkError> {
        match self {
            Self::Sim(link) => link.wait(until),
            Self::Ibsim(link) => link.wait_alarmed(until, alarm),
            Self::Umad(link, _) => link.wait_alarmed(until, alarm),
        }
    }
}
