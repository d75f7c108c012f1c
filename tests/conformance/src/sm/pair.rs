//! OpenSM and `ibfabric sm` running at the same time, each on its own simulator.

use std::path::Path;

use ib_topology::Fabric;

use super::ours;
use super::scene::{Checked, Gear, Scene};
use crate::clients::fabrics::Plan;
use crate::clients::manager;
use crate::clients::server::Kind;
use crate::clients::stage::StageError;

/// Parameters of a run of two SMs, each on its own simulator.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// The programs and libraries.
    pub gear: &'a Gear,
    /// The kind of both simulators.
    pub kind: &'a Kind,
    /// The umad library that is preloaded into the clients.
    pub umad: &'a Path,
    /// The fabrics of OpenSM and of `ibfabric sm`. They differ only in cases with a deliberate error.
    pub fabrics: [&'a Fabric; 2],
    /// How the fabric was generated, and which LMC the SMs use.
    pub plan: Plan,
    /// True if `ibfabric sm` keeps running after the bring-up. False only in a case with a deliberate error.
    pub managed: bool,
    /// The directory for the files of both runs.
    pub directory: &'a Path,
}

impl Pair<'_> {
    /// Calls a function for the subnet of each SM. Both SMs must still be running afterwards.
    ///
    /// # Errors
    /// Fails if a program cannot be started, or if `look` fails.
    pub fn look<T: Send>(
        &self,
        look: impl Fn(&mut Scene<'_>) -> Result<T, StageError> + Sync,
    ) -> Result<([T; 2], Checked), StageError> {
        let lmc = self.plan.lmc;
        let open = |fabric, name| {
            let place = self.directory.join(name);
            Scene::open(self.gear, self.kind, fabric, self.umad, &place)
        };
        let theirs = || {
            let mut scene = open(self.fabrics[0], "opensm")?;
            let options = manager::Options { lmc, ..manager::Options::default() };
            let mut opensm = scene.manage_by_opensm(&options)?;
            let found = look(&mut scene)?;
            scene.check(opensm.is_alive(), || "OpenSM has ended unexpectedly".to_owned());
            drop(opensm);
            Ok::<_, StageError>((found, scene.close()))
        };
        let ours = || {
            let mut scene = open(self.fabrics[1], "ours")?;
            let options = ours::Options { lmc, ..ours::Options::default() };
            let mut ours = scene.manage(&options)?;
            if !self.managed {
                drop(ours);
                return Ok((look(&mut scene)?, scene.close()));
            }
            let found = look(&mut scene)?;
            scene.check(ours.is_alive(), || {
                format!("ibfabric sm has ended unexpectedly: {}", ours.output())
            });
            drop(ours);
            Ok::<_, StageError>((found, scene.close()))
        };
        let (theirs, ours) = std::thread::scope(|scope| {
            let theirs = scope.spawn(theirs);
            let ours = ours();
            (theirs.join().expect("the thread does not panic"), ours)
        });
        let ((theirs, mut checked), (ours, own)) = (theirs?, ours?);
        checked.checks += own.checks;
        checked.faults.extend(own.faults);
        Ok(([theirs, ours], checked))
    }
}
