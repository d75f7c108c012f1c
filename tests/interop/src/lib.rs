//! A Linux guest as a peer of ibfabric. Its kernel contains soft RoCE, RTRS and RNBD.
//!
//! | module | holds |
//! |---|---|
//! | [`guest`] | boots a guest, and runs commands in it |
//! | [`running`] | a running command in the guest or on the host |
//! | [`error`] | errors of guests and commands |
//! | `image` | the guest's kernel and RAM disk, which are built once and then cached |
//! | `network` | the network namespace that a guest shares with programs on the host |
//! | `channel` | the virtual serial port that carries commands to the guest |
//!
//! The folder `guest` contains the sources of the image: the build script and the guest's first process.
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
