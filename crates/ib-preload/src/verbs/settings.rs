//! Settings of the uverbs device from environment variables: its port and its name.

use std::net::IpAddr;

use ib_attach::AttachOptions;

/// Port that the uverbs device uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PortSetting {
    /// A port of a running simulator.
    Attached(AttachOptions),
    /// An IP address of this machine, for RoCEv2. If an HCA daemon serves the address, the device shares it.
    Roce(IpAddr),
    /// An IP address of this machine that only this process uses, for RoCEv2.
    Exclusive(IpAddr),
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
    /// specify the port; `IBFABRIC_EXCLUSIVE` excludes other processes from an IP address. `IBFABRIC_DEVICE` specifies the name. Returns `None` if no port is
    /// specified.
    ///
    /// # Errors
    /// Fails with a message if a value is invalid.
    pub(crate) fn from_environment() -> Result<Option<Self>, String> {
        Self::read(|name| std::env::var(name).ok())
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
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
                match variable("IBFABRIC_EXCLUSIVE").as_deref() {
                    None | Some("") => PortSetting::Roce(parsed),
                    Some("1") => PortSetting::Exclusive(parsed),
                    Some(other) => {
                        return Err(format!(
                            "IBFABRIC_EXCLUSIVE is {other:?}, expected 1 or an empty value"
                        ));
                    }
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
