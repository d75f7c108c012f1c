//! Queries to an ACM service, for HCAs at ports of a simulated fabric.

use std::net::IpAddr;
use std::time::Duration;

use ib_acm::Address;
use ib_acm::client::{Client, ClientError, ClientOptions, ResolveOptions, ServiceAddress};
use ib_types::{Gid, Mtu};
use ib_wire::mad::sa::PathRecord;

use crate::path::Path;
use crate::path::route_of;

/// Timeouts of queries to an ACM service. They are short because the SA is queried if the service
/// fails.
const PATIENCE: ClientOptions =
    ClientOptions { connect: Duration::from_secs(1), reply: Duration::from_secs(5) };

/// The ACM service that is queried before the SA.
pub(crate) struct AcmService {
    pub(crate) address: ServiceAddress,
    pub(crate) on_failure: OnFailure,
}

/// Callback for an address to which the service returns no usable path. Gets the address and the
/// reason.
type OnFailure = Box<dyn FnMut(IpAddr, &str) + Send>;

/// Queries the path record of an address.
pub(crate) fn query_address(service: &ServiceAddress, to: &Address) -> Result<PathRecord, String> {
    let failed = |error: ClientError| format!("{service}: {error}");
    let mut client = Client::connect(service, PATIENCE).map_err(failed)?;
    Ok(client.resolve(None, to, ResolveOptions::default()).map_err(failed)?.path)
}

/// Queries the path from a port to an address.
pub(crate) fn query_path(
    service: &ServiceAddress,
    own: Gid,
    to: &Address,
) -> Result<PathRecord, String> {
    let failed = |error: ClientError| format!("{service}: {error}");
    let mut client = Client::connect(service, PATIENCE).map_err(failed)?;
    let options = ResolveOptions::default();
    let destination = match to {
        Address::Gid(gid) => *gid,
        _ => {
            let found = client.resolve(None, to, options).map_err(failed)?.path;
            if found.sgid == own {
                return Ok(found);
            }
            // The service has returned a path that starts at another port of this machine. So a second query requests
            // the path from `own` to the same destination.
            found.dgid
        }
    };
    let wanted = PathRecord { sgid: own, dgid: destination, ..PathRecord::zeroed() };
    let found = client.resolve_path(&wanted, options).map_err(failed)?.path;
    if found.sgid != own || found.dgid != destination {
        return Err(format!(
            "{service}: found a path from {} to {}, expected one from {own} to {destination}",
            found.sgid, found.dgid
        ));
    }
    Ok(found)
}

/// Returns the route, MTU and P_Key that a path record contains.
pub(crate) fn path_of(record: &PathRecord) -> Result<Path, String> {
    if record.dlid == 0 || record.slid == 0 {
        return Err(format!(
            "found LIDs {} and {}, expected unicast LIDs",
            record.slid, record.dlid
        ));
    }
    let mtu = Mtu::from_code(record.mtu.0)
        .ok_or_else(|| format!("found MTU code {}, expected 1 to 5", record.mtu.0))?;
    Ok(Path { route: route_of(record), mtu, p_key: record.p_key })
}
