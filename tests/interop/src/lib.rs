//! A Linux guest as the peer of our programs: the kernel's soft RoCE, RTRS and RNBD.
//!
//! | module | holds |
//! |---|---|
//! | [`guest`] | booting a guest, and what can be asked of it |
//! | [`running`] | a command that runs in the guest or beside it |
//! | [`error`] | why there is no guest, and why a command came to nothing |
//! | `image` | the kernel and the RAM disk: built once from Debian's packages, then kept |
//! | `network` | the network namespace that a guest shares with the programs beside it |
//! | `channel` | the port over which the guest is told what to run |
//!
//! The folder `guest` holds what the image is made from: the recipe and the guest's first process.
//!
//! ```no_run
//! use std::process::Command;
//! use std::time::Duration;
//!
//! use interop::{Guest, GuestOptions};
//!
//! let guest = Guest::boot(&GuestOptions { mtu: 9000, ..GuestOptions::default() })?;
//! let server = guest.start("rping -s -a 0.0.0.0 -C 10 -v")?;
//! guest.await_listener(7174, Duration::from_secs(5))?;
//! let ours = guest.start_beside(&Command::new("my-rping").args(["-c", "-a", "192.168.77.1"]))?;
//! println!("{}", ours.wait(Duration::from_secs(10))?.output);
//! println!("{}", server.wait(Duration::from_secs(10))?.output);
//! assert_eq!(guest.counters()?["retry_exceeded_err"], 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod error;
pub mod guest;
pub mod running;

mod channel;
mod image;
mod network;

pub use error::{BootError, RunError};
pub use guest::{Guest, GuestOptions};
pub use network::TAP;
pub use running::{Finished, Running, Signal};
