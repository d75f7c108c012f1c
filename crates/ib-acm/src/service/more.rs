//! The further addresses of a port in a message.
//!
//! A message has room behind its groups. There a service of this kind says which other addresses it has, as many as fit:
//! `reserved`, the byte 23, is their number, and each is a type, a length and its bytes. Others write zero there and do
//! not look.

use ib_wire::mad::MAD_LENGTH;
use ib_wire::mad::acm::AddressType;

use crate::Address;

/// The byte that counts further addresses.
const COUNT: usize = 23;

/// Where groups begin in a message.
const GROUPS: usize = 152;

/// Writes the addresses beside one that there is room for behind the groups of a message.
pub(super) fn put_more(bytes: &mut [u8; MAD_LENGTH], told: &Address, all: &[Address]) {
    let mut at = GROUPS + 16 * usize::from(bytes[20]);
    for address in all.iter().filter(|it| *it != told) {
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

/// Returns the addresses behind the groups of a message; what is not understood ends them.
pub(super) fn more(bytes: &[u8; MAD_LENGTH]) -> Vec<Address> {
    let mut rest = &bytes[(GROUPS + 16 * usize::from(bytes[20])).min(MAD_LENGTH)..];
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
    fn further_addresses_stand_behind_the_groups() {
        let all: Vec<Address> = ["node1", "10.0.0.1", "fd00::1", "node1-ib0.example"]
            .map(|text| Address::parse(text).expect("an address"))
            .into();
        for groups in 0..=6 {
            let mut bytes = [0; MAD_LENGTH];
            bytes[20] = groups;
            put_more(&mut bytes, &all[0], &all);
            let found = more(&bytes);
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
    fn bytes_that_are_no_addresses_end_them() {
        let mut bytes = [0xff; MAD_LENGTH];
        assert_eq!(more(&bytes), []);
        bytes[20] = 0;
        bytes[COUNT] = 255;
        assert_eq!(more(&bytes), []);
        let room = [2, 4, 10, 0, 0, 1, 1, 3, b'a', b'b', b'c', 9, 9];
        bytes[GROUPS..GROUPS + room.len()].copy_from_slice(&room);
        assert_eq!(more(&bytes).len(), 2);
    }
}
