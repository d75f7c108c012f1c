//! Admission of other processes' HCAs to ports, including ports of embedded hosts.

use std::collections::{BTreeMap, VecDeque};

use ib_attach::{AdmissionError, Demultiplexer};
use ib_os::clock;
use ib_sim::{ClientOptions, Sim};
use ib_topology::PortId;
use ib_wire::mad::MgmtClass;

use super::ports::{PortAttributes, details, locate};
use super::{Adapter, Adapters, Context, detach, record};
use crate::error::DaemonError;
use crate::message::say;

/// Requests for ports of embedded hosts, and ports that embedded hosts may use again.
#[derive(Default)]
pub(super) struct EmbeddedPorts {
    pub(super) claims: VecDeque<PortClaim>,
    released: VecDeque<PortId>,
}

/// A request of another process's HCA for a port that an embedded host may use.
pub(crate) struct PortClaim {
    /// Number by which the simulator identifies the process.
    pub(in crate::sim) client: usize,
    /// Management classes that the HCA serves.
    classes: Vec<MgmtClass>,
    /// The requested port.
    pub(crate) port: PortId,
}

/// Result of a request to attach an HCA to a port.
pub(super) enum Admission {
    Admitted,
    Refused(String),
    /// The request waits until the embedded host has released the port.
    Claimed,
}

impl Adapters {
    /// Allows embedded hosts to use ports at which no HCA of another process is attached.
    pub(in crate::sim) fn set_embedded_hosts(&mut self) {
        self.embedded = Some(EmbeddedPorts::default());
    }

    /// Returns the next request for a port that an embedded host may use.
    pub(in crate::sim) fn poll_claim(&mut self) -> Option<PortClaim> {
        self.embedded.as_mut()?.claims.pop_front()
    }

    /// Returns the next port whose last HCA has detached, so that an embedded host may use it.
    pub(in crate::sim) fn poll_released(&mut self) -> Option<PortId> {
        let released = &mut self.embedded.as_mut()?.released;
        // A port is skipped if an HCA has attached to it since it was released.
        let by_port = &self.by_port;
        std::iter::from_fn(|| released.pop_front()).find(|port| !is_used(by_port, *port))
    }

    /// Returns true if a process waits for a port of an embedded host.
    pub(in crate::sim) fn has_claim(&self, client: usize) -> bool {
        let claims = self.embedded.as_ref().map(|embedded| &embedded.claims);
        claims.is_some_and(|claims| claims.iter().any(|claim| claim.client == client))
    }

    /// Refuses to attach the HCA of a process.
    pub(in crate::sim) fn refuse_hello(&mut self, client: usize, reason: String) {
        say!("refused an HCA: {reason}");
        self.server.refuse(client, reason);
    }

    /// Attaches the HCA of a process to the port that it has requested; returns true if this succeeds.
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

    /// Attaches the HCA of a process to the port that it has requested, or returns the reason for refusing it. If an
    /// embedded host may be using the port, the request waits.
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
        if let Some(embedded) = &mut self.embedded
            && !is_used(&self.by_port, port)
        {
            embedded.claims.push_back(PortClaim { client, classes: classes.to_vec(), port });
            return Ok(Admission::Claimed);
        }
        Ok(match self.attach(client, port, classes, cx)? {
            Ok(()) => Admission::Admitted,
            Err(reason) => Admission::Refused(reason),
        })
    }

    /// Attaches the HCA of a process to a port; otherwise returns the reason for refusing it.
    fn attach(
        &mut self,
        client: usize,
        port: PortId,
        classes: &[MgmtClass],
        cx: &mut Context<'_>,
    ) -> Result<Result<(), String>, DaemonError> {
        let result = self.try_attach(client, port, classes, cx)?;
        if result.is_err() && !is_used(&self.by_port, port) {
            self.release(port);
        }
        Ok(result)
    }

    /// Allows an embedded host to use a port again.
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
        let hcas = self.by_port.entry(port).or_default();
        let is_first = hcas.is_empty();
        let block = match hcas.admit(clock::now(), client, classes) {
            Ok(block) => block,
            Err(AdmissionError::ClassInUse { client, .. }) => {
                let has_connections = self.adapters[&client].has_connections();
                let what = if has_connections { "an HCA" } else { "a service" };
                return Ok(Err(format!("{} has {what} already", name(sim))));
            }
            Err(error) => return Ok(Err(format!("{}: {error}", name(sim)))),
        };
        let mut clients = Vec::new();
        // An HCA without classes gets one simulator client, for its SA path queries.
        let client_classes = if classes.is_empty() {
            vec![None]
        } else {
            classes.iter().map(|&it| Some(it)).collect()
        };
        for class in client_classes {
            let options = ClientOptions { class, ..ClientOptions::default() };
            match sim.attach(port, options) {
                Ok(id) => {
                    clients.push(id);
                    record(recorder, sim, |it| it.attach(id, port, options));
                }
                Err(error) => {
                    detach(&clients, sim, recorder);
                    hcas.remove(clock::now(), client, false);
                    return Ok(Err(error.to_string()));
                }
            }
        }
        if is_first {
            record(recorder, sim, |it| it.port("open", port));
            sim.open_held(port);
            sim.record_losses(port);
        }
        if self.down.remove(&port) {
            record(recorder, sim, |it| it.port("up", port));
            sim.release_hold(port);
        }
        let reported = PortAttributes::of(sim, port);
        if let Err(error) = self.server.admit(client, &details(sim, addresses, (port, block))) {
            if is_first {
                record(recorder, sim, |it| it.port("close", port));
                sim.close(port);
            }
            detach(&clients, sim, recorder);
            hcas.remove(clock::now(), client, false);
            return Ok(Err(format!("the simulator cannot attach the HCA: {error}")));
        }
        self.by_client.extend(clients.iter().map(|&id| (id, client)));
        let classes = classes.to_vec();
        let adapter = Adapter { port, classes, clients, block, reported, is_full: false };
        self.adapters.insert(client, adapter);
        Ok(Ok(()))
    }

    /// Adds a management class to those that an attached HCA serves; fails with the reason if the class is refused.
    pub(super) fn add_class(
        &mut self,
        client: usize,
        class: MgmtClass,
        cx: &mut Context<'_>,
    ) -> Result<(), String> {
        let Some(adapter) = self.adapters.get(&client) else {
            return Err("the process has no HCA".to_owned());
        };
        let port = adapter.port;
        if adapter.classes.contains(&class) {
            return Ok(());
        }
        let hcas = self.by_port.get_mut(&port).expect("the HCA is attached to the port");
        hcas.add_class(client, class).map_err(|error| {
            let (node, number) = cx.sim.place(port);
            format!("port {number} of {}: {error}", cx.sim.node_name(node))
        })?;
        let options = ClientOptions { class: Some(class), ..ClientOptions::default() };
        let attached = cx.sim.attach(port, options);
        let id = attached.map_err(|error| {
            self.by_port.entry(port).or_default().remove_class(client, class);
            error.to_string()
        })?;
        record(&mut cx.recorder, cx.sim, |it| it.attach(id, port, options));
        self.by_client.insert(id, client);
        let adapter = self.adapters.get_mut(&client).expect("the HCA was found above");
        adapter.clients.push(id);
        adapter.classes.push(class);
        Ok(())
    }
}

/// Returns true if an HCA is attached to a port.
fn is_used(by_port: &BTreeMap<PortId, Demultiplexer>, port: PortId) -> bool {
    by_port.get(&port).is_some_and(|hcas| !hcas.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_port_of_an_attached_hca_is_not_returned() {
        let base = format!("ibfabric-admission-{}", std::process::id());
        let mut adapters = Adapters::bind(&base).expect("the sockets can be opened");
        adapters.set_embedded_hosts();
        let port = PortId(3);
        adapters.release(port);
        let hcas = adapters.by_port.entry(port).or_default();
        hcas.admit(clock::now(), 1, &[]).expect("the port has no HCA");
        assert_eq!(adapters.poll_released(), None);
        let hcas = adapters.by_port.entry(port).or_default();
        hcas.remove(clock::now(), 1, false);
        adapters.release(port);
        assert_eq!(adapters.poll_released(), Some(port));
    }
}
