//! IP addresses of this machine's `IPoIB` interfaces. The hardware address of such an interface is a QPN and a GID (RFC
//! 4391, section 9.1.1).

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use ib_types::Gid;

use ib_roce::RoceInterface;

/// Directory of the network interfaces in sysfs.
pub(super) const INTERFACES: &str = "/sys/class/net";

/// `ARPHRD_INFINIBAND`: the hardware type of `IPoIB` interfaces.
const INFINIBAND: &str = "32";

/// Returns the IP addresses of the `IPoIB` interfaces that are at the port with this GID and in the default partition.
pub(super) fn addresses(interfaces: &Path, gid: Gid) -> Vec<IpAddr> {
    let names = names(interfaces, gid);
    // The query over netlink is skipped if no interface matches: most machines have no `IPoIB` interface.
    let all = if names.is_empty() { None } else { RoceInterface::all().ok() };
    let own = all.into_iter().flatten().filter(|it| names.contains(&it.name));
    own.flat_map(|it| it.addresses).collect()
}

/// Returns the names of the `IPoIB` interfaces that are at the port with this GID and in the default partition.
fn names(interfaces: &Path, gid: Gid) -> Vec<String> {
    let is_at_port = |path: &Path| {
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
    let own = entries.filter(|entry| is_at_port(&entry.path()));
    own.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Returns the GID in an `IPoIB` hardware address, which is written as 20 hexadecimal bytes with colons in between.
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
    fn only_interfaces_of_the_port_and_default_partition_count() {
        let directory = tempfile::tempdir().expect("a temporary directory can be created");
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
            let interface = directory.path().join(name);
            fs::create_dir(&interface).expect("the directory can be created");
            fs::write(interface.join("type"), format!("{kind}\n"))
                .expect("the file can be written");
            fs::write(interface.join("address"), format!("{address}\n"))
                .expect("the file can be written");
            if !key.is_empty() {
                fs::write(interface.join("pkey"), format!("{key}\n"))
                    .expect("the file can be written");
            }
        }
        let gid = Gid::new(0xfe80_0000_0000_0000, ib_types::Guid(0x0002_c900_0010_0001));
        let mut found = names(directory.path(), gid);
        found.sort();
        assert_eq!(found, ["ib0", "old"]);
        assert_eq!(names(Path::new("/nowhere"), gid), [""; 0]);
    }
}
