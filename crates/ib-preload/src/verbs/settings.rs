//! Settings of the uverbs device from environment variables: its port and its name.

use std::net::IpAddr;

use ib_attach::AttachOptions;

/// Port that the uverbs device uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PortSetting {
    /// A port of a running simulator.
    Attached(AttachOptions),
    /// A RoCEv2 port.
    Roce {
        /// An IP address of this machine.
        address: IpAddr,
        /// True if only this process uses the address. Otherwise, if an HCA daemon serves the address, the device
        /// shares the address.
        is_exclusive: bool,
        /// True if IPv4 packets with a UDP checksum of zero are accepted.
        allow_zero_checksum: bool,
    },
}

/// Settings of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) port: PortSetting,
    /// Name of the device under `/sys/class/infiniband`.
    pub(crate) device: String,
}

impl Settings {
    /// Reads the environment variables. `IBFABRIC_ATTACH` and `IBFABRIC_NODE`, or `IBFABRIC_ROCE`,
    /// specify the port; `IBFABRIC_DEVICE` specifies the name. If `IBFABRIC_EXCLUSIVE` is 1, other processes cannot
    /// share the IP address. If `IBFABRIC_ALLOW_ZERO_CHECKSUM` is 1, RoCEv2 packets with a UDP checksum of zero are
    /// accepted. Returns `None` if no port is
    /// specified.
    ///
    /// # Errors
    /// Fails with a message if a value is invalid.
    pub(crate) fn from_environment() -> Result<Option<Self>, String> {
        Self::read(|name| std::env::var(name).ok())
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        let flag = |name| match variable(name).as_deref() {
            None | Some("") => Ok(false),
            Some("1") => Ok(true),
            Some(other) => Err(format!("{name} is {other:?}, expected 1 or an empty value")),
        };
        let port = match (variable("IBFABRIC_ATTACH"), variable("IBFABRIC_ROCE")) {
            (Some(_), Some(_)) => {
                return Err("IBFABRIC_ATTACH and IBFABRIC_ROCE exclude each other".to_owned());
            }
            (Some(name), None) => {
                PortSetting::Attached(AttachOptions { name, node: variable("IBFABRIC_NODE") })
            }
            (None, Some(address)) => {
                let parsed = address
                    .parse()
                    .map_err(|_| format!("IBFABRIC_ROCE is {address:?}, expected an IP address"))?;
                PortSetting::Roce {
                    address: parsed,
                    is_exclusive: flag("IBFABRIC_EXCLUSIVE")?,
                    allow_zero_checksum: flag("IBFABRIC_ALLOW_ZERO_CHECKSUM")?,
                }
            }
            (None, None) => return Ok(None),
        };
        let device = variable("IBFABRIC_DEVICE").unwrap_or_else(|| "rxe0".to_owned());
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        if device.is_empty()
            || device.len() > 63
            || !device.bytes().all(is_name)
            || device.starts_with('.')
        {
            return Err(format!(
                "IBFABRIC_DEVICE is {device:?}, expected letters, digits, '_', '-' and '.'"
            ));
        }
        Ok(Some(Self { port, device }))
    }
}

#[cfg(test)]
mod tests;
