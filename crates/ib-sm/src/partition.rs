//! Partitions and their members, read from OpenSM's partition file.
//!
//! ```text
//! # comments extend to the end of the line
//! Default=0x7fff, ipoib : ALL=limited, SELF=full ;
//! storage=0x0010, rate=7, mtu=5 : 0x0002c90300a1b2c3=full,
//!     0x0002c90300a1b2c5
//!     mgid=ff12::1, sl=1   # a group
//!     ;
//! ```
//!
//! A definition consists of a name, `=` and a P_Key, flags after commas, a colon, members and groups, and a semicolon.
//! Without a P_Key, the partition gets the next free one. Definitions with the same P_Key form one partition. A member
//! is a port GUID, `ALL`, `ALL_CAS`, `ALL_SWITCHES`, `ALL_ROUTERS` or `SELF` (the SM's port). It may end with `=full`,
//! `=limited` or `=both`. A group is `mgid=`, its GID and flags, up to the end of the line.

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
    /// Name of the partition.
    pub name: String,
    /// P_Key without the membership bit, 1 to 0x7fff.
    pub key: u16,
    /// True if the members have this P_Key at index 0 of their tables (flag `indx0`).
    pub first: bool,
    /// Service level of the partition's paths. It applies only if quality of service is enabled.
    pub sl: u8,
    /// Members, in the order of the file. If several select a port, the last one applies.
    pub members: Vec<(MemberSpec, Membership)>,
    /// Multicast groups that exist even if they have no members.
    pub groups: Vec<Group>,
}

/// A multicast group of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// MGID.
    pub mgid: Gid,
    /// Rate of the group, which members must support.
    pub rate: RateCode,
    /// MTU of the group, which members must support.
    pub mtu: MtuCode,
    /// Service level.
    pub sl: u8,
    /// True if the group itself specifies no service level. `sl` is then that of its partition, and applies only if
    /// quality of service is enabled.
    pub sl_of_partition: bool,
    /// Q_Key.
    pub q_key: u32,
    /// Traffic class.
    pub traffic_class: u8,
    /// Flow label.
    pub flow_label: u32,
}

impl Group {
    /// Returns the `IPoIB` broadcast group of a partition. As in OpenSM, it has 10 Gbit/s, MTU 2048, Q_Key 0xb1b and
    /// link-local scope. Source: RFC 4391, section 4.
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

    /// Returns the scope in the MGID; 2 means link-local.
    #[must_use]
    pub const fn scope(&self) -> u8 {
        (self.mgid.0 >> 112) as u8 & 0xf
    }

    /// Returns true for the `IPoIB` broadcast group.
    #[must_use]
    pub const fn is_broadcast(&self) -> bool {
        (self.mgid.0 >> 96) as u16 == 0x401b && self.mgid.0 as u64 == 0xffff_ffff
    }
}

/// The ports that a member entry of a partition selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberSpec {
    /// The port with this GUID.
    Port(Guid),
    /// All end ports.
    All,
    /// All end ports of one node type.
    Kind(NodeKind),
    /// The SM's port.
    Manager,
}

/// The membership of a port in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// Full member: it may communicate with all members.
    Full,
    /// Limited member: it may communicate only with full members.
    Limited,
    /// The port has the P_Keys of both memberships.
    Both,
}

/// The partitions of a subnet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partitions {
    all: Vec<Partition>,
    warnings: Vec<ParseError>,
}

impl Default for Partitions {
    /// Returns only the default partition, with all ports as full members.
    fn default() -> Self {
        Self {
            all: vec![Partition {
                name: "Default".to_owned(),
                key: PKey::DEFAULT.partition(),
                first: false,
                sl: 0,
                members: vec![(MemberSpec::All, Membership::Full)],
                groups: vec![Group::broadcast(PKey::DEFAULT.partition())],
            }],
            warnings: Vec::new(),
        }
    }
}

impl Partitions {
    /// Reads a partition file.
    ///
    /// All ports are members of the default partition, because they need it to query the SA. If the file does not list
    /// a port in the default partition, the SM's port is a full member, and every other port is a limited member.
    ///
    /// # Errors
    /// Fails with the errors of [`parse()`]. Invalid flags and values are ignored, and [`Partitions::warnings`] reports
    /// them.
    pub fn read(file_name: &str, bytes: &[u8]) -> Result<Self, ParseError> {
        let (mut all, warnings) = parse(file_name, bytes)?;
        if all.is_empty() {
            let message = "found no partition, expected one; only the default partition exists";
            let (file, message) = (file_name.to_owned(), message.to_owned());
            let warnings = vec![ParseError { file, line: 1, column: 1, message }];
            return Ok(Self { warnings, ..Self::default() });
        }
        let default = PKey::DEFAULT.partition();
        let everybody =
            [(MemberSpec::All, Membership::Limited), (MemberSpec::Manager, Membership::Full)];
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

    /// Returns warnings about flags and values that were ignored. Each has a line and a column.
    #[must_use]
    pub fn warnings(&self) -> &[ParseError] {
        &self.warnings
    }

    /// Returns the partitions in the order of the file. If the file does not define the default partition, that
    /// partition comes first.
    #[must_use]
    pub fn all(&self) -> &[Partition] {
        &self.all
    }

    /// Returns the P_Key for index 0 of a port's table: the lowest of the port's P_Keys whose partition has `indx0`;
    /// `None` if there is no such P_Key.
    #[must_use]
    pub fn first_key(&self, keys: &[PKey]) -> Option<PKey> {
        let asks = |key: &&PKey| self.all.iter().any(|it| it.first && it.key == key.partition());
        keys.iter().filter(asks).min_by_key(|key| key.partition()).copied()
    }

    /// Returns the P_Keys of a port, in ascending order of partitions. If the port has both memberships, the limited
    /// P_Key comes first. Unless one of the port's partitions has `indx0`, the default partition comes first.
    #[must_use]
    pub fn keys(&self, port: Guid, kind: NodeKind, is_manager: bool) -> Vec<PKey> {
        let mut seen: BTreeMap<u16, Membership> = BTreeMap::new();
        for partition in &self.all {
            for &(who, membership) in &partition.members {
                let meant = match who {
                    MemberSpec::Port(guid) => guid == port,
                    MemberSpec::All => true,
                    MemberSpec::Kind(of) => of == kind,
                    MemberSpec::Manager => is_manager,
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
