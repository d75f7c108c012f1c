//! The daemon of `ibfabric up`: it runs a simulated fabric, its SM, hosts and a web page within one process.
//!
//! | module | holds |
//! |---|---|
//! | `config` | [`UpConfig`], the configuration of the process |
//! | [`hosts`] | hosts of a simulated fabric within the simulator's process, with ACM services and block devices |
//! | `serve` | the event loop of simulator, SM, hosts and page |
//! | `embedded_hosts` | the hosts: an ACM service at each, and a block device between some of them |
//! | `self_test` | the self-test, which `ibfabric selftest` runs |
//! | [`web`] | the HTTP server of the page and its API |
//! | `page` | the responses of the page's API |
//! | `load_generator` | the load generator of the block device |
//! | `pass`, `tables` | passes over the block device; copies of LIDs and LFTs for threads that compute results |
//! | `path_request` | path requests to ACM services |
//! | `record` | the capture file with the packets of the block device's queue pairs |

use std::io::Write;

use ib_ibsim::server::{Address, Server};
use ib_topology::Fabric;
use ib_types::Mtu;

use crate::error::{DaemonError, Verdict};
use crate::sim::{SimConfig, Simulation};

mod config;
mod embedded_hosts;
pub mod hosts;
#[cfg(test)]
mod lab;
mod load_generator;
mod page;
mod pass;
mod path_request;
mod record;
mod self_test;
mod serve;
mod tables;
pub mod web;

pub use config::{SelfTestConfig, Task, UpConfig};
use embedded_hosts::EmbeddedHosts;
use page::Page;
pub use self_test::report_schema;

/// Simulates a fabric with its SM and hosts until a signal stops the process or the self-test has finished.
///
/// # Errors
/// Fails if a socket or a file cannot be used, if the SM cannot bring up the subnet, or if the block device cannot be
/// connected.
pub fn run(
    fabric: Fabric,
    config: &UpConfig,
    output: &mut dyn Write,
) -> Result<Verdict, DaemonError> {
    let sim_config = sim_config(config);
    let simulation = Simulation::new(&fabric, &sim_config)?;
    let server = Server::bind(Address::Name(config.socket.clone()))
        .map_err(|error| DaemonError::Failed(format!("{error}; --name selects another name")))?;
    let page = page(config, &fabric)?;
    let hosts = EmbeddedHosts::new(config, fabric, page)?;
    serve::run(simulation.into_server(server, &sim_config)?, hosts, output)
}

/// Returns the configuration of the simulator. It adds agents for ibtracer and ibping to all nodes.
fn sim_config(config: &UpConfig) -> SimConfig {
    SimConfig {
        manager: Some(config.manager.clone()),
        agents: Some(String::new()),
        seed: config.seed,
        script: config.script.clone(),
        mtu: Mtu::B4096,
        ..SimConfig::default()
    }
}

/// Starts to serve the web page, if configured.
fn page(config: &UpConfig, fabric: &Fabric) -> Result<Option<Page>, DaemonError> {
    let Task::Serve { http: Some(address), .. } = config.task else { return Ok(None) };
    let names = (&*config.fabric_name, &*config.engine.to_string(), &*config.socket);
    Page::start(address, fabric.clone(), names).map(Some)
}
