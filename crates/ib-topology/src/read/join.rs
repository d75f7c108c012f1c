//! Matches the declarations of the two ends of every link.
//!
//! Fabric files declare each link twice, once for each end. This module checks that both declarations match before it
//! adds the link to the [`Fabric`].

use std::borrow::Cow;

use ib_types::{Guid, Lid, Lmc};

use crate::error::FabricError;
use crate::fabric::{Fabric, LinkRate, NodeId, NodeSpec, PortId};
use crate::text::{Fault, Location};

/// One end of a link, as declared by the port line of this end.
pub(super) struct LinkEnd<'a, R> {
    /// The location of the port line.
    pub(super) location: Location,
    /// The column in the port line at which the other end is named.
    pub(super) remote_column: u32,
    pub(super) port: PortId,
    pub(super) remote: Remote<'a>,
    pub(super) remote_port: u8,
    /// The GUID of the declaring port, if the line contains it; otherwise zero.
    pub(super) guid: Guid,
    /// The GUID of the port at the other end, if the line contains it; otherwise zero.
    pub(super) remote_guid: Guid,
    /// The LID of the port at the other end, if the line contains it. `Some(None)` if this LID is 0, which means no
    /// LID.
    pub(super) remote_lid: Option<Option<Lid>>,
    pub(super) rate: R,
}

impl<R> LinkEnd<'_, R> {
    /// Returns the location at which the line names the other end.
    pub(super) fn remote_location(&self) -> Location {
        Location { column: self.remote_column, ..self.location }
    }
}

/// How a port line names the other end of the link.
pub(super) enum Remote<'a> {
    /// The line contains the name of the node at the other end.
    Node(Cow<'a, str>),
    /// The reader has already identified the port at the other end.
    Port(PortId),
    /// The line names the other end by an alias, which stands for this port. The line of this port only defines the
    /// alias; see [`Self::Awaited`].
    Alias(PortId),
    /// The line only defines an alias for its port. If the port is linked, the line of its peer names the port by this
    /// alias.
    Awaited,
}

/// A fabric that is being read: its nodes, and the declarations of links that are not yet added to `fabric`.
pub(super) struct Net<'a, R> {
    pub(super) fabric: Fabric,
    pub(super) ends: Vec<LinkEnd<'a, R>>,
    /// For each port, the index of its declaration in `ends`; [`NO_END`] if it has none.
    slots: Vec<u32>,
}

const NO_END: u32 = u32::MAX;

impl<'a, R: Copy> Net<'a, R> {
    /// Returns a net without nodes, with capacity for the declarations in a file of `bytes` bytes.
    pub(super) fn with_text_length(bytes: usize) -> Self {
        const BYTES_PER_LINE: usize = 40;
        let ends = Vec::with_capacity(bytes / BYTES_PER_LINE);
        Self { fabric: Fabric::new(), ends, slots: Vec::new() }
    }

    /// Adds a node. `location` is the location of its header line, for errors.
    pub(super) fn add_node(&mut self, location: Location, spec: NodeSpec) -> Result<NodeId, Fault> {
        let ports = usize::from(spec.ports);
        let id = self.fabric.add_node(spec).map_err(|error| refused(location, &error))?;
        self.slots.resize(self.slots.len() + ports + 1, NO_END);
        Ok(id)
    }

    /// Sets the GUID of a port. An error has the location `location`.
    pub(super) fn set_guid(
        &mut self,
        location: Location,
        node: NodeId,
        number: u8,
        guid: Guid,
    ) -> Result<(), Fault> {
        self.fabric.set_port_guid(node, number, guid).map_err(|error| refused(location, &error))
    }

    /// Records the LID and LMC of a port. An error has the location `location`.
    pub(super) fn set_lid(
        &mut self,
        location: Location,
        node: NodeId,
        number: u8,
        (lid, lmc): (Option<Lid>, Lmc),
    ) -> Result<(), Fault> {
        if let Some(lid) = lid {
            let highest = u32::from(lid.get()) + u32::from(lmc.lids()) - 1;
            if highest > u32::from(Lid::MAX_UNICAST) {
                return Err(location.fault(format!(
                    "found LID {lid} with LMC {lmc}, expected the port's highest LID to be at most {}",
                    Lid::MAX_UNICAST
                )));
            }
        }
        self.fabric.set_lid(node, number, lid, lmc).map_err(|error| refused(location, &error))
    }

    /// Records the declaration in a port line. Fails if another line has already declared the port.
    pub(super) fn declare(&mut self, end: LinkEnd<'a, R>) -> Result<(), Fault> {
        let slot = &mut self.slots[end.port.index()];
        if let Some(first) = self.ends.get(*slot as usize) {
            let (node, number) = name(&self.fabric, end.port);
            return Err(end.location.fault(format!(
                "found port {number} of \"{node}\" a second time, expected it only on line {}",
                first.location.line
            )));
        }
        *slot = u32::try_from(self.ends.len()).expect("a fabric has fewer than 2^32 ports");
        self.ends.push(end);
        Ok(())
    }

    /// Finds the port at the other end of every declared link, and checks that the declaration of that port matches.
    ///
    /// Returns the ports at the other ends, in the order of `ends`. An element is `None` if the declaration only
    /// defines an alias that no line uses.
    pub(super) fn resolve(&self) -> Result<Vec<Option<PortId>>, Fault> {
        let mut targets = Vec::with_capacity(self.ends.len());
        for end in &self.ends {
            targets.push(self.target(end)?);
        }
        for index in 0..self.ends.len() {
            let end = &self.ends[index];
            let Some(target) = targets[index] else { continue };
            match end.remote {
                Remote::Alias(_) => {
                    let awaited = &mut targets[self.slots[target.index()] as usize];
                    if let Some(first) = awaited.replace(end.port) {
                        let (node, number) = name(&self.fabric, first);
                        return Err(end.remote_location().fault(format!(
                            "found a second link to this alias, expected only that from \"{node}\" port {number}"
                        )));
                    }
                }
                Remote::Node(_) | Remote::Port(_) => self.check_pair(end, target, &targets)?,
                Remote::Awaited => {}
            }
        }
        Ok(targets)
    }

    /// Sets the missing port GUIDs of channel adapters and routers to the node GUID plus the port number.
    ///
    /// If another port already has the computed GUID, fails for a port that a line of the file declares. A port that no
    /// line declares gets no GUID in this case.
    pub(super) fn assume_guids(&mut self) -> Result<(), Fault> {
        for index in 0..self.fabric.node_count() {
            let node = NodeId(u32::try_from(index).expect("a fabric has fewer than 2^32 nodes"));
            let spec = self.fabric.node(node);
            if spec.kind.is_switch() {
                continue;
            }
            let (first, ports) = (spec.guid.0, spec.ports);
            for number in 1..=ports {
                let port = self.fabric.port_id(node, number).expect("the node has this port");
                if !self.fabric.port(port).guid.is_zero() {
                    continue;
                }
                let guid = Guid(first.wrapping_add(u64::from(number)));
                let assumed = self.fabric.set_port_guid(node, number, guid);
                let end = self.ends.get(self.slots[port.index()] as usize);
                if let (Err(error), Some(end)) = (assumed, end) {
                    return Err(refused(end.location, &error));
                }
            }
        }
        Ok(())
    }

    /// Removes the LIDs of ports that have an alias but no link, because such ports are down.
    pub(super) fn forget_unlinked(&mut self, targets: &[Option<PortId>]) {
        for (end, _) in self.ends.iter().zip(targets).filter(|(_, target)| target.is_none()) {
            let port = *self.fabric.port(end.port);
            let cleared = self.fabric.set_lid(port.node, port.number, None, Lmc::ZERO);
            cleared.expect("the port exists");
        }
    }

    /// Adds all declared links to the fabric. `common` computes the rate of a link from the declarations of both ends.
    pub(super) fn join(
        mut self,
        targets: &[Option<PortId>],
        common: impl Fn(R, R) -> Result<LinkRate, [String; 2]>,
    ) -> Result<Fabric, Fault> {
        for (end, &target) in self.ends.iter().zip(targets) {
            let Some(target) = target.filter(|&target| end.port <= target) else { continue };
            let other = &self.ends[self.slots[target.index()] as usize];
            let rate = common(end.rate, other.rate).map_err(|[found, expected]| {
                let (node, number) = name(&self.fabric, target);
                end.location.fault(format!(
                    "found {found} for the link to port {number} of \"{node}\" (line {}), expected {expected}",
                    other.location.line
                ))
            })?;
            let ends = [end.port, target].map(|port| {
                let port = self.fabric.port(port);
                (port.node, port.number)
            });
            let location = end.remote_location();
            self.fabric
                .connect(ends[0], ends[1], rate)
                .map_err(|error| refused(location, &error))?;
        }
        Ok(self.fabric)
    }

    fn target(&self, end: &LinkEnd<'a, R>) -> Result<Option<PortId>, Fault> {
        let remote = match &end.remote {
            Remote::Node(remote) => remote,
            Remote::Port(port) | Remote::Alias(port) => return Ok(Some(*port)),
            Remote::Awaited => return Ok(None),
        };
        let Some(node) = self.fabric.find_name(remote) else {
            return Err(end.remote_location().fault(format!(
                "found a link to \"{remote}\", expected the name of a node in the file"
            )));
        };
        let port = self.fabric.port_id(node, end.remote_port).filter(|_| end.remote_port > 0);
        port.map(Some).ok_or_else(|| {
            end.remote_location().fault(format!(
                "found a link to port {} of \"{remote}\", expected 1 to {}",
                end.remote_port,
                self.fabric.node(node).ports
            ))
        })
    }

    fn check_pair(
        &self,
        end: &LinkEnd<'a, R>,
        target: PortId,
        targets: &[Option<PortId>],
    ) -> Result<(), Fault> {
        let slot = self.slots[target.index()];
        let other = self.ends.get(slot as usize);
        let back = targets.get(slot as usize).copied().flatten();
        let is_named =
            |other: &LinkEnd<'_, R>| matches!(other.remote, Remote::Node(_) | Remote::Port(_));
        if other.is_some_and(is_named) && back == Some(end.port) {
            return Ok(());
        }
        let (node, number) = name(&self.fabric, end.port);
        let (remote, remote_number) = name(&self.fabric, target);
        let (found, line) = match other {
            None => {
                return Err(end.remote_location().fault(format!(
                    "found no line for port {remote_number} of \"{remote}\", \
                     expected one that links it to port {number} of \"{node}\" as on this line"
                )));
            }
            Some(other) => match back.filter(|_| is_named(other)) {
                Some(third) => {
                    let (third, third_number) = name(&self.fabric, third);
                    (format!("linked to port {third_number} of \"{third}\""), other.location.line)
                }
                None => ("linked by an alias".to_owned(), other.location.line),
            },
        };
        Err(end.remote_location().fault(format!(
            "found port {remote_number} of \"{remote}\" {found} (line {line}), \
             expected it to be linked to port {number} of \"{node}\" as on this line"
        )))
    }
}

/// Returns the name of a port's node, and the number of the port.
pub(super) fn name(fabric: &Fabric, port: PortId) -> (&str, u8) {
    let port = fabric.port(port);
    (&fabric.node(port.node).name, port.number)
}

/// Converts an error of the fabric into an error at a location in the file.
pub(super) fn refused(location: Location, error: &FabricError) -> Fault {
    let message = match error {
        FabricError::ZeroGuid { node } => {
            format!("found GUID zero for node \"{node}\", expected another GUID")
        }
        FabricError::DuplicateName { node } => {
            format!("found node \"{node}\" a second time, expected every node once")
        }
        FabricError::DuplicateGuid { guid, node, other } => format!(
            "found GUID {guid} for \"{node}\", expected one that \"{other}\" does not have already"
        ),
        FabricError::SelfLink { node, port } => format!(
            "found port {port} of \"{node}\" linked to itself, expected the other end of its link"
        ),
        other => other.to_string(),
    };
    location.fault(message)
}
