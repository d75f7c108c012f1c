//! Event loops of the daemons, and modules that only daemons need.
//!
//! | module | holds |
//! |---|---|
//! | [`acm`] | ports and sockets of the ACM service |
//! | [`rtrs`] | servers and clients of block devices |
//! | [`sim`] | the simulator at its sockets |
//! | [`sm`] | the subnet manager at its port |
//! | [`up`] | the simulator with embedded hosts and the page of `ibfabric up` |
//! | [`adapter`] | HCAs at local IP addresses and at ports of simulated fabrics |
//! | [`agent`] | the agent of ibtracer and ibping at a port |
//! | [`mad_port`] | a port of a simulator or of this machine |
//! | [`own_capture`] | the capture that a program makes of its own HCAs |
//! | [`host`] | names of this machine and of its HCAs |
//! | [`log`] | log files in OpenSM's format |
//! | [`input`], [`routing_files`], [`result_file`] | input files, those of routing engines, replaced files |
//! | [`progress`] | progress of long work on a terminal |
//! | [`message`], [`text`] | messages on standard error, plural forms |
//! | [`error`] | errors and results of the daemons |
//!
//! # Example
//! ```no_run
//! use ib_daemons::sim::{SimConfig, Simulation};
//! use ib_ibsim::server::{Address, Server};
//! use ib_topology::generate::{Kind, Options, generate};
//!
//! let fabric = generate(&Kind::parse("fat-tree", &["8", "hosts=2"])?, &Options::default())?;
//! let config = SimConfig { seed: 7, ..SimConfig::default() };
//! let simulation = Simulation::new(&fabric, &config)?;
//! // Clients of ibsim find this server with `IBSIM_SOCKNAME=lab`. A signal ends the call.
//! let server = Server::bind(Address::Name("lab".to_owned()))?;
//! simulation.serve(server, &config, &mut std::io::stdout())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod acm;
pub mod adapter;
pub mod agent;
pub mod error;
pub mod host;
pub mod input;
pub mod log;
pub mod mad_port;
pub mod message;
pub mod own_capture;
pub mod progress;
pub mod result_file;
pub mod routing_files;
pub mod rtrs;
pub mod sim;
pub mod sm;
pub mod text;
pub mod up;

pub use error::{DaemonError, Verdict};
