//! Real RDMA programs and the kernel's soft RoCE (rxe) in a guest, tested with each other and with ibfabric.
//!
//! | module | holds |
//! |---|---|
//! | [`cases`] | the list of cases |
//! | `ours` | cases in which ibfabric's HCA is one end of the connection |
//! | `theirs` | cases in which `ucmatose` or perftest is the peer of ibfabric's HCA |
//! | `run` | cases in which an unmodified program with `ibfabric run` is one end of the connection |
//! | [`scene`] | a guest, ibfabric on the machine that runs the guest, and the checks |
//!
//! A [`Case`] is a name and a function on a [`Scene`]. The crate `interop` boots guests. One guest runs all cases of a
//! [`Link`], so each case must unload the modules that it has loaded. Commands that still run at the end of a case are
//! killed.
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
//!     scene.expect_lines(&server, "server ping data", 10);
//!     scene.gained("completer_retry_err", 0..=0)
//! }
//!
//! let case = Case::with_ibfabric("ibfabric ping, rping", pings_rping);
//! ```

pub mod cases;
mod ours;
mod run;
pub mod scene;
mod theirs;

use interop::RunError;

pub use scene::{Gear, Scene};

/// The link between a guest and the machine that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// MTU of the network device in bytes.
    pub mtu: u32,
    /// The largest InfiniBand path MTU whose packets, with headers, fit into `mtu`.
    pub path_mtu: u32,
}

/// The links. Every case runs on each of them.
pub const LINKS: [Link; 2] =
    [Link { mtu: 1500, path_mtu: 1024 }, Link { mtu: 9000, path_mtu: 4096 }];

/// A test case in a guest, with or without ibfabric on the machine that runs the guest.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The name of the case.
    pub name: &'static str,
    /// True if the case runs the program ibfabric, which must be built before the run.
    pub ours: bool,
    /// In a case with a deliberate error, a text that the reported fault must contain.
    pub wrong: Option<&'static str>,
    run: fn(&mut Scene<'_>) -> Result<(), RunError>,
}

impl Case {
    /// Creates a case that runs only programs in the guest.
    #[must_use]
    pub const fn of_guest(
        name: &'static str,
        run: fn(&mut Scene<'_>) -> Result<(), RunError>,
    ) -> Self {
        Self { name, ours: false, wrong: None, run }
    }

    /// Creates a case that also runs ibfabric, on the machine that runs the guest.
    #[must_use]
    pub const fn with_ibfabric(
        name: &'static str,
        run: fn(&mut Scene<'_>) -> Result<(), RunError>,
    ) -> Self {
        Self { name, ours: true, wrong: None, run }
    }

    /// Creates a case with a deliberate error. The case must report exactly one fault, which contains the given text.
    #[must_use]
    pub const fn expecting_fault(self, fault: &'static str) -> Self {
        Self { wrong: Some(fault), ..self }
    }

    /// Runs the case. The scene records the faults.
    pub fn run(&self, scene: &mut Scene<'_>) {
        if let Err(error) = (self.run)(scene) {
            scene.checked.check(false, || error.to_string());
        }
    }

    /// Returns true if `faults` contains what the case expects: no fault, or exactly one fault, which contains the text
    /// of the deliberate error.
    #[must_use]
    pub fn accepts(&self, faults: &[String]) -> bool {
        match self.wrong {
            None => faults.is_empty(),
            Some(expected) => matches!(faults, [fault] if fault.contains(expected)),
        }
    }
}
