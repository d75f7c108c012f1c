//! A port of a real HCA at which an ACM service sends and receives MADs only.

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

/// How often a port is asked what it is now: nobody tells users of management datagrams of its changes.
const LOOK: Duration = Duration::from_secs(2);

/// How long is waited at a time for a device that a preloaded library has made up: nothing wakes who waits for it and
/// for other files.
const SLICE: Duration = Duration::from_millis(10);

/// How long the kernel waits for answers; requests are sent again before that.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// The keys of a block.
const BLOCK: usize = 32;

/// Why a port cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UmadPortError {
    /// Its device cannot be used.
    #[error(transparent)]
    Device(#[from] UmadError),
    /// It does not say what it is.
    #[error("port {port} of {device} does not tell its {what}: {source}")]
    Silent {
        /// The HCA.
        device: String,
        /// The port.
        port: u8,
        /// What was asked for.
        what: AttributeId,
        /// What came instead.
        source: CallError,
    },
}

/// A port of an HCA, by its umad device. It has no queue pairs: [`PortState::has_datagrams`] is false.
pub struct UmadPort {
    link: UmadLink,
    /// The addresses that the system does not tell.
    names: Vec<Address>,
    state: PortState,
    changes: u64,
    mads: VecDeque<Incoming>,
    /// Who asks the port what it is.
    requester: Requester,
    /// What it has said, until it has said all.
    info: Option<PortInfo>,
    keys: Vec<PKey>,
    next_look: Instant,
}

impl UmadPort {
    /// Opens a port and waits until it has said what it is. Its names are those that are given, and the addresses
    /// that the system's `IPoIB` interfaces have at it in the default partition.
    ///
    /// # Errors
    /// Fails when its device cannot be used, or it does not answer within some seconds.
    pub fn open(device: &UmadDevice, names: Vec<Address>) -> Result<Self, UmadPortError> {
        let classes = [MgmtClass::SUBN_DIRECTED_ROUTE, MgmtClass::SUBN_ADM];
        let options =
            UmadOptions { answer_timeout: ANSWER_WITHIN, ..UmadOptions::classes(&classes) };
        let mut link = UmadLink::open(device, &options)?;
        let port = device.link_port()?;
        let mut client = Client::new(RequesterConfig { tag: 0x2e, ..RequesterConfig::default() });
        let mut ask = |link: &mut UmadLink, request| client.call(link, request);
        let silent = |what| {
            let (device, port) = (device.name.clone(), device.port);
            move |source| UmadPortError::Silent { device, port, what, source }
        };
        let number = u32::from(port.number);
        let node = ask(&mut link, request(AttributeId::NODE_INFO, 0));
        let node = node.map_err(silent(AttributeId::NODE_INFO))?;
        let node: NodeInfo = attribute(&node).unwrap_or_else(NodeInfo::zeroed);
        let info = ask(&mut link, request(AttributeId::PORT_INFO, number));
        let info = info.map_err(silent(AttributeId::PORT_INFO))?;
        let mut keys = vec![PKey(0); usize::from(node.partition_cap).next_multiple_of(BLOCK)];
        for (block, place) in keys.chunks_mut(BLOCK).enumerate() {
            let answer = ask(&mut link, request(AttributeId::P_KEY_TABLE, block as u32));
            let answer = answer.map_err(silent(AttributeId::P_KEY_TABLE))?;
            if let Some(table) = attribute::<PKeyTable>(&answer) {
                place.copy_from_slice(&table.keys);
            }
        }
        let info = attribute(&info).unwrap_or_else(PortInfo::zeroed);
        let mut state = state_of(&port, &info, &keys);
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
            keys,
            next_look: clock::now() + LOOK,
        };
        this.state.names = this.all_names();
        Ok(this)
    }

    /// Gives it other names.
    pub fn set_names(&mut self, names: Vec<Address>) {
        self.names = names;
        let names = self.all_names();
        self.update(PortState { names, ..self.state.clone() });
    }

    /// Moves what can be moved; returns whether there was anything.
    ///
    /// # Errors
    /// Fails when the device has gone.
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
            self.take(&completion);
        }
        if self.requester.outstanding() == 0 && self.next_look <= now {
            self.look(now);
        }
        while let Some(datagram) = self.requester.poll_transmit(now) {
            self.link.send(&datagram)?;
        }
        Ok(moved)
    }

    /// Returns the file that can be read when something comes; none for a device that a preloaded library has made up,
    /// which the system knows nothing of.
    #[must_use]
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.link.file()
    }

    /// Returns until when may be waited for its file.
    #[must_use]
    pub fn wait_until(&self) -> Instant {
        let slice = self.link.file().is_none().then(|| clock::now() + SLICE);
        let due = self.requester.poll_timeout();
        due.into_iter().chain(slice).fold(self.next_look, Instant::min)
    }

    /// Asks the port what it is now.
    fn look(&mut self, now: Instant) {
        self.next_look = now + LOOK;
        self.info = None;
        let mut ask = |id, modifier| {
            self.requester.start(request(id, modifier)).expect("a method that is answered");
        };
        ask(AttributeId::PORT_INFO, self.state.link.number.into());
        for block in 0..self.keys.len() / BLOCK {
            ask(AttributeId::P_KEY_TABLE, block as u32);
        }
    }

    /// Takes what the port has said.
    fn take(&mut self, completion: &Completion) {
        let Ok(message) = &completion.result else { return };
        let block = BLOCK * message.mad().attribute_modifier() as usize;
        if let Some(info) = attribute::<PortInfo>(message) {
            self.info = Some(info);
        } else if let Some(table) = attribute::<PKeyTable>(message)
            && let Some(keys) = self.keys.get_mut(block..block + BLOCK)
        {
            keys.copy_from_slice(&table.keys);
        }
        if self.requester.outstanding() == 0
            && let Some(info) = self.info.take()
        {
            let state = state_of(&self.state.link, &info, &self.keys);
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

/// Returns a question to the own node.
fn request(id: AttributeId, modifier: u32) -> Request {
    let mad = smp::directed_request(Method::GET, TransactionId(0), (id, modifier), &[]);
    Request::new(Remote::directed(), mad)
}

fn attribute<A: Attribute>(message: &Message) -> Option<A> {
    message.mad().attribute().filter(|_| message.status().is_ok())
}

/// Returns what a port is, but for its names and its HCA.
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
        // Only those register for something who have queue pairs.
        registrations: 0,
        has_datagrams: false,
        names: Vec::new(),
    }
}
