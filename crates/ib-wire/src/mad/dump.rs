//! Writes output lines in the format of infiniband-diags (libibmad's `mad_dump_*`).

use std::fmt;

/// Writes a line that consists of the name, dots up to column 33, and the value.
pub(crate) fn line(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    value: impl fmt::Display,
) -> fmt::Result {
    writeln!(f, "{name}:{:.>dots$}{value}", "", dots = 32usize.saturating_sub(name.len()))
}

/// Displays the first number in hexadecimal. The second number is the minimum number of digits.
pub(crate) struct Hex(pub(crate) u64, pub(crate) usize);

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:0digits$x}", self.0, digits = self.1)
    }
}

/// Displays the names of the bits that are set in `value`, separated by " or ". If `value` has unnamed
/// bits, displays `undefined (VALUE)` after the names.
pub(crate) struct OneOf<'a> {
    pub(crate) value: u8,
    pub(crate) names: &'a [&'a str],
    /// The text for the value zero.
    pub(crate) zero: &'a str,
}

impl fmt::Display for OneOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.value == 0 {
            return f.write_str(self.zero);
        }
        let mut between = "";
        for (bit, name) in self.names.iter().enumerate() {
            if self.value >> bit & 1 != 0 {
                write!(f, "{between}{name}")?;
                between = " or ";
            }
        }
        if u32::from(self.value) >> self.names.len() == 0 {
            return Ok(());
        }
        write!(f, "{between}undefined ({})", self.value)
    }
}

/// Writes a line with the mask, then for each set bit an indented line with its name.
pub(crate) fn mask_line<'a>(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    value: u32,
    names: impl Iterator<Item = (u32, &'a str)>,
) -> fmt::Result {
    line(f, name, format_args!("0x{value:x}"))?;
    for (_, name) in names.filter(|(bit, _)| value & bit != 0) {
        writeln!(f, "\t\t\t\t{name}")?;
    }
    Ok(())
}
