//! [`Demultiplexer`]: selects the HCA that gets a packet, among the HCAs that share a port. Sans-IO.
//!
//! | destination QPN of the packet | HCAs that get the packet |
//! |---|---|
//! | 0xffffff, or a multicast address | all |
//! | 1 | the HCA that serves the management class of the MAD |
//! | any other | the HCA whose block contains the QPN |
//!
//! At most one HCA serves a management class. This also applies to communication management (CM): `Demultiplexer::gsi`
//! does not select among several HCAs by communication ID or service ID.
//!
//! The block of an HCA that has detached is the last of the free blocks to be assigned again. If the process of the HCA
//! was killed, its peers still retransmit packets to its queue pairs. Therefore, the block is also reserved for
//! [`RESERVED`], and packets to it are dropped.

use std::collections::VecDeque;
use std::time::Duration;

use ib_types::{Instant, Qpn};
use ib_wire::mad::MgmtClass;
use ib_wire::packet::{Bth, Deth};

use crate::protocol::{BLOCKS, qpn_block};

/// Time for which a block remains reserved after the process of its HCA was killed.
pub const RESERVED: Duration = Duration::from_secs(2);

/// Maximum number of management classes that an HCA can serve.
pub const MOST_CLASSES: usize = 8;

/// Offset in bytes of the management class in a packet that contains a MAD, counted from the BTH.
const CLASS: usize = Bth::LENGTH + Deth::LENGTH + 1;

/// The HCAs that share a port, and their blocks of queue pair numbers. `client` is the key by which the server
/// identifies an HCA.
#[derive(Debug)]
pub struct Demultiplexer {
    /// The HCAs in the order of their admission.
    members: Vec<Member>,
    /// The HCA of each block, by block index; `None` if the block is free.
    by_block: Box<[Option<usize>]>,
    /// Blocks without a client, and the time until which each is reserved. The first block that is not reserved is the
    /// next one to be assigned.
    free: VecDeque<(u8, Instant)>,
}

#[derive(Debug)]
struct Member {
    client: usize,
    block: u8,
    classes: Vec<MgmtClass>,
}

/// The HCAs that get a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// One HCA.
    One(usize),
    /// All HCAs of the port: the packet is multicast.
    All,
    /// No HCA: no block contains the destination QPN, or no HCA serves the management class.
    None,
}

/// The reason why an HCA cannot share a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    /// Another HCA serves one of the management classes.
    #[error("another HCA serves management class {:#04x}", class.0)]
    ClassInUse {
        /// The management class.
        class: MgmtClass,
        /// The other HCA.
        client: usize,
    },
    /// The HCA serves too many management classes.
    #[error("{found} classes: expected at most {MOST_CLASSES}")]
    Classes {
        /// The number of classes.
        found: usize,
    },
    /// All blocks of queue pair numbers are in use or reserved.
    #[error(
        "{used} HCAs are attached, and {reserved} blocks of queue pair numbers are reserved for {} s each: expected one \
         free block of {BLOCKS}",
        RESERVED.as_secs()
    )]
    NoBlock {
        /// Number of attached HCAs.
        used: usize,
        /// Number of blocks that are reserved because the processes of their HCAs were killed.
        reserved: usize,
    },
}

impl Default for Demultiplexer {
    fn default() -> Self {
        Self {
            members: Vec::new(),
            by_block: vec![None; BLOCKS.into()].into(),
            free: (0..=u8::MAX).map(|block| (block, Instant::ZERO)).collect(),
        }
    }
}

impl Demultiplexer {
    /// Adds an HCA that serves the given management classes. Returns its block of queue pair numbers.
    ///
    /// # Errors
    /// Fails if there are too many classes, if another HCA serves one of them, or if no block is free.
    pub fn admit(
        &mut self,
        now: Instant,
        client: usize,
        classes: &[MgmtClass],
    ) -> Result<u8, AdmissionError> {
        if classes.len() > MOST_CLASSES {
            return Err(AdmissionError::Classes { found: classes.len() });
        }
        for &class in classes {
            if let Some(client) = self.server_of(class) {
                return Err(AdmissionError::ClassInUse { class, client });
            }
        }
        let place = self.free.iter().position(|(_, until)| *until <= now);
        let Some((block, _)) = place.and_then(|place| self.free.remove(place)) else {
            let (used, reserved) = (self.members.len(), self.free.len());
            return Err(AdmissionError::NoBlock { used, reserved });
        };
        self.by_block[usize::from(block)] = Some(client);
        self.members.push(Member { client, block, classes: classes.to_vec() });
        Ok(block)
    }

    /// Adds a management class to those that an attached HCA serves. An unknown HCA is ignored.
    ///
    /// # Errors
    /// Fails if the HCA serves too many classes, or if another HCA serves the class.
    pub fn add_class(&mut self, client: usize, class: MgmtClass) -> Result<(), AdmissionError> {
        if let Some(client) = self.server_of(class).filter(|&other| other != client) {
            return Err(AdmissionError::ClassInUse { class, client });
        }
        let member = self.members.iter_mut().find(|member| member.client == client);
        let Some(member) = member.filter(|member| !member.classes.contains(&class)) else {
            return Ok(());
        };
        if member.classes.len() >= MOST_CLASSES {
            return Err(AdmissionError::Classes { found: member.classes.len() + 1 });
        }
        member.classes.push(class);
        Ok(())
    }

    /// Removes a management class from those that an attached HCA serves.
    pub fn remove_class(&mut self, client: usize, class: MgmtClass) {
        let member = self.members.iter_mut().find(|member| member.client == client);
        if let Some(member) = member {
            member.classes.retain(|other| *other != class);
        }
    }

    /// Removes an HCA that has detached, or whose process was killed.
    pub fn remove(&mut self, now: Instant, client: usize, is_killed: bool) {
        let Some(place) = self.members.iter().position(|member| member.client == client) else {
            return;
        };
        let Member { block, .. } = self.members.remove(place);
        self.by_block[usize::from(block)] = None;
        let reserved_until = if is_killed { now + RESERVED } else { now };
        self.free.push_back((block, reserved_until));
    }

    /// Returns true if no HCA is attached.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns the attached HCAs in the order of their admission.
    pub fn clients(&self) -> impl Iterator<Item = usize> {
        self.members.iter().map(|member| member.client)
    }

    /// Returns the HCAs that get a packet. `packet` starts with the BTH. `is_multicast` is true if the packet has a
    /// multicast address.
    #[must_use]
    pub fn destination(&self, packet: &[u8], is_multicast: bool) -> Destination {
        let Some(header) = packet.first_chunk() else { return Destination::None };
        let client = match Bth::parse(header).destination {
            _ if is_multicast => return Destination::All,
            Qpn::MULTICAST => return Destination::All,
            Qpn::GSI => self.gsi(packet),
            qpn => self.by_block[(qpn.get() >> (24 - BLOCKS.trailing_zeros())) as usize],
        };
        client.map_or(Destination::None, Destination::One)
    }

    /// Returns the HCA that gets a packet to queue pair 1. If no HCA serves the CM class, the first HCA gets the CM's
    /// requests, and rejects them.
    fn gsi(&self, packet: &[u8]) -> Option<usize> {
        let class = MgmtClass(*packet.get(CLASS)?);
        let first = || self.members.first().filter(|_| class == MgmtClass::COMMUNICATION);
        self.server_of(class).or_else(|| first().map(|member| member.client))
    }

    /// Returns the HCA that serves a management class.
    fn server_of(&self, class: MgmtClass) -> Option<usize> {
        let serves = |member: &&Member| member.classes.contains(&class);
        self.members.iter().find(serves).map(|member| member.client)
    }
}

const _: () = assert!(
    BLOCKS == 1 << 8 && qpn_block(u8::MAX).contains(Qpn::MULTICAST),
    "a block has a number of 8 bits, and the last block contains the multicast QPN"
);

#[cfg(test)]
mod tests;
