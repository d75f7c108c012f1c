//! The IP addresses that this machine has over InfiniBand: those of the interfaces of `IPoIB`, whose hardware address is the
//! number of a queue pair and a GID (RFC 4391, section 9.1.1).

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use ib_types::Gid;

use ib_roce::RoceInterface;

/// Where the system tells of its interfaces.
pub(super) const INTERFACES: &str = "/sys/class/net";

/// The type of the hardware, `ARPHRD_INFINIBAND`.
const INFINIBAND: &str = "32";

/// Returns the addresses of the interfaces at a port in the default partition.
pub(super) fn addresses(interfaces: &Path, gid: Gid) -> Vec<IpAddr> {
    let names = names(interfaces, gid);
    // Most machines have none: there is nothing to be asked then.
    let all = if names.is_empty() { None } else { RoceInterface::all().ok() };
    let own = all.into_iter().flatten().filter(|it| names.contains(&it.name));
    own.flat_map(|it| it.addresses).collect()
}

fn names(interfaces: &Path, gid: Gid) -> Vec<String> {
    let own = |path: &Path| {
        let read = |name: &str| fs::read_to_string(path.join(name)).ok();
        let is_infiniband = read("type").is_some_and(|it| it.trim() == INFINIBAND);
        let is_default = || {
            let key =
                read("pkey").map(|it| u16::from_str_radix(it.trim().trim_start_matches("0x"), 16));
            key.is_none_or(|key| key.is_ok_and(|key| key & 0x7fff == 0x7fff))
        };
        is_infiniband
            && read("address").and_then(|it| gid_in(it.trim())) == Some(gid)
            && is_default()
    };
    let entries = fs::read_dir(interfaces).into_iter().flatten().filter_map(Result::ok);
    let own = entries.filter(|entry| own(&entry.path()));
    own.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Returns the GID in a hardware address of 20 bytes with colons between.
fn gid_in(address: &str) -> Option<Gid> {
    let bytes = address.split(':').map(|byte| u8::from_str_radix(byte, 16));
    let bytes: Vec<u8> = bytes.collect::<Result<_, _>>().ok()?;
    let gid = <[u8; 20]>::try_from(bytes).ok()?.last_chunk().copied()?;
    Some(Gid::from_bytes(gid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_those_of_the_port_in_the_default_partition() {
        let directory = tempfile::tempdir().expect("a directory");
        let own = "00:00:10:48:fe:80:00:00:00:00:00:00:00:02:c9:00:00:10:00:01";
        let other = "00:00:10:48:fe:80:00:00:00:00:00:00:00:02:c9:00:00:10:00:02";
        for (name, kind, address, key) in [
            ("ib0", "32", own, "0xffff"),
            ("ib0.8001", "32", own, "0x8001"),
            ("ib1", "32", other, "0xffff"),
            ("eth0", "1", "52:54:00:12:34:56", ""),
            ("odd", "32", "fe:80", "0xffff"),
            ("old", "32", own, ""),
        ] {
            let place = directory.path().join(name);
            fs::create_dir(&place).expect("a directory");
            fs::write(place.join("type"), format!("{kind}\n")).expect("a file");
            fs::write(place.join("address"), format!("{address}\n")).expect("a file");
            if !key.is_empty() {
                fs::write(place.join("pkey"), format!("{key}\n")).expect("a file");
            }
        }
        let gid = Gid::new(0xfe80_0000_0000_0000, ib_types::Guid(0x0002_c900_0010_0001));
        let mut found = names(directory.path(), gid);
        found.sort();
        assert_eq!(found, ["ib0", "old"]);
        assert_eq!(names(Path::new("/nowhere"), gid), [""; 0]);
    }
}
