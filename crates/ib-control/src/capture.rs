//! Captures of a running program's queue pairs.
//!
//! | module | holds |
//! |---|---|
//! | `captured` | [`Captured`]: the HCAs of a program |
//! | `captures` | [`Captures`]: those of a program's HCAs |
//! | `server` | [`CaptureServer`]: has other processes start and stop them |
//! | `client` | [`CaptureClient`]: such a process |
//! | `message` | what the two tell each other |
//! | `held` | packets that are read only after something has happened |
//! | `recorder` | [`Recorder`]: a thread that collects and writes |
//! | `target` | [`Target`]: a file, several, or a stream that somebody reads |
//! | `background` | threads that take what others leave of the processors |
//! | `clock` | [`Clock`]: by which packets are noted |
//! | `date` | dates in names of files |

mod background;
mod captured;
mod captures;
mod client;
mod clock;
mod date;
mod held;
pub mod message;
mod recorder;
mod server;
mod target;

pub use captured::{Captured, Taker};
pub use captured::{describe, link_of};
pub use captures::{CaptureError, CaptureOptions, Captures};
pub use client::{CaptureClient, ClientError, pid_of, programs};
pub use clock::Clock;
pub use recorder::{Autostop, Recorded, Recorder, RecorderHandle};
pub use server::CaptureServer;
pub use target::{Rotation, Target, TargetError, create_alone};
