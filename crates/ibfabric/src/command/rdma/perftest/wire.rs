//! The formats of perftest's messages.

use ib_types::Mtu;

use super::Step;

/// The only supported protocol version, which is the version of perftest 4.5-0.17.
pub(super) const VERSION: &str = "6.06";

/// The size in bytes of the message with the protocol version, including the zeros after its text.
pub(super) const VERSION_LENGTH: usize = 16;

/// The cycle buffer size that ibfabric sends to the other end, in bytes.
pub(super) const CYCLE_BUFFER: u32 = 4096;

/// The cache line size that ibfabric sends to the other end, in bytes.
const CACHE_LINE: u32 = 64;

/// The parameters of a queue pair, 56 bytes:
///
/// ```text
///  0 LID            4 max. READs      8 QPN          12 PSN
/// 16 rkey          20 zero           24 buffer address
/// 32 GID                                                                  48 SRQ   52 index of the GID
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) out_reads: u32,
    pub(super) qpn: u32,
    pub(super) psn: u32,
    pub(super) rkey: u32,
    pub(super) vaddr: u64,
    pub(super) gid: u128,
}

impl Keys {
    pub(super) const LENGTH: usize = 56;

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = vec![0; Self::LENGTH];
        bytes[4..8].copy_from_slice(&self.out_reads.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.qpn.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.psn.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.rkey.to_be_bytes());
        bytes[24..32].copy_from_slice(&self.vaddr.to_be_bytes());
        bytes[32..48].copy_from_slice(&self.gid.to_be_bytes());
        bytes
    }

    /// Parses the 56 bytes of keys.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let word = |at: usize| {
            u32::from_be_bytes(bytes[at..at + 4].try_into().expect("the slice has 4 bytes"))
        };
        Self {
            out_reads: word(4),
            qpn: word(8),
            psn: word(12),
            rkey: word(16),
            vaddr: u64::from_be_bytes(bytes[24..32].try_into().expect("the slice has 8 bytes")),
            gid: u128::from_be_bytes(bytes[32..48].try_into().expect("the slice has 16 bytes")),
        }
    }
}

/// The result of a client's bandwidth measurement.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Rates {
    pub(in super::super) size: u64,
    pub(in super::super) iters: u64,
    /// Peak bandwidth in MiB/s; 0 if not measured.
    pub(in super::super) peak: f64,
    /// Average bandwidth in MiB/s.
    pub(in super::super) average: f64,
    /// Message rate in millions of messages per second.
    pub(in super::super) messages: f64,
}

impl Rates {
    /// Returns the contents of the report message with index `at`, 0 to 4.
    pub(super) fn number(&self, at: usize) -> [u8; 8] {
        match at {
            0 => self.size.to_be_bytes(),
            1 => self.iters.to_be_bytes(),
            2 => self.peak.to_be_bytes(),
            3 => self.average.to_be_bytes(),
            _ => self.messages.to_be_bytes(),
        }
    }

    /// Stores the contents of the report message with index `at`, 0 to 4.
    pub(super) fn take(&mut self, at: usize, bytes: [u8; 8]) {
        match at {
            0 => self.size = u64::from_be_bytes(bytes),
            1 => self.iters = u64::from_be_bytes(bytes),
            2 => self.peak = f64::from_be_bytes(bytes),
            3 => self.average = f64::from_be_bytes(bytes),
            _ => self.messages = f64::from_be_bytes(bytes),
        }
    }
}

/// Returns the message to send in an opening step. Returns zeros for any other step.
pub(super) fn opening(step: Step, mtu: Mtu) -> Vec<u8> {
    match step {
        Step::Version => {
            let mut bytes = VERSION.as_bytes().to_vec();
            bytes.resize(VERSION_LENGTH, 0);
            bytes
        }
        Step::CycleBuffer => CYCLE_BUFFER.to_be_bytes().to_vec(),
        Step::CacheLine => CACHE_LINE.to_be_bytes().to_vec(),
        Step::Mtu => vec![b'0' + mtu.code(), 0],
        _ => vec![0; step.length()],
    }
}

/// Checks the message that the other end sent in a step. Returns the reason if the message is invalid.
pub(super) fn check(step: Step, bytes: &[u8]) -> Result<(), String> {
    let expected = step.length();
    if bytes.len() != expected {
        let (name, found) = (step.name(), bytes.len());
        return Err(format!(
            "{name} of perftest has {found} bytes, expected {expected}: the peer may run another program"
        ));
    }
    match step {
        Step::Version => {
            let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
            let found = String::from_utf8_lossy(&bytes[..end]);
            if found == VERSION {
                return Ok(());
            }
            Err(format!("found perftest's protocol version {found:?}, expected {VERSION:?}"))
        }
        Step::CycleBuffer | Step::CacheLine => {
            let found = u32::from_be_bytes(bytes.try_into().expect("the message has 4 bytes"));
            if found.is_power_of_two() && found <= 1 << 20 {
                return Ok(());
            }
            let name = step.name();
            Err(format!("{name} of perftest is {found}: expected a power of two up to {}", 1 << 20))
        }
        Step::Mtu if !matches!(bytes, [b'1'..=b'5', 0]) => {
            Err(format!("the MTU of perftest is {bytes:?}: expected a digit and a zero"))
        }
        _ => Ok(()),
    }
}
