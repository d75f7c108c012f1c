//! Partitions: which ports may talk to which, in the notation of OpenSM's partition file.
//!
//! ```text
//! # comments end with the line
//! Default=0x7fff, ipoib : ALL=limited, SELF=full ;
//! storage=0x0010, rate=7, mtu=5 : 0x0002c90300a1b2c3=full,
//!     0x0002c90300a1b2c5
//!     mgid=ff12::1, sl=1 # a group
//! ;
//! ```
//!
//! A definition is a name, `=` and a P_Key (without one the next free is taken), flags behind commas,
//! a colon, members and groups, and a semicolon; definitions with the same key are one partition. A member
//! is a port GUID, `ALL`, `ALL_CAS`, `ALL_SWITCHES`, `ALL_ROUTERS` or `SELF`, with `=full`, `=limited` or
//! `=both`. A group is `mgid=`, its GID and flags, up to the end of the line.

use std::collections::BTreeMap;

use ib_topology::ParseError;
use ib_types::{Gid, Guid, NodeKind, PKey};
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
    /// Whether the key stands at index 0 of the members' tables.
    pub first: bool,
    /// The service level of the paths in it, where VLs are set up.
    pub sl: u8,
    /// The members, in the order of the file: later ones prevail.
    pub members: Vec<(Who, Membership)>,
    /// The multicast groups that are there from the start.
    pub groups: Vec<Group>,
}

/// A multicast group of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its GID.
    pub mgid: Gid,
    /// The rate that members need.
    pub rate: RateCode,
    /// The MTU.
    pub mtu: MtuCode,
    /// The service level.
    pub sl: u8,
    /// Whether the service level is its partition's, which counts only where VLs are set up.
    pub sl_of_partition: bool,
    /// The Q_Key.
    pub q_key: u32,
    /// The traffic class.
    pub traffic_class: u8,
    /// The flow label.
    pub flow_label: u32,
}

impl Group {
    /// Returns the broadcast group of `IPoIB` in the partition of a key: 10 Gbit/s, 2048 bytes, Q_Key
    /// 0xb1b, link-local, as OpenSM has it; RFC 4391, chapter 4.
    #[must_use]
    pub fn broadcast(key: u16) -> Self {
        let head = 0xff12_401b_0000_0000 | u64::from(key | 0x8000) << 16;
        Self {
            mgid: Gid(u128::from(head) << 64 | 0xffff_ffff),
            rate: RateCode::GBPS_10,
            mtu: MtuCode::MTU_2048,
            sl: 0,
            sl_of_partition: true,
            q_key: 0xb1b,
            traffic_class: 0,
            flow_label: 0,
        }
    }

    /// Returns how far it reaches; 2 for its link.
    #[must_use]
    pub const fn scope(&self) -> u8 {
        (self.mgid.0 >> 112) as u8 & 0xf
    }

    /// Says whether it is the broadcast group of `IPoIB`.
    #[must_use]
    pub const fn is_broadcast(&self) -> bool {
        (self.mgid.0 >> 96) as u16 == 0x401b && self.mgid.0 as u64 == 0xffff_ffff
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
    warnings: Vec<ParseError>,
}

impl Default for Partitions {
    /// Returns the default partition alone, with all ports as full members.
    fn default() -> Self {
        Self {
            all: vec![Partition {
                name: "Default".to_owned(),
                key: PKey::DEFAULT.partition(),
                first: false,
                sl: 0,
                members: vec![(Who::All, Membership::Full)],
                groups: vec![Group::broadcast(PKey::DEFAULT.partition())],
            }],
            warnings: Vec::new(),
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
    /// As [`parse()`]. What is only strange is passed over, and is among the warnings.
    pub fn read(file_name: &str, bytes: &[u8]) -> Result<Self, ParseError> {
        let (mut all, warnings) = parse(file_name, bytes)?;
        if all.is_empty() {
            let message = "found no partition, expected one; there is the default partition alone";
            let (file, message) = (file_name.to_owned(), message.to_owned());
            let warnings = vec![ParseError { file, line: 1, column: 1, message }];
            return Ok(Self { warnings, ..Self::default() });
        }
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
                    first: false,
                    sl: 0,
                    members: everybody.to_vec(),
                    groups: Vec::new(),
                },
            ),
        }
        Ok(Self { all, warnings })
    }

    /// Returns what the file says that was passed over, with its place.
    #[must_use]
    pub fn warnings(&self) -> &[ParseError] {
        &self.warnings
    }

    /// Returns the partitions, in order.
    #[must_use]
    pub fn all(&self) -> &[Partition] {
        &self.all
    }

    /// Returns the one of a port's keys that stands at index 0, when a partition asks for that: the one
    /// with the lowest number.
    #[must_use]
    pub fn first_key(&self, keys: &[PKey]) -> Option<PKey> {
        let asks = |key: &&PKey| self.all.iter().any(|it| it.first && it.key == key.partition());
        keys.iter().filter(asks).min_by_key(|key| key.partition()).copied()
    }

    /// Returns the keys of a port by rising number, a limited membership before a full one. The default
    /// partition stands first unless another one asks for that.
    #[must_use]
    pub fn keys(&self, port: Guid, kind: NodeKind, is_manager: bool) -> Vec<PKey> {
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
        }
        let mut keys = Vec::new();
        for (key, membership) in seen {
            if membership != Membership::Full {
                keys.push(PKey(key));
            }
            if membership != Membership::Limited {
                keys.push(PKey(key | 0x8000));
            }
        }
        if self.first_key(&keys).is_none() {
            keys.sort_by_key(|key| key.partition() != PKey::DEFAULT.partition());
        }
        keys
    }
}

#[cfg(test)]
mod tests;
