//! Files under `/sys/class/infiniband` and `/sys/class/infiniband_mad`, in a private directory that is removed when the
//! process exits.
//!
//! When a program uses a file in this directory, the library queries the variable attributes (LID, state, P_Keys) from
//! the simulator. It then rewrites the files of these attributes. It does both at most every 5 ms.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ib_ibsim::client::{Client, ClientError};
use ib_ibsim::message::kind;
use ib_umad::abi::ABI_VERSION;
use ib_wire::mad::sm::{NodeInfo, NodeType, PortInfo};

pub(crate) mod text;

/// Name of the device, as in Debian's libumad2sim.
pub(crate) const DEVICE: &str = "ibsim0";

/// Minimum interval between queries to the simulator.
const FRESH: Duration = Duration::from_millis(5);

/// Prefix of the name of a private directory. The PID of its process and a number follow.
const PREFIX: &str = "ib-preload-";

/// The library's private directory, and the sysfs and device files in it.
pub(crate) struct Tree {
    root: PathBuf,
    /// Contents of all written files, by path relative to `root`.
    written: BTreeMap<String, String>,
    port: u8,
    /// Time of the last query to the simulator.
    refreshed: Option<Instant>,
}

impl Tree {
    /// Creates the private directory, and writes all files into it.
    ///
    /// # Errors
    /// Fails if the directory or a file cannot be written, or if the simulator does not respond.
    pub(crate) fn create(client: &Client) -> io::Result<Self> {
        let mut tree = Self::empty()?;
        tree.write_device(client).map_err(io::Error::other)??;
        tree.refresh(client)?;
        Ok(tree)
    }

    /// Creates the private directory without any files.
    ///
    /// # Errors
    /// Fails if the directory cannot be created.
    pub(crate) fn empty() -> io::Result<Self> {
        let base = std::env::temp_dir();
        remove_left_over(&base);
        let root = make_directory(&base)?;
        Ok(Self { root, written: BTreeMap::new(), port: 0, refreshed: None })
    }

    /// Returns true if the file with this path was written.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.written.contains_key(path)
    }

    /// Returns the path of the private directory.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Removes the private directory.
    pub(crate) fn remove(&self) {
        // The process is exiting, so an error cannot be handled.
        let _ = fs::remove_dir_all(&self.root);
    }

    /// Writes the files with constant content.
    fn write_device(&mut self, client: &Client) -> Result<io::Result<()>, ClientError> {
        let node = client.control(kind::GET_NODE_INFO, &[])?.payload;
        let node =
            NodeInfo::parse(node.first_chunk().expect("the payload is longer than a NodeInfo"));
        let vendor = client.control(kind::GET_VENDOR, &[])?.payload;
        let port = PortInfo::parse(&client.control(kind::GET_PORT_INFO, &[])?.payload);
        self.port = port.local_port;
        let word = |at: usize| {
            u32::from_ne_bytes(*vendor[at..].first_chunk().expect("the payload has 64 bytes"))
        };
        let firmware =
            u64::from_ne_bytes(*vendor[16..].first_chunk().expect("the payload has 64 bytes"));
        let kind = match node.node_type {
            NodeType::SWITCH => "2: SWITCH",
            NodeType::ROUTER => "3: ROUTER",
            _ => "1: CA",
        };
        let port = port.local_port.to_string();
        let files = [
            ("node_type", kind.to_owned()),
            ("node_guid", text::guid(node.node_guid.0)),
            ("sys_image_guid", text::guid(node.system_image_guid.0)),
            ("node_desc", client.node().to_owned()),
            ("fw_ver", format!("{firmware:x}")),
            ("hw_rev", format!("{:x}", word(8))),
            ("hca_type", "simulator".to_owned()),
        ];
        let mad = "sys/class/infiniband_mad";
        let write = || -> io::Result<()> {
            for (name, content) in files {
                self.write(format!("sys/class/infiniband/{DEVICE}/{name}"), content)?;
            }
            self.write(format!("{mad}/abi_version"), ABI_VERSION.to_string())?;
            for device in ["umad0", "issm0"] {
                self.write(format!("{mad}/{device}/ibdev"), DEVICE.to_owned())?;
                self.write(format!("{mad}/{device}/port"), port.clone())?;
                // Programs check that the device files exist, so empty files are written.
                self.write(format!("dev/infiniband/{device}"), String::new())?;
            }
            Ok(())
        };
        Ok(write())
    }

    /// Writes the files with variable content, unless they were written in the last 5 ms. A program
    /// that reads the attributes of a port opens more than forty files in succession, and each of
    /// them would cause queries.
    ///
    /// # Errors
    /// Fails if the simulator does not respond, or if a file cannot be written.
    pub(crate) fn refresh(&mut self, client: &Client) -> io::Result<()> {
        if self.refreshed.is_some_and(|refreshed| refreshed.elapsed() < FRESH) {
            return Ok(());
        }
        let query = |kind| client.control(kind, &[]).map_err(io::Error::other);
        let info = PortInfo::parse(&query(kind::GET_PORT_INFO)?.payload);
        let (prefix, guid) = client.gid().map_err(io::Error::other)?;
        let gid = (u128::from(prefix) << 64 | u128::from(guid.0)).to_be_bytes();
        let p_keys = query(kind::GET_PKEYS)?.payload;
        let port = format!("sys/class/infiniband/{DEVICE}/ports/{}", self.port);
        for (name, content) in text::port_files(&info, gid) {
            self.write(format!("{port}/{name}"), content)?;
        }
        for (index, key) in p_keys.chunks_exact(2).enumerate() {
            let key = u16::from_be_bytes([key[0], key[1]]);
            self.write(format!("{port}/pkeys/{index}"), format!("0x{key:04x}"))?;
        }
        self.refreshed = Some(Instant::now());
        Ok(())
    }

    /// Writes a file if its content has changed. The new file replaces the old one; programs that
    /// have the old file open can still read it.
    pub(crate) fn write(&mut self, path: String, content: String) -> io::Result<()> {
        if self.written.get(&path) == Some(&content) {
            return Ok(());
        }
        let whole = self.root.join(&path);
        fs::create_dir_all(whole.parent().expect("every file is in a directory"))?;
        let new = self.root.join("new");
        fs::write(&new, format!("{content}\n"))?;
        fs::rename(&new, &whole)?;
        self.written.insert(path, content);
        Ok(())
    }
}

/// Creates a directory that only its owner can enter.
fn make_directory(base: &Path) -> io::Result<PathBuf> {
    let process = std::process::id();
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for number in 0..1_000 {
        let path = base.join(format!("{PREFIX}{process}-{number}"));
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// Removes the directories that exited processes of the same user have left behind.
fn remove_left_over(base: &Path) {
    // SAFETY: the call only returns a number.
    let user = unsafe { libc::geteuid() };
    let Ok(entries) = fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let process = process.and_then(|rest| rest.split_once('-')?.0.parse::<i32>().ok());
        let Some(process) = process.filter(|&process| process > 0) else { continue };
        let own = fs::symlink_metadata(entry.path())
            .is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == user);
        if own && !is_running(process) {
            // Errors are ignored, because another process may remove the directory at the same time.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_running(process: i32) -> bool {
    // SAFETY: signal 0 is not sent; the call only checks that the process exists.
    let exists = unsafe { libc::kill(process, 0) } == 0;
    exists || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Returns a path as a C string.
pub(crate) fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("a path of a directory has no zero byte")
}

#[cfg(test)]
mod tests;
