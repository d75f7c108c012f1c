//! The event loops of the daemons, and modules that the daemons and other commands of ibfabric share.
//!
//! | module | holds |
//! |---|---|
//! | [`acm`] | the ACM service with its ports and sockets |
//! | [`rtrs`] | servers and clients of RTRS block devices |
//! | [`sim`] | the simulator with its sockets |
//! | [`sm`] | the subnet manager with its port |
//! | [`up`] | the simulator with embedded hosts, and the web page of `ibfabric up` |
//! | [`adapter`] | opening HCAs at local IP addresses and at ports of simulated fabrics |
//! | [`hca`] | the HCA daemon, which shares an IP address among HCAs of other processes |
//! | [`agent`] | the agent that responds to ibtracer and ibping at a port |
//! | [`mad_port`] | a port, of a simulator or of an HCA, that sends and receives MADs |
//! | [`own_capture`] | captures of this process's QPs |
//! | [`host`] | names of this machine and of its HCAs |
//! | [`log`] | log files in OpenSM's format |
//! | [`input`], [`routing_files`], [`result_file`] | input files, files of routing engines, atomically replaced files |
//! | [`progress`] | progress of long work on a terminal |
//! | [`message`] | messages on standard error, and plural forms of nouns |
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
pub mod hca;
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
pub mod up;

pub use error::{DaemonError, Verdict};
