//! Names of this machine and of its HCAs.

use crate::error::DaemonError;

/// Returns the name of this machine, without its domain.
#[must_use]
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let short = name.trim().split('.').next().filter(|name| !name.is_empty());
    short.unwrap_or("localhost").to_owned()
}

/// Parses the value of an option that names an HCA and, optionally, its port: `DEV` or `DEV:PORT`.
///
/// # Errors
/// Fails if the port is not a number of 1 to 254.
pub fn device_and_port<'t>(
    option: &str,
    text: &'t str,
) -> Result<(&'t str, Option<u8>), DaemonError> {
    let Some((name, number)) = text.split_once(':') else { return Ok((text, None)) };
    let number = number.parse().ok().filter(|number| (1..=254).contains(number));
    let number = number.ok_or_else(|| {
        let expected = "expected DEV or DEV:PORT with a port of 1 to 254";
        DaemonError::Failed(format!("{option} {text}: {expected}"))
    })?;
    Ok((name, Some(number)))
}
