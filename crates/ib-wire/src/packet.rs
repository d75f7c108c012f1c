//! Packets: their headers, a checked view of an encoded packet, and a builder.
//!
//! ```text
//! native    LRH [GRH] BTH [extended headers] payload pad ICRC VCRC
//! RoCEv2     IP  UDP  BTH [extended headers] payload pad ICRC
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`view`] | [`Packet`]: a view of an encoded packet; its lengths and versions are checked |
//! | [`build`] | [`Builder`]: encodes headers and a payload |
//! | [`roce`] | [`RoceNetwork`]: the IP and UDP fields that the ICRC of RoCEv2 covers |
//! | [`opcode`] | [`Opcode`]: transport service, operation, and position of a packet in its message |
//! | [`header`] | [`Header`], [`HeaderSet`]: the headers between BTH and payload |
//! | [`route`] | layouts of LRH and GRH |
//! | [`transport`] | layouts of the BTH and of the extended transport headers; [`Syndrome`]: ACK, RNR NAK, and NAK codes |
//!
//! ```
//! use ib_types::Qpn;
//! use ib_wire::packet::{Bth, Builder, Lrh, Opcode, Packet};
//!
//! let bth = Bth { destination: Qpn::truncated(17), ..Bth::default() };
//! let lrh = Lrh { slid: 1, dlid: 4, ..Lrh::default() };
//! let mut bytes = [0; 64];
//! let length = Builder::new(bth).lrh(lrh).payload(b"hello").emit(&mut bytes)?;
//!
//! let packet = Packet::parse(&bytes[..length])?;
//! assert_eq!(packet.bth().opcode, Opcode::RC_SEND_ONLY);
//! assert_eq!(packet.payload(), b"hello");
//! assert_eq!((packet.check_icrc(), packet.check_vcrc()), (Ok(()), Ok(())));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod build;
mod error;
pub mod header;
pub mod opcode;
pub mod roce;
pub mod route;
pub mod transport;
pub mod view;

pub use build::Builder;
pub use error::{BuildError, PacketError};
pub use header::{Header, HeaderSet};
pub use opcode::{Opcode, Operation, Position, Transport};
pub use roce::{RoceAddresses, RoceNetwork};
pub use route::{Grh, LinkNextHeader, Lrh};
pub use transport::{
    Acknowledgement, Aeth, AtomicAckEth, AtomicEth, Bth, Credits, Deth, Ieth, ImmDt, NakCode,
    Rdeth, Reth, RnrTimer, Syndrome, XrcEth,
};
pub use view::Packet;
