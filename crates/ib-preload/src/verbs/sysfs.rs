//! Files of the device under `/sys/class/infiniband` and `/sys/class/infiniband_verbs`, as the kernel writes them.

use std::io;

use super::DEVICE_NUMBER;
use super::attributes::Port;
use super::rdma_cm;
use crate::sysfs::{Tree, text};

/// Version of the uverbs ABI.
const ABI_VERSION: u32 = 6;

/// Version of the ABI between the rxe provider and its driver.
const DRIVER_ABI_VERSION: u32 = 2;

/// Returns true if the files of a device were written before.
pub(super) fn is_written(tree: &Tree, device: &str) -> bool {
    tree.has(&format!("sys/class/infiniband/{device}/node_guid"))
}

/// Writes the files of a device.
///
/// # Errors
/// Fails if a file cannot be written.
pub(super) fn write(tree: &mut Tree, device: &str, port: &Port) -> io::Result<()> {
    let (major, minor) = DEVICE_NUMBER;
    let (cm_major, cm_minor) = rdma_cm::DEVICE_NUMBER;
    let class = "sys/class/infiniband_verbs";
    let guid = text::guid(port.node_guid);
    let mut files = vec![
        (format!("{class}/abi_version"), ABI_VERSION.to_string()),
        (format!("{class}/uverbs0/abi_version"), DRIVER_ABI_VERSION.to_string()),
        (format!("{class}/uverbs0/dev"), format!("{major}:{minor}")),
        (format!("{class}/uverbs0/ibdev"), device.to_owned()),
        // The file is empty, because programs only check that it exists. If a program opens its path,
        // the library opens the uverbs device instead.
        ("dev/infiniband/uverbs0".to_owned(), String::new()),
        ("dev/infiniband/rdma_cm".to_owned(), String::new()),
        ("sys/class/misc/rdma_cm/abi_version".to_owned(), rdma_cm::ABI_VERSION.to_string()),
        ("sys/class/misc/rdma_cm/dev".to_owned(), format!("{cm_major}:{cm_minor}")),
    ];
    let own = format!("sys/class/infiniband/{device}");
    // libibverbs selects the provider by this alias, whatever the name of the device is.
    files.push((format!("{own}/device/modalias"), "rdma_device:Nrxe".to_owned()));
    for (name, content) in [
        ("node_type", "1: CA".to_owned()),
        ("node_guid", guid.clone()),
        ("sys_image_guid", guid),
        ("node_desc", port.node_description.clone()),
        ("fw_ver", "0.0.0".to_owned()),
    ] {
        files.push((format!("{own}/{name}"), content));
    }
    let layer = if port.is_infiniband { "InfiniBand" } else { "Ethernet" };
    let gid_type = if port.is_infiniband { "IB/RoCE v1" } else { "RoCE v2" };
    let (state, physical) =
        if port.is_active { ("4: ACTIVE", "5: LinkUp") } else { ("1: DOWN", "3: Disabled") };
    let mut attributes = vec![
        ("lid".to_owned(), format!("0x{:x}", port.lid)),
        ("lid_mask_count".to_owned(), port.lmc.to_string()),
        ("sm_lid".to_owned(), format!("0x{:x}", port.sm_lid)),
        ("sm_sl".to_owned(), port.sm_sl.to_string()),
        ("state".to_owned(), state.to_owned()),
        ("phys_state".to_owned(), physical.to_owned()),
        ("rate".to_owned(), "100 Gb/sec (4X EDR)".to_owned()),
        ("cap_mask".to_owned(), format!("0x{:08x}", port.attributes().port_cap_flags)),
        ("link_layer".to_owned(), layer.to_owned()),
        ("gids/0".to_owned(), text::gid(port.gid.0.to_be_bytes())),
        ("gid_attrs/types/0".to_owned(), gid_type.to_owned()),
    ];
    if let Some(interface) = &port.interface {
        attributes.push(("gid_attrs/ndevs/0".to_owned(), interface.clone()));
    }
    for (index, key) in port.p_keys.iter().enumerate() {
        attributes.push((format!("pkeys/{index}"), format!("0x{key:04x}")));
    }
    for (name, content) in attributes {
        files.push((format!("{own}/ports/1/{name}"), content));
    }
    for (path, content) in files {
        tree.write(path, content)?;
    }
    Ok(())
}
