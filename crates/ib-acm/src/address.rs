//! Names and addresses of endpoints.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ib_types::Gid;
use ib_wire::acm::{Entry, EntryFlags, EntryType};
use ib_wire::mad::acm::AddressType;

/// Maximum length of a name in bytes: the field of 64 bytes ends with a zero byte.
pub const LONGEST_NAME: usize = 63;

/// A name or an address of an endpoint.
///
/// The case of ASCII letters does not matter when names are compared, so names are stored in lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// A name, such as a host name: 1 to 63 bytes of UTF-8 in lower case, without zero bytes.
    Name(Box<str>),
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// An IPv6 address.
    V6(Ipv6Addr),
    /// A GID.
    Gid(Gid),
    /// A LID.
    Lid(u16),
}

/// Error of an invalid name or address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// A name is empty.
    #[error("the name is empty: expected 1 to {LONGEST_NAME} bytes")]
    Empty,
    /// A name is too long.
    #[error("the name has {0} bytes: expected 1 to {LONGEST_NAME}")]
    Long(usize),
    /// A name contains a zero byte, or is not UTF-8.
    #[error("the name is not text: expected UTF-8 without zero bytes")]
    NoText,
    /// The address is of a type that cannot be resolved.
    #[error("the address has type {0}: expected a name, an IPv4 or IPv6 address, a GID or a LID")]
    Type(u16),
    /// The address field does not have the length that the protocol defines.
    #[error("the address field has {0} bytes: expected 64")]
    Field(u8),
}

impl Address {
    /// Creates a name.
    ///
    /// # Errors
    /// Fails if the name is empty, longer than 63 bytes, or contains a zero byte.
    pub fn name(name: &str) -> Result<Self, AddressError> {
        match name.len() {
            0 => Err(AddressError::Empty),
            1..=LONGEST_NAME if name.contains('\0') => Err(AddressError::NoText),
            1..=LONGEST_NAME => Ok(Self::Name(name.to_ascii_lowercase().into())),
            length => Err(AddressError::Long(length)),
        }
    }

    /// Parses an IPv4 or IPv6 address, or else a name.
    ///
    /// # Errors
    /// Fails if the text is neither an IP address nor a valid name.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        match text.parse() {
            Ok(IpAddr::V4(address)) => Ok(Self::V4(address)),
            Ok(IpAddr::V6(address)) => Ok(Self::V6(address)),
            Err(_) => Self::name(text),
        }
    }

    /// Returns the IP address; `None` for other addresses.
    #[must_use]
    pub const fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::V4(address) => Some(IpAddr::V4(*address)),
            Self::V6(address) => Some(IpAddr::V6(*address)),
            Self::Name(_) | Self::Gid(_) | Self::Lid(_) => None,
        }
    }

    /// Returns the address that an entry of a client message contains.
    ///
    /// # Errors
    /// Fails if the type is unknown, or if the name is invalid.
    pub fn of_entry(entry: &Entry) -> Result<Self, AddressError> {
        let kind = match entry.kind {
            EntryType::NAME => AddressType::NAME,
            EntryType::IPV4 => AddressType::IPV4,
            EntryType::IPV6 => AddressType::IPV6,
            EntryType(other) => return Err(AddressError::Type(other)),
        };
        Self::from_field(kind, &entry.info)
    }

    /// Returns the entry for a client message; `None` for a GID or a LID, which client messages contain only in paths.
    #[must_use]
    pub fn to_entry(&self, flags: EntryFlags) -> Option<Entry> {
        match self {
            Self::Name(name) => Entry::name(flags, name),
            Self::V4(address) => Some(Entry::ipv4(flags, *address)),
            Self::V6(address) => Some(Entry::ipv6(flags, *address)),
            Self::Gid(_) | Self::Lid(_) => None,
        }
    }

    /// Returns the address that a field of a message between services contains.
    ///
    /// # Errors
    /// Fails if the type is unknown, or if the name is invalid.
    pub fn from_field(kind: AddressType, field: &[u8; 64]) -> Result<Self, AddressError> {
        let four = *field.first_chunk::<4>().expect("the field has 64 bytes");
        let sixteen = *field.first_chunk::<16>().expect("the field has 64 bytes");
        match kind {
            AddressType::NAME => {
                let end = field.iter().position(|&byte| byte == 0);
                let end = end.ok_or(AddressError::Long(field.len()))?;
                let name = str::from_utf8(&field[..end]).map_err(|_| AddressError::NoText)?;
                Self::name(name)
            }
            AddressType::IPV4 => Ok(Self::V4(four.into())),
            AddressType::IPV6 => Ok(Self::V6(sixteen.into())),
            AddressType::GID => Ok(Self::Gid(Gid::from_bytes(sixteen))),
            AddressType::LID => Ok(Self::Lid(u16::from_be_bytes([field[0], field[1]]))),
            AddressType(other) => Err(AddressError::Type(other.into())),
        }
    }

    /// Returns the address type and the field, padded with zeros, for a message between services.
    #[must_use]
    pub fn to_field(&self) -> (AddressType, [u8; 64]) {
        let mut field = [0; 64];
        let mut put = |bytes: &[u8]| field[..bytes.len()].copy_from_slice(bytes);
        let kind = match self {
            Self::Name(name) => {
                put(name.as_bytes());
                AddressType::NAME
            }
            Self::V4(address) => {
                put(&address.octets());
                AddressType::IPV4
            }
            Self::V6(address) => {
                put(&address.octets());
                AddressType::IPV6
            }
            Self::Gid(gid) => {
                put(&gid.to_bytes());
                AddressType::GID
            }
            Self::Lid(lid) => {
                put(&lid.to_be_bytes());
                AddressType::LID
            }
        };
        (kind, field)
    }
}

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => Self::V6(address),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::V4(address) => address.fmt(f),
            Self::V6(address) => address.fmt(f),
            Self::Gid(gid) => gid.fmt(f),
            Self::Lid(lid) => write!(f, "LID {lid}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_fields_are_read_back() {
        let texts = ["Node-17.Example", "10.1.2.3", "fd00::17"];
        let mut all: Vec<Address> = texts
            .iter()
            .map(|text| Address::parse(text).expect("the text is an address"))
            .collect();
        all.extend([Address::Gid(Gid(0xfe80 << 112 | 7)), Address::Lid(0x1234)]);
        for address in all {
            let (kind, field) = address.to_field();
            assert_eq!(Address::from_field(kind, &field), Ok(address.clone()));
            if let Some(entry) = address.to_entry(EntryFlags::SOURCE) {
                assert_eq!(Address::of_entry(&entry), Ok(address));
            }
        }
        assert_eq!(Address::Lid(0x1234).to_field().1[..3], [0x12, 0x34, 0]);
    }

    #[test]
    fn names_ignore_the_case_of_ascii_letters() {
        assert_eq!(Address::name("Node1"), Address::name("nODE1"));
        assert_ne!(Address::name("Ärger"), Address::name("ärger"));
    }

    #[test]
    fn invalid_addresses_are_refused_with_a_reason() {
        assert_eq!(Address::name(""), Err(AddressError::Empty));
        assert_eq!(Address::name(&"x".repeat(64)), Err(AddressError::Long(64)));
        assert_eq!(Address::name("a\0"), Err(AddressError::NoText));
        assert!(Address::name(&"x".repeat(63)).is_ok());
        let field = [b'x'; 64];
        assert_eq!(Address::from_field(AddressType::NAME, &field), Err(AddressError::Long(64)));
        let mut field = [0; 64];
        assert_eq!(Address::from_field(AddressType::NAME, &field), Err(AddressError::Empty));
        field[0] = 0xff;
        assert_eq!(Address::from_field(AddressType::NAME, &field), Err(AddressError::NoText));
        assert_eq!(Address::from_field(AddressType(9), &field), Err(AddressError::Type(9)));
        let path = Entry { flags: EntryFlags::SOURCE, kind: EntryType::PATH, info: [0; 64] };
        assert_eq!(Address::of_entry(&path), Err(AddressError::Type(16)));
    }
}
