//! Settings of the ACM service from its configuration files.

use std::fs;
use std::io::{self, BufReader, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use ib_acm::config::addresses::AddressFile;
use ib_acm::config::hosts::HostFile;
use ib_acm::config::options::{AddressPreload, LogFile, Options, RoutePreload};
use ib_acm::config::routes::Routes;
use ib_acm::config::{Parsed, Warning};
use ib_acm::{PortState, ServiceConfig};
use ib_types::{Gid, Lid, PKey};
use ib_wire::mad::sa::{PathRecord, Selector};
use ib_wire::mad::sm::MtuCode;

use super::config::{AcmConfig, DEFAULT_DIRECTORY};
use crate::error::DaemonError;
use crate::log::STDERR;

/// Settings from the configuration files, and warnings about these files.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) options: Options,
    pub(super) config: ServiceConfig,
    /// Warnings about the configuration files.
    pub(super) warnings: Vec<String>,
}

/// Inode, mode, length and change time of a file, by which the service detects that the file was replaced or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileVersion {
    inode: u64,
    mode: u32,
    length: u64,
    changed: (i64, i64),
}

impl Settings {
    /// Reads the configuration files. Default files may be absent; configured ones must exist.
    pub(super) fn read(args: &AcmConfig) -> Result<Self, DaemonError> {
        if !args.config.is_dir() && args.config != Path::new(DEFAULT_DIRECTORY) {
            let directory = args.config.display();
            return Err(DaemonError::Failed(format!("--config: {directory} is not a directory")));
        }
        let mut warnings = Vec::new();
        let mut note = |path: &Path, strange: &[Warning], more: usize| {
            let file = path.display().to_string();
            warnings.extend(strange.iter().map(|warning| warning.at(&file).to_string()));
            if more > 0 {
                warnings.push(format!("{file}: {more} more lines like these"));
            }
        };
        let usual = |names: [&str; 2]| names.map(|name| args.config.join(name));
        let files = usual(["ibacm_opts.cfg", "acm_opts.cfg"]);
        let options = match one_of(args.options.as_deref(), &files)? {
            None => Options::default(),
            Some((path, bytes)) => {
                let name = path.display().to_string();
                let parsed = Options::read(&name, &bytes).map_err(DaemonError::failed)?;
                note(&path, &parsed.warnings, parsed.more_warnings);
                parsed.value
            }
        };
        let files = usual(["ibacm_addr.cfg", "acm_addr.cfg"]);
        let addresses = match one_of(args.addresses.as_deref(), &files)? {
            None => AddressFile::default(),
            Some((path, bytes)) => {
                let Parsed { value, warnings, more_warnings } = AddressFile::read(&bytes);
                note(&path, &warnings, more_warnings);
                value
            }
        };
        let hosts = match options.addr_preload {
            AddressPreload::None => HostFile::default(),
            AddressPreload::AcmHosts => {
                let path = PathBuf::from(options.addr_data_file.as_str());
                let bytes = trusted(&path)?;
                let Parsed { value, warnings, more_warnings } = HostFile::read(&bytes);
                note(&path, &warnings, more_warnings);
                value
            }
        };
        let config = ServiceConfig::from_files(&options, &addresses, &hosts);
        Ok(Self { options, config, warnings })
    }

    /// Returns the log file; `None` if the service does not log.
    pub(super) fn log_file(&self, args: &AcmConfig) -> Option<PathBuf> {
        let is_default = self.options.log_file == Options::default().log_file;
        match (&args.log, &self.options.log_file) {
            (Some(path), _) => Some(path.clone()),
            // The default log file, which is ibacm's, is used only with ibacm's default socket.
            _ if args.socket.is_some() && !args.names_log() && is_default => None,
            (None, LogFile::Stdout) => Some("stdout".into()),
            (None, LogFile::Stderr) => Some(STDERR.into()),
            (None, LogFile::File(path)) => Some(path.as_str().into()),
        }
    }

    /// Returns the lock file that prevents a second service. The default lock file is used only with the default
    /// sockets.
    pub(super) fn lock_file(&self, args: &AcmConfig) -> Option<PathBuf> {
        let is_default = self.options.lock_file == Options::default().lock_file;
        (args.has_default_sockets() || !is_default).then(|| self.options.lock_file.as_str().into())
    }

    /// Returns warnings about changed options that take effect only after a restart.
    pub(super) fn restart_warnings(&self, new: &Self, args: &AcmConfig) -> Vec<String> {
        let (old, now) = (&self.options, &new.options);
        let shown =
            |path: Option<PathBuf>| path.map_or("none".to_owned(), |it| it.display().to_string());
        let log = |settings: &Self| shown(settings.log_file(args));
        let lock = |settings: &Self| shown(settings.lock_file(args));
        let mut all = vec![
            ("log_file", log(self), log(new)),
            ("lock_file", lock(self), lock(new)),
            ("recv_depth", old.recv_depth.to_string(), now.recv_depth.to_string()),
        ];
        // These options select the sockets and their published paths. They have no effect if the command line specifies
        // sockets.
        if args.has_default_sockets() {
            let only_kernel = |it: &Options| it.acme_plus_kernel_only.to_string();
            all.extend([
                ("server_mode", format!("{:?}", old.server_mode), format!("{:?}", now.server_mode)),
                ("server_port", old.server_port.to_string(), now.server_port.to_string()),
                ("acme_plus_kernel_only", only_kernel(old), only_kernel(now)),
            ]);
        }
        let changed = all.into_iter().filter(|(_, old, now)| old != now);
        let line = |(key, old, now)| {
            format!("{key}: found {now}, the service uses {old} until it is restarted")
        };
        changed.map(line).collect()
    }

    /// Returns a warning about configured options that only ibacm supports; `None` if there are none.
    pub(super) fn without_effect(&self) -> Option<String> {
        let options = &self.options;
        let given = [
            ("umad_debug_level", options.umad_debug_level != 0),
            ("provider_lib_path", options.provider_lib_path.is_some()),
            ("provider", !options.provider.is_empty()),
        ];
        let given = given.into_iter().filter(|&(_, is_given)| is_given).map(|(key, _)| key);
        let given: Vec<&str> = given.collect();
        let why =
            "neither libumad nor provider libraries are loaded, since the protocol is built in";
        (!given.is_empty()).then(|| format!("without effect: {}: {why}", given.join(", ")))
    }

    /// Returns true if routes are preloaded from a file.
    pub(super) fn has_routes(&self) -> bool {
        self.options.route_preload != RoutePreload::None
    }

    /// Returns the version of the route file; `None` if the service preloads no routes or the file does not exist.
    pub(super) fn routes_version(&self) -> Option<FileVersion> {
        let file = self.options.route_data_file.as_str();
        let it = fs::metadata(file).ok().filter(|_| self.has_routes())?;
        let changed = (it.ctime(), it.ctime_nsec());
        Some(FileVersion { inode: it.ino(), mode: it.mode(), length: it.len(), changed })
    }

    /// Returns the path records of the routes to preload for a port, and warnings about the route file.
    pub(super) fn paths(
        &self,
        port: &PortState,
    ) -> Result<(Vec<PathRecord>, Vec<String>), DaemonError> {
        if !self.has_routes() {
            return Ok((Vec::new(), Vec::new()));
        }
        let path = Path::new(self.options.route_data_file.as_str());
        let name = path.display().to_string();
        let file = open_trusted(path)?;
        let own = &port.link;
        let Ok(lid) = Lid::unicast(own.lid.into()) else { return Ok((Vec::new(), Vec::new())) };
        let read = Routes::read(&name, BufReader::new(file), own.port_guid, lid);
        let parsed = read.map_err(DaemonError::failed)?;
        let mut warnings: Vec<String> =
            parsed.warnings.iter().map(|it| it.at(&name).to_string()).collect();
        let value = parsed.value;
        if !value.found {
            warnings
                .push(format!("{name}: no routes of port {} with LID {}", own.port_guid, own.lid));
        }
        let path_of = |route: &ib_acm::config::routes::Route| {
            let (_, guid) = value.ports.iter().find(|(lid, _)| *lid == route.dlid)?;
            Some(PathRecord {
                dgid: Gid::new(own.gid_prefix, *guid),
                sgid: own.gid(),
                dlid: route.dlid.get(),
                slid: own.lid,
                reversible: true,
                numb_path: 1,
                p_key: PKey::DEFAULT,
                sl: route.sl.get(),
                mtu_selector: Selector::EXACTLY,
                mtu: MtuCode(route.mtu.code()),
                rate_selector: Selector::EXACTLY,
                rate: route.rate,
                life_time_selector: Selector::EXACTLY,
                ..PathRecord::zeroed()
            })
        };
        Ok((value.routes.iter().filter_map(path_of).collect(), warnings))
    }
}

/// Reads the configured file, or else the first default file that exists.
fn one_of(
    named: Option<&Path>,
    usual: &[PathBuf],
) -> Result<Option<(PathBuf, Vec<u8>)>, DaemonError> {
    if let Some(path) = named {
        return Ok(Some((path.to_owned(), trusted(path)?)));
    }
    for path in usual {
        if path.exists() {
            return Ok(Some((path.clone(), trusted(path)?)));
        }
    }
    Ok(None)
}

/// Reads a file; fails if users other than its owner and its group can write it.
fn trusted(path: &Path) -> Result<Vec<u8>, DaemonError> {
    let failed = |error: io::Error| DaemonError::Failed(format!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    open_trusted(path)?.read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Opens a file; fails if users other than its owner and its group can write it.
fn open_trusted(path: &Path) -> Result<fs::File, DaemonError> {
    let failed = |error: io::Error| DaemonError::Failed(format!("{}: {error}", path.display()));
    let file = fs::File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode();
    if mode & 0o002 != 0 {
        return Err(DaemonError::Failed(format!(
            "{}: found mode {:03o}, expected a file that only its owner and group can write",
            path.display(),
            mode & 0o777
        )));
    }
    Ok(file)
}
