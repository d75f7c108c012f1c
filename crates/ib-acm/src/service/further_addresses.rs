//! The sender's addresses in a message, other than the sender's main address. They are an extension of the ACM
//! protocol.
//!
//! The space after the list of multicast groups in a message contains as many further addresses of the sender as fit.
//! Byte 23 is the number of these addresses; in ibacm the byte is reserved. Each address consists of a type, a length
//! and the address bytes. ibacm writes zeros in this space and ignores it.

use ib_wire::mad::MAD_LENGTH;
use ib_wire::mad::acm::AddressType;

use crate::Address;

/// Offset of the number of further addresses in a message.
const COUNT: usize = 23;

/// Offset of the number of multicast groups in a message.
const GROUP_COUNT: usize = 20;

/// Offset of the list of multicast groups in a message.
const GROUPS: usize = 152;

/// Writes all addresses except `main` after the list of multicast groups in a message. Leaves out addresses that do
/// not fit.
pub(super) fn write_further_addresses(
    bytes: &mut [u8; MAD_LENGTH],
    main: &Address,
    all: &[Address],
) {
    let mut at = GROUPS + 16 * usize::from(bytes[GROUP_COUNT]);
    for address in all.iter().filter(|it| *it != main) {
        let (kind, field) = address.to_field();
        let length = match kind {
            AddressType::NAME => field.iter().position(|&byte| byte == 0).unwrap_or(field.len()),
            AddressType::IPV4 => 4,
            AddressType::IPV6 | AddressType::GID => 16,
            _ => continue,
        };
        if let Some(room) = bytes.get_mut(at..at + 2 + length) {
            room[0] = kind.0;
            room[1] = length as u8;
            room[2..].copy_from_slice(&field[..length]);
            at += 2 + length;
            bytes[COUNT] += 1;
        }
    }
}

/// Returns the addresses after the list of multicast groups in a message. Stops at the first malformed address.
pub(super) fn read_further_addresses(bytes: &[u8; MAD_LENGTH]) -> Vec<Address> {
    let mut rest = &bytes[(GROUPS + 16 * usize::from(bytes[GROUP_COUNT])).min(MAD_LENGTH)..];
    let mut found = Vec::new();
    for _ in 0..bytes[COUNT] {
        let Some((&[kind, length], behind)) = rest.split_first_chunk::<2>() else { break };
        let Some((address, behind)) = behind.split_at_checked(length.into()) else { break };
        let mut field = [0; 64];
        let Some(room) = field.get_mut(..address.len()) else { break };
        room.copy_from_slice(address);
        let Ok(address) = Address::from_field(AddressType(kind), &field) else { break };
        found.push(address);
        rest = behind;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_fit_are_written() {
        let all: Vec<Address> = ["node1", "10.0.0.1", "fd00::1", "node1-ib0.example"]
            .map(|text| Address::parse(text).expect("the address is valid"))
            .into();
        for groups in 0..=6 {
            let mut bytes = [0; MAD_LENGTH];
            bytes[GROUP_COUNT] = groups;
            write_further_addresses(&mut bytes, &all[0], &all);
            let found = read_further_addresses(&bytes);
            assert_eq!(found.len(), usize::from(bytes[COUNT]));
            assert!(found.iter().all(|address| all[1..].contains(address)), "{found:?}");
            assert_eq!(
                found.len(),
                match groups {
                    0..=3 => 3,
                    4 | 5 => 2,
                    _ => 1,
                }
            );
        }
    }

    #[test]
    fn reading_stops_at_a_malformed_address() {
        let mut bytes = [0xff; MAD_LENGTH];
        assert_eq!(read_further_addresses(&bytes), []);
        bytes[GROUP_COUNT] = 0;
        bytes[COUNT] = 255;
        assert_eq!(read_further_addresses(&bytes), []);
        let room = [2, 4, 10, 0, 0, 1, 1, 3, b'a', b'b', b'c', 9, 9];
        bytes[GROUPS..GROUPS + room.len()].copy_from_slice(&room);
        assert_eq!(read_further_addresses(&bytes).len(), 2);
    }
}
