//! HCAs in virtual time, and links between them that lose, duplicate and delay packets.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use ib_cm::{Cm, CmConfig};
use ib_hca::{Hca, HcaConfig, HcaEvent};
use ib_link::Route;
use ib_rtrs::{Adapter, AdapterId, Adapters, PathSpec};
use ib_types::{Gid, Guid, Instant, Mtu};
use ib_wire::mad::MgmtClass;

/// The random number generator of a run.
pub(crate) struct Rng(ib_types::rng::Rng);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1;
        Self(ib_types::rng::Rng::new(state))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub(crate) fn chance(&mut self, of: f64) -> bool {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64 <= of && of > 0.0
    }

    pub(crate) fn seed(&mut self) -> [u8; 32] {
        let mut seed = [0; 32];
        for bytes in seed.chunks_exact_mut(8) {
            bytes.copy_from_slice(&self.next().to_le_bytes());
        }
        seed
    }
}

/// An HCA, its connection manager, and its addresses.
pub(crate) struct Node {
    pub(crate) hca: Hca,
    pub(crate) cm: Cm,
    pub(crate) gid: Gid,
    pub(crate) address: Ipv4Addr,
}

/// All HCAs of one side.
#[derive(Default)]
pub(crate) struct Nodes(pub(crate) Vec<Node>);

impl Node {
    /// Creates an HCA with the given IP address and GUID.
    pub(crate) fn new(rng: &mut Rng, address: Ipv4Addr, guid: u64) -> Self {
        let (gid, guid) = (Gid(u128::from(address.to_ipv6_mapped())), Guid(guid));
        let hca = Hca::new(HcaConfig::new(guid, vec![gid]), rng.seed());
        let cm = Cm::new(CmConfig { ca_guid: guid, ..CmConfig::default() }, rng.seed());
        Self { hca, cm, gid, address }
    }

    /// Returns the next timeouts of the HCA and of its connection manager.
    pub(crate) fn due(&self) -> [Option<Instant>; 2] {
        [self.hca.poll_timeout(), self.cm.poll_timeout()]
    }

    /// Handles expired timers.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.hca.poll_timeout().is_some_and(|at| at <= now) {
            self.hca.handle_timeout(now);
        }
        if self.cm.poll_timeout().is_some_and(|at| at <= now) {
            self.cm.handle_timeout(now);
        }
    }

    /// Passes received CM MADs to the connection manager. Returns the next event of the HCA that is not a received CM
    /// MAD.
    pub(crate) fn poll_hca(&mut self, now: Instant) -> Option<HcaEvent> {
        loop {
            match self.hca.poll_event()? {
                HcaEvent::Mad { route, mad, .. } if mad.class() == MgmtClass::COMMUNICATION => {
                    self.cm.handle(now, &route, &mad);
                }
                event => return Some(event),
            }
        }
    }

    /// Returns the specification of a path to another node. `id` is the ID of the local HCA.
    pub(crate) fn spec_to(&self, far: &Self, id: AdapterId) -> PathSpec {
        let route =
            Route { source: self.gid, destination: far.gid, is_global: true, ..Route::default() };
        let ends = (
            SocketAddr::new(self.address.into(), 50_000),
            SocketAddr::new(far.address.into(), PORT),
        );
        PathSpec::new(id, ends.0, ends.1, route, Mtu::B1024)
    }
}

/// The port of the server.
pub(crate) const PORT: u16 = 1234;

impl Adapters for Nodes {
    fn get(&mut self, id: AdapterId) -> Option<Adapter<'_>> {
        let Node { hca, cm, .. } = self.0.get_mut(id.0 as usize)?;
        Some(Adapter { hca, cm })
    }
}

/// A link with faults.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) is_cut: bool,
    pub(crate) loss: f64,
    pub(crate) double: f64,
    pub(crate) late: f64,
    pub(crate) delay: Duration,
    /// Transmission time of a byte in picoseconds.
    pub(crate) picos_per_byte: u64,
    free: [Instant; 2],
}

impl Link {
    pub(crate) const GOOD: Self = Self {
        is_cut: false,
        loss: 0.0,
        double: 0.0,
        late: 0.0,
        delay: Duration::from_micros(5),
        picos_per_byte: 800,
        free: [Instant::ZERO; 2],
    };
}

impl Link {
    /// Sends a packet from one end of the link. Returns its arrival times: none if it is lost, two if it is duplicated.
    pub(crate) fn carry(
        &mut self,
        rng: &mut Rng,
        now: Instant,
        (from, length): (usize, usize),
    ) -> Vec<Instant> {
        let takes = Duration::from_nanos(self.picos_per_byte * length as u64 / 1000);
        let start = self.free[from].max(now);
        self.free[from] = start + takes;
        if self.is_cut || rng.chance(self.loss) {
            return Vec::new();
        }
        let copies = 1 + usize::from(rng.chance(self.double));
        let one = |_| {
            let late = if rng.chance(self.late) { rng.below(200_000) } else { 0 };
            start + takes + self.delay + Duration::from_nanos(late)
        };
        (0..copies).map(one).collect()
    }
}

/// Returns the route in the reverse direction.
pub(crate) fn back(route: Route) -> Route {
    Route { source: route.destination, destination: route.source, ..route }
}
