//! The port at which the connection manager works.

use std::net::IpAddr;
use std::time::Duration;

use ib_cm::{Cm, Requested};
use ib_device::Device;
use ib_link::Route;
use ib_mad::{Backoff, Timing};
use ib_types::{Gid, PKey, Psn, Qpn};
use ib_wire::mad::sa::{ComponentMask, LifeTimeCode, MCMemberRecord, PathRecord, RateCode};
use ib_wire::mad::sm::MtuCode;
use ib_wire::mad::{Method, TransactionId};

use crate::errno::Errno;

/// Maximum duration of one attempt of an SA query. A longer timeout of the program is divided into attempts.
const ATTEMPT: Duration = Duration::from_millis(500);

/// Life time of packets in paths on Ethernet: 1 s, as in Linux.
const ETHERNET_LIFE_TIME: LifeTimeCode = LifeTimeCode(18);

/// Attributes of the port that programs see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortView {
    pub(crate) is_infiniband: bool,
    pub(crate) node_guid: u64,
    pub(crate) gid: Gid,
    pub(crate) p_keys: Vec<u16>,
    pub(crate) rate: RateCode,
}

impl PortView {
    /// Returns the index of a P_Key in the P_Key table of the port.
    pub(super) fn p_key_index(&self, p_key: PKey) -> Option<u16> {
        let exact = self.p_keys.iter().position(|&own| own == p_key.0);
        let found = exact.or_else(|| self.p_keys.iter().position(|&own| PKey(own).matches(p_key)));
        found.and_then(|index| index.try_into().ok())
    }
}

/// The port at which the connection manager works. [`super::Manager`] reaches the HCA, the fabric and the CM only
/// through this trait.
pub(crate) trait CmPort {
    /// Returns the attributes of the port.
    fn view(&mut self) -> PortView;

    /// Returns the connection manager.
    fn cm(&mut self) -> &mut Cm;

    /// Returns a random PSN.
    fn random_psn(&mut self) -> Psn;

    /// Returns the address of the port in the family of `other`, if the port has one.
    fn own_address_for(&self, other: IpAddr) -> Option<IpAddr>;

    /// Returns the GID of the port with this address; `None` if there is no such port.
    ///
    /// # Errors
    /// Fails with `EIO` if the simulator does not respond.
    fn gid_of(&mut self, address: IpAddr) -> Result<Option<Gid>, Errno>;

    /// Returns the path to a port on Ethernet, which needs no SA.
    fn ethernet_path(&mut self, to: Gid) -> PathRecord;

    /// Starts an SA query for the path to a port. Returns `None` on Ethernet.
    fn query_path(&mut self, to: Gid, timeout: Duration) -> Option<TransactionId>;

    /// Starts an SA query that joins a multicast group (`Set`) or leaves it (`Delete`). Returns `None` on Ethernet.
    fn query_membership(
        &mut self,
        method: Method,
        membership: &MCMemberRecord,
        mask: ComponentMask,
    ) -> Option<TransactionId>;

    /// Returns true if the HCA can use the path of a connection request. Otherwise rejects the request.
    fn check_request(&mut self, requested: &Requested) -> bool;

    /// Returns the route of the packets to the peer that has sent a request. `path` is the route of the request, from
    /// the local port.
    fn route_back(&self, path: &Route) -> Route;

    /// Records the service ID that a queue pair uses, for captures.
    fn set_service(&mut self, qpn: Qpn, service: u64);
}

impl CmPort for Device {
    fn view(&mut self) -> PortView {
        let config = self.hca().config();
        let (node_guid, gid) = (config.node_guid.0, config.gids[0]);
        match self.attached() {
            Some(attached) => {
                let details = attached.details();
                PortView {
                    is_infiniband: true,
                    node_guid,
                    gid: details.port.gid(),
                    p_keys: details.p_keys.clone(),
                    rate: details.rate,
                }
            }
            None => PortView {
                is_infiniband: false,
                node_guid,
                gid,
                p_keys: vec![PKey::DEFAULT.0],
                rate: RateCode(0),
            },
        }
    }

    fn cm(&mut self) -> &mut Cm {
        self.cm()
    }

    fn random_psn(&mut self) -> Psn {
        self.hca().random_psn()
    }

    fn own_address_for(&self, other: IpAddr) -> Option<IpAddr> {
        self.own_address_for(other)
    }

    fn gid_of(&mut self, address: IpAddr) -> Result<Option<Gid>, Errno> {
        self.gid_of(address).map_err(|_| Errno::IO)
    }

    fn ethernet_path(&mut self, to: Gid) -> PathRecord {
        let route = Route::default();
        PathRecord {
            sgid: self.hca().config().gids[0],
            dgid: to,
            hop_limit: route.hop_limit,
            reversible: true,
            p_key: PKey::DEFAULT,
            mtu: MtuCode(self.connection_mtu().code()),
            life_time: ETHERNET_LIFE_TIME,
            ..PathRecord::zeroed()
        }
    }

    fn query_path(&mut self, to: Gid, timeout: Duration) -> Option<TransactionId> {
        self.query_path(to, timing(timeout))
    }

    fn query_membership(
        &mut self,
        method: Method,
        membership: &MCMemberRecord,
        mask: ComponentMask,
    ) -> Option<TransactionId> {
        self.query_membership(method, membership, mask, timing(8 * ATTEMPT))
    }

    fn check_request(&mut self, requested: &Requested) -> bool {
        self.check_request(requested).is_ok()
    }

    fn route_back(&self, path: &Route) -> Route {
        self.route_back(path)
    }

    fn set_service(&mut self, qpn: Qpn, service: u64) {
        if let Some(qp) = self.hca().find_qp(qpn) {
            // The error is ignored: it means that the queue pair does not exist.
            let _ = self.hca().set_service(qp, service);
        }
    }
}

/// Returns the timeouts of a query that has to end within `timeout`.
fn timing(timeout: Duration) -> Timing {
    let attempt = timeout.min(ATTEMPT).max(Duration::from_millis(1));
    let attempts = timeout.as_millis() / attempt.as_millis();
    let retries = u32::try_from(attempts).unwrap_or(u32::MAX).saturating_sub(1);
    Timing { timeout: attempt, retries, backoff: Backoff::Fixed }
}
