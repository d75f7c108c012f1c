//! Devices and ports in sysfs. Files are opened with the C library's `open`, so that a preloaded library can emulate
//! them.

use std::ffi::CString;
use std::io;
use std::path::Path;

use ib_link::LinkPort;
use ib_types::{Guid, ServiceLevel};

use super::UmadError;

const CLASS_MAD: &str = "/sys/class/infiniband_mad";
const CLASS: &str = "/sys/class/infiniband";

/// A port with a umad device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UmadDevice {
    /// Name of the HCA, for example `mlx5_0`.
    pub name: String,
    /// Port number.
    pub port: u8,
    /// Number N of `umadN`.
    pub number: u32,
}

impl UmadDevice {
    /// Returns all devices, sorted by number.
    ///
    /// # Errors
    /// Fails if `/sys/class/infiniband_mad` cannot be read.
    pub fn list() -> Result<Vec<Self>, UmadError> {
        let failed =
            |source| UmadError::Io { doing: "reading", path: CLASS_MAD.to_owned(), source };
        let mut devices = Vec::new();
        for entry in std::fs::read_dir(CLASS_MAD).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("umad"));
            let Some(number) = number.and_then(|number| number.parse().ok()) else { continue };
            let directory = format!("{CLASS_MAD}/umad{number}");
            let name = read(&format!("{directory}/ibdev"))?;
            let port = number_in(&format!("{directory}/port"))? as u8;
            devices.push(Self { name, port, number });
        }
        devices.sort_by_key(|device| device.number);
        Ok(devices)
    }

    /// Finds a port of the given HCA. If no port number is given, returns the first port.
    ///
    /// # Errors
    /// Fails if the device does not exist; the error lists the existing ones.
    pub fn find(name: &str, port: Option<u8>) -> Result<Self, UmadError> {
        let devices = Self::list()?;
        let is_it = |device: &&Self| device.name == name && port.is_none_or(|p| p == device.port);
        devices.iter().find(is_it).cloned().ok_or_else(|| {
            let port = port.map_or(String::new(), |port| format!(":{port}"));
            let known = devices.iter().map(|device| format!("{}:{}", device.name, device.port));
            let known = known.collect::<Vec<_>>().join(", ");
            UmadError::NoDevice { wanted: format!("{name}{port}"), known }
        })
    }

    /// Returns the path of the umad device.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/dev/infiniband/umad{}", self.number)
    }

    /// Returns true if the port's link is up.
    ///
    /// # Errors
    /// Fails if the state file is missing or has unexpected content.
    pub fn is_linked(&self) -> Result<bool, UmadError> {
        // The file contains the port's state, for example `4: ACTIVE`. State 1 is Down.
        let path = format!("{CLASS}/{}/ports/{}/state", self.name, self.port);
        let text = read(&path)?;
        let number = text.split(':').next().and_then(|number| number.trim().parse::<u8>().ok());
        number.map(|state| state > 1).ok_or_else(|| unexpected(&path, &text, "a state"))
    }

    /// Returns true if the port's link layer is InfiniBand or unknown. RoCE ports are not in an InfiniBand subnet.
    #[must_use]
    pub fn is_infiniband(&self) -> bool {
        let path = format!("{CLASS}/{}/ports/{}/link_layer", self.name, self.port);
        read(&path).map_or(true, |layer| layer == "InfiniBand")
    }

    /// Returns the path of the issm device, which sets `IsSM` while it is open.
    pub(super) fn issm_path(&self) -> Result<String, UmadError> {
        let failed =
            |source| UmadError::Io { doing: "reading", path: CLASS_MAD.to_owned(), source };
        for entry in std::fs::read_dir(CLASS_MAD).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let Some(name) = name.to_str().filter(|name| name.starts_with("issm")) else {
                continue;
            };
            let directory = format!("{CLASS_MAD}/{name}");
            if read(&format!("{directory}/ibdev"))? == self.name
                && number_in(&format!("{directory}/port"))? == u32::from(self.port)
            {
                return Ok(format!("/dev/infiniband/{name}"));
            }
        }
        // sysfs names no issm device for this port. The issm device usually has the number of the port's umad device.
        Ok(format!("/dev/infiniband/issm{}", self.number))
    }

    /// Reads the attributes of the port.
    ///
    /// # Errors
    /// Fails if a file is missing or has unexpected content.
    pub fn link_port(&self) -> Result<LinkPort, UmadError> {
        let adapter = format!("{CLASS}/{}", self.name);
        let port = format!("{adapter}/ports/{}", self.port);
        let gid = groups(&format!("{port}/gids/0"), 8)?;
        Ok(LinkPort {
            node_guid: Guid(groups(&format!("{adapter}/node_guid"), 4)? as u64),
            port_guid: Guid(gid as u64),
            gid_prefix: (gid >> 64) as u64,
            number: self.port,
            lid: number_in(&format!("{port}/lid"))? as u16,
            lmc: number_in(&format!("{port}/lid_mask_count"))? as u8,
            sm_lid: number_in(&format!("{port}/sm_lid"))? as u16,
            sm_sl: ServiceLevel::new(number_in(&format!("{port}/sm_sl"))? as u8)
                .unwrap_or_default(),
        })
    }
}

/// Reads a decimal number, or a hexadecimal one with the prefix 0x.
fn number_in(path: &str) -> Result<u32, UmadError> {
    let text = read(path)?;
    let number = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| unexpected(path, &text, "a number"))
}

/// Reads hexadecimal groups of 16 bits, separated by colons.
fn groups(path: &str, count: usize) -> Result<u128, UmadError> {
    let text = read(path)?;
    let groups: Result<Vec<u16>, _> =
        text.split(':').map(|group| u16::from_str_radix(group, 16)).collect();
    match groups {
        Ok(groups) if groups.len() == count => {
            Ok(groups.iter().fold(0, |sum, &group| sum << 16 | u128::from(group)))
        }
        _ => Err(unexpected(path, &text, "hexadecimal groups separated by colons")),
    }
}

fn unexpected(path: &str, found: &str, expected: &'static str) -> UmadError {
    UmadError::Content { path: path.to_owned(), found: found.to_owned(), expected }
}

/// Reads a short file and trims white space.
fn read(path: &str) -> Result<String, UmadError> {
    let failed = |source| UmadError::Io { doing: "reading", path: path.to_owned(), source };
    let file = super::file::File::open(Path::new(path), libc::O_RDONLY).map_err(failed)?;
    let mut bytes = [0; 4096];
    let length = file.read(&mut bytes).map_err(failed)?;
    Ok(String::from_utf8_lossy(&bytes[..length]).trim().to_owned())
}

/// Converts a path for the C library.
pub(super) fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_encoded_bytes())?)
}
