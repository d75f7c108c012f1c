//! The two messages: [`Control`] and [`Request`]. Numbers are in the machine's byte order unless said
//! otherwise.

/// The first word of a control message.
const MAGIC: u32 = 0xdead_beef;

/// The status of a request that could not be delivered or answered: `ETIMEDOUT`.
pub const TIMED_OUT: u32 = 110;

/// A control message, 80 bytes.
///
/// ```text
///  0  magic 0xdeadbeef     4  client   8  type   12  length of the payload
/// 16  payload, 64 bytes
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// The client's number; zero in its first message.
    pub client: u32,
    /// What is asked.
    pub kind: u32,
    /// The number of bytes of the payload that count, at most 64.
    pub length: u32,
    /// What belongs to it.
    pub payload: [u8; 64],
}

/// The types of control messages.
pub mod kind {
    /// The answer when something is wrong.
    pub const ERROR: u32 = 0;
    /// Attaches to a node; see [`Connect`](super::Connect).
    pub const CONNECT: u32 = 1;
    /// Leaves.
    pub const DISCONNECT: u32 = 2;
    /// Asks for the LID and state of the own port.
    pub const GET_PORT: u32 = 3;
    /// Asks for vendor, device, hardware and firmware.
    pub const GET_VENDOR: u32 = 4;
    /// Asks for the own port's GID.
    pub const GET_GID: u32 = 5;
    /// Asks for the own port's GUID.
    pub const GET_GUID: u32 = 6;
    /// Asks for the own node's NodeInfo.
    pub const GET_NODE_INFO: u32 = 7;
    /// Asks for the PortInfo of a port of the own node.
    pub const GET_PORT_INFO: u32 = 8;
    /// Takes up or gives up the duty of a subnet manager.
    pub const SET_IS_SM: u32 = 9;
    /// Asks for the own port's first block of P_Keys.
    pub const GET_PKEYS: u32 = 10;
}

/// Why bytes are no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The length is wrong.
    #[error("found {found} bytes, expected {expected}")]
    Length {
        /// The length of what came.
        found: usize,
        /// The length of the message.
        expected: usize,
    },
    /// A control message does not start with its magic number.
    #[error("found {found:#010x} at byte 0, expected 0xdeadbeef")]
    Magic {
        /// What stands there.
        found: u32,
    },
    /// A length inside the message is too large.
    #[error("found {found} at byte {at}, expected a length of at most {most}")]
    Payload {
        /// Where the length stands.
        at: usize,
        /// What it says.
        found: u64,
        /// What it may say.
        most: u64,
    },
}

impl Control {
    /// The length on the wire.
    pub const LENGTH: usize = 80;

    /// Makes a message with the payload given.
    ///
    /// # Panics
    /// Panics when the payload has more than 64 bytes.
    #[must_use]
    pub fn new(client: u32, kind: u32, payload: &[u8]) -> Self {
        let mut message = Self { client, kind, length: payload.len() as u32, payload: [0; 64] };
        message.payload[..payload.len()].copy_from_slice(payload);
        message
    }

    /// Reads a message.
    ///
    /// # Errors
    /// Fails when the length or the magic number is wrong, or the payload is said to be longer than
    /// there is room for.
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

    /// Returns the message's bytes.
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
    /// What the client's data socket is called by: its process on Unix sockets, its port on UDP.
    pub id: u32,
    /// The queue pair whose requests it wants besides 0 and 1; zero for none.
    pub queue_pair: u32,
    /// Whether it has the duty of a subnet manager.
    pub is_sm: bool,
    /// The node that it wants to be on, or is on, by name or description; empty for the first.
    pub node: String,
}

impl Connect {
    /// The length on the wire.
    pub const LENGTH: usize = 44;

    /// Reads the payload of a control message. Bytes of the name that are not UTF-8 are replaced.
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

    /// Returns the payload's bytes; a name is cut to 31 bytes.
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

/// A management datagram with its addresses, 288 bytes.
///
/// ```text
///  0  DLID, big-endian, and two zeros    4  SLID, likewise
///  8  destination queue pair, big-endian    12  source queue pair, big-endian
/// 16  status, big-endian   20  zero   24  length of the MAD, 8 bytes, big-endian
/// 32  MAD, 256 bytes
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Where it goes.
    pub dlid: u16,
    /// Where it comes from; zero to have it filled in.
    pub slid: u16,
    /// The queue pair that it goes to.
    pub destination_queue_pair: u32,
    /// The queue pair that it comes from.
    pub source_queue_pair: u32,
    /// Zero, or [`TIMED_OUT`] on a request that comes back.
    pub status: u32,
    /// The number of bytes of the MAD that count, at most 256.
    pub length: u16,
    /// The MAD.
    pub mad: [u8; 256],
}

impl Request {
    /// The length on the wire, on a machine of 64 bits.
    pub const LENGTH: usize = 288;

    /// Reads a request.
    ///
    /// # Errors
    /// Fails when the length is wrong or the MAD is said to be longer than 256 bytes.
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

    /// Returns the request's bytes.
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

/// Reads four bytes in the machine's order.
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests;
