//! The two kinds of messages, [`Control`] and [`Request`]. Numbers are in the machine's byte order
//! unless noted otherwise.

/// Magic number of control messages.
const MAGIC: u32 = 0xdead_beef;

/// Status of an undelivered or unanswered request: `ETIMEDOUT`.
pub const TIMED_OUT: u32 = 110;

/// A control message, 80 bytes.
///
/// ```text
///  0  magic 0xdeadbeef     4  client   8  type   12  length of the payload
/// 16  payload, 64 bytes
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// Number of the client; 0 in the client's first message.
    pub client: u32,
    /// Type of the message, one of [`kind`].
    pub kind: u32,
    /// Number of used bytes of the payload, at most 64.
    pub length: u32,
    /// Payload.
    pub payload: [u8; 64],
}

/// Types of control messages.
pub mod kind {
    /// The server's reply to a message that it refuses.
    pub const ERROR: u32 = 0;
    /// Attaches to a node; see [`Connect`](super::Connect).
    pub const CONNECT: u32 = 1;
    /// Disconnects.
    pub const DISCONNECT: u32 = 2;
    /// Requests LID and state of the local port.
    pub const GET_PORT: u32 = 3;
    /// Requests vendor, device, hardware and firmware version.
    pub const GET_VENDOR: u32 = 4;
    /// Requests the GID of the local port.
    pub const GET_GID: u32 = 5;
    /// Requests the GUID of the local port.
    pub const GET_GUID: u32 = 6;
    /// Requests the NodeInfo of the local node.
    pub const GET_NODE_INFO: u32 = 7;
    /// Requests the PortInfo of a port of the local node.
    pub const GET_PORT_INFO: u32 = 8;
    /// Sets or clears `IsSM`.
    pub const SET_IS_SM: u32 = 9;
    /// Requests the first P_Key table block of the local port.
    pub const GET_PKEYS: u32 = 10;
}

/// Error of parsing a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The size of a datagram is wrong.
    #[error("the datagram has {found} bytes: expected {expected}")]
    Length {
        /// Size of the datagram in bytes.
        found: usize,
        /// Size of the message in bytes.
        expected: usize,
    },
    /// A control message starts with a wrong magic number.
    #[error("the magic number at byte 0 is {found:#010x}: expected 0xdeadbeef")]
    Magic {
        /// The number that was found.
        found: u32,
    },
    /// A size within the message is too large.
    #[error("the length at byte {at} is {found}: expected at most {most}")]
    Payload {
        /// Offset of the size field in the message, in bytes.
        at: usize,
        /// The size that was found, in bytes.
        found: u64,
        /// The maximum size in bytes.
        most: u64,
    },
}

impl Control {
    /// Size of the message in bytes.
    pub const LENGTH: usize = 80;

    /// Creates a message with a payload.
    ///
    /// # Panics
    /// Panics if the payload has more than 64 bytes.
    #[must_use]
    pub fn new(client: u32, kind: u32, payload: &[u8]) -> Self {
        let mut message = Self { client, kind, length: payload.len() as u32, payload: [0; 64] };
        message.payload[..payload.len()].copy_from_slice(payload);
        message
    }

    /// Parses a message.
    ///
    /// # Errors
    /// Fails if the size or the magic number is wrong, or if the message claims a payload of over
    /// 64 bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, MessageError> {
        let bytes: &[u8; Self::LENGTH] = bytes
            .try_into()
            .map_err(|_| MessageError::Length { found: bytes.len(), expected: Self::LENGTH })?;
        let magic = word(bytes, 0);
        if magic != MAGIC {
            return Err(MessageError::Magic { found: magic });
        }
        let length = word(bytes, 12);
        if length > 64 {
            return Err(MessageError::Payload { at: 12, found: length.into(), most: 64 });
        }
        let payload = bytes[16..].try_into().expect("64 bytes are left");
        Ok(Self { client: word(bytes, 4), kind: word(bytes, 8), length, payload })
    }

    /// Formats the message.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        for (at, value) in [(0, MAGIC), (4, self.client), (8, self.kind), (12, self.length)] {
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        bytes[16..].copy_from_slice(&self.payload);
        bytes
    }
}

/// The payload of [`kind::CONNECT`], 44 bytes.
///
/// ```text
/// 0  id   4  queue pair   8  is SM   12  name of the node, NUL-terminated, 32 bytes
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connect {
    /// ID of the client. On Unix sockets, the suffix of the data socket's name, usually the PID; on
    /// UDP, the data socket's port.
    pub id: u32,
    /// QP whose requests the client receives, in addition to QP0 and QP1; 0 for none.
    pub queue_pair: u32,
    /// True if the port shall have `IsSM`.
    pub is_sm: bool,
    /// Name or description of the node. In a request, this is the node to attach to; an empty name
    /// stands for the first node. In a reply, it is the node to which the server has attached the
    /// client.
    pub node: String,
}

impl Connect {
    /// Size of the payload in bytes.
    pub const LENGTH: usize = 44;

    /// Parses the payload of a control message. Bytes of the name that are not UTF-8 are replaced.
    #[must_use]
    pub fn parse(payload: &[u8; 64]) -> Self {
        let name = &payload[12..Self::LENGTH];
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        Self {
            id: word(payload, 0),
            queue_pair: word(payload, 4),
            is_sm: word(payload, 8) != 0,
            node: String::from_utf8_lossy(&name[..end]).into_owned(),
        }
    }

    /// Formats the payload. The name of the node is cut to 31 bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..4].copy_from_slice(&self.id.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.queue_pair.to_ne_bytes());
        bytes[8..12].copy_from_slice(&u32::from(self.is_sm).to_ne_bytes());
        let name = self.node.as_bytes();
        let length = name.len().min(31);
        bytes[12..12 + length].copy_from_slice(&name[..length]);
        bytes
    }
}

/// A MAD with its addresses, 288 bytes.
///
/// ```text
///  0  DLID, big-endian, and two zeros    4  SLID, likewise
///  8  destination queue pair, big-endian    12  source queue pair, big-endian
/// 16  status, big-endian   20  zero   24  length of the MAD, 8 bytes, big-endian
/// 32  MAD, 256 bytes
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// DLID.
    pub dlid: u16,
    /// SLID; 0 if the server inserts it.
    pub slid: u16,
    /// Destination QP number.
    pub destination_queue_pair: u32,
    /// Source QP number.
    pub source_queue_pair: u32,
    /// 0, or [`TIMED_OUT`] for a returned request.
    pub status: u32,
    /// Number of used bytes of the MAD, at most 256.
    pub length: u16,
    /// The MAD.
    pub mad: [u8; 256],
}

impl Request {
    /// Size of the message in bytes, on 64-bit machines.
    pub const LENGTH: usize = 288;

    /// Parses a request.
    ///
    /// # Errors
    /// Fails if the size is wrong, or if the request claims a MAD of over 256 bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, MessageError> {
        let bytes: &[u8; Self::LENGTH] = bytes
            .try_into()
            .map_err(|_| MessageError::Length { found: bytes.len(), expected: Self::LENGTH })?;
        let big = |at: usize| u32::from_be(word(bytes, at));
        let length = u64::from(big(24)) << 32 | u64::from(big(28));
        let most = 256;
        if length > most {
            return Err(MessageError::Payload { at: 24, found: length, most });
        }
        Ok(Self {
            dlid: u16::from_be_bytes([bytes[0], bytes[1]]),
            slid: u16::from_be_bytes([bytes[4], bytes[5]]),
            destination_queue_pair: big(8),
            source_queue_pair: big(12),
            status: big(16),
            length: length as u16,
            mad: bytes[32..].try_into().expect("256 bytes are left"),
        })
    }

    /// Formats the request.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..2].copy_from_slice(&self.dlid.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.slid.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.destination_queue_pair.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.source_queue_pair.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.status.to_be_bytes());
        bytes[24..32].copy_from_slice(&u64::from(self.length).to_be_bytes());
        bytes[32..].copy_from_slice(&self.mad);
        bytes
    }
}

/// Reads four bytes in the machine's byte order.
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("the slice has four bytes"))
}

#[cfg(test)]
mod tests;
