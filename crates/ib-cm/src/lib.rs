//! The connection manager (CM): connects and disconnects queue pairs; IBTA volume 1, chapter 12.
//!
//! The CM does not access queue pairs. The owner of the queue pairs, called the consumer, reads events of
//! the CM and calls its methods. The CM exchanges messages over QP1, each with its [`Route`](ib_link::Route).
//!
//! | module | contents |
//! |---|---|
//! | `config` | [`CmConfig`], [`Ece`], [`CmCounters`], [`timeout`] |
//! | `params` | parameters of REQ, REP, `SIDR_REQ`, `SIDR_REP`: [`ConnectParams`], [`AcceptParams`], [`SidrParams`], [`SidrReply`] |
//! | `event` | [`CmEvent`]: events for the consumer |
//! | `id`, `cma` | [`ConnectionId`], [`ServiceId`], [`PortSpace`]; private data with the `rdma_cm` header |
//! | `cm` | [`Cm`]: the dispatch of messages, timers and calls |
//! | `cm::active`, `cm::passive` | REQ, REP and RTU of the active and the passive side |
//! | `cm::reject` | REJ and MRA |
//! | `cm::disconnect` | DREQ, DREP, time-wait, stale connections |
//! | `cm::sidr` | service ID resolution (SIDR) of UD QPs |
//! | `connection`, `connections` | a connection and its [`State`]; the table of connections |
//! | `listeners`, `sidr_table` | the tables of listeners and of SIDR requests |
//! | `error`, `timers` | errors of calls; the table of deadlines |
//!
//! Two CMs connect:
//!
//! ```
//! use ib_cm::{AcceptParams, Cm, CmConfig, CmEvent, ConnectParams, ServiceId};
//! use ib_link::Route;
//! use ib_types::{Guid, Instant, Psn, Qpn};
//!
//! let config = |guid| CmConfig { ca_guid: Guid(guid), ..CmConfig::default() };
//! let (mut here, mut there) = (Cm::new(config(1), [1; 32]), Cm::new(config(2), [2; 32]));
//! let now = Instant::ZERO;
//! let route = Route { slid: 1, dlid: 2, ..Route::default() };
//! let back = Route { slid: 2, dlid: 1, ..route };
//!
//! there.listen(ServiceId(0x1234))?;
//! let (qpn, psn) = (Qpn::truncated(17), Psn::truncated(1000));
//! let id = here.connect(now, &ConnectParams::new(route, ServiceId(0x1234), qpn, psn))?;
//!
//! let (_, req) = here.poll_transmit().expect("the CM sends a REQ");
//! there.handle(now, &back, &req);
//! let Some(CmEvent::Requested(requested)) = there.poll_event() else { panic!() };
//! assert_eq!(requested.req.local_qpn, qpn);
//! let (qpn, psn) = (Qpn::truncated(99), Psn::truncated(5));
//! there.accept(now, requested.id, &AcceptParams::new(qpn, psn))?;
//!
//! let (_, rep) = there.poll_transmit().expect("the CM sends a REP");
//! here.handle(now, &route, &rep);
//! let Some(CmEvent::Connected(connected)) = here.poll_event() else { panic!() };
//! assert_eq!(connected.rep.local_qpn, qpn);
//! // The consumer programs its queue pair, and completes the connection.
//! here.established(id, b"")?;
//!
//! let (_, rtu) = here.poll_transmit().expect("the CM sends an RTU");
//! there.handle(now, &back, &rtu);
//! assert!(matches!(there.poll_event(), Some(CmEvent::Established { .. })));
//! # Ok::<(), ib_cm::CmError>(())
//! ```

mod cm;
mod cma;
mod config;
mod connection;
mod connections;
mod error;
mod event;
mod id;
mod listeners;
mod params;
mod sidr_table;
mod timers;

pub use cm::Cm;
pub use config::{CmConfig, CmCounters, Ece, timeout};
pub use connection::State;
pub use error::CmError;
pub use event::{
    Cause, CmEvent, Connected, Failure, Requested, SidrRequested, SidrResolved, accepted_mtu,
};
pub use ib_wire::mad::cm::CmaHeader;
pub use id::{ConnectionId, ListenerId, PortSpace, ServiceId, SidrId, SidrRequestId};
pub use params::{AcceptParams, ConnectParams, SidrParams, SidrReply};
