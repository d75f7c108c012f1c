//! Looks up nodes and ports by name.

use ib_topology::{NodeId, PortId};

use super::{CommandError, Target};
use crate::fabric::FabricState;

impl Target {
    /// Returns the node that the target names, or whose port it names.
    pub(crate) fn find_node(&self, fabric: &FabricState) -> Result<NodeId, CommandError> {
        fabric.find_node(&self.node).ok_or_else(|| CommandError::NoSuchNode(self.node.clone()))
    }

    /// Returns the node of a target that names no port.
    pub(super) fn find_whole_node(&self, fabric: &FabricState) -> Result<NodeId, CommandError> {
        let node = self.find_node(fabric)?;
        match self.port {
            None => Ok(node),
            Some(_) => Err(CommandError::Value {
                found: format!("port {self}"),
                expected: "a node without a port number",
            }),
        }
    }

    /// Returns the switch of a target that names no port.
    pub(super) fn find_switch(&self, fabric: &FabricState) -> Result<NodeId, CommandError> {
        let node = self.find_whole_node(fabric)?;
        if fabric.is_switch(node) {
            Ok(node)
        } else {
            Err(CommandError::NotASwitch(self.node.clone()))
        }
    }

    /// Returns the port of a target. The target has to name a port.
    pub(crate) fn find_port(&self, fabric: &FabricState) -> Result<PortId, CommandError> {
        let node = self.find_node(fabric)?;
        let Some(number) = self.port else {
            return Err(CommandError::NeedsPort(self.node.clone()));
        };
        let first = u8::from(!fabric.is_switch(node));
        fabric
            .find_port(node, number)
            .filter(|_| number >= first)
            .ok_or_else(|| self.no_such_port(number, first, fabric.node(node).ports))
    }

    /// Returns the port that a target names, or all external ports of the target's node.
    pub(crate) fn find_ports(&self, fabric: &FabricState) -> Result<Vec<PortId>, CommandError> {
        if self.port.is_some() {
            return Ok(vec![self.find_port(fabric)?]);
        }
        Ok(fabric.external_ports(self.find_node(fabric)?).collect())
    }

    /// Returns the port that a target names, or all ports of the target's node. Port 0 of a switch
    /// is the last.
    pub(super) fn find_all_ports(&self, fabric: &FabricState) -> Result<Vec<PortId>, CommandError> {
        let mut ports = self.find_ports(fabric)?;
        let node = self.find_node(fabric)?;
        if self.port.is_none() && fabric.is_switch(node) {
            ports.push(fabric.port_id(node, 0));
        }
        Ok(ports)
    }

    /// Returns the end port of a target. For a switch, this is port 0. For other nodes, it is the
    /// named port, or the node's end port if the target names no port.
    pub(super) fn find_end_port(&self, fabric: &FabricState) -> Result<PortId, CommandError> {
        if self.port.is_some() {
            return Ok(fabric.end_port_of(self.find_port(fabric)?));
        }
        let node = self.find_node(fabric)?;
        fabric.end_port(node).ok_or_else(|| CommandError::NeedsPort(self.node.clone()))
    }

    /// Returns the external port of a target. The target has to name a port.
    pub(super) fn find_external_port(&self, fabric: &FabricState) -> Result<PortId, CommandError> {
        let port = self.find_port(fabric)?;
        match fabric.port(port).number {
            0 => Err(self.no_such_port(0, 1, fabric.node_of(port).ports)),
            _ => Ok(port),
        }
    }

    /// Returns the external port that a target names, or all external ports of the target's node.
    pub(super) fn find_external_ports(
        &self,
        fabric: &FabricState,
    ) -> Result<Vec<PortId>, CommandError> {
        if self.port.is_some() {
            return Ok(vec![self.find_external_port(fabric)?]);
        }
        self.find_ports(fabric)
    }

    pub(super) fn no_such_port(&self, port: u8, first: u8, last: u8) -> CommandError {
        CommandError::NoSuchPort { node: self.node.clone(), port, first, last }
    }
}
