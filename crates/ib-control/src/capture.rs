//! Captures of a running program's queue pairs.
//!
//! | module | holds |
//! |---|---|
//! | `hca_owner` | [`HcaOwner`]: the HCAs of a program |
//! | `captures` | [`Captures`]: the captures of a program's HCAs |
//! | `server` | [`CaptureServer`]: lets other processes start and stop captures |
//! | `client` | [`CaptureClient`]: the client of the capture server |
//! | `message` | requests and responses between client and server |
//! | `triggered` | packets that are kept in memory and written only after a trigger |
//! | `recorder` | [`Recorder`]: a thread that collects and writes packets |
//! | `target` | [`Target`]: a file, rotated files, or a stream |
//! | `background` | threads with background scheduling priority |
//! | `clock` | [`Clock`]: the clock of packet timestamps |

mod background;
mod captures;
mod client;
mod clock;
mod hca_owner;
pub mod message;
mod recorder;
mod server;
mod target;
mod triggered;

pub use captures::{CaptureError, CaptureOptions, Captures};
pub use client::{CaptureClient, ClientError, pid_of, programs};
pub use clock::Clock;
pub use hca_owner::{HcaOwner, OnReader};
pub use hca_owner::{describe, link_of};
pub use recorder::{Autostop, Recorded, Recorder, RecorderHandle};
pub use server::CaptureServer;
pub use target::{Rotation, Target, TargetError, create_alone};
