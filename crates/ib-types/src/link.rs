//! Width and speed of links.

use std::fmt;
use std::str::FromStr;

/// The number of lanes of a link, as in PortInfo:LinkWidthActive (IBTA volume 1, chapter 14.2.5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkWidth {
    /// One lane.
    X1,
    /// Two lanes.
    X2,
    /// Four lanes, the most common width.
    X4,
    /// Eight lanes.
    X8,
    /// Twelve lanes.
    X12,
}

/// The speed of a link, which is the signalling rate of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkSpeed {
    /// 2.5 Gbit/s, 8b/10b.
    Sdr,
    /// 5 Gbit/s, 8b/10b.
    Ddr,
    /// 10 Gbit/s, 8b/10b.
    Qdr,
    /// 10.3125 Gbit/s with 64b/66b coding. This is Mellanox's speed between QDR and FDR.
    Fdr10,
    /// 14.0625 Gbit/s, 64b/66b.
    Fdr,
    /// 25.78125 Gbit/s, 64b/66b.
    Edr,
    /// 53.125 Gbit/s.
    Hdr,
    /// 106.25 Gbit/s.
    Ndr,
    /// 212.5 Gbit/s.
    Xdr,
}

impl LinkWidth {
    /// All widths in ascending order.
    pub const ALL: [Self; 5] = [Self::X1, Self::X2, Self::X4, Self::X8, Self::X12];

    /// Returns the number of lanes.
    #[must_use]
    pub const fn lanes(self) -> u8 {
        match self {
            Self::X1 => 1,
            Self::X2 => 2,
            Self::X4 => 4,
            Self::X8 => 8,
            Self::X12 => 12,
        }
    }
}

impl LinkSpeed {
    /// All speeds in ascending order.
    pub const ALL: [Self; 9] = [
        Self::Sdr,
        Self::Ddr,
        Self::Qdr,
        Self::Fdr10,
        Self::Fdr,
        Self::Edr,
        Self::Hdr,
        Self::Ndr,
        Self::Xdr,
    ];

    /// Returns the signalling rate of a link in Mbit/s, rounded down. The rate includes the line coding.
    #[must_use]
    pub const fn megabits_per_second(self, width: LinkWidth) -> u32 {
        let ten_kilobits_per_lane: u32 = match self {
            Self::Sdr => 250_000,
            Self::Ddr => 500_000,
            Self::Qdr => 1_000_000,
            Self::Fdr10 => 1_031_250,
            Self::Fdr => 1_406_250,
            Self::Edr => 2_578_125,
            Self::Hdr => 5_312_500,
            Self::Ndr => 10_625_000,
            Self::Xdr => 21_250_000,
        };
        ten_kilobits_per_lane / 100 * width.lanes() as u32
            + ten_kilobits_per_lane % 100 * width.lanes() as u32 / 100
    }
}

impl fmt::Display for LinkWidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x", self.lanes())
    }
}

impl fmt::Display for LinkSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sdr => "SDR",
            Self::Ddr => "DDR",
            Self::Qdr => "QDR",
            Self::Fdr10 => "FDR10",
            Self::Fdr => "FDR",
            Self::Edr => "EDR",
            Self::Hdr => "HDR",
            Self::Ndr => "NDR",
            Self::Xdr => "XDR",
        })
    }
}

/// Error of parsing a [`LinkWidth`] or a [`LinkSpeed`] from text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a link {what}: expected one of {expected}")]
pub struct ParseLinkError {
    text: String,
    what: &'static str,
    expected: &'static str,
}

impl FromStr for LinkWidth {
    type Err = ParseLinkError;

    /// Parses `1x`, `2x`, `4x`, `8x` or `12x`. The letter `x` may be in upper case or missing.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_suffix(['x', 'X']).unwrap_or(text);
        Self::ALL.into_iter().find(|width| width.lanes().to_string() == digits).ok_or_else(|| {
            ParseLinkError { text: text.to_owned(), what: "width", expected: "1x, 2x, 4x, 8x, 12x" }
        })
    }
}

impl FromStr for LinkSpeed {
    type Err = ParseLinkError;

    /// Parses `SDR`, `DDR`, `QDR`, `FDR10`, `FDR`, `EDR`, `HDR`, `NDR` or `XDR` in upper or lower case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|speed| speed.to_string().eq_ignore_ascii_case(text)).ok_or_else(
            || ParseLinkError {
                text: text.to_owned(),
                what: "speed",
                expected: "SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR, XDR",
            },
        )
    }
}

#[cfg(test)]
mod tests;
