//! [`Builder`]: encodes headers and a payload into the buffer of the caller.

use super::error::BuildError;
use super::header::{Header, ICRC, VCRC};
use super::roce::RoceNetwork;
use super::route::{Grh, LinkNextHeader, Lrh};
use super::transport::{
    Aeth, AtomicAckEth, AtomicEth, Bth, Deth, Ieth, ImmDt, Rdeth, Reth, XrcEth,
};
use super::view::Packet;
use crate::crc;

/// Builds a packet from headers and a payload.
///
/// The builder computes the pad, lengths, next headers and checksums. It ignores these fields of
/// the given headers: `pad_count` of the BTH, `length` and `next_header` of the LRH, and
/// `payload_length` and `next_header` of the GRH.
#[derive(Clone, Copy, Debug)]
pub struct Builder<'a> {
    bth: Bth,
    lrh: Option<Lrh>,
    grh: Option<Grh>,
    extended: Extended,
    payload: &'a [u8],
}

impl<'a> Builder<'a> {
    /// The maximum length in bytes of a native packet from the LRH to the VCRC. The length field of the
    /// LRH allows 2,047 words of 4 bytes, and does not count the VCRC.
    pub const MAX_NATIVE: usize = 2047 * 4 + VCRC;

    /// The maximum length in bytes of a RoCEv2 packet from the BTH to the ICRC.
    pub const MAX_ROCE: usize = 65_000;

    /// Creates a builder for a packet with this BTH.
    #[must_use]
    pub fn new(bth: Bth) -> Self {
        Self { bth, lrh: None, grh: None, extended: Extended::default(), payload: &[] }
    }

    /// Creates a builder with the headers and the payload of a parsed packet.
    #[must_use]
    pub fn from_packet(packet: &Packet<'a>) -> Self {
        Self {
            bth: packet.bth(),
            lrh: packet.lrh(),
            grh: packet.grh(),
            extended: Extended::of(packet),
            payload: packet.payload(),
        }
    }

    /// Sets the LRH. A native packet must have an LRH; a RoCEv2 packet must not.
    #[must_use]
    pub fn lrh(mut self, lrh: Lrh) -> Self {
        self.lrh = Some(lrh);
        self
    }

    /// Sets the GRH.
    #[must_use]
    pub fn grh(mut self, grh: Grh) -> Self {
        self.grh = Some(grh);
        self
    }

    /// Sets the payload.
    #[must_use]
    pub fn payload(mut self, payload: &'a [u8]) -> Self {
        self.payload = payload;
        self
    }

    /// Returns the length of the packet in bytes: from the LRH to the VCRC if an LRH was set, else
    /// from the BTH to the ICRC.
    #[must_use]
    pub fn length(&self) -> usize {
        let vcrc = if self.lrh.is_some() { VCRC } else { 0 };
        self.bth_at() + self.transport_length() + ICRC + vcrc
    }

    /// Writes a native packet to the start of the buffer, and returns the packet's length in bytes.
    ///
    /// # Errors
    /// Fails if the LRH is missing or the headers do not match the opcode. Also fails if the packet is
    /// too long for its length fields or for the buffer. After an error, the buffer is unchanged.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, BuildError> {
        let Some(mut lrh) = self.lrh else {
            let (found, expected) = ("no LRH was given", "one for a native packet");
            return Err(BuildError::Framing { found, expected });
        };
        let length = self.check(Self::MAX_NATIVE, buffer)?;
        let buffer = &mut buffer[..length];
        let icrc_at = length - VCRC - ICRC;
        lrh.length = ((length - VCRC) / 4) as u16;
        lrh.next_header =
            if self.grh.is_some() { LinkNextHeader::GLOBAL } else { LinkNextHeader::LOCAL };
        write(buffer, 0, lrh.to_bytes());
        if let Some(mut grh) = self.grh {
            grh.payload_length = (icrc_at + ICRC - Lrh::LENGTH - Grh::LENGTH) as u16;
            grh.next_header = Grh::NEXT_IS_BTH;
            write(buffer, Lrh::LENGTH, grh.to_bytes());
        }
        self.emit_transport(&mut buffer[self.bth_at()..icrc_at]);
        let icrc = crc::icrc_native(&buffer[..icrc_at]);
        write(buffer, icrc_at, icrc.to_be_bytes());
        let vcrc = crc::vcrc(&buffer[..icrc_at + ICRC]);
        write(buffer, icrc_at + ICRC, vcrc.to_be_bytes());
        Ok(length)
    }

    /// Writes a RoCEv2 packet without its IP and UDP headers, from the BTH to the ICRC, to the
    /// start of the buffer. Returns the number of bytes written.
    ///
    /// # Errors
    /// Fails if an LRH or a GRH was set, or if the headers do not match the opcode. Also fails if the
    /// packet is too long for RoCEv2 or for the buffer. After an error, the buffer is unchanged.
    pub fn emit_roce(&self, network: &RoceNetwork, buffer: &mut [u8]) -> Result<usize, BuildError> {
        if self.lrh.is_some() || self.grh.is_some() {
            let (found, expected) = ("an LRH or a GRH was given", "none for a RoCEv2 packet");
            return Err(BuildError::Framing { found, expected });
        }
        let length = self.check(Self::MAX_ROCE, buffer)?;
        let icrc_at = length - ICRC;
        self.emit_transport(&mut buffer[..icrc_at]);
        let icrc = network.icrc(&buffer[..icrc_at]);
        write(buffer, icrc_at, icrc.to_be_bytes());
        Ok(length)
    }

    fn check(&self, limit: usize, buffer: &[u8]) -> Result<usize, BuildError> {
        let opcode = self.bth.opcode;
        let needed = opcode.headers().unwrap_or_default();
        for header in Header::ALL {
            let name = header.name();
            match (needed.contains(header), self.extended.has(header)) {
                (true, false) => return Err(BuildError::MissingHeader { opcode, header: name }),
                (false, true) => return Err(BuildError::ExtraHeader { opcode, header: name }),
                _ => {}
            }
        }
        let (length, found) = (self.length(), buffer.len());
        if length > limit {
            return Err(BuildError::TooLong { found: length, limit });
        }
        if length > found {
            return Err(BuildError::Buffer { expected: length, found });
        }
        Ok(length)
    }

    fn bth_at(&self) -> usize {
        let lrh = if self.lrh.is_some() { Lrh::LENGTH } else { 0 };
        lrh + if self.grh.is_some() { Grh::LENGTH } else { 0 }
    }

    /// Returns the length in bytes from the BTH to the end of the pad.
    fn transport_length(&self) -> usize {
        let headers = self.bth.opcode.headers().unwrap_or_default();
        Bth::LENGTH + headers.length() + self.payload.len().next_multiple_of(4)
    }

    /// Writes the BTH, extended headers, payload and pad. `bytes` must have exactly their total
    /// length.
    fn emit_transport(&self, bytes: &mut [u8]) {
        let pad_count = self.payload.len().wrapping_neg() & 3;
        let bth = Bth { pad_count: pad_count as u8, ..self.bth };
        write(bytes, 0, bth.to_bytes());
        let at = self.extended.emit(bytes, Bth::LENGTH);
        let end = at + self.payload.len();
        bytes[at..end].copy_from_slice(self.payload);
        bytes[end..].fill(0);
    }
}

fn write<const N: usize>(buffer: &mut [u8], at: usize, bytes: [u8; N]) {
    buffer[at..at + N].copy_from_slice(&bytes);
}

/// Defines `Extended`, the optional headers between the BTH and the payload, and a setter of `Builder`
/// for each header. The arguments are in wire order, because `emit` writes the headers in this order.
macro_rules! extended {
    ($($name:ident: $kind:ident = $header:ident),+ $(,)?) => {
        #[derive(Clone, Copy, Debug, Default)]
        struct Extended {
            $($name: Option<$kind>,)+
        }

        impl Extended {
            fn of(packet: &Packet<'_>) -> Self {
                Self { $($name: packet.$name(),)+ }
            }

            fn has(&self, header: Header) -> bool {
                match header {
                    $(Header::$header => self.$name.is_some(),)+
                }
            }

            /// Writes the headers, if set, to `bytes` from offset `at` on. Returns the offset after the last header.
            fn emit(&self, bytes: &mut [u8], mut at: usize) -> usize {
                $(
                    if let Some(header) = self.$name {
                        write(bytes, at, header.to_bytes());
                        at += $kind::LENGTH;
                    }
                )+
                at
            }
        }

        impl Builder<'_> {
            $(
                #[doc = concat!("Sets the [`", stringify!($kind), "`].")]
                #[must_use]
                pub fn $name(mut self, header: $kind) -> Self {
                    self.extended.$name = Some(header);
                    self
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

#[cfg(test)]
mod tests;
