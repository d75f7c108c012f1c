//! An HCA, its connection manager and its link, driven by the caller. The link is RoCEv2 over a UDP socket, a port of
//! an HCA daemon that owns this socket, or a port of a fabric that another process simulates.
//!
//! [`Device::progress`] sends and receives without blocking, [`Device::wait`] sleeps until there is work. A caller that
//! polls needs no other thread.

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use ib_attach::{AttachedPort, LinkLayer, qpn_block};
use ib_cm::{Cm, CmConfig, Ece};
use ib_hca::trace::{PacketReader, SelectionId};
use ib_hca::{Hca, HcaConfig, HcaEvent, MAX_PACKET};
use ib_link::Datagram;
use ib_os::alarm::Alarm;
use ib_os::clock;
use ib_os::inbox::{Handle, Inbox};
use ib_roce::{IcrcCheck, PushError, RoceOptions, RoceSocket, gid_of};
use ib_types::{Guid, Instant, Mtu, PKey};
use ib_wire::mad::MgmtClass;
use ib_wire::packet::RoceNetwork;

use crate::acm::AcmService;
use crate::attached::Attached;
use crate::engines::DeviceEvent;
use crate::engines::Engines;
use crate::interface::LocalPort;
use crate::options::{AttachedOptions, DeviceError, DeviceOptions, seeds};
use crate::shared::Shared;

/// Counters of received packets, by the result of the ICRC check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// IPv6 packets whose ICRC is right.
    pub verified: u64,
    /// IPv4 packets whose ICRC is right for some value of the IPv4 identification, and packets with an unchecked ICRC.
    /// The ICRC covers the identification, but the kernel does not report it to the receiver.
    pub consistent: u64,
    /// Packets with a wrong ICRC.
    pub icrc_errors: u64,
    /// Packets without an ICRC. A simulated fabric drops corrupted packets itself, and an HCA daemon checks the ICRC
    /// before it forwards a packet.
    pub without_icrc: u64,
}

/// The link of an HCA.
pub(crate) enum Link {
    Roce(Box<RoceSocket>),
    Shared(Box<Shared>),
    Attached(Box<Attached>),
}

/// An HCA with one port.
pub struct Device {
    pub(crate) engines: Engines,
    pub(crate) link: Link,
    /// Name of the network interface; in a simulated fabric, name of the node.
    name: String,
    /// IP address; in a simulated fabric, the GID as an IPv6 address.
    pub(crate) address: IpAddr,
    pub(crate) spin: Duration,
    /// The path MTU that a connection proposes.
    pub(crate) connection_mtu: Mtu,
    checked: LinkCounters,
    /// Queue of closures that other threads want to run with the device; `None` until first used.
    inbox: Option<Box<Inbox<Self>>>,
    callbacks: Callbacks,
    /// ACM service that is queried for paths before the SA.
    pub(crate) acm: Option<Box<AcmService>>,
}

/// Callbacks that the caller has set.
#[derive(Default)]
struct Callbacks {
    /// Callback of [`Device::on_traced`]. Gets the packet reader of a queue pair that a trace selection
    /// ([`Hca::select`]) traces.
    traced: Option<OnTraced>,
    /// Callback of [`Device::on_zero_checksum`]. Gets the sender of a packet that was dropped because its UDP checksum
    /// is zero.
    refused: Option<OnRefused>,
}

type OnTraced = Box<dyn FnMut(&mut Hca, SelectionId, PacketReader) + Send>;

type OnRefused = Box<dyn FnMut(IpAddr) + Send>;

/// Maximum number of packets that the device receives before it sends again.
const ROUND: usize = 64;

/// ECE by which HCAs of this project recognize each other in REQ and REP. The vendor ID is a locally administered OUI.
/// Option 1 means that IPv4 identifications are below 64.
pub(crate) const ECE: Ece = Ece { vendor_id: 0x02_69_62, options: 1 };

/// Default maximum number of packets in flight per connection, for an HCA with its own socket.
const WINDOW: u32 = 256;

impl Device {
    /// Opens an HCA.
    ///
    /// # Errors
    /// Fails if the machine does not have the IP address, or if the UDP port is in use.
    pub fn open(options: DeviceOptions) -> Result<Self, DeviceError> {
        let address = options.address;
        let LocalPort { name, guid, mtu: active, connection_mtu } = LocalPort::of(&options)?;
        let socket = RoceSocket::bind(&RoceOptions { address, ..options.socket.clone() })?;
        let [seed, cm_seed] = seeds(options.seed)?;
        // Two HCAs on one machine need different GUIDs, so the GUID depends on address and UDP port.
        let guid = Guid(guid.0 ^ u64::from(socket.port() ^ 4791) << 24);
        let config = HcaConfig {
            active_mtu: active,
            window: options.window.unwrap_or(WINDOW),
            ..HcaConfig::new(guid, vec![gid_of(address)])
        };
        let cm = CmConfig { ca_guid: guid, ece: Some(ECE), ..CmConfig::default() };
        let engines = Engines::new(config, seed, cm, cm_seed);
        let link = Link::Roce(Box::new(socket));
        Ok(Self::new(engines, link, name, address, options.spin, connection_mtu))
    }

    /// Opens an HCA at a port of a fabric that another process simulates. Waits until an SM has
    /// activated the port.
    ///
    /// # Errors
    /// Fails if the simulator or the port does not exist, if the port is in use, or if the port
    /// does not become Active in time.
    pub fn attach(options: &AttachedOptions) -> Result<Self, DeviceError> {
        let mut port = AttachedPort::attach(&options.port, options.class)?;
        if port.details().link_layer != LinkLayer::InfiniBand {
            return Err(DeviceError::LinkLayer { name: options.port.name.clone() });
        }
        let end = clock::now() + options.patience;
        while !port.details().is_active {
            if clock::now() >= end {
                let details = port.details();
                let (node, number) = (details.node.clone(), details.port.number);
                return Err(DeviceError::NotActive { node, number });
            }
            port.wait(end, false, None)?;
        }
        let details = port.details();
        let (own, name) = (details.port, details.node.clone());
        let [seed, cm_seed] = seeds(options.seed)?;
        let active_mtu = options.mtu.map_or(details.mtu, |mtu| mtu.min(details.mtu));
        let config = HcaConfig {
            active_mtu,
            window: options.window,
            qpns: qpn_block(details.qpn_block),
            ..HcaConfig::new(own.node_guid, vec![own.gid()])
        };
        let first = u32::from_ne_bytes(*cm_seed.first_chunk().expect("the seed has 32 bytes"));
        let cm = CmConfig { ca_guid: own.node_guid, ..CmConfig::default() };
        let engines = Engines::new(config, seed, cm, cm_seed);
        let link = Link::Attached(Box::new(Attached::new(port, first)));
        let address = IpAddr::V6(Ipv6Addr::from(own.gid().0));
        Ok(Self::new(engines, link, name, address, options.spin, active_mtu))
    }

    /// Serves a management class at the port of a simulated fabric or of an HCA daemon, in addition to the class for
    /// which the HCA was opened. Does nothing for an HCA with its own socket, which shares no port.
    ///
    /// # Errors
    /// Fails if another HCA at the port serves the class, or if the simulator or HCA daemon does not respond.
    pub fn serve(&mut self, class: MgmtClass) -> Result<(), DeviceError> {
        match &mut self.link {
            Link::Roce(_) => Ok(()),
            Link::Shared(shared) => Ok(shared.port.serve(class)?),
            Link::Attached(attached) => Ok(attached.port.serve(class)?),
        }
    }

    pub(crate) fn new(
        engines: Engines,
        link: Link,
        name: String,
        address: IpAddr,
        spin: Duration,
        connection_mtu: Mtu,
    ) -> Self {
        Self {
            engines,
            link,
            name,
            address,
            spin,
            connection_mtu,
            checked: LinkCounters::default(),
            inbox: None,
            callbacks: Callbacks::default(),
            acm: None,
        }
    }

    /// Returns the HCA.
    pub const fn hca(&mut self) -> &mut Hca {
        &mut self.engines.hca
    }

    /// Returns the connection manager.
    pub const fn cm(&mut self) -> &mut Cm {
        &mut self.engines.cm
    }

    /// Returns the HCA and the connection manager.
    pub const fn engines(&mut self) -> &mut Engines {
        &mut self.engines
    }

    /// Returns the HCA's IP address; in a simulated fabric, the port's GID as an IPv6 address.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the name of the HCA's network interface; in a simulated fabric, the name of its
    /// node.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of the port to which the HCA is attached; 1 on Ethernet.
    #[must_use]
    pub fn port_number(&self) -> u8 {
        self.attached().map_or(1, |port| port.details().port.number)
    }

    /// Returns the HCA's address of the same family as `other`; `None` if the HCA has none.
    #[must_use]
    pub fn own_address_for(&self, other: IpAddr) -> Option<IpAddr> {
        let is_alike = |own: &IpAddr| own.is_ipv4() == other.is_ipv4();
        match &self.link {
            Link::Roce(_) | Link::Shared(_) => Some(self.address).filter(is_alike),
            Link::Attached(attached) => {
                attached.port.details().addresses.iter().copied().find(is_alike)
            }
        }
    }

    /// Returns the UDP port of the HCA; 0 in a simulated fabric.
    #[must_use]
    pub fn port(&self) -> u16 {
        match &self.link {
            Link::Roce(socket) => socket.port(),
            Link::Shared(_) => RoceNetwork::PORT,
            Link::Attached(_) => 0,
        }
    }

    /// Returns the HCA's own socket; `None` in a simulated fabric, and if an HCA daemon has the socket.
    #[must_use]
    pub fn socket(&self) -> Option<&RoceSocket> {
        match &self.link {
            Link::Roce(socket) => Some(socket),
            Link::Shared(_) | Link::Attached(_) => None,
        }
    }

    /// Returns the port whose rings carry the HCA's packets; `None` if the HCA has its own socket.
    #[must_use]
    pub fn ring_port(&self) -> Option<&AttachedPort> {
        match &self.link {
            Link::Roce(_) => None,
            Link::Shared(shared) => Some(&shared.port),
            Link::Attached(attached) => Some(&attached.port),
        }
    }

    /// Returns the descriptors to poll for received packets: those of the rings, or of the HCA's own socket.
    #[must_use]
    pub fn files(&self) -> [Option<BorrowedFd<'_>>; 2] {
        match self.ring_port() {
            Some(port) => port.files().map(Some),
            None => [self.socket().map(AsFd::as_fd), None],
        }
    }

    /// Returns true if the port is in the partition with this P_Key. Ports on Ethernet are in the
    /// default partition only.
    #[must_use]
    pub fn is_in_partition(&self, p_key: PKey) -> bool {
        match &self.link {
            Link::Roce(_) | Link::Shared(_) => p_key.matches(PKey::DEFAULT),
            Link::Attached(attached) => {
                attached.port.details().p_keys.iter().any(|&own| p_key.matches(PKey(own)))
            }
        }
    }

    /// Returns the port of the simulated fabric to which the HCA is attached; `None` on Ethernet.
    #[must_use]
    pub fn attached(&self) -> Option<&AttachedPort> {
        match &self.link {
            Link::Roce(_) | Link::Shared(_) => None,
            Link::Attached(attached) => Some(&attached.port),
        }
    }

    /// Returns the time that the HCA polls for packets before it sleeps.
    pub const fn spin(&self) -> Duration {
        self.spin
    }

    /// Returns the HCA's own socket for callers that poll several descriptors; `None` if the HCA has none.
    pub fn socket_mut(&mut self) -> Option<&mut RoceSocket> {
        match &mut self.link {
            Link::Roce(socket) => Some(socket),
            Link::Shared(_) | Link::Attached(_) => None,
        }
    }

    /// Sets the UDP port to which packets are sent, instead of 4791. Tests with several HCAs on one
    /// machine need it.
    pub fn set_peer_port(&mut self, port: u16) {
        if let Link::Roce(socket) = &mut self.link {
            socket.sender.set_peer_port(port);
        }
    }

    /// Returns the path MTU that a connection of this HCA proposes.
    #[must_use]
    pub const fn connection_mtu(&self) -> Mtu {
        self.connection_mtu
    }

    /// Returns the counters of ICRC checks.
    #[must_use]
    pub fn link_counters(&self) -> LinkCounters {
        match &self.link {
            Link::Roce(socket) => {
                let icrc_errors = socket.counters().received.bad_icrc;
                LinkCounters { icrc_errors, ..self.checked }
            }
            Link::Shared(shared) => LinkCounters { without_icrc: shared.received, ..self.checked },
            Link::Attached(attached) => {
                LinkCounters { without_icrc: attached.received, ..self.checked }
            }
        }
    }

    /// Sends queued packets, processes received packets, and processes timeouts. Returns true if
    /// there was any work.
    ///
    /// Each call sends before it receives. Responses to received packets, such as acknowledgements,
    /// are sent by the next call, together with requests that the caller has posted by then. Before
    /// a caller pauses, it has to [`wait`](Self::wait), or to call this function until it returns
    /// `false`.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn progress(&mut self) -> io::Result<bool> {
        if self.inbox.as_ref().is_some_and(|inbox| inbox.is_pending()) {
            self.run_inbox();
        }
        let mut now = clock::now();
        let mut moved = self.transmit(now);
        let Self { engines, link, checked, callbacks, .. } = self;
        match link {
            Link::Roce(socket) => {
                for _ in 0..ROUND {
                    let is_asked = !socket.receiver.has_more();
                    let Some(packet) = socket.receiver.receive()? else { break };
                    if is_asked {
                        // The clock is read after the packets have arrived, so that no trace shows
                        // a packet as received before it was sent.
                        now = clock::now();
                    }
                    match packet.icrc {
                        IcrcCheck::Verified => checked.verified += 1,
                        _ => checked.consistent += 1,
                    }
                    engines.hca.handle(now, packet.route, packet.bytes);
                    moved = true;
                }
                if let Some(peer) = socket.receiver.take_refused()
                    && let Some(on_refused) = &mut callbacks.refused
                {
                    on_refused(peer);
                }
            }
            Link::Shared(shared) => {
                moved |= shared.receive(engines)?;
                now = clock::now();
            }
            Link::Attached(attached) => {
                moved |= attached.receive(engines)?;
                engines.hca.set_port_active(attached.port.details().is_active);
                now = clock::now();
            }
        }
        moved |= self.engines.handle_timeout(now);
        self.collect(now);
        Ok(moved)
    }

    /// Sends a MAD, such as an SA query, from the port of a simulated fabric. The response arrives as
    /// [`HcaEvent::Mad`]. Returns false on Ethernet, where MADs cannot be sent.
    pub fn send_datagram(&mut self, datagram: Datagram) -> bool {
        match &mut self.link {
            Link::Roce(_) | Link::Shared(_) => false,
            Link::Attached(attached) => {
                attached.unsent.push_back(datagram);
                true
            }
        }
    }

    /// Sends queued packets, but receives none.
    pub fn flush(&mut self) {
        let now = clock::now();
        self.collect(now);
        self.transmit(now);
    }

    /// Passes MADs and events between the HCA's engine and the CM. Queues events for
    /// [`Self::poll_event`].
    fn collect(&mut self, now: Instant) {
        let Engines { hca, cm, events } = &mut self.engines;
        while let Some(event) = hca.poll_event() {
            match event {
                HcaEvent::Mad { route, mad, .. } if mad.class() == MgmtClass::COMMUNICATION => {
                    cm.handle(now, &route, &mad);
                }
                event => events.push_back(DeviceEvent::Hca(event)),
            }
        }
        self.engines.collect_cm();
        self.hand_over_traces();
    }

    /// Calls the callback of [`Self::on_traced`] for each queue pair that a trace selection ([`Hca::select`]) has
    /// begun to trace. The callback gets the packet reader of the queue pair.
    pub fn hand_over_traces(&mut self) {
        while let Some(on_traced) = &mut self.callbacks.traced
            && let Some((selection, reader)) = self.engines.hca.poll_selected()
        {
            on_traced(&mut self.engines.hca, selection, reader);
        }
    }

    /// Returns the handle by which other threads queue closures, which [`Device::progress`] and
    /// [`Device::wait`] run.
    ///
    /// # Errors
    /// Fails if the system has no more descriptors.
    pub fn handle(&mut self) -> io::Result<Handle<Self>> {
        if self.inbox.is_none() {
            self.inbox = Some(Box::new(Inbox::new()?));
        }
        Ok(self.inbox.as_ref().expect("the inbox was created above").handle())
    }

    /// Sets the callback that gets the packet readers of queue pairs that a trace selection
    /// ([`Hca::select`]) traces.
    pub fn on_traced(
        &mut self,
        take: impl FnMut(&mut Hca, SelectionId, PacketReader) + Send + 'static,
    ) {
        self.callbacks.traced = Some(Box::new(take));
    }

    /// Sets a callback for packets that are dropped because their UDP checksum is zero
    /// ([`RoceOptions::allow_zero_checksum`]). After each batch of received packets that contains such packets, the
    /// callback gets the sender of the last such packet.
    pub fn on_zero_checksum(&mut self, take: impl FnMut(IpAddr) + Send + 'static) {
        self.callbacks.refused = Some(Box::new(take));
    }

    /// Runs the closures that other threads have queued for this device.
    fn run_inbox(&mut self) {
        while let Some(work) = self.inbox.as_ref().and_then(|inbox| inbox.next()) {
            work(self);
        }
        self.hand_over_traces();
    }

    /// Sends all queued packets; returns true if there were any.
    fn transmit(&mut self, now: Instant) -> bool {
        let mut moved = false;
        let hca = &mut self.engines.hca;
        let socket = match &mut self.link {
            Link::Roce(socket) => socket,
            Link::Shared(shared) => return shared.transmit(now, hca),
            Link::Attached(attached) => return attached.transmit(now, hca),
        };
        loop {
            let next = |buffer: &mut [u8]| {
                hca.poll_transmit(now, buffer).map(|sent| (sent.route, sent.length))
            };
            match socket.sender.push_next(next) {
                Ok(true) => moved = true,
                // Packets without a route or with an invalid length are dropped, as on any network.
                Err(PushError::Route { .. } | PushError::Length { .. }) => {}
                Ok(false) | Err(_) => break,
            }
        }
        socket.sender.flush();
        moved
    }

    /// Waits until packets arrive, a timer of the engine or connection manager expires, the time
    /// `until` has come, or `alarm` is rung.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn wait(&mut self, until: Instant, alarm: Option<&Alarm>) -> io::Result<()> {
        let spin_until = clock::now() + self.spin;
        while clock::now() < spin_until {
            if self.progress()? {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        self.transmit(clock::now());
        let until = self.engines.poll_timeout().into_iter().fold(until, Instant::min);
        let Self { inbox, link, .. } = self;
        let alarm = match inbox {
            None => alarm,
            Some(inbox) => match inbox.begin_wait(alarm) {
                None => {
                    self.run_inbox();
                    return Ok(());
                }
                alarm => alarm,
            },
        };
        match link {
            Link::Roce(socket) => socket.wait(until, alarm),
            Link::Shared(shared) => shared.wait(until, alarm),
            Link::Attached(attached) => attached.wait(until, alarm),
        }
    }

    /// Prepares for a wait on [`AttachedPort::files`] that the caller does itself. Returns the time
    /// at which the wait has to end; `None` if there is work already. Closures of other threads do
    /// not end the wait.
    pub fn begin_wait(&mut self) -> Option<Instant> {
        self.transmit(clock::now());
        let until = self.engines.poll_timeout().unwrap_or(Instant::NEVER);
        match &mut self.link {
            Link::Roce(_) => Some(until),
            Link::Shared(shared) => shared.begin_wait().then_some(until),
            Link::Attached(attached) => attached.begin_wait(until),
        }
    }

    /// Processes the descriptors of [`AttachedPort::files`] that became readable during a wait of the caller. `rang[i]`
    /// is true if descriptor `i` became readable. Does nothing if the HCA has its own socket.
    ///
    /// # Errors
    /// Fails if the simulator or the HCA daemon has disconnected.
    pub fn end_wait(&mut self, rang: [bool; 2]) -> io::Result<()> {
        match &mut self.link {
            Link::Roce(_) => Ok(()),
            Link::Shared(shared) => shared.port.end_wait(rang).map_err(io::Error::other),
            Link::Attached(attached) => attached.port.end_wait(rang).map_err(io::Error::other),
        }
    }

    /// Returns the next event of the HCA or its connection manager, if any.
    pub fn poll_event(&mut self) -> Option<DeviceEvent> {
        self.engines.events.pop_front()
    }

    /// Puts events back into the event queue, behind the events that are already there.
    pub(crate) fn put_back(&mut self, events: impl IntoIterator<Item = DeviceEvent>) {
        self.engines.events.extend(events);
    }
}

const _: () = assert!(
    MAX_PACKET <= ib_roce::MAX_PACKET,
    "packets of the engine fit into the socket's buffers"
);
