//! A port of a real HCA as a [`MadLink`].

use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use ib_link::{Datagram, Incoming, LinkError, LinkPort, MadLink, Remote};
use ib_types::{Instant, Qpn, ServiceLevel};
use ib_wire::mad::rmpp::{RmppFlags, RmppType};
use ib_wire::mad::{MAD_LENGTH, Mad, Method, MgmtClass, TransactionId};

use super::abi::{
    ENABLE_PKEY, HEADER, REGISTER_AGENT, REGISTER_AGENT2, Registration, SHORT_HEADER, USER_RMPP,
    UmadHeader,
};
use super::file::File;
use super::{UmadDevice, UmadError};
use ib_os::alarm::{Alarm, AlarmedLink};
use ib_os::clock;

/// A management class that a link registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UmadAgent {
    /// The class.
    pub class: MgmtClass,
    /// OUI of a vendor class, 24 bits.
    pub oui: u32,
    /// Methods of unsolicited MADs to receive, one bit each.
    pub methods: u128,
}

/// Whether the kernel or the user of the link handles RMPP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UmadRmpp {
    /// The user of the link handles RMPP and receives every segment.
    #[default]
    User,
    /// The kernel handles RMPP; see [`UmadLink::receive_message`].
    Kernel,
}

/// Options of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UmadOptions {
    /// The management classes for which the link registers agents.
    pub agents: Vec<UmadAgent>,
    /// Whether the kernel or the user of the link handles RMPP.
    pub rmpp: UmadRmpp,
    /// How long the kernel waits for the response to a request. The kernel drops later responses.
    pub answer_timeout: Duration,
}

impl UmadOptions {
    /// Returns options for the given classes: no unsolicited MADs, RMPP in userspace and a timeout of one second.
    #[must_use]
    pub fn classes(classes: &[MgmtClass]) -> Self {
        let agents = classes.iter().map(|&class| UmadAgent { class, oui: 0x00_1405, methods: 0 });
        Self {
            agents: agents.collect(),
            rmpp: UmadRmpp::User,
            answer_timeout: Duration::from_secs(1),
        }
    }

    /// Returns the options of a subnet manager with SA: agents for SMPs, SA queries and performance counters.
    #[must_use]
    pub fn manager(answer_timeout: Duration) -> Self {
        let wants = |class, methods: &[Method]| {
            let methods = methods.iter().fold(0, |mask, method| mask | 1u128 << method.0);
            UmadAgent { class, oui: 0x00_1405, methods }
        };
        let subnet = [Method::GET, Method::SET, Method::TRAP];
        let administration = [
            Method::GET,
            Method::SET,
            Method::GET_TABLE,
            Method::DELETE,
            Method::GET_TRACE_TABLE,
            Method::GET_MULTI,
        ];
        let agents = vec![
            wants(MgmtClass::SUBN_DIRECTED_ROUTE, &subnet),
            wants(MgmtClass::SUBN_LID_ROUTED, &subnet),
            wants(MgmtClass::SUBN_ADM, &administration),
            wants(MgmtClass::PERFORMANCE, &[]),
        ];
        Self { agents, rmpp: UmadRmpp::User, answer_timeout }
    }
}

/// A received message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UmadMessage {
    /// The sender's address; for a lost request, the address to which it was sent.
    pub remote: Remote,
    /// Number of the local QP of the message: 0 for SMPs, 1 for other classes.
    pub local_qpn: Qpn,
    /// True if this is a sent request that has received no response. Then `bytes` contains the beginning of the
    /// request.
    pub lost: bool,
    /// The bytes of the message: 256 for a single MAD, more for a message of several segments.
    pub bytes: Vec<u8>,
}

/// A request that has not received a response yet.
struct PendingRequest {
    /// Upper half of the transaction ID, which the kernel overwrites.
    upper: u64,
    /// Retransmission that the user of the link has already requested. The link sends it when the kernel reports that
    /// the first transmission received no response.
    retransmission: Option<Vec<u8>>,
    datagram: Datagram,
    /// True if the first segment of a response was received. From then on, the kernel's timeout does not apply.
    answered: bool,
}

/// A port of an HCA.
///
/// If a request receives no response within the kernel's timeout, the link returns [`Incoming::Lost`]. If the user of
/// the link has requested a retransmission before this timeout, the link sends it instead and reports no loss.
///
/// Transaction IDs are preserved if no two outstanding requests of a class have the same lower half. Sent MADs have no
/// GRH, and use the P_Key at index 0.
pub struct UmadLink {
    device: UmadDevice,
    file: File,
    header: usize,
    agents: Vec<(UmadAgent, u32)>,
    answer_timeout: Duration,
    waiting: BTreeMap<(u8, u32), PendingRequest>,
    buffer: Vec<u8>,
}

impl UmadLink {
    /// Opens the device of a port and registers an agent for each class.
    ///
    /// # Errors
    /// Fails if the device cannot be opened or the kernel rejects an agent.
    pub fn open(device: &UmadDevice, options: &UmadOptions) -> Result<Self, UmadError> {
        let path = device.path();
        let failed = |doing| {
            let path = path.clone();
            move |source| UmadError::Io { doing, path, source }
        };
        let file = File::open(Path::new(&path), libc::O_RDWR | libc::O_NONBLOCK);
        let file = file.map_err(failed("opening"))?;
        // libumad2sim accepts this ioctl, but keeps using short headers.
        let long = file.control(ENABLE_PKEY, &mut []).is_ok() && !file.is_emulated();
        let mut agents = Vec::new();
        for &agent in &options.agents {
            let number = register(&file, agent, options.rmpp);
            agents.push((agent, number.map_err(failed("registering a class with"))?));
        }
        Ok(Self {
            device: device.clone(),
            file,
            header: if long { HEADER } else { SHORT_HEADER },
            agents,
            answer_timeout: options.answer_timeout,
            waiting: BTreeMap::new(),
            buffer: vec![0; HEADER + MAD_LENGTH],
        })
    }

    /// Returns the file descriptor, which is readable when a MAD has arrived; `None` if a preloaded library emulates
    /// the device.
    #[must_use]
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.file.descriptor()
    }

    /// Returns the next received message.
    ///
    /// # Errors
    /// Fails if the device was removed.
    pub fn receive_message(&mut self) -> Result<Option<UmadMessage>, LinkError> {
        loop {
            let length = match self.file.read(&mut self.buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => {
                    // After ENOSPC, the umad header contains the size that the buffer needs.
                    let needed = UmadHeader::parse(&self.buffer[..self.header]).length as usize;
                    self.buffer.resize(needed.max(self.buffer.len() * 2), 0);
                    continue;
                }
                Err(error) => return Err(self.failed("receiving", error)),
            };
            if length < self.header + 24 {
                continue;
            }
            let header = UmadHeader::parse(&self.buffer[..self.header]);
            let bytes = self.buffer[self.header..length].to_vec();
            if let Some(message) = self.incoming(&header, bytes)? {
                return Ok(Some(message));
            }
        }
    }

    /// Converts a header and bytes read from the device to a [`UmadMessage`].
    ///
    /// If the kernel reports that a request received no response, and a retransmission of this request is stored, sends
    /// the retransmission and returns `None`.
    fn incoming(
        &mut self,
        header: &UmadHeader,
        mut bytes: Vec<u8>,
    ) -> Result<Option<UmadMessage>, LinkError> {
        let mut mad = Mad::default();
        let length = bytes.len().min(MAD_LENGTH);
        mad.0[..length].copy_from_slice(&bytes[..length]);
        let lost = header.status != 0;
        let queue_pair = u32::from(!mad.class().is_smp());
        let mut remote = Remote {
            lid: header.lid,
            qpn: Qpn::truncated(header.queue_pair),
            sl: ServiceLevel::new(header.sl).unwrap_or_default(),
            path_bits: header.path_bits,
            ..if queue_pair == 0 { Remote::smi(0) } else { Remote::gsi(0) }
        };
        if lost || mad.method().is_response() {
            let key = key(&mad);
            let last = mad.rmpp().flags.contains(RmppFlags::LAST) || bytes.len() > MAD_LENGTH;
            let more_segments = mad.is_rmpp() && !last && !lost;
            let retransmission =
                self.waiting.get_mut(&key).and_then(|waiting| waiting.retransmission.take());
            if let (true, Some(retransmission)) = (lost, retransmission) {
                let written = self.file.write(&retransmission);
                written.map_err(|error| self.failed("retransmitting", error))?;
                return Ok(None);
            }
            if let Some(waiting) = self.waiting.get_mut(&key) {
                waiting.answered = true;
                let id = waiting.upper | u64::from(key.1);
                bytes[8..16].copy_from_slice(&id.to_be_bytes());
                if lost {
                    remote = waiting.datagram.remote;
                    bytes = waiting.datagram.mad.0.to_vec();
                }
                if !more_segments {
                    self.waiting.remove(&key);
                }
            }
        }
        Ok(Some(UmadMessage { remote, local_qpn: Qpn::truncated(queue_pair), lost, bytes }))
    }

    fn write(&mut self, datagram: &Datagram, message: &[u8]) -> Result<(), LinkError> {
        let mad = &datagram.mad;
        let oui = u32::from_be_bytes([0, mad.0[37], mad.0[38], mad.0[39]]);
        let serves = |agent: &UmadAgent| {
            agent.class == mad.class() && (!mad.class().has_oui() || agent.oui == oui)
        };
        let agent = self.agents.iter().find(|(agent, _)| serves(agent));
        let &(_, agent) = agent.ok_or_else(|| LinkError::Unsupported {
            what: mad.to_string(),
            reason: "the link was not opened for its class",
        })?;
        let wants_answer = wants_answer(mad);
        let timeout = if wants_answer { self.answer_timeout } else { Duration::ZERO };
        let remote = &datagram.remote;
        let header = UmadHeader {
            agent,
            timeout_ms: u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX),
            queue_pair: remote.qpn.get(),
            q_key: remote.q_key.0,
            lid: remote.lid,
            sl: remote.sl.get(),
            path_bits: remote.path_bits,
            ..UmadHeader::default()
        };
        let mut bytes = header.to_bytes()[..self.header].to_vec();
        bytes.extend_from_slice(message);
        if wants_answer {
            let upper = mad.transaction_id().0 & !0xffff_ffff;
            let waiting = PendingRequest {
                upper,
                retransmission: None,
                datagram: *datagram,
                answered: false,
            };
            let before = self.waiting.insert(key(mad), waiting);
            let waits = before.is_some_and(|before| !before.answered);
            if waits && !mad.is_rmpp() {
                // The kernel rejects a retransmission while it waits for the response to the first transmission. So the
                // retransmission is stored until the kernel reports a timeout.
                let waiting =
                    self.waiting.get_mut(&key(mad)).expect("the entry was inserted above");
                waiting.retransmission = Some(bytes);
                return Ok(());
            }
        }
        self.file.write(&bytes).map(drop).map_err(|error| self.failed("sending", error))
    }

    fn failed(&self, doing: &str, source: io::Error) -> LinkError {
        match source.raw_os_error() {
            Some(libc::EIO | libc::ENODEV) => LinkError::Closed { peer: self.device.path() },
            _ => LinkError::Io { doing: format!("{doing} through {}", self.device.path()), source },
        }
    }
}

impl MadLink for UmadLink {
    fn port(&mut self) -> Result<LinkPort, LinkError> {
        self.device.link_port().map_err(|error| LinkError::Io {
            doing: format!("reading port {} of {}", self.device.port, self.device.name),
            source: io::Error::other(error),
        })
    }

    fn send(&mut self, datagram: &Datagram) -> Result<(), LinkError> {
        self.write(datagram, &datagram.mad.0)
    }

    /// Returns only the first 256 bytes of a message that the kernel has reassembled. [`UmadLink::receive_message`]
    /// returns all bytes.
    fn receive(&mut self) -> Result<Option<Incoming>, LinkError> {
        let Some(message) = self.receive_message()? else { return Ok(None) };
        let mut mad = Mad::default();
        let length = message.bytes.len().min(MAD_LENGTH);
        mad.0[..length].copy_from_slice(&message.bytes[..length]);
        let datagram = Datagram {
            local_qpn: message.local_qpn,
            length: length as u16,
            ..Datagram::new(message.remote, mad)
        };
        Ok(Some(match message.lost {
            true => Incoming::Lost(datagram),
            false => Incoming::Received(datagram),
        }))
    }

    fn wait(&mut self, until: Instant) -> Result<(), LinkError> {
        let waited = self.file.wait(clock::milliseconds_until(until));
        waited.map_err(|error| self.failed("waiting", error))
    }

    fn now(&self) -> Instant {
        clock::now()
    }
}

impl AlarmedLink for UmadLink {
    fn wait_alarmed(&mut self, until: Instant, alarm: &Alarm) -> Result<(), LinkError> {
        let waited = self.file.wait_alarmed(clock::milliseconds_until(until), alarm);
        waited.map_err(|error| self.failed("waiting", error))
    }
}

/// Holds the port's `IsSM` capability until it is dropped.
pub struct IsSmHolder(#[expect(dead_code, reason = "the open file holds IsSM")] File);

impl IsSmHolder {
    /// Sets `IsSM` in the port's capability mask.
    ///
    /// # Errors
    /// Fails if the device cannot be opened; with [`io::ErrorKind::WouldBlock`] if another process has it open.
    pub fn take(device: &UmadDevice) -> Result<Self, UmadError> {
        let path = device.issm_path()?;
        let file = File::open(Path::new(&path), libc::O_RDWR | libc::O_NONBLOCK);
        file.map(Self).map_err(|source| UmadError::Io { doing: "opening", path, source })
    }
}

/// Returns the management class and the lower half of the transaction ID. The kernel matches responses to requests by
/// this key.
fn key(mad: &Mad) -> (u8, u32) {
    let TransactionId(id) = mad.transaction_id();
    (mad.class().0, id as u32)
}

/// Returns true if a MAD is a request that the peer must answer, or a segment of such a request.
fn wants_answer(mad: &Mad) -> bool {
    let about_a_transfer = mad.is_rmpp() && mad.rmpp().rmpp_type != RmppType::DATA;
    !mad.method().is_response() && mad.method().response().is_some() && !about_a_transfer
}

/// Registers an agent and returns its number.
///
/// If the kernel or library lacks [`REGISTER_AGENT2`], uses [`REGISTER_AGENT`], which has no flag for RMPP in
/// userspace. An agent with RMPP in userspace then has the RMPP version 0, and the kernel passes all segments to it.
fn register(file: &File, agent: UmadAgent, rmpp: UmadRmpp) -> io::Result<u32> {
    let by_user = agent.class.may_use_rmpp() && rmpp == UmadRmpp::User;
    let registration = Registration {
        agent: 0,
        queue_pair: u32::from(!agent.class.is_smp()),
        class: agent.class.0,
        class_version: agent.class.version(),
        flags: if by_user { USER_RMPP } else { 0 },
        methods: agent.methods,
        oui: if agent.class.has_oui() { agent.oui } else { 0 },
        rmpp_version: u8::from(agent.class.may_use_rmpp()),
    };
    let mut new = registration.to_new();
    if file.control(REGISTER_AGENT2, &mut new).is_ok() {
        return Ok(Registration::from_new(&new).agent);
    }
    let rmpp_version = u8::from(agent.class.may_use_rmpp() && rmpp == UmadRmpp::Kernel);
    let mut old = Registration { rmpp_version, ..registration }.to_old();
    file.control(REGISTER_AGENT, &mut old)?;
    Ok(Registration::from_old(&old).agent)
}
