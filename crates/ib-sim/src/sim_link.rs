//! A [`MadLink`] at a fabric that is simulated in this process.

use ib_link::{Datagram, Incoming, LinkError, LinkPort, MadLink};
use ib_topology::PortId;
use ib_types::Instant;

use crate::client::{AttachError, ClientOptions};
use crate::ids::ClientId;
use crate::sim::Sim;

/// A client of a fabric that is simulated in this process. Virtual time advances while the client
/// waits.
///
/// ```
/// use ib_link::{Datagram, Incoming, MadLink, Remote};
/// use ib_sim::{ClientOptions, Options, Sim, SimLink};
/// use ib_topology::generate::{Kind, Options as Plan, generate};
/// use ib_types::Instant;
/// use ib_wire::mad::{AttributeId, Method, TransactionId, smp};
///
/// let fabric = generate(&Kind::parse("mesh", &["2x2"])?, &Plan::default())?;
/// let mut sim = Sim::new(&fabric, Options::default());
/// let port = sim.first_end_port().ok_or("the fabric is empty")?;
/// let mut link = SimLink::attach(&mut sim, port, ClientOptions::default())?;
/// let what = (AttributeId::NODE_INFO, 0);
/// let mad = smp::directed_request(Method::GET, TransactionId(1), what, &[1]);
/// link.send(&Datagram::new(Remote::directed(), mad))?;
/// link.wait(Instant::from_nanos(1_000_000))?;
/// assert!(matches!(link.receive()?, Some(Incoming::Received(_))));
/// assert!(link.now() < Instant::from_nanos(10_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SimLink<'s> {
    sim: &'s mut Sim,
    client: ClientId,
}

impl<'s> SimLink<'s> {
    /// Attaches a client to an end port. The client is detached when the link is dropped.
    ///
    /// # Errors
    /// Fails for the same reasons as [`Sim::attach`].
    pub fn attach(
        sim: &'s mut Sim,
        port: PortId,
        options: ClientOptions,
    ) -> Result<Self, AttachError> {
        let client = sim.attach(port, options)?;
        Ok(Self { sim, client })
    }

    /// Returns the simulated fabric to which the client is attached.
    pub const fn sim(&mut self) -> &mut Sim {
        self.sim
    }
}

impl MadLink for SimLink<'_> {
    fn port(&mut self) -> Result<LinkPort, LinkError> {
        match self.sim.client_port(self.client) {
            Some(port) => Ok(self.sim.link_port(port)),
            None => Err(LinkError::Closed { peer: "the simulated fabric".to_owned() }),
        }
    }

    fn send(&mut self, datagram: &Datagram) -> Result<(), LinkError> {
        self.sim.submit(self.client, datagram);
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<Incoming>, LinkError> {
        Ok(self.sim.receive(self.client))
    }

    fn wait(&mut self, until: Instant) -> Result<(), LinkError> {
        while !self.sim.has_incoming(self.client) {
            if !self.sim.run_step(until) {
                if until < Instant::NEVER {
                    self.sim.run_until(until);
                }
                return Ok(());
            }
        }
        Ok(())
    }

    fn now(&self) -> Instant {
        self.sim.now()
    }
}

impl Drop for SimLink<'_> {
    fn drop(&mut self) {
        self.sim.detach(self.client);
    }
}
