//! The admission of HCAs of other processes to ports, some of which embedded hosts have.

use std::collections::VecDeque;

use ib_attach::BLOCKS;
use ib_sim::{ClientOptions, Sim};
use ib_topology::PortId;
use ib_wire::mad::MgmtClass;

use super::ports::{Known, details, locate};
use super::{Adapter, Adapters, Context, MOST_CLASSES, detach, record};
use crate::error::DaemonError;
use crate::message::say;

/// The ports that HCAs of other processes and embedded hosts take from each other.
#[derive(Default)]
pub(super) struct EmbeddedPorts {
    pub(super) claims: VecDeque<PortClaim>,
    released: VecDeque<PortId>,
}

/// An HCA of another process that waits for the port of an embedded host.
pub(crate) struct PortClaim {
    /// The number of the process.
    pub(in crate::sim) client: usize,
    /// The management classes that the HCA serves.
    classes: Vec<MgmtClass>,
    /// The port.
    pub(crate) port: PortId,
}

/// The result of an HCA's request for a port.
pub(super) enum Admission {
    Admitted,
    Refused(String),
    /// The HCA waits for the port of an embedded host.
    Claimed,
}

impl Adapters {
    /// Lets embedded hosts have the ports that no HCA of another process has.
    pub(in crate::sim) fn set_embedded_hosts(&mut self) {
        self.embedded = Some(EmbeddedPorts::default());
    }

    /// Returns the next HCA that waits for the port of an embedded host.
    pub(in crate::sim) fn poll_claim(&mut self) -> Option<PortClaim> {
        self.embedded.as_mut()?.claims.pop_front()
    }

    /// Returns the next port whose last HCA has detached, so that an embedded host may have it.
    pub(in crate::sim) fn poll_released(&mut self) -> Option<PortId> {
        self.embedded.as_mut()?.released.pop_front()
    }

    /// Refuses an HCA its port.
    pub(in crate::sim) fn refuse_hello(&mut self, client: usize, reason: String) {
        say!("refused an adapter: {reason}");
        self.server.refuse(client, reason);
    }

    /// Gives a process the port that it waits for; returns true if the process has it.
    pub(in crate::sim) fn grant(
        &mut self,
        claim: &PortClaim,
        mut cx: Context<'_>,
    ) -> Result<bool, DaemonError> {
        match self.attach(claim.client, claim.port, &claim.classes, &mut cx)? {
            Ok(()) => Ok(true),
            Err(reason) => {
                self.refuse_hello(claim.client, reason);
                Ok(false)
            }
        }
    }

    /// Checks the request of a process for a port, and gives it the port unless an embedded host has it.
    pub(super) fn admit(
        &mut self,
        client: usize,
        node: Option<&str>,
        classes: &[MgmtClass],
        cx: &mut Context<'_>,
    ) -> Result<Admission, DaemonError> {
        let name = node.unwrap_or_default();
        let Some(port) = locate(cx.sim, cx.addresses, name) else {
            return Ok(Admission::Refused(format!(
                "there is no port {name:?}: expected NODE, NODE:PORT, an address, a GID or a LID"
            )));
        };
        if classes.len() > MOST_CLASSES {
            let count = classes.len();
            let reason = format!("{count} classes: expected at most {MOST_CLASSES}");
            return Ok(Admission::Refused(reason));
        }
        if let Some(embedded) = &mut self.embedded
            && !self.by_port.contains_key(&port)
        {
            embedded.claims.push_back(PortClaim { client, classes: classes.to_vec(), port });
            return Ok(Admission::Claimed);
        }
        Ok(match self.attach(client, port, classes, cx)? {
            Ok(()) => Admission::Admitted,
            Err(reason) => Admission::Refused(reason),
        })
    }

    /// Attaches the HCA of a process to a port, or returns the reason of the refusal.
    fn attach(
        &mut self,
        client: usize,
        port: PortId,
        classes: &[MgmtClass],
        cx: &mut Context<'_>,
    ) -> Result<Result<(), String>, DaemonError> {
        let result = self.try_attach(client, port, classes, cx)?;
        if result.is_err() && !self.by_port.contains_key(&port) {
            self.release(port);
        }
        Ok(result)
    }

    /// Lets an embedded host have a port again.
    pub(super) fn release(&mut self, port: PortId) {
        if let Some(embedded) = &mut self.embedded {
            embedded.released.push_back(port);
        }
    }

    fn try_attach(
        &mut self,
        client: usize,
        port: PortId,
        classes: &[MgmtClass],
        cx: &mut Context<'_>,
    ) -> Result<Result<(), String>, DaemonError> {
        let Context { sim, addresses, recorder } = cx;
        let (sim, addresses) = (&mut **sim, *addresses);
        let name = |sim: &Sim| {
            let (node, number) = sim.place(port);
            format!("port {number} of {}", sim.node_name(node))
        };
        let others = self.by_port.get(&port).map_or(&[][..], Vec::as_slice);
        let others: Vec<&Adapter> = others.iter().map(|other| &self.adapters[other]).collect();
        if let Some(other) = others.iter().find(|other| other.conflicts(classes)) {
            let what = if other.has_connections() { "an adapter" } else { "a service" };
            return Ok(Err(format!("{} has {what} already", name(sim))));
        }
        let is_free = |block: &u8| others.iter().all(|other| other.block != *block);
        let Some(block) = (0..BLOCKS).find(is_free) else {
            return Ok(Err(format!("{} has {BLOCKS} adapters already", name(sim))));
        };
        let is_first = others.is_empty();
        let mut clients = Vec::new();
        // Without a class there is nobody to ask for paths.
        let wanted = if classes.is_empty() {
            vec![None]
        } else {
            classes.iter().map(|&it| Some(it)).collect()
        };
        for class in wanted {
            let options = ClientOptions { class, ..ClientOptions::default() };
            match sim.attach(port, options) {
                Ok(id) => {
                    clients.push(id);
                    record(recorder, sim, |it| it.attach(id, port, options));
                }
                Err(error) => {
                    detach(&clients, sim, recorder);
                    return Ok(Err(error.to_string()));
                }
            }
        }
        if is_first {
            record(recorder, sim, |it| it.port("open", port));
            sim.open_held(port);
            sim.tell_losses(port);
        }
        if self.down.remove(&port) {
            record(recorder, sim, |it| it.port("up", port));
            sim.let_up(port);
        }
        let told = Known::of(sim, port);
        if let Err(error) = self.server.admit(client, &details(sim, addresses, (port, block))) {
            if is_first {
                record(recorder, sim, |it| it.port("close", port));
                sim.close(port);
            }
            detach(&clients, sim, recorder);
            return Ok(Err(format!("the simulator fails: {error}")));
        }
        self.by_port.entry(port).or_default().push(client);
        self.by_client.extend(clients.iter().map(|&id| (id, client)));
        let classes = classes.to_vec();
        let adapter = Adapter { port, classes, clients, block, told, is_full: false };
        self.adapters.insert(client, adapter);
        Ok(Ok(()))
    }
}
