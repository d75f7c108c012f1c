//! Everything of ibfabric that touches the outside: sockets and devices.
//!
//! | module | holds |
//! |---|---|
//! | [`console`] | lines of text over a private Unix socket |
//! | [`page`] | a page of text for whoever asks with HTTP on this machine |
//! | [`signals`] | being asked to end, and what else signals tell a daemon |
//! | [`daemon`] | life in the background, and the service manager |
//! | [`alarm`] | what ends a wait early |
//! | [`desk`] | questions of other threads to a loop |
//! | [`cpu`] | the processors of this machine |
//! | [`ibsim`] | the datagrams between ibsim and its clients: messages, server and client |
//! | [`attach`] | ports of a simulated fabric for adapters in other processes: shared memory, and a socket |
//! | [`umad`] | the kernel's devices for management datagrams: a link, and their binary interface |
//! | [`roce`] | RoCEv2 packets over UDP sockets, and network interfaces as their ports |
//! | [`disk`] | block devices in memory and files |
//! | [`nbd`] | a device for programs, over NBD |
//! | [`device`] | an adapter on RoCEv2: engine, connection manager and socket |
//! | [`capture`] | captures of a running program's queue pairs |
//! | [`hosts`] | hosts of a simulated fabric in its process, with names and block devices |
//! | [`acm`] | ports and programs for the service of IB ACM |
//! | [`rtrs`] | adapters for the engines of RTRS |
//! | [`web`] | a page for browsers of this machine, and what it asks a loop |
//! | [`tap`] | TAP devices, for tests with impaired links |
//! | [`clock`] | the time that links tell |
//! | `seqpacket` | JSON objects over a private Unix socket |
//! | `unix` | sockets in the file system |
//! | `sockopt` | options of sockets |
//! | `batch` | many datagrams with one system call |
//!
//! Protocol rules are elsewhere: what is received is handed on, what is to be sent is given.

use std::io;

pub mod acm;
pub mod alarm;
pub mod attach;
mod batch;
pub mod capture;
pub mod clock;
pub mod console;
pub mod cpu;
pub mod daemon;
pub mod desk;
pub mod device;
pub mod disk;
pub mod hosts;
pub mod ibsim;
pub mod inbox;
pub mod nbd;
pub mod page;
mod poll;
pub mod roce;
pub mod rtrs;
mod seqpacket;
pub mod signals;
mod sockopt;
pub mod tap;
mod tick;
pub mod umad;
mod unix;
pub mod web;

/// Returns bytes that nobody can guess, from the system.
///
/// # Errors
/// Fails when the system has none.
pub fn random() -> io::Result<[u8; 32]> {
    device::random()
}
