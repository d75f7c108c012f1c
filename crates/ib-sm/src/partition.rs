//! Partitions: which ports may talk to which, in the notation of OpenSM's partition file.
//!
//! ```text
//! # comments end with the line
//! Default=0x7fff, ipoib : ALL=limited, SELF=full ;
//! storage=0x0010, rate=7, mtu=5 : 0x0002c90300a1b2c3=full,
//!                                 0x0002c90300a1b2c5 ;
//! ```
//!
//! A definition is a name, `=` and a P_Key (without one the next free is taken), flags behind commas,
//! a colon, members behind commas, and a semicolon. A member is a port GUID, `ALL`, `ALL_CAS`,
//! `ALL_SWITCHES`, `ALL_ROUTERS` or `SELF`, with `=full`, `=limited` or `=both`.

use std::collections::{BTreeMap, BTreeSet};

use ib_topology::ParseError;
use ib_types::{Guid, NodeKind, PKey};
use ib_wire::mad::sa::RateCode;
use ib_wire::mad::sm::MtuCode;

mod parse;

pub use parse::parse;

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// What the file calls it.
    pub name: String,
    /// The P_Key, 1 to 0x7fff; the uppermost bit tells full from limited members and is not set here.
    pub key: u16,
    /// The broadcast group of `IPoIB`, when it is to be there from the start.
    pub ipoib: Option<Broadcast>,
    /// The service level of its paths.
    pub sl: u8,
    /// Whether the key stands at index 0 of the members' tables.
    pub first: bool,
    /// The members, in the order of the file: later ones prevail.
    pub members: Vec<(Who, Membership)>,
}

/// The broadcast group of `IPoIB` in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broadcast {
    /// The rate that members need.
    pub rate: RateCode,
    /// The MTU.
    pub mtu: MtuCode,
    /// The Q_Key.
    pub q_key: u32,
    /// How far it reaches, 1 to 14.
    pub scope: u8,
    /// The traffic class.
    pub traffic_class: u8,
    /// The flow label.
    pub flow_label: u32,
}

impl Default for Broadcast {
    /// 10 Gbit/s, 2048 bytes, Q_Key 0xb1b, link-local, as OpenSM has it.
    fn default() -> Self {
        Self {
            rate: RateCode::GBPS_10,
            mtu: MtuCode::MTU_2048,
            q_key: 0xb1b,
            scope: 2,
            traffic_class: 0,
            flow_label: 0,
        }
    }
}

/// Who is a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The port with a GUID.
    Port(Guid),
    /// Every port with LIDs.
    All,
    /// Every port with LIDs of a kind of nodes.
    Kind(NodeKind),
    /// The subnet manager's port.
    Manager,
}

/// How a port takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// It may talk to all members.
    Full,
    /// It may talk to full members only.
    Limited,
    /// It has both keys.
    Both,
}

/// All partitions of a subnet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partitions {
    all: Vec<Partition>,
}

impl Default for Partitions {
    /// Returns the default partition alone, with all ports as full members.
    fn default() -> Self {
        Self {
            all: vec![Partition {
                name: "Default".to_owned(),
                key: PKey::DEFAULT.partition(),
                ipoib: Some(Broadcast::default()),
                sl: 0,
                first: true,
                members: vec![(Who::All, Membership::Full)],
            }],
        }
    }
}

impl Partitions {
    /// Returns the partitions of a file.
    ///
    /// Ports are in the default partition whatever the file says: without it nobody could ask the
    /// subnet manager for anything. Those that the file does not name there are limited members, the
    /// manager is a full one.
    ///
    /// # Errors
    /// As [`parse()`].
    pub fn read(file_name: &str, bytes: &[u8]) -> Result<Self, ParseError> {
        let mut all = parse(file_name, bytes)?;
        let default = PKey::DEFAULT.partition();
        let everybody = [(Who::All, Membership::Limited), (Who::Manager, Membership::Full)];
        match all.iter_mut().find(|partition| partition.key == default) {
            Some(partition) => {
                partition.members.splice(0..0, everybody);
            }
            None => all.insert(
                0,
                Partition {
                    name: "Default".to_owned(),
                    key: default,
                    ipoib: None,
                    sl: 0,
                    first: true,
                    members: everybody.to_vec(),
                },
            ),
        }
        Ok(Self { all })
    }

    /// Returns the partitions, in order.
    #[must_use]
    pub fn all(&self) -> &[Partition] {
        &self.all
    }

    /// Returns the one of a port's keys that stands at index 0, when a partition asks for that.
    #[must_use]
    pub fn first_key(&self, keys: &[PKey]) -> Option<PKey> {
        let asks = |key: &&PKey| self.all.iter().any(|it| it.first && it.key == key.partition());
        keys.iter().find(asks).copied()
    }

    /// Returns the keys of a port: those that stand first, then the others, each by rising number, a
    /// full membership before a limited one.
    #[must_use]
    pub fn keys(&self, port: Guid, kind: NodeKind, is_manager: bool) -> Vec<PKey> {
        let mut first: BTreeSet<(bool, u16, bool)> = BTreeSet::new();
        let mut seen: BTreeMap<u16, Membership> = BTreeMap::new();
        for partition in &self.all {
            for &(who, membership) in &partition.members {
                let meant = match who {
                    Who::Port(guid) => guid == port,
                    Who::All => true,
                    Who::Kind(of) => of == kind,
                    Who::Manager => is_manager,
                };
                if meant {
                    seen.insert(partition.key, membership);
                }
            }
            let stands_later = !(partition.first || partition.key == PKey::DEFAULT.partition());
            if let Some(membership) = seen.get(&partition.key) {
                let (full, limited) = match membership {
                    Membership::Full => (true, false),
                    Membership::Limited => (false, true),
                    Membership::Both => (true, true),
                };
                if full {
                    first.insert((stands_later, partition.key, false));
                }
                if limited {
                    first.insert((stands_later, partition.key, true));
                }
            }
        }
        let key =
            |(_, key, limited): (bool, u16, bool)| PKey(if limited { key } else { key | 0x8000 });
        first.into_iter().map(key).collect()
    }
}

#[cfg(test)]
mod tests;
