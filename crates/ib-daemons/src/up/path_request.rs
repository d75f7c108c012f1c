//! Path requests to ACM services, and their responses.

use ib_acm::Address;
use ib_wire::acm::{ClientHeader, ClientStatus, Entry, EntryFlags, HEADER_LENGTH, Resolve};
use ib_wire::mad::sa::PathRecord;

/// Returns the destination of a path request as an entry of a RESOLVE message.
pub(super) fn destination(to: &Address) -> Entry {
    match to {
        Address::Gid(gid) => {
            Entry::path(EntryFlags(0), &PathRecord { dgid: *gid, ..PathRecord::zeroed() })
        }
        other => {
            other.to_entry(EntryFlags::DESTINATION).expect("the address is a name or an IP address")
        }
    }
}

/// Returns the path that a response contains; if it contains none, returns its status as an error.
pub(super) fn path_of(message: &[u8]) -> Result<PathRecord, ClientStatus> {
    let header = ClientHeader::parse(message.first_chunk().expect("the response has a header"));
    if header.status != ClientStatus::SUCCESS {
        return Err(header.status);
    }
    let (_, order) = header.length().expect("the service writes a valid length");
    let answer = Resolve::parse(header, &message[HEADER_LENGTH..], order);
    answer.entries.first().map(Entry::path_record).ok_or(ClientStatus::ENODATA)
}
