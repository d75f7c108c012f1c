//! The link of an HCA that shares an IP address with other processes: rings to the HCA daemon, which owns the RoCEv2
//! socket of the address.

use std::io;

use ib_attach::{
    AttachError, AttachOptions, AttachedPort, Frame, LinkLayer, SLOTS, hca_daemon_name, qpn_block,
};
use ib_cm::CmConfig;
use ib_hca::{Hca, HcaConfig};
use ib_os::alarm::Alarm;
use ib_os::clock;
use ib_roce::{RoceOptions, gid_of};
use ib_types::Instant;
use ib_wire::mad::MgmtClass;

use crate::device::{Device, ECE, Link};
use crate::engines::Engines;
use crate::interface::LocalPort;
use crate::options::{DeviceError, DeviceOptions, seeds};

/// Maximum number of packets that the HCA receives before it sends again.
const ROUND: usize = 64;

/// Number of polls of the rings after which an empty poll also polls the daemon's socket.
const POLLS_PER_SOCKET_POLL: u32 = 256;

impl Device {
    /// Opens an HCA at an IP address. If an HCA daemon serves this address, the HCA attaches to the daemon, and serves
    /// management class `class`, if any. Otherwise, and if the socket has options other than the defaults, the HCA has
    /// its own socket.
    ///
    /// # Errors
    /// Fails if the machine does not have the IP address, or if the UDP port is in use. Fails if the daemon refuses the
    /// HCA.
    pub fn open_or_share(
        options: DeviceOptions,
        class: Option<MgmtClass>,
    ) -> Result<Self, DeviceError> {
        let usual = RoceOptions::new(options.address);
        if (RoceOptions { address: usual.address, ..options.socket.clone() }) != usual {
            return Self::open(options);
        }
        match Self::share(&options, class) {
            Err(DeviceError::Attach(AttachError::NoServer { source, .. }))
                if source.kind() == io::ErrorKind::ConnectionRefused =>
            {
                Self::open(options)
            }
            shared => shared,
        }
    }

    /// Opens an HCA that shares an IP address with other processes: attaches to the HCA daemon of the address.
    ///
    /// # Errors
    /// Fails if no HCA daemon serves the address, or if the daemon refuses the HCA.
    pub fn share(options: &DeviceOptions, class: Option<MgmtClass>) -> Result<Self, DeviceError> {
        let address = options.address;
        let daemon = AttachOptions { name: hca_daemon_name(address), node: None };
        let port = AttachedPort::attach(&daemon, class)?;
        let LocalPort { name, connection_mtu, .. } = LocalPort::of(options)?;
        let details = port.details();
        if details.link_layer != LinkLayer::Ethernet {
            return Err(DeviceError::LinkLayer { name: daemon.name });
        }
        let [seed, cm_seed] = seeds(options.seed)?;
        let guid = details.port.node_guid;
        let config = HcaConfig {
            active_mtu: options.mtu.map_or(details.mtu, |mtu| mtu.min(details.mtu)),
            window: options.window.unwrap_or(SLOTS),
            qpns: qpn_block(details.qpn_block),
            ..HcaConfig::new(guid, vec![gid_of(address)])
        };
        let connection_mtu = connection_mtu.min(config.active_mtu);
        let cm = CmConfig { ca_guid: guid, ece: Some(ECE), ..CmConfig::default() };
        let engines = Engines::new(config, seed, cm, cm_seed);
        let link = Link::Shared(Box::new(Shared::new(port)));
        Ok(Self::new(engines, link, name, address, options.spin, connection_mtu))
    }
}

/// A port of an HCA daemon.
pub(crate) struct Shared {
    pub(crate) port: AttachedPort,
    /// Number of received packets.
    pub(crate) received: u64,
    /// True if a packet may wait for a free slot, because the ring to the daemon was full.
    waits: bool,
    /// Number of polls of the rings since the last poll of the daemon's socket.
    polls: u32,
}

impl Shared {
    pub(crate) const fn new(port: AttachedPort) -> Self {
        Self { port, received: 0, waits: false, polls: 0 }
    }

    /// Sends queued packets until the ring is full. Returns true if any were sent.
    pub(crate) fn transmit(&mut self, now: Instant, hca: &mut Hca) -> bool {
        let mut moved = false;
        loop {
            // If the ring is full, `send_with` does not call the closure. The HCA may then have a packet to send, so
            // `waits` becomes true.
            let mut is_called = false;
            let sent = self.port.send_with(|slot| {
                is_called = true;
                let sent = hca.poll_transmit(now, slot)?;
                Some((Frame::Ethernet { route: sent.route }, sent.length))
            });
            if !sent {
                self.waits = !is_called;
                break;
            }
            moved = true;
        }
        self.port.flush();
        moved
    }

    /// Processes received packets. Returns true if any had arrived.
    pub(crate) fn receive(&mut self, engines: &mut Engines) -> io::Result<bool> {
        let mut count = 0;
        while count < ROUND
            && self.port.receive(|frame, bytes| {
                if let Frame::Ethernet { route } = frame {
                    self.received += 1;
                    // The clock is read after the packet has arrived, so that no trace shows a packet as received
                    // before it was sent.
                    engines.hca.handle(clock::now(), &route, bytes);
                }
            })
        {
            count += 1;
        }
        self.polls += 1;
        if count > 0 {
            self.port.flush();
        } else if self.polls >= POLLS_PER_SOCKET_POLL {
            self.polls = 0;
            self.port.receive_messages().map_err(io::Error::other)?;
        }
        Ok(count > 0)
    }

    /// Waits until a packet arrives, the time `until` has come, or `alarm` is rung. If a packet waits for a slot of the
    /// ring to the daemon, a free slot also ends the wait.
    pub(crate) fn wait(&mut self, until: Instant, alarm: Option<&Alarm>) -> io::Result<()> {
        self.port.wait(until, self.waits, alarm).map_err(io::Error::other)
    }

    /// Prepares a wait in which the caller polls the descriptors of the port. Returns false if there is work already.
    pub(crate) fn begin_wait(&mut self) -> bool {
        self.port.begin_wait(self.waits)
    }
}
