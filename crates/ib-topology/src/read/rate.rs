//! Widths and speeds of links in fabric files, and ibsim's masks of enabled widths and speeds.

use ib_types::{LinkSpeed, LinkWidth};

use crate::fabric::LinkRate;
use crate::text::{Fault, Line};

/// The speed that is assumed for `???`. It is the slowest speed for which released tools print `???`.
pub(super) const UNNAMED_SPEED: LinkSpeed = LinkSpeed::Ndr;
/// The width that is assumed for `??`. It is the only width for which older tools print `??`.
pub(super) const UNNAMED_WIDTH: LinkWidth = LinkWidth::X2;

/// Reads width and speed of a link, such as `4xHDR`.
///
/// ibnetdiscover prints `??` for widths without a name, and `???` for speeds without a name. These are read as
/// [`UNNAMED_WIDTH`] and [`UNNAMED_SPEED`].
pub(super) fn rate(line: &mut Line<'_>) -> Result<LinkRate, Fault> {
    let width = width(line)?;
    Ok(LinkRate { width, speed: speed(line)? })
}

/// Reads a speed such as `HDR`. `???` is read as [`UNNAMED_SPEED`].
pub(super) fn speed(line: &mut Line<'_>) -> Result<LinkSpeed, Fault> {
    let start = *line;
    if line.eat("???") {
        return Ok(UNNAMED_SPEED);
    }
    let rest = line.rest();
    let end = rest.bytes().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let speed = match &rest[..end] {
        "SDR" => LinkSpeed::Sdr,
        "DDR" => LinkSpeed::Ddr,
        "QDR" => LinkSpeed::Qdr,
        "FDR10" => LinkSpeed::Fdr10,
        "FDR" => LinkSpeed::Fdr,
        "EDR" => LinkSpeed::Edr,
        "HDR" => LinkSpeed::Hdr,
        "NDR" => LinkSpeed::Ndr,
        "XDR" => LinkSpeed::Xdr,
        _ => {
            return Err(start
                .expected("a link speed: one of SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR, XDR"));
        }
    };
    line.seek(line.position() + end);
    Ok(speed)
}

/// Reads a width such as `4x`. `??` is read as [`UNNAMED_WIDTH`].
pub(super) fn width(line: &mut Line<'_>) -> Result<LinkWidth, Fault> {
    let (width, length) = match line.rest().as_bytes() {
        [b'1', b'2', b'x', ..] => (LinkWidth::X12, 3),
        [b'1', b'x', ..] => (LinkWidth::X1, 2),
        [b'2', b'x', ..] => (LinkWidth::X2, 2),
        [b'4', b'x', ..] => (LinkWidth::X4, 2),
        [b'8', b'x', ..] => (LinkWidth::X8, 2),
        [b'?', b'?', ..] => (UNNAMED_WIDTH, 2),
        _ => {
            return Err(line.expected(
                "a link width and speed like `4xHDR`, the width one of 1x, 2x, 4x, 8x, 12x",
            ));
        }
    };
    line.seek(line.position() + length);
    Ok(width)
}

/// Returns the rate of a link if both ends state the same rate.
///
/// # Errors
/// If the rates differ, returns the text found and the text expected, for an error message.
pub(super) fn agreed(a: LinkRate, b: LinkRate) -> Result<LinkRate, [String; 2]> {
    if a == b {
        return Ok(a);
    }
    let found =
        format!("{}{} at one end and {}{} at the other", a.width, a.speed, b.width, b.speed);
    Err([found, "both ends to agree".to_owned()])
}

/// The widths and speeds that a port in ibsim enables, as masks like the masks in PortInfo.
///
/// A link has the highest width and speed that both ends enable. Bit 4 of `extended` stands for XDR, which ibsim does
/// not support. Only a rate in a comment can set this bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Enabled {
    pub(super) width: u8,
    pub(super) speed: u8,
    pub(super) extended: u8,
    pub(super) fdr10: bool,
}

impl Enabled {
    /// The widths and speeds that a port enables if the file has no options for it: 4x SDR.
    pub(super) const DEFAULT: Self = Self { width: 2, speed: 1, extended: 0, fdr10: false };

    /// Enables the width and speed of a rate in a comment, such as `4xHDR`.
    ///
    /// As in ibsim, a speed of at most QDR does not change the enabled extended speeds.
    pub(super) fn set(&mut self, rate: LinkRate) {
        self.width = match rate.width {
            LinkWidth::X1 => 1,
            LinkWidth::X2 => 16,
            LinkWidth::X4 => 3,
            LinkWidth::X8 => 4,
            LinkWidth::X12 => 11,
        };
        self.speed = match rate.speed {
            LinkSpeed::Sdr => 1,
            LinkSpeed::Ddr => 3,
            _ => 7,
        };
        let extended = match rate.speed {
            LinkSpeed::Sdr | LinkSpeed::Ddr | LinkSpeed::Qdr => return,
            LinkSpeed::Fdr10 => self.extended,
            LinkSpeed::Fdr => 1,
            LinkSpeed::Edr => 3,
            LinkSpeed::Hdr => 7,
            LinkSpeed::Ndr => 15,
            LinkSpeed::Xdr => 31,
        };
        self.extended = extended;
        self.fdr10 = true;
    }

    /// Returns the highest width and speed that both ends enable.
    ///
    /// # Errors
    /// If there is no such width or speed, returns the text found and the text expected, for an error message.
    pub(super) fn common(self, other: Self) -> Result<LinkRate, [String; 2]> {
        let widths = [
            (8, LinkWidth::X12),
            (4, LinkWidth::X8),
            (2, LinkWidth::X4),
            (16, LinkWidth::X2),
            (1, LinkWidth::X1),
        ];
        let extended = [
            (16, LinkSpeed::Xdr),
            (8, LinkSpeed::Ndr),
            (4, LinkSpeed::Hdr),
            (2, LinkSpeed::Edr),
            (1, LinkSpeed::Fdr),
        ];
        let base = [(4, LinkSpeed::Qdr), (2, LinkSpeed::Ddr), (1, LinkSpeed::Sdr)];
        let width = highest(&widths, self.width & other.width).ok_or_else(|| {
            [format!("width masks {} and {}", self.width, other.width), "a common width".to_owned()]
        })?;
        let speed = highest(&base, self.speed & other.speed).ok_or_else(|| {
            [format!("speed masks {} and {}", self.speed, other.speed), "a common speed".to_owned()]
        })?;
        let fdr10 = (self.fdr10 && other.fdr10).then_some(LinkSpeed::Fdr10);
        let speed = highest(&extended, self.extended & other.extended).or(fdr10).unwrap_or(speed);
        Ok(LinkRate { width, speed })
    }
}

fn highest<T: Copy>(table: &[(u8, T)], mask: u8) -> Option<T> {
    table.iter().find(|(bit, _)| mask & bit != 0).map(|&(_, value)| value)
}

#[cfg(test)]
mod tests;
