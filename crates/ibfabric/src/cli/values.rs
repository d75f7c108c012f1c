//! Parsers of option values.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use ib_daemons::input::number;
use ib_types::{Lmc, Mtu};

/// Returns a parser of numbers from `min` to `max`, written as for OpenSM: decimal, hexadecimal after `0x` or
/// octal after `0`.
pub(crate) fn in_range(min: u64, max: u64) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| {
        number::<u64>(text)
            .filter(|value| (min..=max).contains(value))
            .ok_or_else(|| format!("expected a number of {min} to {max}"))
    }
}

/// Returns a parser of sizes from `min` to `max` bytes; the suffixes K, M and G are powers of 1024.
pub(crate) fn bytes<T: TryFrom<u64>>(
    min: u64,
    max: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let value = number::<u64>(text).or_else(|| size(text).ok());
        let value = value.filter(|value| (min..=max).contains(value));
        let value = value.and_then(|value| T::try_from(value).ok());
        value.ok_or_else(|| format!("expected a number of {min} to {max}, or one with K, M or G"))
    }
}

/// Parses an LMC of 0 to 7.
pub(crate) fn lmc(text: &str) -> Result<Lmc, String> {
    let lmc = number(text).and_then(|value| Lmc::new(value).ok());
    lmc.ok_or_else(|| "expected an LMC of 0 to 7".to_owned())
}

/// Parses a fraction of 0 to 1.
pub(crate) fn fraction(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value| (0.0..=1.0).contains(value));
    value.ok_or_else(|| "expected a fraction of 0 to 1".to_owned())
}

/// Parses a size in bytes; the suffixes K, M, G and T are powers of 1024.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?}: expected a number of bytes, or one with K, M, G or T");
    let upper = text.to_ascii_uppercase();
    let bare = upper.strip_suffix("IB").or(upper.strip_suffix('B')).unwrap_or(&upper);
    let (digits, unit) = match bare.strip_suffix(['K', 'M', 'G', 'T']) {
        Some(digits) => (digits, 10 * (1 + "KMGT".find(&bare[digits.len()..]).unwrap_or(0) as u32)),
        None => (bare, 0),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << unit).ok_or_else(wrong)
}

/// An address at which a program listens: `ADDR`, `ADDR:PORT`, or `[ADDR]:PORT` for IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenAddress {
    /// The IP address.
    pub address: IpAddr,
    /// The port, if it was specified.
    pub port: Option<u16>,
}

impl ListenAddress {
    /// Returns the address with its port, or else with the default port.
    pub(crate) fn with_default_port(self, port: u16) -> SocketAddr {
        SocketAddr::new(self.address, self.port.unwrap_or(port))
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(socket) = text.parse::<SocketAddr>() {
            return Ok(Self { address: socket.ip(), port: Some(socket.port()) });
        }
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        match bare.parse() {
            Ok(address) => Ok(Self { address, port: None }),
            Err(_) => Err("expected an IP address, or one with a port as in 127.0.0.1:8080 or \
                           [::1]:8080"
                .to_owned()),
        }
    }
}

/// Parses the address of a metrics server.
pub(crate) fn metrics_address(text: &str) -> Result<SocketAddr, String> {
    let address = text.parse().ok().filter(|address: &SocketAddr| address.port() != 0);
    address.ok_or_else(|| {
        format!(
            "found `{text}`, expected ADDR:PORT with a port of 1 to 65535, such as 127.0.0.1:9100"
        )
    })
}

/// Parses the address of a web page, which is served to this machine only.
pub(crate) fn page_address(text: &str) -> Result<ListenAddress, String> {
    let listen: ListenAddress = text.parse()?;
    // The page refuses requests whose `Host` header is another address.
    let own = ["127.0.0.1", "::1"].into_iter().any(|own| own.parse() == Ok(listen.address));
    if own {
        Ok(listen)
    } else {
        Err("expected 127.0.0.1 or ::1, since the page is for this machine only".to_owned())
    }
}

/// Returns the name of the simulator that `--attach` selects. Without a name, the environment selects it as for
/// clients of ibsim.
pub(crate) fn simulator(name: &str) -> String {
    let named = Some(name.to_owned()).filter(|name| !name.is_empty());
    let usual = || std::env::var("IBSIM_SOCKNAME").ok().filter(|name| !name.is_empty());
    named.or_else(usual).unwrap_or_else(|| "sim".to_owned())
}

/// Parses an MTU in bytes.
pub(crate) fn mtu(text: &str) -> Result<Mtu, String> {
    let bytes = text.parse::<usize>().ok();
    let mtu = Mtu::ALL.into_iter().find(|mtu| Some(mtu.bytes()) == bytes);
    mtu.ok_or_else(|| "expected 256, 512, 1024, 2048 or 4096".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_addresses_have_optional_ports() {
        let read = |text: &str| text.parse::<ListenAddress>().map(|it| (it.address, it.port));
        let address = |text: &str| text.parse::<IpAddr>().expect("the text is an address");
        let cases = [
            ("10.0.0.1", "10.0.0.1", None),
            ("10.0.0.1:80", "10.0.0.1", Some(80)),
            ("fd00::1", "fd00::1", None),
            ("[fd00::1]", "fd00::1", None),
            ("[fd00::1]:0", "fd00::1", Some(0)),
        ];
        for (text, expected, port) in cases {
            assert_eq!(read(text), Ok((address(expected), port)), "{text}");
        }
        for text in ["", "80", ":80", "localhost", "10.0.0.1:", "10.0.0.1:65536", "[10.0.0.1"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn page_and_metrics_addresses_are_checked() {
        assert!(page_address("127.0.0.1").is_ok() && page_address("[::1]:0").is_ok());
        assert!(page_address("127.0.0.2").is_err() && page_address("0.0.0.0:80").is_err());
        assert!(metrics_address("[::1]:9100").is_ok() && metrics_address("0.0.0.0:1").is_ok());
        assert!(metrics_address("127.0.0.1").is_err() && metrics_address("127.0.0.1:0").is_err());
    }
}
