//! OpenSM and `ibfabric sm` at once, each on a simulator of its own.

use std::path::Path;

use ib_topology::Fabric;

use super::ours;
use super::scene::{Checked, Gear, Scene};
use crate::clients::fabrics::Plan;
use crate::clients::manager;
use crate::clients::server::Kind;
use crate::clients::stage::StageError;

/// What the two simulators are.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// The programs.
    pub gear: &'a Gear,
    /// The kind of both simulators.
    pub kind: &'a Kind,
    /// The umad library of the clients.
    pub umad: &'a Path,
    /// The fabrics: OpenSM's and ours, which is the same unless a difference is to be noticed.
    pub fabrics: [&'a Fabric; 2],
    /// What the fabric is.
    pub plan: Plan,
    /// Whether ours manages at all, which it does unless that is to be noticed.
    pub managed: bool,
    /// Where all files are.
    pub directory: &'a Path,
}

impl Pair<'_> {
    /// Looks at the subnet of OpenSM and at that of ours, both of which must outlive it.
    ///
    /// # Errors
    /// Fails when a program cannot be run, or `look` fails.
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
            scene.check(opensm.is_alive(), || "OpenSM died of the questions".to_owned());
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
                format!("ibfabric sm died of the questions: {}", ours.said())
            });
            drop(ours);
            Ok::<_, StageError>((found, scene.close()))
        };
        let (theirs, ours) = std::thread::scope(|scope| {
            let theirs = scope.spawn(theirs);
            let ours = ours();
            (theirs.join().expect("a scene does not panic"), ours)
        });
        let ((theirs, mut checked), (ours, own)) = (theirs?, ours?);
        checked.checks += own.checks;
        checked.faults.extend(own.faults);
        Ok(([theirs, ours], checked))
    }
}
