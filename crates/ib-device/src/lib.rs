//! Drives a software HCA on its link. The link is RoCEv2 over UDP, the rings to an HCA daemon, a port of a fabric that
//! another process simulates, or a port of a fabric in this process.
//!
//! [`Device`] is driven by its caller, and [`SimDevice`] runs
//! in virtual time.
//!
//! | module | contents |
//! |---|---|
//! | `endpoint` | [`Device::connect`], [`Device::accept`]: queue pairs that the connection manager connects |
//! | `resolve` | [`Device::path_to`], [`Device::find`]: paths and addresses of peers |
//! | `device` | [`Device`]: HCA, connection manager and link, driven by the caller |
//! | [`sim`] | [`SimDevice`]: an HCA at a port of a simulated fabric in this process, in virtual time |
//! | `attached` | the link to a port of a fabric that another process simulates |
//! | `shared` | the link to an HCA daemon, which shares an IP address among processes |
//! | `interface` | [`LocalPort`]: attributes of a port on Ethernet |
//! | `acm` | queries to an ACM service |
//! | `engines` | [`Engines`]: an HCA and its connection manager; [`DeviceEvent`] |
//! | `options`, `path` | [`DeviceOptions`], [`Path`], [`route_of`] |
//!
//! # Example
//! Two HCAs on the loopback device connect, as `rdma_cm` does:
//!
//! ```
//! use std::net::{IpAddr, Ipv4Addr, SocketAddr};
//!
//! use ib_device::{Device, DeviceOptions, EndpointOptions};
//! use ib_hca::{QpCap, QpId, QpInitAttr, QpType};
//!
//! fn open() -> Result<(Device, QpId), Box<dyn std::error::Error>> {
//!     let mut options = DeviceOptions::new(IpAddr::V4(Ipv4Addr::LOCALHOST));
//!     options.socket.port = 0;
//!     let mut device = Device::open(options)?;
//!     let hca = device.hca();
//!     let pd = hca.alloc_pd()?;
//!     let cq = hca.create_cq(16)?;
//!     let cap = QpCap::default();
//!     let init = QpInitAttr { qp_type: QpType::Rc, send_cq: cq, recv_cq: cq, srq: None, cap };
//!     let qp = hca.create_qp(pd, &init)?;
//!     Ok((device, qp))
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! const PORT: u16 = 7471;
//! let ((mut client, client_qp), (mut server, server_qp)) = (open()?, open()?);
//! client.set_peer_port(server.port());
//! server.set_peer_port(client.port());
//! server.listen(PORT)?;
//! let accepted = std::thread::spawn(move || {
//!     loop {
//!         server.progress().expect("no system call fails");
//!         let Some(event) = server.poll_event() else { continue };
//!         let Ok(request) = Device::request(event) else { continue };
//!         let options = EndpointOptions { private_data: b"hello".to_vec(), ..EndpointOptions::default() };
//!         return server.accept(server_qp, &request, &options).map(|endpoint| (server, endpoint));
//!     }
//! });
//! let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
//! let endpoint = client.connect(client_qp, peer, &EndpointOptions::default())?;
//! accepted.join().expect("the server does not panic")?;
//! assert!(endpoint.private_data.starts_with(b"hello"));
//! # Ok(())
//! # }
//! ```

mod acm;
mod attached;
mod device;
mod endpoint;
mod engines;
mod interface;
mod options;
mod path;
mod resolve;
mod shared;
pub mod sim;

pub use device::{Device, LinkCounters};
pub use endpoint::{ConnectError, Endpoint, EndpointOptions, Request};
pub use engines::{DeviceEvent, Engines};
pub use ib_os::inbox::WorkError;
pub use ib_roce::{address_of, gid_of};
pub use interface::LocalPort;
pub use options::{AttachedOptions, DeviceError, DeviceOptions};
pub use path::{Path, PathError, route_of};
pub use sim::{SimDevice, SimDeviceError, SimDeviceOptions, SimDevices};
