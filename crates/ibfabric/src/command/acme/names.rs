//! Parsers of name lists such as `node[1-3]`, and of addresses of the type that -f selects.

use std::net::{IpAddr, Ipv6Addr, ToSocketAddrs};

use ib_acm::Address;
use ib_types::Gid;
use ib_wire::mad::sa::PathRecord;

use crate::cli::acme::AddressFormat;

/// The maximum number of names in a list.
const MOST: usize = 1 << 20;

/// Expands a list such as `node[1-3,7]`. If a range's first number has leading zeros, its other numbers are
/// padded with zeros to the same width.
///
/// # Errors
/// Fails if the end of a range is below its start, or if there are more than [`MOST`] names.
pub(super) fn expand(text: &str) -> Result<Vec<String>, String> {
    let parts = text.split_once('[').and_then(|(before, rest)| {
        let (list, after) = rest.split_once(']')?;
        Some((before, list, after))
    });
    let Some((before, list, after)) = parts else { return Ok(vec![text.to_owned()]) };
    let mut names = Vec::new();
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (Ok(low), Ok(high)) = (first.parse::<u64>(), last.parse::<u64>()) else {
            // The brackets do not contain a list of numbers, so the text is a single name.
            return Ok(vec![text.to_owned()]);
        };
        if low > high {
            return Err(format!(
                "`{text}`: found the range {range}, expected a last number that is not below the first"
            ));
        }
        if high - low >= (MOST - names.len()) as u64 {
            return Err(format!("`{text}`: expected at most {MOST} names"));
        }
        let width = if first.starts_with('0') { first.len() } else { 0 };
        for number in low..=high {
            names.push(format!("{before}{number:0width$}{after}"));
        }
    }
    Ok(names)
}

/// The source or destination of a path in a request.
pub(super) enum End {
    Ip(Address),
    Name(Address),
    /// A port, by its GID or by its LID; the field that is not used is zero.
    Port {
        gid: Gid,
        lid: u16,
    },
}

impl End {
    /// Parses an address of the given type. Also returns the text to display.
    ///
    /// # Errors
    /// Returns a message that names the expected value.
    pub(super) fn parse(format: AddressFormat, text: &str) -> Result<(Self, String), String> {
        let same = |end| (end, text.to_owned());
        match format {
            AddressFormat::Ip => {
                let address: IpAddr =
                    text.parse().map_err(|_| format!("`{text}`: expected an IP address"))?;
                Ok(same(Self::Ip(address.into())))
            }
            AddressFormat::Name => {
                let name = Address::name(text).map_err(|error| format!("`{text}`: {error}"))?;
                Ok(same(Self::Name(name)))
            }
            AddressFormat::Lid => {
                let lid = crate::input::number(text)
                    .ok_or_else(|| format!("`{text}`: expected a LID, 0 to 65535"))?;
                Ok(same(Self::Port { gid: Gid::ZERO, lid }))
            }
            AddressFormat::Gid => {
                let gid: Ipv6Addr =
                    text.parse().map_err(|_| format!("`{text}`: expected a GID"))?;
                Ok(same(Self::Port { gid: Gid(gid.into()), lid: 0 }))
            }
            AddressFormat::Unspecified => {
                if let Ok(address) = text.parse::<IpAddr>() {
                    return Ok(same(Self::Ip(address.into())));
                }
                let found = (text, 0).to_socket_addrs().ok().and_then(|mut found| found.next());
                if let Some(found) = found {
                    // For a host name, the displayed text is the resolved address.
                    return Ok((Self::Ip(found.ip().into()), found.ip().to_string()));
                }
                let lid = crate::input::number(text).unwrap_or(0);
                Ok(same(Self::Port { gid: Gid::ZERO, lid }))
            }
        }
    }

    /// Returns the name of libibacm's function for the request.
    pub(super) const fn call(&self) -> &'static str {
        match self {
            Self::Ip(_) => "ib_acm_resolve_ip",
            Self::Name(_) => "ib_acm_resolve_name",
            Self::Port { .. } => "ib_acm_resolve_path",
        }
    }

    /// Returns the IP address or the name; `None` for a port.
    pub(super) const fn address(&self) -> Option<&Address> {
        match self {
            Self::Ip(address) | Self::Name(address) => Some(address),
            Self::Port { .. } => None,
        }
    }

    /// For a port, returns a path record with this port as its destination and zeros in all other fields. For an IP
    /// address or a name, returns a path record of zeros.
    pub(super) fn path_to(&self) -> PathRecord {
        match self {
            Self::Port { gid, lid } => {
                PathRecord { dgid: *gid, dlid: *lid, ..PathRecord::zeroed() }
            }
            Self::Ip(_) | Self::Name(_) => PathRecord::zeroed(),
        }
    }

    /// Returns the path record with this port as its source. An IP address or a name leaves the record unchanged.
    pub(super) fn path_from(&self, path: PathRecord) -> PathRecord {
        match self {
            Self::Port { gid, lid } => PathRecord { sgid: *gid, slid: *lid, ..path },
            Self::Ip(_) | Self::Name(_) => path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_numbers_are_expanded() {
        let cases: [(&str, &[&str]); 5] = [
            ("node", &["node"]),
            ("node[1-3,7]", &["node1", "node2", "node3", "node7"]),
            ("n[08-10]-ib0", &["n08-ib0", "n09-ib0", "n10-ib0"]),
            ("n[a-b]", &["n[a-b]"]),
            ("n[1-2", &["n[1-2"]),
        ];
        for (text, expected) in cases {
            assert_eq!(expand(text).expect(text), expected, "{text}");
        }
        assert_eq!(expand(&format!("n[1-{MOST}]")).map(|names| names.len()), Ok(MOST));
    }

    #[test]
    fn invalid_and_huge_ranges_are_rejected() {
        for text in ["n[3-1]", "n[1-2,9-8]", "n[0-1048576]", "n[0-99999999999]", "n[1-1048576,7]"] {
            assert!(expand(text).is_err(), "{text}");
        }
    }
}
