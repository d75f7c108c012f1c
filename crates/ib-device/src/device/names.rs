//! Paths resolved by an ACM service, for HCAs at ports of a simulated fabric.

use std::io;
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use ib_acm::Address;
use ib_acm::client::{Client, ClientError, ClientOptions, ResolveOptions, ServiceAddress};
use ib_types::{Gid, Instant, Mtu};
use ib_wire::mad::sa::PathRecord;

use super::{Device, Path, Wire};
use crate::sim::route_of;
use ib_os::alarm::Alarm;

/// Timeouts of an ACM service. They are short because the SA is queried if the service fails.
const PATIENCE: ClientOptions =
    ClientOptions { connect: Duration::from_secs(1), reply: Duration::from_secs(5) };

/// Callback for an address that the service has no path to, with the reason.
type OnFailure = Box<dyn FnMut(IpAddr, &str) + Send>;

/// The ACM service that is queried before the SA.
pub(super) struct Names {
    service: ServiceAddress,
    on_failure: OnFailure,
}

impl Device {
    /// Queries an ACM service for paths before the SA, as librdmacm does with
    /// `RDMA_CM_USE_IB_ACM=1`.
    ///
    /// If the service returns no path, or a path that starts at another port, `on_failure` is called. The SA is
    /// queried then. An HCA on Ethernet ignores the service, since it needs no path records.
    pub fn resolve_through(
        &mut self,
        service: ServiceAddress,
        on_failure: impl FnMut(IpAddr, &str) + Send + 'static,
    ) {
        self.names = Some(Box::new(Names { service, on_failure: Box::new(on_failure) }));
    }

    /// Returns the path that the service knows, if there is a service and it knows one.
    pub(super) fn path_by_name(&mut self, address: IpAddr) -> io::Result<Option<Path>> {
        let Wire::Attached(attached) = &self.wire else { return Ok(None) };
        let own = attached.gid();
        let prefix = attached.port.details().port.gid_prefix;
        let Some(names) = &self.names else { return Ok(None) };
        let to = match address {
            IpAddr::V6(it) if (u128::from(it) >> 64) as u64 == prefix => {
                Address::Gid(Gid(u128::from(it)))
            }
            IpAddr::V6(it) => Address::V6(it),
            IpAddr::V4(it) => Address::V4(it),
        };
        let service = names.service.clone();
        let told = self.question(move || ask(&service, own, &to))?;
        let found = told.and_then(|record| usable(&record));
        let Some(names) = &mut self.names else { return Ok(None) };
        match found {
            // The service knows when it is true no more.
            Ok(path) => Ok(Some(path)),
            Err(why) => {
                (names.on_failure)(address, &why);
                Ok(None)
            }
        }
    }

    /// Returns the GID of the port that the service knows by a name, if there is a service and it knows one.
    pub(super) fn gid_by_name(&mut self, name: &str) -> io::Result<Option<Gid>> {
        let (Some(names), Ok(to)) = (&self.names, Address::name(name)) else { return Ok(None) };
        let service = names.service.clone();
        let told = self.question(move || {
            let failed = |error: ClientError| format!("{service}: {error}");
            let mut client = Client::connect(&service, PATIENCE).map_err(failed)?;
            Ok(client.resolve(None, &to, ResolveOptions::default()).map_err(failed)?.path)
        })?;
        Ok(told.ok().map(|record| record.dgid))
    }

    /// Has something asked of the service, and waits for the answer.
    fn question(
        &mut self,
        ask: impl FnOnce() -> Result<PathRecord, String> + Send + 'static,
    ) -> io::Result<Result<PathRecord, String>> {
        let alarm = Alarm::new()?;
        let (bell, (tell, told)) = (alarm.bell(), channel());
        // Connections go on meanwhile; who waits no more leaves a thread that ends with its patience.
        thread::Builder::new().name("acm question".to_owned()).spawn(move || {
            // Nobody may be there to be told.
            let _ = tell.send(ask());
            bell.ring();
        })?;
        self.answer(&told, &alarm)
    }

    /// Waits for what the service says.
    fn answer(
        &mut self,
        told: &Receiver<Result<PathRecord, String>>,
        alarm: &Alarm,
    ) -> io::Result<Result<PathRecord, String>> {
        loop {
            match told.try_recv() {
                Ok(answer) => return Ok(answer),
                Err(TryRecvError::Disconnected) => {
                    return Ok(Err("whoever asked has failed".to_owned()));
                }
                Err(TryRecvError::Empty) => {}
            }
            if !self.progress()? {
                self.wait(Instant::NEVER, Some(alarm))?;
            }
        }
    }
}

/// Asks a service for a path from a port.
fn ask(service: &ServiceAddress, own: Gid, to: &Address) -> Result<PathRecord, String> {
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
            // It has chosen another port of this machine.
            found.dgid
        }
    };
    let wanted = PathRecord { sgid: own, dgid: destination, ..PathRecord::zeroed() };
    let found = client.resolve_path(&wanted, options).map_err(failed)?.path;
    if found.sgid != own || found.dgid != destination {
        return Err(format!(
            "{service}: it has told the path from {} to {}, expected {own} and {destination}",
            found.sgid, found.dgid
        ));
    }
    Ok(found)
}

/// Returns a path as the engine takes it.
fn usable(record: &PathRecord) -> Result<Path, String> {
    if record.dlid == 0 || record.slid == 0 {
        return Err(format!("it has told LIDs {} and {}", record.slid, record.dlid));
    }
    let mtu = Mtu::from_code(record.mtu.0)
        .ok_or_else(|| format!("it has told the code {} of an MTU", record.mtu.0))?;
    Ok(Path { route: route_of(record), mtu, p_key: record.p_key })
}
