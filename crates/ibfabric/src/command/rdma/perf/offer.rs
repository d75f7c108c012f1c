//! Private data of `rdma bw` and `rdma lat` in connection requests and replies.

use std::net::SocketAddr;

use ib_hca::RemoteAddress;

use crate::failure::Failure;

/// The kind of messages that client and server exchange during a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Kind {
    /// SENDs from client to server, without replies.
    SendBandwidth = 1,
    /// RDMA or atomic operations of the client. The server's HCA executes them without the server program.
    Rdma = 2,
    /// SENDs, each of which is answered by a SEND.
    SendLatency = 3,
    /// RDMA WRITEs, each of which is answered by an RDMA WRITE.
    WriteLatency = 4,
}

/// The private data of a connection request.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Offer {
    pub(in super::super) kind: Kind,
    pub(in super::super) size: u32,
    pub(in super::super) remote: RemoteAddress,
}

/// The private data of the reply to a connection request.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Answer {
    pub(in super::super) remote: RemoteAddress,
}

/// The first bytes of the private data of a connection request or reply of ibfabric.
const MAGIC: [u8; 4] = *b"ibf1";

impl Offer {
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([self.kind as u8, 0, 0, 0]);
        bytes.extend(self.size.to_be_bytes());
        bytes.extend(self.remote.rkey.to_be_bytes());
        bytes.extend(self.remote.addr.to_be_bytes());
        bytes
    }

    pub(in super::super) fn parse(bytes: &[u8]) -> Result<Self, Failure> {
        let wrong = |what: &str| {
            Failure::Unusable(format!(
                "the private data {what}: expected a client of `ibfabric rdma`"
            ))
        };
        if bytes.len() < 24 || bytes[..4] != MAGIC {
            return Err(wrong("is unknown"));
        }
        let kind = match bytes[4] {
            1 => Kind::SendBandwidth,
            2 => Kind::Rdma,
            3 => Kind::SendLatency,
            4 => Kind::WriteLatency,
            _ => return Err(wrong("requests an unknown measurement")),
        };
        let word = |at: usize| {
            u32::from_be_bytes(bytes[at..at + 4].try_into().expect("the slice has 4 bytes"))
        };
        let size = word(8);
        if size > 1 << 30 || kind == Kind::WriteLatency && size == 0 {
            return Err(wrong("requests an invalid size"));
        }
        let addr = u64::from(word(16)) << 32 | u64::from(word(20));
        Ok(Self { kind, size, remote: RemoteAddress { addr, rkey: word(12) } })
    }
}

impl Answer {
    pub(in super::super) fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&self.remote.rkey.to_be_bytes());
        bytes[4..].copy_from_slice(&self.remote.addr.to_be_bytes());
        bytes
    }

    pub(super) fn parse(bytes: &[u8], peer: SocketAddr) -> Result<Self, Failure> {
        let answer = bytes.first_chunk::<12>();
        let bytes = answer.ok_or_else(|| {
            Failure::Unusable(format!("{peer} does not run `ibfabric rdma serve`"))
        })?;
        let (rkey, addr) = bytes.split_at(4);
        let rkey = u32::from_be_bytes(rkey.try_into().expect("`rkey` has 4 bytes"));
        let addr = u64::from_be_bytes(addr.try_into().expect("`addr` has 8 bytes"));
        Ok(Self { remote: RemoteAddress { addr, rkey } })
    }
}
