//! [`Packet`]: a view of an encoded packet.

use super::error::PacketError;
use super::header::{Header, HeaderSet, ICRC, VCRC};
use super::roce::RoceNetwork;
use super::route::{Grh, LinkNextHeader, Lrh};
use super::transport::{
    Aeth, AtomicAckEth, AtomicEth, Bth, Deth, Ieth, ImmDt, Rdeth, Reth, XrcEth,
};
use crate::crc;

/// A view of an encoded packet.
///
/// [`Packet::parse`] and [`Packet::parse_roce`] check the lengths and the header versions. They do
/// not check the ICRC and VCRC: for these, call [`Packet::check_icrc`], [`Packet::check_roce_icrc`]
/// and [`Packet::check_vcrc`]. If the opcode is unknown, all bytes between the BTH and the pad are
/// the payload.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    /// Byte offset of the BTH: 0 for RoCEv2, 8 after an LRH, 48 after an LRH and a GRH.
    bth_at: usize,
    /// Byte offsets of the start and end of the payload, without the pad.
    payload: (usize, usize),
    icrc_at: usize,
    headers: HeaderSet,
}

impl<'a> Packet<'a> {
    /// Parses a native InfiniBand packet. `bytes` is the packet from the LRH to the VCRC.
    ///
    /// # Errors
    /// Returns the first invalid field: a truncated header, a wrong length, or an unsupported
    /// version or next header. Raw packets, which have no BTH, are not supported.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let lrh = Lrh::parse(chunk(bytes, 0, "the LRH")?);
        if lrh.link_version != 0 {
            return Err(value("LVer of the LRH", 0, "0", lrh.link_version.into()));
        }
        let global = match lrh.next_header {
            LinkNextHeader::LOCAL => false,
            LinkNextHeader::GLOBAL => true,
            LinkNextHeader(other) => {
                let expected = "2 (BTH) or 3 (GRH)";
                return Err(value("LNH of the LRH", 1, expected, other.into()));
            }
        };
        let without_vcrc = usize::from(lrh.length) * 4;
        if without_vcrc + VCRC > bytes.len() {
            let (found, expected) = (bytes.len(), without_vcrc + VCRC);
            let what = "the packet length of the LRH";
            return Err(PacketError::Truncated { what, offset: 0, expected, found });
        }
        if without_vcrc + VCRC != bytes.len() {
            let expected = bytes.len().saturating_sub(VCRC) / 4;
            let (what, found) = ("PktLen of the LRH (in words of 4 bytes)", lrh.length.into());
            return Err(PacketError::Length { what, offset: 4, expected, found });
        }
        let mut bth_at = Lrh::LENGTH;
        if global {
            let grh = Grh::parse(chunk(bytes, bth_at, "the GRH")?);
            bth_at += Grh::LENGTH;
            if grh.ip_version != 6 {
                return Err(value("IPVer of the GRH", 8, "6", grh.ip_version.into()));
            }
            if grh.next_header != Grh::NEXT_IS_BTH {
                let found = grh.next_header.into();
                return Err(value("NxtHdr of the GRH", 14, "27 (BTH)", found));
            }
            let expected = without_vcrc.saturating_sub(bth_at);
            if usize::from(grh.payload_length) != expected {
                let (what, found) = ("PayLen of the GRH", grh.payload_length.into());
                return Err(PacketError::Length { what, offset: 12, expected, found });
            }
        }
        Self::transport(bytes, bth_at, without_vcrc)
    }

    /// Parses a RoCEv2 packet. `bytes` is its UDP payload, from the BTH to the ICRC.
    ///
    /// # Errors
    /// Returns the first invalid field, as [`Packet::parse`] does.
    #[inline]
    pub fn parse_roce(bytes: &'a [u8]) -> Result<Self, PacketError> {
        Self::transport(bytes, 0, bytes.len())
    }

    /// Parses the BTH at `bth_at`, and the headers, payload, pad and ICRC that follow up to `end`.
    #[inline]
    fn transport(bytes: &'a [u8], bth_at: usize, end: usize) -> Result<Self, PacketError> {
        let within = &bytes[..end];
        let bth = Bth::parse(chunk(within, bth_at, "the BTH")?);
        if bth.transport_version != 0 {
            let found = bth.transport_version.into();
            return Err(value("TVer of the BTH", bth_at + 1, "0", found));
        }
        if !(end - bth_at).is_multiple_of(4) {
            return Err(PacketError::NotWords { offset: bth_at, found: end - bth_at });
        }
        let headers = bth.opcode.headers().unwrap_or(HeaderSet::EMPTY);
        let start = bth_at + Bth::LENGTH;
        let payload_at = start + headers.length();
        let pad = usize::from(bth.pad_count);
        let missing = |what, offset, expected| {
            Err(PacketError::Truncated { what, offset, expected, found: end })
        };
        if payload_at + ICRC > end {
            for header in headers.iter() {
                let at = start + headers.offset(header).unwrap_or(0);
                if at + header.length() > end {
                    return missing(header.name(), at, at + header.length());
                }
            }
            return missing("the ICRC", payload_at, payload_at + ICRC);
        }
        if payload_at + pad + ICRC > end {
            return missing("the pad that the BTH announces", payload_at, payload_at + pad + ICRC);
        }
        let icrc_at = end - ICRC;
        Ok(Self { bytes, bth_at, payload: (payload_at, icrc_at - pad), icrc_at, headers })
    }

    /// Returns the bytes from which the packet was parsed. For RoCEv2, these are the UDP payload.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns true for a native InfiniBand packet, which has an LRH; false for a RoCEv2 packet.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.bth_at != 0
    }

    /// Returns the LRH; `None` for a RoCEv2 packet.
    #[inline]
    #[must_use]
    pub fn lrh(&self) -> Option<Lrh> {
        self.is_native().then(|| Lrh::parse(self.array(0)))
    }

    /// Returns the GRH; `None` if the packet has none.
    #[inline]
    #[must_use]
    pub fn grh(&self) -> Option<Grh> {
        let present = self.bth_at == Lrh::LENGTH + Grh::LENGTH;
        present.then(|| Grh::parse(self.array(Lrh::LENGTH)))
    }

    /// Returns the BTH.
    #[inline]
    #[must_use]
    pub fn bth(&self) -> Bth {
        Bth::parse(self.array(self.bth_at))
    }

    /// Returns the set of headers between the BTH and the payload. It is empty if the opcode is
    /// unknown.
    #[must_use]
    pub fn headers(&self) -> HeaderSet {
        self.headers
    }

    /// Returns the offset of a header in [`Packet::bytes`]; `None` if the packet does not have it.
    #[must_use]
    pub fn header_offset(&self, header: Header) -> Option<usize> {
        Some(self.bth_at + Bth::LENGTH + self.headers.offset(header)?)
    }

    /// Returns the payload without the pad.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.payload.0..self.payload.1]
    }

    /// Returns the offset of the BTH in [`Packet::bytes`].
    #[must_use]
    pub fn bth_offset(&self) -> usize {
        self.bth_at
    }

    /// Returns the offset of the payload in [`Packet::bytes`].
    #[must_use]
    pub fn payload_offset(&self) -> usize {
        self.payload.0
    }

    /// Returns the number of pad bytes between the payload and the ICRC, 0 to 3.
    #[must_use]
    pub fn pad_count(&self) -> usize {
        self.icrc_at - self.payload.1
    }

    /// Returns the ICRC field.
    #[must_use]
    pub fn icrc(&self) -> u32 {
        u32::from_be_bytes(*self.array(self.icrc_at))
    }

    /// Returns the VCRC field; `None` for a RoCEv2 packet.
    #[must_use]
    pub fn vcrc(&self) -> Option<u16> {
        self.is_native().then(|| u16::from_be_bytes(*self.array(self.icrc_at + ICRC)))
    }

    /// Checks the ICRC of a native packet. For a RoCEv2 packet, use [`Packet::check_roce_icrc`].
    ///
    /// # Errors
    /// Returns [`PacketError::Checksum`] with the found and the expected checksum.
    ///
    /// # Panics
    /// Panics if this is a RoCEv2 packet.
    pub fn check_icrc(&self) -> Result<(), PacketError> {
        assert!(self.is_native(), "the ICRC of a RoCEv2 packet covers its IP and UDP headers");
        self.compare_icrc(crc::icrc_native(&self.bytes[..self.icrc_at]))
    }

    /// Checks the ICRC of a RoCEv2 packet. The ICRC also covers the IP and UDP headers, given by `network`.
    ///
    /// # Errors
    /// Returns [`PacketError::Checksum`] with the found and the expected checksum.
    ///
    /// # Panics
    /// Panics if this is a native packet.
    pub fn check_roce_icrc(&self, network: &RoceNetwork) -> Result<(), PacketError> {
        assert!(!self.is_native(), "a native packet has no IP and UDP headers");
        self.compare_icrc(network.icrc(&self.bytes[..self.icrc_at]))
    }

    fn compare_icrc(&self, expected: u32) -> Result<(), PacketError> {
        let (offset, found) = (self.icrc_at, self.icrc());
        compare("ICRC", offset, expected, found)
    }

    /// Checks the VCRC of a native packet. Returns `Ok` for a RoCEv2 packet, which has no VCRC.
    ///
    /// # Errors
    /// Returns [`PacketError::Checksum`] with the found and the expected checksum.
    pub fn check_vcrc(&self) -> Result<(), PacketError> {
        let Some(found) = self.vcrc() else { return Ok(()) };
        let offset = self.icrc_at + ICRC;
        compare("VCRC", offset, crc::vcrc(&self.bytes[..offset]).into(), found.into())
    }

    /// Returns the `N` bytes at an offset. `parse` has checked that they exist.
    #[inline]
    fn array<const N: usize>(&self, at: usize) -> &'a [u8; N] {
        self.bytes[at..].first_chunk().expect("`parse` checked the length of the packet")
    }

    #[inline]
    fn extended<const N: usize>(&self, header: Header) -> Option<&'a [u8; N]> {
        self.header_offset(header).map(|at| self.array(at))
    }
}

macro_rules! extended {
    ($($name:ident: $kind:ident = $header:ident),+ $(,)?) => {
        impl Packet<'_> {
            $(
                #[doc = concat!("Returns the [`", stringify!($kind), "`]; `None` if the packet has none.")]
                #[inline]
                #[must_use]
                pub fn $name(&self) -> Option<$kind> {
                    self.extended(Header::$header).map($kind::parse)
                }
            )+
        }
    };
}

extended! {
    rdeth: Rdeth = Rdeth,
    deth: Deth = Deth,
    xrceth: XrcEth = XrcEth,
    reth: Reth = Reth,
    atomic_eth: AtomicEth = AtomicEth,
    aeth: Aeth = Aeth,
    atomic_ack_eth: AtomicAckEth = AtomicAckEth,
    immdt: ImmDt = ImmDt,
    ieth: Ieth = Ieth,
}

#[inline]
fn chunk<'a, const N: usize>(
    bytes: &'a [u8],
    at: usize,
    what: &'static str,
) -> Result<&'a [u8; N], PacketError> {
    bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or(PacketError::Truncated {
        what,
        offset: at,
        expected: at + N,
        found: bytes.len(),
    })
}

fn value(what: &'static str, offset: usize, expected: &'static str, found: u32) -> PacketError {
    PacketError::Value { what, offset, expected, found }
}

fn compare(
    what: &'static str,
    offset: usize,
    expected: u32,
    found: u32,
) -> Result<(), PacketError> {
    if expected == found {
        return Ok(());
    }
    Err(PacketError::Checksum { what, offset, expected, found })
}

#[cfg(test)]
mod tests;
