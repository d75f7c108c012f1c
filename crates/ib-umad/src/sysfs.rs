//! What sysfs tells of devices and ports. Files are opened with the C library's `open`, so that a
//! preloaded library can stand in for them.

use std::ffi::CString;
use std::io;
use std::path::Path;

use ib_link::LinkPort;
use ib_types::{Guid, ServiceLevel};

use super::UmadError;

const CLASS_MAD: &str = "/sys/class/infiniband_mad";
const CLASS: &str = "/sys/class/infiniband";

/// A port with a device for management datagrams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UmadDevice {
    /// The HCA's name, for example `mlx5_0`.
    pub name: String,
    /// The port.
    pub port: u8,
    /// The number N of `umadN`.
    pub number: u32,
}

impl UmadDevice {
    /// Lists all, by number.
    ///
    /// # Errors
    /// Fails when `/sys/class/infiniband_mad` cannot be read.
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

    /// Finds a port; without a number the first of its HCA.
    ///
    /// # Errors
    /// Fails when there is no such device; the error lists those that there are.
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

    /// Returns the path of the device.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/dev/infiniband/umad{}", self.number)
    }

    /// Returns true when the port's link is up: somebody can be managed through it.
    ///
    /// # Errors
    /// Fails when the file of its state is missing or says something unexpected.
    pub fn is_linked(&self) -> Result<bool, UmadError> {
        // Such as `4: ACTIVE`; 1 is down.
        let path = format!("{CLASS}/{}/ports/{}/state", self.name, self.port);
        let text = read(&path)?;
        let number = text.split(':').next().and_then(|number| number.trim().parse::<u8>().ok());
        number.map(|state| state > 1).ok_or_else(|| unexpected(&path, &text, "a state"))
    }

    /// Returns true for a port of InfiniBand: others, such as those of RoCE, have no subnet. Where nobody says it is one.
    #[must_use]
    pub fn is_infiniband(&self) -> bool {
        let path = format!("{CLASS}/{}/ports/{}/link_layer", self.name, self.port);
        read(&path).map_or(true, |layer| layer == "InfiniBand")
    }

    /// Returns the path of the device by which the duty of a subnet manager is taken.
    pub(super) fn duty_path(&self) -> Result<String, UmadError> {
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
        // The kernel numbers both alike.
        Ok(format!("/dev/infiniband/issm{}", self.number))
    }

    /// Reads what is known of the port now.
    ///
    /// # Errors
    /// Fails when a file is missing or says something unexpected.
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

/// Reads a number, decimal or with 0x in front.
fn number_in(path: &str) -> Result<u32, UmadError> {
    let text = read(path)?;
    let number = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| unexpected(path, &text, "a number"))
}

/// Reads groups of 16 bits with colons between.
fn groups(path: &str, count: usize) -> Result<u128, UmadError> {
    let text = read(path)?;
    let groups: Result<Vec<u16>, _> =
        text.split(':').map(|group| u16::from_str_radix(group, 16)).collect();
    match groups {
        Ok(groups) if groups.len() == count => {
            Ok(groups.iter().fold(0, |sum, &group| sum << 16 | u128::from(group)))
        }
        _ => Err(unexpected(path, &text, "hexadecimal groups with colons between")),
    }
}

fn unexpected(path: &str, found: &str, expected: &'static str) -> UmadError {
    UmadError::Content { path: path.to_owned(), found: found.to_owned(), expected }
}

/// Reads a short file without the white space at its ends.
fn read(path: &str) -> Result<String, UmadError> {
    let failed = |source| UmadError::Io { doing: "reading", path: path.to_owned(), source };
    let file = super::file::File::open(Path::new(path), libc::O_RDONLY).map_err(failed)?;
    let mut bytes = [0; 4096];
    let length = file.read(&mut bytes).map_err(failed)?;
    Ok(String::from_utf8_lossy(&bytes[..length]).trim().to_owned())
}

/// Returns a path for the C library.
pub(super) fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_encoded_bytes())?)
}
