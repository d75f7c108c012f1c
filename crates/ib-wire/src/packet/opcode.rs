//! The opcode of a packet: the first byte of the BTH. It determines which headers follow the BTH.
//!
//! The upper three bits are the transport service. The lower five bits are the operation. Source:
//! IBTA volume 1, chapter 9.2.2.

use std::fmt;

use super::header::{Header, HeaderSet};

/// The opcode field of a BTH. Unknown opcodes are preserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Opcode(pub u8);

/// The transport service of a packet: the upper three bits of its [`Opcode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// Reliable connection (RC), code 0.
    Rc,
    /// Unreliable connection (UC), code 1.
    Uc,
    /// Reliable datagram (RD), code 2.
    Rd,
    /// Unreliable datagram (UD), code 3.
    Ud,
    /// Congestion notification packets (CNPs), code 4.
    Cnp,
    /// Extended reliable connection (XRC), code 5.
    Xrc,
    /// Manufacturer-specific service, code 6.
    Vendor6,
    /// Manufacturer-specific service, code 7.
    Vendor7,
}

/// The operation of a packet: the lower five bits of its [`Opcode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Operation {
    /// First packet of a SEND.
    SendFirst = 0x00,
    /// Middle packet of a SEND.
    SendMiddle = 0x01,
    /// Last packet of a SEND.
    SendLast = 0x02,
    /// Last packet of a SEND with immediate data.
    SendLastImmediate = 0x03,
    /// Only packet of a SEND.
    SendOnly = 0x04,
    /// Only packet of a SEND with immediate data.
    SendOnlyImmediate = 0x05,
    /// First packet of an RDMA WRITE.
    WriteFirst = 0x06,
    /// Middle packet of an RDMA WRITE.
    WriteMiddle = 0x07,
    /// Last packet of an RDMA WRITE.
    WriteLast = 0x08,
    /// Last packet of an RDMA WRITE with immediate data.
    WriteLastImmediate = 0x09,
    /// Only packet of an RDMA WRITE.
    WriteOnly = 0x0a,
    /// Only packet of an RDMA WRITE with immediate data.
    WriteOnlyImmediate = 0x0b,
    /// RDMA READ request.
    ReadRequest = 0x0c,
    /// First packet of an RDMA READ response.
    ReadResponseFirst = 0x0d,
    /// Middle packet of an RDMA READ response.
    ReadResponseMiddle = 0x0e,
    /// Last packet of an RDMA READ response.
    ReadResponseLast = 0x0f,
    /// Only packet of an RDMA READ response.
    ReadResponseOnly = 0x10,
    /// ACK, RNR NAK or NAK.
    Acknowledge = 0x11,
    /// Response to an atomic operation.
    AtomicAcknowledge = 0x12,
    /// Compare and swap.
    CompareSwap = 0x13,
    /// Fetch and add.
    FetchAdd = 0x14,
    /// RESYNC of the reliable datagram service.
    Resync = 0x15,
    /// Last packet of a SEND with invalidate.
    SendLastInvalidate = 0x16,
    /// Only packet of a SEND with invalidate.
    SendOnlyInvalidate = 0x17,
}

/// The position of a packet in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Position {
    /// The first of several packets.
    First,
    /// Neither the first nor the last packet.
    Middle,
    /// The last of several packets.
    Last,
    /// The only packet of the message.
    Only,
}

impl Transport {
    /// All transport services in the order of their codes, 0 to 7.
    pub const ALL: [Self; 8] = [
        Self::Rc,
        Self::Uc,
        Self::Rd,
        Self::Ud,
        Self::Cnp,
        Self::Xrc,
        Self::Vendor6,
        Self::Vendor7,
    ];

    /// Returns true if the transport service defines the operation.
    ///
    /// Returns false for all operations of CNP and of manufacturer-specific services.
    #[must_use]
    pub const fn has(self, operation: Operation) -> bool {
        let number = operation as u8;
        match self {
            Self::Rc | Self::Xrc => number != Operation::Resync as u8,
            Self::Uc => number <= Operation::WriteOnlyImmediate as u8,
            Self::Rd => number <= Operation::Resync as u8,
            Self::Ud => matches!(operation, Operation::SendOnly | Operation::SendOnlyImmediate),
            Self::Cnp | Self::Vendor6 | Self::Vendor7 => false,
        }
    }
}

impl Operation {
    /// All operations in the order of their codes, 0 to 0x17.
    pub const ALL: [Self; 24] = [
        Self::SendFirst,
        Self::SendMiddle,
        Self::SendLast,
        Self::SendLastImmediate,
        Self::SendOnly,
        Self::SendOnlyImmediate,
        Self::WriteFirst,
        Self::WriteMiddle,
        Self::WriteLast,
        Self::WriteLastImmediate,
        Self::WriteOnly,
        Self::WriteOnlyImmediate,
        Self::ReadRequest,
        Self::ReadResponseFirst,
        Self::ReadResponseMiddle,
        Self::ReadResponseLast,
        Self::ReadResponseOnly,
        Self::Acknowledge,
        Self::AtomicAcknowledge,
        Self::CompareSwap,
        Self::FetchAdd,
        Self::Resync,
        Self::SendLastInvalidate,
        Self::SendOnlyInvalidate,
    ];

    /// Returns the position of the packet in its message.
    ///
    /// READ requests, acknowledgements and atomic operations are [`Position::Only`].
    #[must_use]
    pub const fn position(self) -> Position {
        match self {
            Self::SendFirst | Self::WriteFirst | Self::ReadResponseFirst => Position::First,
            Self::SendMiddle | Self::WriteMiddle | Self::ReadResponseMiddle => Position::Middle,
            Self::SendLast
            | Self::SendLastImmediate
            | Self::SendLastInvalidate
            | Self::WriteLast
            | Self::WriteLastImmediate
            | Self::ReadResponseLast => Position::Last,
            _ => Position::Only,
        }
    }

    /// Returns true for operations of the responder: READ responses and acknowledgements.
    #[must_use]
    pub const fn is_response(self) -> bool {
        let number = self as u8;
        number >= Self::ReadResponseFirst as u8 && number <= Self::AtomicAcknowledge as u8
    }

    /// Returns the headers that follow the BTH if the operation uses the RC service.
    const fn headers(self) -> HeaderSet {
        match self {
            Self::SendLastImmediate | Self::SendOnlyImmediate | Self::WriteLastImmediate => {
                HeaderSet::of(&[Header::ImmDt])
            }
            Self::WriteFirst | Self::WriteOnly | Self::ReadRequest => {
                HeaderSet::of(&[Header::Reth])
            }
            Self::WriteOnlyImmediate => HeaderSet::of(&[Header::Reth, Header::ImmDt]),
            Self::ReadResponseFirst
            | Self::ReadResponseLast
            | Self::ReadResponseOnly
            | Self::Acknowledge => HeaderSet::of(&[Header::Aeth]),
            Self::AtomicAcknowledge => HeaderSet::of(&[Header::Aeth, Header::AtomicAckEth]),
            Self::CompareSwap | Self::FetchAdd => HeaderSet::of(&[Header::AtomicEth]),
            Self::SendLastInvalidate | Self::SendOnlyInvalidate => HeaderSet::of(&[Header::Ieth]),
            _ => HeaderSet::EMPTY,
        }
    }
}

macro_rules! named {
    ($($(#[$doc:meta])* $name:ident = $value:literal),+ $(,)?) => {
        $($(#[$doc])* pub const $name: Self = Self($value);)+
    };
}

impl Opcode {
    named! {
        /// RC: only packet of a SEND.
        RC_SEND_ONLY = 0x04,
        /// RC: only packet of an RDMA WRITE.
        RC_WRITE_ONLY = 0x0a,
        /// RC: only packet of an RDMA WRITE with immediate data.
        RC_WRITE_ONLY_IMMEDIATE = 0x0b,
        /// RC: RDMA READ request.
        RC_READ_REQUEST = 0x0c,
        /// RC: only packet of an RDMA READ response.
        RC_READ_RESPONSE_ONLY = 0x10,
        /// RC: ACK, RNR NAK or NAK.
        RC_ACKNOWLEDGE = 0x11,
        /// UD: only packet of a SEND. All MADs have this opcode.
        UD_SEND_ONLY = 0x64,
        /// UD: only packet of a SEND with immediate data.
        UD_SEND_ONLY_IMMEDIATE = 0x65,
        /// Congestion notification packet (CNP) of RoCEv2 with 16 reserved bytes of payload.
        /// Source: IBTA volume 1, annex A17.
        CNP = 0x81,
    }

    /// Returns the opcode of an operation of a transport service; `None` if the service does not
    /// define the operation.
    #[must_use]
    pub const fn new(transport: Transport, operation: Operation) -> Option<Self> {
        if transport.has(operation) {
            Some(Self((transport as u8) << 5 | operation as u8))
        } else {
            None
        }
    }

    /// Returns the transport service.
    #[must_use]
    pub const fn transport(self) -> Transport {
        Transport::ALL[(self.0 >> 5) as usize]
    }

    /// Returns the operation; `None` for CNPs and for operations that the transport service does
    /// not define.
    #[must_use]
    pub const fn operation(self) -> Option<Operation> {
        let number = (self.0 & 0x1f) as usize;
        if number >= Operation::ALL.len() || !self.transport().has(Operation::ALL[number]) {
            return None;
        }
        Some(Operation::ALL[number])
    }

    /// Returns true if the opcode is defined, so that the headers after the BTH are known.
    #[must_use]
    pub const fn is_known(self) -> bool {
        self.0 == Self::CNP.0 || self.operation().is_some()
    }

    /// Returns the headers between the BTH and the payload; `None` for an unknown opcode.
    #[inline]
    #[must_use]
    pub const fn headers(self) -> Option<HeaderSet> {
        HEADERS[self.0 as usize]
    }

    const fn find_headers(self) -> Option<HeaderSet> {
        if self.0 == Self::CNP.0 {
            return Some(HeaderSet::EMPTY);
        }
        let Some(operation) = self.operation() else { return None };
        let headers = operation.headers();
        let response = operation.is_response();
        Some(match self.transport() {
            Transport::Rd if response => headers.with(Header::Rdeth),
            Transport::Rd => headers.with(Header::Rdeth).with(Header::Deth),
            Transport::Ud => headers.with(Header::Deth),
            Transport::Xrc if !response => headers.with(Header::XrcEth),
            _ => headers,
        })
    }
}

/// The headers of every opcode, computed at compile time.
static HEADERS: [Option<HeaderSet>; 256] = {
    let mut table = [None; 256];
    let mut code = 0;
    while code < 256 {
        table[code] = Opcode(code as u8).find_headers();
        code += 1;
    }
    table
};

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rc => "RC",
            Self::Uc => "UC",
            Self::Rd => "RD",
            Self::Ud => "UD",
            Self::Cnp => "CNP",
            Self::Xrc => "XRC",
            Self::Vendor6 => "vendor 6",
            Self::Vendor7 => "vendor 7",
        })
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SendFirst => "SEND first",
            Self::SendMiddle => "SEND middle",
            Self::SendLast => "SEND last",
            Self::SendLastImmediate => "SEND last with immediate",
            Self::SendOnly => "SEND only",
            Self::SendOnlyImmediate => "SEND only with immediate",
            Self::WriteFirst => "RDMA WRITE first",
            Self::WriteMiddle => "RDMA WRITE middle",
            Self::WriteLast => "RDMA WRITE last",
            Self::WriteLastImmediate => "RDMA WRITE last with immediate",
            Self::WriteOnly => "RDMA WRITE only",
            Self::WriteOnlyImmediate => "RDMA WRITE only with immediate",
            Self::ReadRequest => "RDMA READ request",
            Self::ReadResponseFirst => "RDMA READ response first",
            Self::ReadResponseMiddle => "RDMA READ response middle",
            Self::ReadResponseLast => "RDMA READ response last",
            Self::ReadResponseOnly => "RDMA READ response only",
            Self::Acknowledge => "acknowledge",
            Self::AtomicAcknowledge => "atomic acknowledge",
            Self::CompareSwap => "compare and swap",
            Self::FetchAdd => "fetch and add",
            Self::Resync => "RESYNC",
            Self::SendLastInvalidate => "SEND last with invalidate",
            Self::SendOnlyInvalidate => "SEND only with invalidate",
        })
    }
}

impl fmt::Display for Opcode {
    /// Writes the transport service and the operation. For an unknown opcode, writes `opcode` and
    /// its number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operation() {
            Some(operation) => write!(f, "{} {operation}", self.transport()),
            None if *self == Self::CNP => f.write_str("CNP"),
            None => write!(f, "opcode 0x{:02x}", self.0),
        }
    }
}

#[cfg(test)]
mod tests;
