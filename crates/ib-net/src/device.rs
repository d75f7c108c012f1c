//! An adapter on RoCEv2: the engine, its connection manager and the sockets, in the caller's own thread.
//!
//! | module | holds |
//! |---|---|
//! | `driver` | [`Driver`]: a thread that drives an adapter for others |
//! | `endpoint` | [`Device::connect`], [`Device::accept`]: queue pairs that the connection manager joins |
//! | [`sim`] | the same engine at ports of a simulated fabric, in virtual time |
//!
//! Whoever has a [`Device`] drives it: [`Device::progress`] moves what can be moved and returns at once,
//! [`Device::wait`] sleeps until there is something. A caller that polls needs no other thread.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use ib_hca::cm::{Cm, CmConfig, CmEvent};
use ib_hca::{Hca, HcaConfig, HcaEvent, MAX_PACKET};
use ib_link::Route;
use ib_types::{Gid, Guid, Instant, Mtu};
use ib_wire::mad::MgmtClass;

use crate::alarm::Alarm;
use crate::clock;
use crate::roce::{IcrcCheck, PushError, RoceError, RoceInterface, RoceOptions, RoceSocket};

mod driver;
mod endpoint;
pub mod sim;

pub use driver::{DrivenCq, DrivenQp, Driver, DriverHandle, Stopped};
pub use endpoint::{ConnectError, Endpoint, EndpointOptions, Request};
pub use sim::{SimDevice, SimDeviceError, SimDeviceOptions, SimDevices};

/// How an adapter is opened.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// Its address.
    pub address: IpAddr,
    /// How its socket is opened; the address is taken from above.
    pub socket: RoceOptions,
    /// The largest packets, when they are to be smaller than what the network carries.
    pub mtu: Option<Mtu>,
    /// How many packets of a connection may be under way.
    pub window: u32,
    /// How long [`Device::wait`] looks for something to do before it sleeps.
    pub spin: Duration,
    /// What keys, numbers and sequence numbers are drawn from; `None` for the system's randomness.
    pub seed: Option<[u8; 32]>,
}

impl DeviceOptions {
    /// Returns the usual options of an address.
    #[must_use]
    pub const fn new(address: IpAddr) -> Self {
        Self {
            address,
            socket: RoceOptions::new(address),
            mtu: None,
            window: 256,
            spin: Duration::ZERO,
            seed: None,
        }
    }
}

/// Why there is no adapter.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The socket cannot be had.
    #[error(transparent)]
    Socket(#[from] RoceError),
    /// The machine does not have the address.
    #[error("no network interface has the address {0}")]
    NoInterface(IpAddr),
    /// The network carries no packet of any MTU.
    #[error("the MTU of {name} is {mtu}: RoCEv2 needs 336 or more")]
    SmallMtu {
        /// The interface.
        name: String,
        /// Its MTU.
        mtu: u32,
    },
    /// The system failed.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// What an adapter tells.
#[derive(Debug)]
pub enum DeviceEvent {
    /// The engine has something to tell.
    Hca(HcaEvent),
    /// The connection manager has.
    Cm(CmEvent),
}

/// What has come over the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets whose ICRC is that of their bytes.
    pub verified: u64,
    /// Packets whose ICRC fits some identification of the IP header, which the system does not tell.
    pub consistent: u64,
    /// Packets whose ICRC is wrong.
    pub icrc_errors: u64,
}

/// An adapter with one port on an IP network.
pub struct Device {
    hca: Hca,
    cm: Cm,
    socket: RoceSocket,
    options: DeviceOptions,
    /// The largest packets that a connection proposes.
    connection_mtu: Mtu,
    events: VecDeque<DeviceEvent>,
    checked: LinkCounters,
}

/// The most packets that are taken before others are sent.
const ROUND: usize = 64;

/// How many bytes of an interface's MTU a connection leaves to headers, as Linux does.
const CONNECTION_HEADERS: u32 = 96;

impl Device {
    /// Opens an adapter.
    ///
    /// # Errors
    /// Fails when the machine does not have the address, or its port cannot be had.
    pub fn open(options: DeviceOptions) -> Result<Self, DeviceError> {
        let address = options.address;
        let failed = |doing| move |source| DeviceError::Io { doing, source };
        let interfaces = RoceInterface::all().map_err(failed("listing interfaces"))?;
        // All of 127.0.0.0/8 is this machine's, of which the interface has one.
        let fits = |own: &IpAddr| *own == address || own.is_loopback() && address.is_loopback();
        let interface = interfaces.into_iter().find(|it| it.addresses.iter().any(fits));
        let interface = interface.ok_or(DeviceError::NoInterface(address))?;
        let (name, mtu) = (interface.name.clone(), interface.mtu);
        let small = || DeviceError::SmallMtu { name: name.clone(), mtu };
        let active = interface.active_mtu().ok_or_else(small)?;
        let active = Mtu::within(active.into()).ok_or_else(small)?;
        let active = options.mtu.map_or(active, |mtu| mtu.min(active));
        let connection = Mtu::within(mtu.saturating_sub(CONNECTION_HEADERS) as usize);
        let connection_mtu = connection.unwrap_or(Mtu::B256).min(active);
        let socket = RoceSocket::bind(&RoceOptions { address, ..options.socket.clone() })?;
        let [seed, cm_seed] = match options.seed {
            Some(seed) => [seed, seed.map(|byte| !byte)],
            None => {
                let random = || random().map_err(failed("getting random bytes"));
                [random()?, random()?]
            }
        };
        // Two adapters on one machine must not be taken for one.
        let other =
            if interface.addresses.contains(&address) { 0 } else { gid_of(address).0 as u64 };
        let guid = Guid(interface.guid().0 ^ other ^ u64::from(socket.port() ^ 4791) << 24);
        let config = HcaConfig {
            active_mtu: active,
            window: options.window,
            ..HcaConfig::new(guid, vec![gid_of(address)])
        };
        Ok(Self {
            hca: Hca::new(config, seed),
            cm: Cm::new(CmConfig { ca_guid: guid, ..CmConfig::default() }, cm_seed),
            socket,
            options,
            connection_mtu,
            events: VecDeque::new(),
            checked: LinkCounters::default(),
        })
    }

    /// Returns the engine.
    pub const fn hca(&mut self) -> &mut Hca {
        &mut self.hca
    }

    /// Returns the connection manager.
    pub const fn cm(&mut self) -> &mut Cm {
        &mut self.cm
    }

    /// Returns the adapter's address.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.options.address
    }

    /// Returns the UDP port that it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.socket.port()
    }

    /// Returns the socket.
    #[must_use]
    pub const fn socket(&self) -> &RoceSocket {
        &self.socket
    }

    /// Has packets go to another UDP port than 4791 at the other ends: between tests on one machine.
    pub fn set_peer_port(&mut self, port: u16) {
        self.socket.set_peer_port(port);
    }

    /// Returns the largest packets that a connection of this adapter proposes.
    #[must_use]
    pub const fn connection_mtu(&self) -> Mtu {
        self.connection_mtu
    }

    /// Returns how the ICRC of what came in was.
    #[must_use]
    pub fn checked(&self) -> LinkCounters {
        LinkCounters { icrc_errors: self.socket.counters().received.bad_icrc, ..self.checked }
    }

    /// Returns the way to an address.
    #[must_use]
    pub fn route_to(&self, address: IpAddr) -> Route {
        Route {
            source: gid_of(self.options.address),
            destination: gid_of(address),
            is_global: true,
            ..Route::default()
        }
    }

    /// Moves what can be moved now; returns whether there was anything.
    ///
    /// It sends first and takes what has come then. What that calls for, such as an acknowledgement, leaves
    /// with the next call, together with what the caller may post meanwhile; so a caller that stops calling
    /// has to [`wait`](Self::wait) or to get `false`.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn progress(&mut self) -> io::Result<bool> {
        let now = clock::now();
        let mut moved = self.transmit(now);
        for _ in 0..ROUND {
            let Some(packet) = self.socket.receive()? else { break };
            match packet.icrc {
                IcrcCheck::Verified => self.checked.verified += 1,
                _ => self.checked.consistent += 1,
            }
            self.hca.handle(now, packet.route, packet.bytes);
            moved = true;
        }
        if self.hca.poll_timeout().is_some_and(|at| at <= now) {
            self.hca.handle_timeout(now);
        }
        if self.cm.poll_timeout().is_some_and(|at| at <= now) {
            self.cm.handle_timeout(now);
        }
        self.collect(now);
        Ok(moved)
    }

    /// Sends what is to be sent, and takes nothing.
    pub fn flush(&mut self) {
        let now = clock::now();
        self.collect(now);
        self.transmit(now);
    }

    /// Takes what engine and manager have to tell, and what they tell each other.
    fn collect(&mut self, now: Instant) {
        while let Some(event) = self.hca.poll_event() {
            match event {
                HcaEvent::Mad { route, mad, .. } if mad.class() == MgmtClass::COMMUNICATION => {
                    self.cm.handle(now, &route, &mad);
                }
                event => self.events.push_back(DeviceEvent::Hca(event)),
            }
        }
        while let Some((route, mad)) = self.cm.poll_transmit() {
            // What finds no room is sent again by whoever waits for the answer.
            self.hca.send_mad(route, mad);
        }
        while let Some(event) = self.cm.poll_event() {
            self.events.push_back(DeviceEvent::Cm(event));
        }
    }

    /// Sends what is to be sent; returns whether there was anything.
    fn transmit(&mut self, now: Instant) -> bool {
        let mut moved = false;
        let Self { hca, socket, .. } = self;
        loop {
            let next = |buffer: &mut [u8]| {
                hca.poll_transmit(now, buffer).map(|sent| (sent.route, sent.length))
            };
            match socket.push_next(next) {
                Ok(true) => moved = true,
                // What has no way is lost, as on any network.
                Err(PushError::Route { .. } | PushError::Length { .. }) => {}
                Ok(false) | Err(_) => break,
            }
        }
        socket.flush();
        moved
    }

    /// Waits until something comes in, the engine or the manager has something to do, a moment comes or an
    /// alarm rings.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn wait(&mut self, until: Instant, alarm: Option<&Alarm>) -> io::Result<()> {
        let spin_until = clock::now() + self.options.spin;
        while clock::now() < spin_until {
            if self.progress()? {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        self.transmit(clock::now());
        let due = [self.hca.poll_timeout(), self.cm.poll_timeout()];
        let until = due.into_iter().flatten().fold(until, Instant::min);
        self.socket.wait(until, alarm)
    }

    /// Returns the next thing to be told.
    pub fn poll_event(&mut self) -> Option<DeviceEvent> {
        self.events.pop_front()
    }

    /// Puts back what is for somebody else.
    fn put_back(&mut self, events: impl IntoIterator<Item = DeviceEvent>) {
        self.events.extend(events);
    }
}

/// Returns the GID that stands for an address.
#[must_use]
pub fn gid_of(address: IpAddr) -> Gid {
    match address {
        IpAddr::V4(address) => Gid(u128::from(address.to_ipv6_mapped())),
        IpAddr::V6(address) => Gid(u128::from(address)),
    }
}

/// Returns the address that a GID stands for.
#[must_use]
pub fn address_of(gid: Gid) -> IpAddr {
    let address = Ipv6Addr::from(gid.0);
    address.to_ipv4_mapped().map_or(address.into(), |address: Ipv4Addr| address.into())
}

/// Returns bytes that nobody can guess.
fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = &mut bytes[filled..];
        // SAFETY: the call writes at most as many bytes as the live slice has.
        let got = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match got {
            ..0 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            got => filled += got as usize,
        }
    }
    Ok(bytes)
}

const _: () = assert!(MAX_PACKET <= crate::roce::MAX_PACKET, "what is written fits");
