//! Wire formats of InfiniBand: packet headers, checksums, MADs, and the messages of ACM, RTRS and
//! RNBD.
//!
//! Each format has a parser (`parse`) and an encoder (`emit`). Parsers of fixed layouts accept any
//! bytes of the right length, and unknown codes are preserved. This crate does no I/O.
//!
//! | module | contents |
//! |---|---|
//! | [`packet`] | packet headers, a checked view of an encoded packet, and a packet builder |
//! | [`crc`] | ICRC and VCRC |
//! | [`mad`] | MADs: SMPs, SA records, performance counters, CM messages, vendor classes |
//! | [`acm`] | messages between clients and the ACM service |
//! | [`rtrs`], [`rnbd`] | messages of RTRS (block transport) and RNBD (block devices over RTRS) |
//! | [`mod@layout`] | the [`layout!`] macro, which defines bit layouts |
//!
//! Builds, encodes and parses an SMP:
//!
//! ```
//! use ib_wire::mad::sm::NodeInfo;
//! use ib_wire::mad::smp::directed_request;
//! use ib_wire::mad::{AttributeId, Mad, MadStatus, Method, TransactionId};
//!
//! // Get(NodeInfo) by directed route: out of port 1, then out of port 7 of the next switch.
//! let request =
//!     directed_request(Method::GET, TransactionId(9), (AttributeId::NODE_INFO, 0), &[1, 7]);
//! let bytes: [u8; 256] = request.0;
//!
//! let mut received = Mad(bytes);
//! assert_eq!(received.initial_path()[1..3], [1, 7]);
//! received.set_attribute(&NodeInfo { num_ports: 36, ..NodeInfo::zeroed() });
//! ib_wire::mad::smp::answer(&mut received, MadStatus::OK);
//! assert_eq!(received.method(), Method::GET_RESP);
//! assert_eq!(received.attribute::<NodeInfo>().map(|info| info.num_ports), Some(36));
//! ```

pub mod acm;
pub mod crc;
pub mod layout;
mod le_layout;
pub mod mad;
pub mod packet;
pub mod rnbd;
pub mod rtrs;
