//! Opens and closes a remote device.

use std::path::Path;
use std::time::Duration;

use ib_block::Geometry;
use ib_os::clock;
use ib_os::signals::{Order, Orders};
use ib_rnbd::{ReadMode, RemoteConfig, RemoteEvent};
use ib_rtrs::{ClientConfig, ClientEvent, PathId, PathSpec, PathState, SharedKey};
use ib_storage::rtrs::{Devices, RemoteDisk};
use ib_types::Instant;
use ib_wire::rnbd::AccessMode;

use super::config::RemoteDeviceConfig;
use super::control;
use super::paths::PathSources;
use crate::error::DaemonError;
use crate::input;
use crate::message::{note, say};
use crate::own_capture::Tracing;

/// How the caller uses a remote device.
pub struct Use {
    /// True if the device is opened for writing.
    pub writes: bool,
    /// Maximum number of outstanding requests to the device.
    pub depth: usize,
    /// How the data of reads is delivered.
    pub reads: ReadMode,
}

/// An open device, and the captures of its HCAs.
pub struct Opened {
    /// The device.
    pub disk: RemoteDisk,
    /// Geometry of the device.
    pub geometry: Geometry,
    tracing: Tracing<Devices>,
}

/// Connects to the server and waits until the device is open.
///
/// # Errors
/// Fails if a path cannot be opened, or if the device is not open within the configured time.
pub fn open(
    args: &RemoteDeviceConfig,
    how: &Use,
    orders: &mut Orders,
) -> Result<Opened, DaemonError> {
    let control = control::open(&args.control)?;
    let (mut devices, mut sources) = (Devices::new(), PathSources::new(args));
    let paths: Result<Vec<PathSpec>, DaemonError> =
        args.path.iter().map(|path| sources.path(&mut devices, path)).collect();
    let paths = paths?;
    let captures = devices.captures().map_err(DaemonError::failed)?;
    let tracing = Tracing::start(args.capture.as_ref(), captures, &mut devices)?;
    let mode = if how.writes { AccessMode::READ_WRITE } else { AccessMode::READ_ONLY };
    let config = RemoteConfig {
        session: session(args)?,
        depth: how.depth,
        reads: how.reads,
        trusts_cache: args.trust_cache,
    };
    let failed = |error| DaemonError::failed(format_args!("{}: {error}", args.device));
    let mut disk = RemoteDisk::open(devices, &paths, config, &args.device, mode).map_err(failed)?;
    if let Some(control) = control {
        disk.set_control(control, control::path_finder(sources));
    }
    match until_open(args, &mut disk, orders) {
        Ok(geometry) => Ok(Opened { disk, geometry, tracing }),
        Err(why) => {
            // Closes the session, because the server would otherwise notice the disconnect only after a timeout.
            close((disk, tracing)).ok();
            Err(why)
        }
    }
}

/// Time between two attempts to open the device while another client has it open.
const RETRY: Duration = Duration::from_millis(500);

/// Waits until the device is open. Retries if the server refuses it temporarily: the session of a killed client keeps
/// the device open until the server closes that session.
fn until_open(
    args: &RemoteDeviceConfig,
    disk: &mut RemoteDisk,
    orders: &mut Orders,
) -> Result<Geometry, DaemonError> {
    let failed = |error| DaemonError::failed(format_args!("{}: {error}", args.device));
    let end = clock::now() + args.wait;
    let (mut why, mut again) = (None, Instant::NEVER);
    loop {
        if clock::now() >= again {
            again = Instant::NEVER;
            disk.retry_open();
        }
        if orders.take() == Some(Order::End) {
            return Err(DaemonError::Interrupted(format!(
                "{}: interrupted before it was open",
                args.device
            )));
        }
        disk.progress().map_err(failed)?;
        while let Some(event) = disk.poll_event() {
            match event {
                RemoteEvent::Opened(_, geometry) => return Ok(geometry),
                RemoteEvent::Refused(_, error) if error.is_temporary() => {
                    let failure = error.to_string();
                    if why.as_ref() != Some(&failure) {
                        note!("{failure}; retrying");
                    }
                    why = Some(failure);
                    again = clock::now() + RETRY;
                }
                RemoteEvent::Refused(_, error) => return Err(DaemonError::failed(error)),
                RemoteEvent::Session(ClientEvent::PathDown { path, why: reason, retried }) => {
                    let failure = format!("{}: {reason}", path_name(disk, path));
                    if !retried && !may_connect(disk) {
                        return Err(DaemonError::Failed(failure));
                    }
                    if why.as_ref() != Some(&failure) {
                        note!("{failure}{}", if retried { "; retrying" } else { "" });
                    }
                    why = Some(failure);
                }
                RemoteEvent::Session(_) => {}
            }
        }
        if clock::now() >= end {
            let why = why.unwrap_or_else(|| "the server does not respond".to_owned());
            return Err(DaemonError::Failed(format!(
                "{}: not open after {} s: {why}",
                args.device,
                args.wait.as_secs_f64()
            )));
        }
        disk.wait(end.min(clock::now() + Duration::from_millis(200))).map_err(failed)?;
    }
}

/// Returns true if a path is connected, or may become connected without a command of the user.
fn may_connect(disk: &RemoteDisk) -> bool {
    let rtrs = disk.rtrs();
    rtrs.paths().any(|path| {
        let state = rtrs.path_state(path);
        matches!(state, Some(PathState::Connecting | PathState::Connected | PathState::Waiting))
    })
}

/// Returns the addresses of a path, for messages.
fn path_name(disk: &RemoteDisk, path: PathId) -> String {
    let spec = disk.rtrs().spec(path);
    spec.map_or_else(|| "a removed path".to_owned(), |spec| spec.address.to_string())
}

/// Prints the events of the paths and of the device; returns false if the server has refused to reopen the
/// device. `last_failure` is the last printed failure of a path. While the same failure repeats, it is not printed
/// again.
pub fn print_events(disk: &mut RemoteDisk, last_failure: &mut Option<String>) -> bool {
    while let Some(event) = disk.poll_event() {
        match event {
            RemoteEvent::Refused(_, why) => {
                say!("{why}");
                return false;
            }
            RemoteEvent::Opened(..) => note!("the device is open again"),
            RemoteEvent::Session(ClientEvent::PathDown { path, why, retried }) => {
                let then = if retried { "; retrying" } else { "" };
                let failure = format!("{}: {why}{then}", path_name(disk, path));
                if last_failure.as_ref() != Some(&failure) {
                    note!("{failure}");
                }
                *last_failure = Some(failure);
            }
            RemoteEvent::Session(ClientEvent::PathUp(path)) => {
                *last_failure = None;
                note!("{}: connected", path_name(disk, path));
            }
            RemoteEvent::Session(ClientEvent::Lost) => note!("no path is connected; requests wait"),
            RemoteEvent::Session(_) => {}
        }
    }
    true
}

/// Maximum size of the key file in bytes.
const MAX_KEY_FILE: u64 = 4096;

/// Reads the key file, if configured.
pub(super) fn key(path: Option<&Path>) -> Result<Option<SharedKey>, DaemonError> {
    let Some(path) = path else { return Ok(None) };
    let failed =
        |error: &dyn std::fmt::Display| DaemonError::Failed(format!("{}: {error}", path.display()));
    let bytes = input::read(path, MAX_KEY_FILE).map_err(|error| failed(&error))?;
    let key = bytes.trim_ascii_end();
    if key.len() < 16 {
        return Err(failed(&format_args!("a key of {} bytes: expected at least 16", key.len())));
    }
    Ok(Some(SharedKey::new(key.to_vec())))
}

fn session(args: &RemoteDeviceConfig) -> Result<ClientConfig, DaemonError> {
    let name = args.session.clone().unwrap_or_else(|| {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        // Dots and slashes in the host name are replaced, since the name of a session must not contain them.
        let host = host.trim().replace(['.', '/'], "-");
        format!("ibfabric-{host}-{}", std::process::id())
    });
    let processors = ib_os::cpu::count();
    // The first connection of a path carries few data requests, so one connection more than there are processors is
    // opened.
    let usual = u64::from(processors).min(4095) + 1;
    let config = ClientConfig {
        processors,
        connections: args.connections.unwrap_or(usual) as u16,
        policy: args.policy,
        need_invalidation: args.need_invalidation,
        key: key(args.link.key_file.as_deref())?,
        reconnect_delay: Duration::from_millis(args.reconnect_delay),
        ..ClientConfig::new(name)
    };
    config.check_name().map_err(DaemonError::failed)?;
    Ok(config)
}

impl Opened {
    /// Closes the session, and waits a limited time for the server's confirmation. Stops the capture, if one was
    /// configured.
    ///
    /// # Errors
    /// Fails if the HCAs fail.
    pub fn close(self) -> Result<(), DaemonError> {
        close((self.disk, self.tracing))
    }
}

fn close((mut disk, mut tracing): (RemoteDisk, Tracing<Devices>)) -> Result<(), DaemonError> {
    let closed = close_session(&mut disk);
    tracing.finish(disk.session().1);
    closed
}

fn close_session(disk: &mut RemoteDisk) -> Result<(), DaemonError> {
    let failed = |error| DaemonError::failed(format_args!("cannot close the session: {error}"));
    let (rtrs, devices) = disk.session();
    rtrs.close(clock::now(), devices);
    let end: Instant = clock::now() + Duration::from_secs(2);
    loop {
        disk.progress().map_err(failed)?;
        while let Some(event) = disk.poll_event() {
            if event == RemoteEvent::Session(ClientEvent::Closed) {
                return Ok(());
            }
        }
        if clock::now() >= end {
            return Ok(());
        }
        disk.wait(end).map_err(failed)?;
    }
}
