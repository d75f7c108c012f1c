//! A port of a simulated fabric as a [`MadLink`].

use std::io;
use std::os::fd::AsFd;

use ib_link::{Datagram, Incoming, LinkError, LinkPort, MadLink, Remote, UpperBits};
use ib_types::{Instant, QKey, Qpn, ServiceLevel};
use ib_wire::mad::Mad;
use ib_wire::mad::sm::{NodeInfo, PortInfo};
use ib_wire::mad::smp::PERMISSIVE_LID;

use super::{Attach, Client, ClientError, Inbox, Outbox};
use crate::message::{Control, Request, TIMED_OUT, kind};
use ib_os::alarm::{Alarm, AlarmedLink};
use ib_os::clock;

/// Maximum number of sent requests whose upper transaction ID bits the link stores. The simulator overwrites these
/// bits, and the link restores them in the responses.
const MAX_TRANSACTIONS: usize = 1 << 16;

/// A port that another process simulates: ibsim or a process with a
/// [`Server`](crate::server::Server).
///
/// Transaction IDs are preserved, although the simulator overwrites their upper 16 bits. An
/// undelivered request is returned as [`Incoming::Lost`]. The link disconnects when dropped.
pub struct IbsimLink {
    client: Client,
    inbox: Inbox,
    outbox: Outbox,
    upper_bits: UpperBits,
}

impl IbsimLink {
    /// Attaches to a node of a simulator; see [`Client::attach`].
    ///
    /// # Errors
    /// As [`Client::attach`].
    pub fn attach(attach: &Attach) -> Result<Self, ClientError> {
        Ok(Self {
            client: Client::attach(attach)?,
            inbox: Inbox::new(),
            outbox: Outbox::default(),
            upper_bits: UpperBits::new(MAX_TRANSACTIONS),
        })
    }

    /// Returns the link's connection to the server.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    fn ask(&self, kind: u32) -> Result<Control, LinkError> {
        self.client.control(kind, &[]).map_err(|error| self.unanswered(error))
    }

    fn unanswered(&self, error: ClientError) -> LinkError {
        match error {
            ClientError::Io { source, doing, .. } => self.failed(doing, source),
            other => LinkError::Io {
                doing: "querying the port".to_owned(),
                source: io::Error::other(other),
            },
        }
    }

    fn failed(&self, doing: &str, source: io::Error) -> LinkError {
        let peer = format!("the simulator at {}", self.client.server());
        match source.kind() {
            io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::NotConnected => LinkError::Closed { peer },
            _ => LinkError::Io { doing: format!("{doing} ({peer})"), source },
        }
    }

    /// Converts a received message to the link's type.
    fn incoming(&mut self, request: &Request) -> Incoming {
        let mut mad = Mad(request.mad);
        let lost = request.status == TIMED_OUT;
        // The transaction IDs of received responses, and of undelivered requests that the link has sent, need their
        // upper bits back. An undelivered response that the link has sent still has the transaction ID of the peer's
        // request.
        if lost != mad.method().is_response() {
            mad.set_transaction_id(self.upper_bits.restore(mad.transaction_id()));
        }
        let (lid, remote_queue_pair, local_queue_pair) = if lost {
            (request.dlid, request.destination_queue_pair, request.source_queue_pair)
        } else {
            (request.slid, request.source_queue_pair, request.destination_queue_pair)
        };
        let remote = if remote_queue_pair == 0 {
            Remote::smi(lid)
        } else {
            Remote { qpn: Qpn::truncated(remote_queue_pair), q_key: QKey::GSI, ..Remote::gsi(lid) }
        };
        let datagram = Datagram {
            local_qpn: Qpn::truncated(local_queue_pair),
            length: request.length,
            ..Datagram::new(remote, mad)
        };
        if lost { Incoming::Lost(datagram) } else { Incoming::Received(datagram) }
    }
}

impl MadLink for IbsimLink {
    fn port(&mut self) -> Result<LinkPort, LinkError> {
        let info = PortInfo::parse(&self.ask(kind::GET_PORT_INFO)?.payload);
        let node = self.ask(kind::GET_NODE_INFO)?.payload;
        let node = NodeInfo::parse(node.first_chunk().expect("64 bytes hold a NodeInfo"));
        let gid = self.client.gid().map_err(|error| self.unanswered(error));
        let (gid_prefix, port_guid) = gid?;
        Ok(LinkPort {
            node_guid: node.node_guid,
            port_guid,
            // Before an SM has set the GID prefix, the prefix is 0 in ibsim's PortInfo; the GID
            // that ibsim returns has the default prefix.
            gid_prefix: if info.gid_prefix == 0 { gid_prefix } else { info.gid_prefix },
            number: info.local_port,
            lid: info.lid,
            lmc: info.lmc,
            sm_lid: info.master_sm_lid,
            sm_sl: ServiceLevel::new(info.master_sm_sl).unwrap_or_default(),
        })
    }

    fn send(&mut self, datagram: &Datagram) -> Result<(), LinkError> {
        let mut mad = datagram.mad;
        if !mad.method().is_response() {
            mad.set_transaction_id(self.upper_bits.strip(mad.transaction_id()));
        }
        let dlid = datagram.remote.lid;
        self.outbox.push(&Request {
            dlid,
            slid: if dlid == PERMISSIVE_LID { PERMISSIVE_LID } else { 0 },
            destination_queue_pair: datagram.remote.qpn.get(),
            source_queue_pair: datagram.local_qpn.get(),
            status: 0,
            length: datagram.length.min(256),
            mad: mad.0,
        });
        self.outbox.flush(&self.client).map_err(|error| self.failed("sending", error))
    }

    fn receive(&mut self) -> Result<Option<Incoming>, LinkError> {
        let next = self.inbox.next(&self.client);
        let request = next.map_err(|error| self.failed("receiving", error))?;
        Ok(request.map(|request| self.incoming(&request)))
    }

    fn wait(&mut self, until: Instant) -> Result<(), LinkError> {
        self.outbox.flush(&self.client).map_err(|error| self.failed("sending", error))?;
        let writable = !self.outbox.is_empty();
        ib_os::poll::wait(self.client.data(), writable, clock::milliseconds_until(until))
            .map_err(|error| self.failed("waiting", error))
    }

    fn now(&self) -> Instant {
        clock::now()
    }
}

impl AlarmedLink for IbsimLink {
    fn wait_alarmed(&mut self, until: Instant, alarm: &Alarm) -> Result<(), LinkError> {
        self.outbox.flush(&self.client).map_err(|error| self.failed("sending", error))?;
        let data = ib_os::poll::watched(self.client.data(), !self.outbox.is_empty());
        let mut files = [data, ib_os::poll::watched(alarm.as_fd(), false)];
        ib_os::poll::wait_any(&mut files, clock::milliseconds_until(until))
            .map_err(|error| self.failed("waiting", error))
    }
}
