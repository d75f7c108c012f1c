//! Multicast groups of UD queue pairs.

use std::collections::BTreeMap;

use ib_types::Gid;

use crate::error::GroupError;
use crate::id::QpId;
use crate::qp::attr::QpType;

/// The attached queue pairs of each multicast group.
#[derive(Debug, Default)]
pub(super) struct MulticastGroups(BTreeMap<Gid, Vec<QpId>>);

impl MulticastGroups {
    /// Attaches a UD queue pair to a group, unless it is attached already.
    pub(super) fn attach(
        &mut self,
        id: QpId,
        qp_type: QpType,
        group: Gid,
    ) -> Result<(), GroupError> {
        if qp_type != QpType::Ud {
            return Err(GroupError::Type(qp_type));
        }
        if !is_group(group) {
            return Err(GroupError::NoGroup(group));
        }
        let members = self.0.entry(group).or_default();
        if !members.contains(&id) {
            members.push(id);
        }
        Ok(())
    }

    /// Detaches a queue pair from a group.
    pub(super) fn detach(&mut self, id: QpId, group: Gid) -> Result<(), GroupError> {
        let members = self.0.get_mut(&group).ok_or(GroupError::NotAttached)?;
        let before = members.len();
        members.retain(|&member| member != id);
        let was_attached = members.len() < before;
        if members.is_empty() {
            self.0.remove(&group);
        }
        if was_attached { Ok(()) } else { Err(GroupError::NotAttached) }
    }

    /// Detaches a queue pair from all groups.
    pub(super) fn detach_all(&mut self, id: QpId) {
        self.0.retain(|_, members| {
            members.retain(|&member| member != id);
            !members.is_empty()
        });
    }

    /// Returns true if a queue pair is attached to any group.
    pub(super) fn is_attached(&self, id: QpId) -> bool {
        self.0.values().any(|members| members.contains(&id))
    }

    /// Returns the attached queue pairs of a group; `None` if there are none.
    pub(super) fn members(&self, group: Gid) -> Option<Vec<QpId>> {
        self.0.get(&group).cloned()
    }
}

/// Returns true for multicast GIDs: `ff00::/8`, and `::ffff:224.0.0.0/100` for IPv4 groups.
fn is_group(gid: Gid) -> bool {
    let bytes = gid.0.to_be_bytes();
    let is_v4 = bytes[..10] == [0; 10] && bytes[10..12] == [0xff, 0xff] && bytes[12] >> 4 == 14;
    bytes[0] == 0xff || is_v4
}
