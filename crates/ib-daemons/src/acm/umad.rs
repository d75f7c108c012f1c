//! A port of a real HCA. At such a port an ACM service only sends and receives MADs.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use ib_acm::{Action, Address, Arrived, Port, PortState};
use ib_link::{Incoming, LinkError, LinkPort, MadLink, Remote};
use ib_mad::{CallError, Client, Completion, Message, Request, Requester, RequesterConfig};
use ib_os::clock;
use ib_types::{Instant, PKey, ServiceLevel};
use ib_umad::{UmadDevice, UmadError, UmadLink, UmadOptions};
use ib_wire::mad::sm::{NodeInfo, PKeyTable, PortInfo, PortState as Logical};
use ib_wire::mad::{Attribute, AttributeId, Method, MgmtClass, TransactionId, smp};

use super::ipoib;

/// Interval at which the `PortInfo` and the P_Key table are read. A umad device does not report when its port changes.
const PORT_QUERY_INTERVAL: Duration = Duration::from_secs(2);

/// Interval at which a simulated umad device of `ib-preload` is polled. It has no file descriptor to wait for.
const EMULATED_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The kernel's timeout for the response to a MAD. The requester retransmits earlier.
const KERNEL_TIMEOUT: Duration = Duration::from_secs(1);

/// Number of P_Keys in one block of the P_Key table.
const P_KEYS_PER_BLOCK: usize = 32;

/// Error: the service cannot use a port of an HCA.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UmadPortError {
    /// The umad device cannot be opened.
    #[error(transparent)]
    Device(#[from] UmadError),
    /// An attribute of the port could not be read.
    #[error("cannot read {attribute} of port {port} of {device}: {source}")]
    Query {
        /// Name of the HCA.
        device: String,
        /// Number of the port at the HCA.
        port: u8,
        /// The attribute that could not be read.
        attribute: AttributeId,
        /// The reason why the attribute could not be read.
        source: CallError,
    },
}

/// A port of an HCA with a umad device. Since it has no UD QPs, [`PortState::has_datagrams`] is false.
pub struct UmadPort {
    link: UmadLink,
    /// The names and addresses that the caller has assigned to the port. The IP addresses of its `IPoIB` interfaces are
    /// not included.
    names: Vec<Address>,
    state: PortState,
    changes: u64,
    mads: VecDeque<Incoming>,
    /// Requester of the SMPs that read the port's attributes.
    requester: Requester,
    /// The `PortInfo` that was read last. It takes effect once the whole P_Key table has been read as well.
    info: Option<PortInfo>,
    /// The P_Key table, including unused entries of its last block.
    p_keys: Vec<PKey>,
    next_query: Instant,
}

impl UmadPort {
    /// Opens a port and reads its attributes. Blocks until all responses have arrived.
    ///
    /// The port has the names `names` and the IP addresses of its `IPoIB` interfaces in the default partition.
    ///
    /// # Errors
    /// Fails if the device cannot be opened, or if the port does not respond within a few seconds.
    pub fn open(device: &UmadDevice, names: Vec<Address>) -> Result<Self, UmadPortError> {
        let classes = [MgmtClass::SUBN_DIRECTED_ROUTE, MgmtClass::SUBN_ADM];
        let options =
            UmadOptions { answer_timeout: KERNEL_TIMEOUT, ..UmadOptions::classes(&classes) };
        let mut link = UmadLink::open(device, &options)?;
        let port = device.link_port()?;
        let mut client = Client::new(RequesterConfig { tag: 0x2e, ..RequesterConfig::default() });
        let mut query = |id, modifier| {
            client.call(&mut link, get_request(id, modifier)).map_err(|source| {
                let device = device.name.clone();
                UmadPortError::Query { device, port: port.number, attribute: id, source }
            })
        };
        let node = query(AttributeId::NODE_INFO, 0)?;
        let node: NodeInfo = attribute(&node).unwrap_or_else(NodeInfo::zeroed);
        let info = query(AttributeId::PORT_INFO, port.number.into())?;
        let info = attribute(&info).unwrap_or_else(PortInfo::zeroed);
        let capacity = usize::from(node.partition_cap).next_multiple_of(P_KEYS_PER_BLOCK);
        let mut p_keys = vec![PKey(0); capacity];
        for (block, keys) in p_keys.chunks_mut(P_KEYS_PER_BLOCK).enumerate() {
            let response = query(AttributeId::P_KEY_TABLE, block as u32)?;
            if let Some(table) = attribute::<PKeyTable>(&response) {
                keys.copy_from_slice(&table.keys);
            }
        }
        let mut state = state_of(&port, &info, &p_keys);
        state.device = device.name.as_str().into();
        state.port_count = node.num_ports;
        let mut this = Self {
            link,
            names,
            state,
            changes: 0,
            mads: VecDeque::new(),
            requester: Requester::new(RequesterConfig { tag: 0x2d, ..RequesterConfig::default() }),
            info: None,
            p_keys,
            next_query: clock::now() + PORT_QUERY_INTERVAL,
        };
        this.state.names = this.all_names();
        Ok(this)
    }

    /// Replaces the names that were passed to [`UmadPort::open`].
    pub fn set_names(&mut self, names: Vec<Address>) {
        self.names = names;
        let names = self.all_names();
        self.update(PortState { names, ..self.state.clone() });
    }

    /// Receives pending MADs. Also queries the port's attributes, if the next query is due. Returns true if a MAD was
    /// received or reported as lost.
    ///
    /// # Errors
    /// Fails if the device was removed.
    pub fn progress(&mut self) -> Result<bool, LinkError> {
        let now = clock::now();
        let mut moved = false;
        while let Some(incoming) = self.link.receive()? {
            moved = true;
            let (Incoming::Received(datagram) | Incoming::Lost(datagram)) = &incoming;
            if datagram.mad.class().is_smp() {
                self.requester.handle(now, &incoming);
            } else {
                self.mads.push_back(incoming);
            }
        }
        if self.requester.poll_timeout().is_some_and(|at| at <= now) {
            self.requester.handle_timeout(now);
        }
        while let Some(completion) = self.requester.poll_event() {
            self.handle_completion(&completion);
        }
        if self.requester.outstanding() == 0 && self.next_query <= now {
            self.query_port(now);
        }
        while let Some(datagram) = self.requester.poll_transmit(now) {
            self.link.send(&datagram)?;
        }
        Ok(moved)
    }

    /// Returns the descriptor that becomes readable when a MAD is received; `None` for a simulated umad device of
    /// `ib-preload`.
    #[must_use]
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.link.file()
    }

    /// Returns the latest time at which [`UmadPort::progress`] must be called again.
    #[must_use]
    pub fn wait_until(&self) -> Instant {
        let next_poll = self.link.file().is_none().then(|| clock::now() + EMULATED_POLL_INTERVAL);
        let timeout = self.requester.poll_timeout();
        timeout.into_iter().chain(next_poll).fold(self.next_query, Instant::min)
    }

    /// Starts to query the `PortInfo` and the P_Key table.
    fn query_port(&mut self, now: Instant) {
        self.next_query = now + PORT_QUERY_INTERVAL;
        self.info = None;
        let mut query = |id, modifier| {
            let request = get_request(id, modifier);
            self.requester.start(request).expect("a Get has a response");
        };
        query(AttributeId::PORT_INFO, self.state.link.number.into());
        for block in 0..self.p_keys.len() / P_KEYS_PER_BLOCK {
            query(AttributeId::P_KEY_TABLE, block as u32);
        }
    }

    /// Handles one response to the queries that [`UmadPort::query_port`] has started. The last response updates the
    /// port's state.
    fn handle_completion(&mut self, completion: &Completion) {
        let Ok(message) = &completion.result else { return };
        let start = P_KEYS_PER_BLOCK * message.mad().attribute_modifier() as usize;
        if let Some(info) = attribute::<PortInfo>(message) {
            self.info = Some(info);
        } else if let Some(table) = attribute::<PKeyTable>(message)
            && let Some(keys) = self.p_keys.get_mut(start..start + P_KEYS_PER_BLOCK)
        {
            keys.copy_from_slice(&table.keys);
        }
        if self.requester.outstanding() == 0
            && let Some(info) = self.info.take()
        {
            let state = state_of(&self.state.link, &info, &self.p_keys);
            let (device, port_count) = (self.state.device.clone(), self.state.port_count);
            self.update(PortState { device, port_count, names: self.all_names(), ..state });
        }
    }

    fn update(&mut self, state: PortState) {
        if state != self.state {
            self.state = state;
            self.changes += 1;
        }
    }

    fn all_names(&self) -> Vec<Address> {
        let own = ipoib::addresses(Path::new(ipoib::INTERFACES), self.state.link.gid());
        self.names.iter().cloned().chain(own.into_iter().map(Address::from)).collect()
    }
}

impl Port for UmadPort {
    fn changes(&self) -> u64 {
        self.changes
    }

    fn state(&self) -> PortState {
        self.state.clone()
    }

    fn act(&mut self, action: &Action) -> bool {
        match action {
            Action::Mad(datagram) => self.link.send(datagram).is_ok(),
            _ => false,
        }
    }

    fn receive(&mut self) -> Option<Arrived> {
        self.mads.pop_front().map(|incoming| Arrived::Mad(Box::new(incoming)))
    }
}

/// Returns a Get of an attribute of this node: a directed-route SMP with zero hops.
fn get_request(id: AttributeId, modifier: u32) -> Request {
    let mad = smp::directed_request(Method::GET, TransactionId(0), (id, modifier), &[]);
    Request::new(Remote::directed(), mad)
}

/// Returns the attribute that a response contains; `None` if the response has an error status.
fn attribute<A: Attribute>(message: &Message) -> Option<A> {
    message.mad().attribute().filter(|_| message.status().is_ok())
}

/// Returns the state of a port. The caller must set the port's names, and the name and the port count of the HCA.
fn state_of(port: &LinkPort, info: &PortInfo, keys: &[PKey]) -> PortState {
    let link = LinkPort {
        gid_prefix: info.gid_prefix,
        lid: info.lid,
        lmc: info.lmc,
        sm_lid: info.master_sm_lid,
        sm_sl: ServiceLevel::new(info.master_sm_sl).unwrap_or_default(),
        ..*port
    };
    PortState {
        device: Box::default(),
        port_count: 0,
        link,
        is_active: info.port_state == Logical::ACTIVE && info.lid != 0,
        mtu: info.neighbor_mtu,
        rate: info.rate(),
        p_keys: keys.iter().copied().filter(|key| key.0 & 0x7fff != 0).collect(),
        // Client reregistrations are not counted: a umad device does not report them, and a port without UD QPs has no
        // multicast groups to rejoin.
        registrations: 0,
        has_datagrams: false,
        names: Vec::new(),
    }
}
