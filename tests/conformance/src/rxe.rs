//! Real RDMA programs and the kernel's soft RoCE (rxe) in a guest, with each other and with ibfabric.
//!
//! | module | holds |
//! |---|---|
//! | [`cases`] | the list of cases |
//! | `ours` | cases with ibfabric's HCA at one end |
//! | `theirs` | cases with `ucmatose` or perftest at the other end |
//! | [`scene`] | a guest, ibfabric on its host, and the checks |
//!
//! A [`Case`] is a name and a function on a [`Scene`]. The crate `interop` boots guests. One guest runs all cases
//! of a [`Link`], so a case unloads all modules that it has loaded. Commands that still run at the end of a case
//! are killed.
//!
//! ```
//! use std::time::Duration;
//!
//! use conformance::rxe::{Case, Scene};
//! use interop::RunError;
//!
//! fn pings_rping(scene: &mut Scene<'_>) -> Result<(), RunError> {
//!     let server = scene.guest.start("rping -s -a 0.0.0.0 -C 10 -v")?;
//!     scene.guest.await_listener(7174, Duration::from_secs(5))?;
//!     let ours = scene.ours(["rdma", "ping", "192.168.77.1", "--count", "10"])?;
//!     scene.succeeds(ours)?;
//!     let server = scene.succeeds(server)?;
//!     scene.says(&server, "server ping data", 10);
//!     scene.gained("completer_retry_err", 0..=0)
//! }
//!
//! let case = Case::with_ours("our ping, their rping", pings_rping);
//! ```

pub mod cases;
mod ours;
pub mod scene;
mod theirs;

use interop::RunError;

pub use scene::{Gear, Scene};

/// The link between a guest and what is beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The MTU of the network device in bytes.
    pub mtu: u32,
    /// The largest path MTU of InfiniBand that fits in, headers included.
    pub path_mtu: u32,
}

/// The links on which all cases run.
pub const LINKS: [Link; 2] =
    [Link { mtu: 1500, path_mtu: 1024 }, Link { mtu: 9000, path_mtu: 4096 }];

/// Something that is tried in a guest, and perhaps beside it.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What it shows.
    pub name: &'static str,
    /// Whether it runs our program, which then has to be built.
    pub ours: bool,
    /// What a fault has to say, because something is wrong in the case on purpose.
    pub wrong: Option<&'static str>,
    run: fn(&mut Scene<'_>) -> Result<(), RunError>,
}

impl Case {
    /// Makes a case in which only the guest's own programs run.
    #[must_use]
    pub const fn of_guest(
        name: &'static str,
        run: fn(&mut Scene<'_>) -> Result<(), RunError>,
    ) -> Self {
        Self { name, ours: false, wrong: None, run }
    }

    /// Makes a case in which our program runs beside the guest.
    #[must_use]
    pub const fn with_ours(
        name: &'static str,
        run: fn(&mut Scene<'_>) -> Result<(), RunError>,
    ) -> Self {
        Self { name, ours: true, wrong: None, run }
    }

    /// Makes a case with something wrong in it, which has to be noticed: one fault, which holds this text.
    #[must_use]
    pub const fn but_wrong(self, fault: &'static str) -> Self {
        Self { wrong: Some(fault), ..self }
    }

    /// Runs it; what is wrong stands in the scene.
    pub fn run(&self, scene: &mut Scene<'_>) {
        if let Err(error) = (self.run)(scene) {
            scene.checked.check(false, || error.to_string());
        }
    }

    /// Says whether these are the faults that the case has to have: none, or what is wrong on purpose.
    #[must_use]
    pub fn accepts(&self, faults: &[String]) -> bool {
        match self.wrong {
            None => faults.is_empty(),
            Some(expected) => matches!(faults, [fault] if fault.contains(expected)),
        }
    }
}
