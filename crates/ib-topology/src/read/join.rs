//! Joins the two ends of every link that a file declares.
//!
//! Both formats say each link twice, once at either end. Here the two sayings are held against
//! each other before the link enters the [`Fabric`].

use std::borrow::Cow;

use ib_types::{Guid, Lid, Lmc};

use crate::error::FabricError;
use crate::fabric::{Fabric, LinkRate, NodeId, NodeSpec, PortId};
use crate::text::{Fault, Place};

/// One port line: what one end says of its link.
pub(super) struct End<'a, R> {
    /// Where the line starts.
    pub(super) place: Place,
    /// The column in which the line names the other end.
    pub(super) remote_column: u32,
    pub(super) port: PortId,
    pub(super) remote: Remote<'a>,
    pub(super) remote_port: u8,
    /// The port GUID that the line gives for its own port; zero when it gives none.
    pub(super) guid: Guid,
    /// The port GUID that the line gives for the other end; zero when it gives none.
    pub(super) remote_guid: Guid,
    /// The LID that the line gives for the other end; `Some(None)` when it says that it has none.
    pub(super) remote_lid: Option<Option<Lid>>,
    pub(super) rate: R,
}

impl<R> End<'_, R> {
    /// Returns where the line names the other end.
    pub(super) fn remote_place(&self) -> Place {
        Place { column: self.remote_column, ..self.place }
    }
}

/// How a port line names the other end.
pub(super) enum Remote<'a> {
    /// By the node's name.
    Node(Cow<'a, str>),
    /// By its port.
    Port(PortId),
    /// By an alias, which stands for a port whose own line awaits a link.
    Alias(PortId),
    /// Not at all: the line gives the port an alias.
    Awaited,
}

/// A fabric whose links are declared but not joined.
pub(super) struct Net<'a, R> {
    pub(super) fabric: Fabric,
    pub(super) ends: Vec<End<'a, R>>,
    /// For each port its index in `ends`, or [`NO_END`].
    slots: Vec<u32>,
}

const NO_END: u32 = u32::MAX;

impl<'a, R: Copy> Net<'a, R> {
    /// Returns an empty net with room for what a text of some length is likely to declare.
    pub(super) fn with_text_length(bytes: usize) -> Self {
        const BYTES_PER_LINE: usize = 40;
        let ends = Vec::with_capacity(bytes / BYTES_PER_LINE);
        Self { fabric: Fabric::new(), ends, slots: Vec::new() }
    }

    /// Adds a node whose header stands at a place.
    pub(super) fn add_node(&mut self, place: Place, spec: NodeSpec) -> Result<NodeId, Fault> {
        let ports = usize::from(spec.ports);
        let id = self.fabric.add_node(spec).map_err(|error| refused(place, &error))?;
        self.slots.resize(self.slots.len() + ports + 1, NO_END);
        Ok(id)
    }

    /// Gives a port its GUID.
    pub(super) fn set_guid(
        &mut self,
        place: Place,
        node: NodeId,
        number: u8,
        guid: Guid,
    ) -> Result<(), Fault> {
        self.fabric.set_port_guid(node, number, guid).map_err(|error| refused(place, &error))
    }

    /// Records a port's LID and LMC.
    pub(super) fn set_lid(
        &mut self,
        place: Place,
        node: NodeId,
        number: u8,
        (lid, lmc): (Option<Lid>, Lmc),
    ) -> Result<(), Fault> {
        if let Some(lid) = lid {
            let highest = u32::from(lid.get()) + u32::from(lmc.lids()) - 1;
            if highest > u32::from(Lid::MAX_UNICAST) {
                return Err(place.fault(format!(
                    "found LID {lid} with LMC {lmc}, expected the port's highest LID to be at most {}",
                    Lid::MAX_UNICAST
                )));
            }
        }
        self.fabric.set_lid(node, number, lid, lmc).map_err(|error| refused(place, &error))
    }

    /// Records what a port line says; a second line for one port is a fault.
    pub(super) fn declare(&mut self, end: End<'a, R>) -> Result<(), Fault> {
        let slot = &mut self.slots[end.port.index()];
        if let Some(first) = self.ends.get(*slot as usize) {
            let (node, number) = name(&self.fabric, end.port);
            return Err(end.place.fault(format!(
                "found port {number} of \"{node}\" a second time, expected it only on line {}",
                first.place.line
            )));
        }
        *slot = u32::try_from(self.ends.len()).expect("fewer than 2^32 ports");
        self.ends.push(end);
        Ok(())
    }

    /// Finds the port at the other end of every port line and checks that its line says the same.
    ///
    /// Returns the ports in the order of the lines; `None` for an alias that nothing refers to.
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
                        return Err(end.remote_place().fault(format!(
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

    /// Gives every port of channel adapters and routers that has no GUID the node GUID plus its
    /// number.
    ///
    /// An unlinked port whose assumed GUID another port has stays without one: that is no
    /// contradiction in the file.
    pub(super) fn assume_guids(&mut self) -> Result<(), Fault> {
        for index in 0..self.fabric.node_count() {
            let node = NodeId(u32::try_from(index).expect("fewer than 2^32 nodes"));
            let spec = self.fabric.node(node);
            if spec.kind.is_switch() {
                continue;
            }
            let (first, ports) = (spec.guid.0, spec.ports);
            for number in 1..=ports {
                let port = self.fabric.port_id(node, number).expect("it is one of the node's");
                if !self.fabric.port(port).guid.is_zero() {
                    continue;
                }
                let guid = Guid(first.wrapping_add(u64::from(number)));
                let assumed = self.fabric.set_port_guid(node, number, guid);
                let end = self.ends.get(self.slots[port.index()] as usize);
                if let (Err(error), Some(end)) = (assumed, end) {
                    return Err(refused(end.place, &error));
                }
            }
        }
        Ok(())
    }

    /// Forgets the LIDs of ports that have an alias but no link: such a port is down.
    pub(super) fn forget_unlinked(&mut self, targets: &[Option<PortId>]) {
        for (end, _) in self.ends.iter().zip(targets).filter(|(_, target)| target.is_none()) {
            let port = *self.fabric.port(end.port);
            let forgotten = self.fabric.set_lid(port.node, port.number, None, Lmc::ZERO);
            forgotten.expect("the port exists");
        }
    }

    /// Joins the links; `common` says at what rate a link with these two ends runs.
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
                end.place.fault(format!(
                    "found {found} for the link to port {number} of \"{node}\" (line {}), expected {expected}",
                    other.place.line
                ))
            })?;
            let ends = [end.port, target].map(|port| {
                let port = self.fabric.port(port);
                (port.node, port.number)
            });
            let place = end.remote_place();
            self.fabric.connect(ends[0], ends[1], rate).map_err(|error| refused(place, &error))?;
        }
        Ok(self.fabric)
    }

    fn target(&self, end: &End<'a, R>) -> Result<Option<PortId>, Fault> {
        let remote = match &end.remote {
            Remote::Node(remote) => remote,
            Remote::Port(port) | Remote::Alias(port) => return Ok(Some(*port)),
            Remote::Awaited => return Ok(None),
        };
        let Some(node) = self.fabric.find_name(remote) else {
            return Err(end.remote_place().fault(format!(
                "found a link to \"{remote}\", expected the name of a node that the file describes"
            )));
        };
        let port = self.fabric.port_id(node, end.remote_port).filter(|_| end.remote_port > 0);
        port.map(Some).ok_or_else(|| {
            end.remote_place().fault(format!(
                "found a link to port {} of \"{remote}\", expected 1 to {}",
                end.remote_port,
                self.fabric.node(node).ports
            ))
        })
    }

    fn check_pair(
        &self,
        end: &End<'a, R>,
        target: PortId,
        targets: &[Option<PortId>],
    ) -> Result<(), Fault> {
        let slot = self.slots[target.index()];
        let other = self.ends.get(slot as usize);
        let back = targets.get(slot as usize).copied().flatten();
        let is_named =
            |other: &End<'_, R>| matches!(other.remote, Remote::Node(_) | Remote::Port(_));
        if other.is_some_and(is_named) && back == Some(end.port) {
            return Ok(());
        }
        let (node, number) = name(&self.fabric, end.port);
        let (remote, remote_number) = name(&self.fabric, target);
        let (found, line) = match other {
            None => {
                return Err(end.remote_place().fault(format!(
                    "found no line for port {remote_number} of \"{remote}\", \
                     expected one that links it to port {number} of \"{node}\" as this line does"
                )));
            }
            Some(other) => match back.filter(|_| is_named(other)) {
                Some(third) => {
                    let (third, third_number) = name(&self.fabric, third);
                    (format!("linked to port {third_number} of \"{third}\""), other.place.line)
                }
                None => ("linked by an alias".to_owned(), other.place.line),
            },
        };
        Err(end.remote_place().fault(format!(
            "found port {remote_number} of \"{remote}\" {found} (line {line}), \
             expected it to be linked to port {number} of \"{node}\" as this line says"
        )))
    }
}

/// Returns the name of a port's node and the port's number.
pub(super) fn name(fabric: &Fabric, port: PortId) -> (&str, u8) {
    let port = fabric.port(port);
    (&fabric.node(port.node).name, port.number)
}

/// Makes the fault that the fabric refuses what the file says.
pub(super) fn refused(place: Place, error: &FabricError) -> Fault {
    let message = match error {
        FabricError::ZeroGuid { node } => {
            format!("found GUID zero for node \"{node}\", expected a GUID that names it")
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
    place.fault(message)
}
