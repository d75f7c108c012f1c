//! Configuration of the SM, with the keys of OpenSM's configuration file.
//!
//! The configuration file, the options of `ibfabric sm` and OpenSM's command line all set a `Field` of [`Settings`].
//! The field parses and formats the value.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ib_routing::EngineList;
use ib_sm::{PartEnforce, Partitions, PortQos, QosConfig, SmConfig};
use ib_types::Lmc;

use crate::error::DaemonError;
use crate::input::{self, number};
use crate::log::{ERROR, Log};
use crate::routing_files::{self, EngineFiles};

mod keys;

pub(crate) use keys::{IGNORED, KEYS, REFUSED};

/// Default log levels: errors and events.
pub(crate) const LOG_DEFAULT: u8 = 0x03;

/// All settings of an SM, except whether its port belongs to this machine or to a simulated fabric.
#[derive(Clone, Debug)]
pub struct Settings {
    /// A part of the SM's configuration. [`Settings::config`] adds the values of the fields below, such as the LMC.
    pub config: SmConfig,
    /// Options of the routing engines, with the paths of their input files.
    pub engines: EngineFiles,
    /// GUID of the SM's port; 0 for any port.
    pub guid: u64,
    pub(crate) lmc: u8,
    pub(crate) sm_sl: u8,
    pub(crate) sweep_interval: u32,
    /// Timeout of a MAD in milliseconds.
    pub transaction_timeout: u32,
    pub(crate) transaction_retries: u32,
    pub(crate) sminfo_polling_timeout: u32,
    pub(crate) max_wire_smps: u32,
    /// The partition file.
    pub partition_config_file: Option<PathBuf>,
    /// True if cached LIDs remain valid after another SM was the master.
    pub honor_guid2lid: bool,
    /// True if the process runs in the background.
    pub daemon: bool,
    /// True if the SM starts in the state NOT-ACTIVE.
    pub inactive: bool,
    /// Enabled log levels, as bits.
    pub log_flags: u8,
    /// The log file.
    pub log_file: Option<PathBuf>,
    /// Size in MB at which the log file is truncated; 0 for no limit.
    pub log_max_size: u32,
    /// True if an existing log file is appended to instead of truncated.
    pub accum_log_file: bool,
    /// The directory of dump files.
    pub dump_files_dir: Option<PathBuf>,
    /// The file that maps node GUIDs to names.
    pub node_name_map: Option<PathBuf>,
    pub(crate) qos: bool,
    /// VL settings of all ports, followed by those of CAs, switch ports 0, external switch ports and routers. The
    /// settings of a port type override those of all ports.
    pub(crate) lanes: [Lanes; 5],
    /// Where the value of each key comes from: an option, or a line of the configuration file.
    pub origins: BTreeMap<&'static str, String>,
}

/// The values of the `qos_` keys for one port type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lanes {
    pub(crate) max_vls: u8,
    pub(crate) high_limit: HighLimit,
    pub(crate) vlarb_high: Option<String>,
    pub(crate) vlarb_low: Option<String>,
    pub(crate) sl2vl: Option<String>,
}

/// Limit of high-priority VL arbitration. `None`, which is written as -1, selects the limit for all ports. If that is
/// `None`, the default applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HighLimit(Option<u8>);

impl Default for Settings {
    /// Returns OpenSM's defaults, except that `max_wire_smps` is 64.
    fn default() -> Self {
        Self {
            config: SmConfig::default(),
            engines: EngineFiles::default(),
            guid: 0,
            lmc: 0,
            sm_sl: 0,
            sweep_interval: 10,
            transaction_timeout: 200,
            transaction_retries: 3,
            sminfo_polling_timeout: 10_000,
            max_wire_smps: 64,
            partition_config_file: None,
            honor_guid2lid: false,
            daemon: false,
            inactive: false,
            log_flags: LOG_DEFAULT,
            log_file: None,
            log_max_size: 0,
            accum_log_file: true,
            dump_files_dir: None,
            node_name_map: None,
            qos: false,
            lanes: Default::default(),
            origins: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// Sets the value of a key of the configuration file.
    ///
    /// # Errors
    /// Fails if the value is invalid. The error names the found and the expected value.
    ///
    /// # Panics
    /// Panics if there is no such key.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let key = KEYS.iter().find(|known| known.name == key).expect("the key is in the table");
        (key.field)(self).read(value)
    }

    /// Sets the value of a key from a command line argument. Paths may contain bytes that are not UTF-8.
    ///
    /// # Errors
    /// Fails if the value is invalid. The error names the found and the expected value.
    ///
    /// # Panics
    /// Panics if there is no such key.
    pub fn set_argument(&mut self, key: &str, value: &OsStr) -> Result<(), String> {
        let key = KEYS.iter().find(|known| known.name == key).expect("the key is in the table");
        match (key.field)(self) {
            Field::File(path) => {
                *path = Some(value.into());
                Ok(())
            }
            field => field.read(value.to_str().ok_or("found bytes that are not UTF-8")?),
        }
    }

    /// Stores which option or configuration line has set a key.
    pub fn set_by(&mut self, key: &'static str, origin: String) {
        self.origins.insert(key, origin);
    }

    /// Returns which option or configuration line has set a key, for messages. If none has, returns the key itself.
    pub fn origin<'k>(&'k self, key: &'k str) -> &'k str {
        self.origins.get(key).map_or(key, String::as_str)
    }

    /// Reads the file that the value of a key names.
    fn read(&self, key: &str, path: &Path) -> Result<Vec<u8>, DaemonError> {
        let named = |failure: DaemonError| {
            DaemonError::Failed(format!("{}: {}", self.origin(key), failure.into_message()))
        };
        input::bytes(path).map_err(named)
    }

    /// Reads the partition file, if one is configured.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is invalid.
    pub fn partitions(&self) -> Result<Partitions, DaemonError> {
        const KEY: &str = "partition_config_file";
        let Some(path) = &self.partition_config_file else { return Ok(Partitions::default()) };
        let partitions = Partitions::read(&path.display().to_string(), &self.read(KEY, path)?);
        partitions.map_err(|error| DaemonError::Failed(format!("{}: {error}", self.origin(KEY))))
    }

    /// Checks that the configured input files are readable, so that errors are reported at the start. The SM opens the
    /// files of the routing engines only when it computes a plan.
    ///
    /// # Errors
    /// Fails if a file cannot be read. The error names the option and the file.
    fn check_files(&self) -> Result<(), DaemonError> {
        /// Keys of paths that are not checked here. [`Settings::partitions`] reads the partition file. The SM only
        /// writes the log file and the dump files.
        const OTHERS: [&str; 3] = ["partition_config_file", "log_file", "dump_files_dir"];
        let mut own = self.clone();
        for key in KEYS.iter().filter(|key| !OTHERS.contains(&key.name)) {
            if let Field::File(Some(path)) = (key.field)(&mut own) {
                self.read(key.name, path)?;
            }
        }
        let tables = self.engines.keep_lfts.as_deref();
        tables.map_or(Ok(()), |path| self.read("--keep-lfts", path).map(drop))
    }

    /// Returns the SM's configuration. For each plan, the SM reads the files of the routing engines again. It logs a
    /// repeated warning about these files only once.
    ///
    /// # Errors
    /// Fails if a configured file cannot be read or is invalid.
    pub fn config(&self, log: &Log) -> Result<SmConfig, DaemonError> {
        self.check_files()?;
        let mut config = self.config.clone();
        config.partitions = self.partitions()?;
        config.max_smps = match self.max_wire_smps {
            // In OpenSM, 0 means no limit. Here it selects the key's maximum, 65,536 outstanding SMPs.
            0 => 1 << 16,
            window => window as usize,
        };
        config.sweep_interval =
            (self.sweep_interval > 0).then(|| Duration::from_secs(self.sweep_interval.into()));
        config.sminfo_polling_timeout = Duration::from_millis(self.sminfo_polling_timeout.into());
        config.timing.timeout = Duration::from_millis(self.transaction_timeout.into());
        config.timing.retries = self.transaction_retries;
        config.routing.lids.lmc = Lmc::new(self.lmc).expect("the field accepts only valid LMCs");
        config.qos = self.qos.then(|| self.qos_config());
        let engines = self.engines.clone();
        let (log, logged) = (log.clone(), Mutex::new(BTreeSet::new()));
        let warn = move |text: String| {
            if logged.lock().unwrap_or_else(PoisonError::into_inner).insert(text.clone()) {
                log.line(ERROR, &text);
            }
        };
        config.routing.options = Some(Arc::new(move |subnet| {
            routing_files::read(subnet, &engines, &warn).map_err(DaemonError::into_message)
        }));
        Ok(config)
    }

    fn qos_config(&self) -> QosConfig {
        let [all, ca, switch0, switch_external, router] = &self.lanes;
        let of = |own: &Lanes| {
            let mut qos = PortQos::default();
            let entries =
                |text: &str| PortQos::parse_arbitration(text).expect("the field was validated");
            for lanes in [all, own] {
                if lanes.max_vls > 0 {
                    qos.max_vls = lanes.max_vls;
                }
                if let Some(limit) = lanes.high_limit.0 {
                    qos.high_limit = limit;
                }
                if let Some(text) = &lanes.vlarb_high {
                    qos.vlarb_high = entries(text);
                }
                if let Some(text) = &lanes.vlarb_low {
                    qos.vlarb_low = entries(text);
                }
                if let Some(text) = &lanes.sl2vl {
                    qos.sl2vl = PortQos::parse_sl_to_vl(text).expect("the field was validated");
                }
            }
            qos
        };
        QosConfig {
            ca: of(ca),
            router: of(router),
            switch0: of(switch0),
            switch_external: of(switch_external),
        }
    }
}

/// The field of [`Settings`] that a key sets, with its type and its range. It parses and formats values in the notation
/// of OpenSM's configuration file.
pub(crate) enum Field<'s> {
    /// A boolean that is written as `TRUE` or `FALSE`.
    Switch(&'s mut bool),
    Byte(&'s mut u8, std::ops::RangeInclusive<u8>),
    /// A byte that is written in hexadecimal digits, and its maximum.
    Code(&'s mut u8, u8),
    Short(&'s mut u16),
    Number(&'s mut u32, std::ops::RangeInclusive<u32>),
    /// An optional number for a routing engine, and its maximum.
    Option(&'s mut Option<u64>, u64),
    /// A 64-bit number that is written in hexadecimal digits.
    Long(&'s mut u64),
    File(&'s mut Option<PathBuf>),
    Engines(&'s mut EngineList),
    Enforce(&'s mut PartEnforce),
    HighLimit(&'s mut HighLimit),
    Turns(&'s mut Option<String>),
    Levels(&'s mut Option<String>),
}

/// OpenSM's notation of an unset value.
const NULL: &str = "(null)";

impl Field<'_> {
    /// Parses a value.
    ///
    /// # Errors
    /// Fails if the value is invalid. The error names the found and the expected value.
    pub(crate) fn read(self, text: &str) -> Result<(), String> {
        let found = |expected: &str| format!("found `{text}`, expected {expected}");
        let range = |low: u64, high: u64| {
            let value = number::<u64>(text).filter(|value| (low..=high).contains(value));
            value.ok_or_else(|| found(&numbers(low, high)))
        };
        let given = (text != NULL).then(|| text.to_owned());
        match self {
            Self::Switch(value) => *value = switch(text).ok_or_else(|| found("TRUE or FALSE"))?,
            Self::Byte(value, admitted) => {
                *value = range((*admitted.start()).into(), (*admitted.end()).into())? as u8;
            }
            Self::Code(value, most) => *value = range(0, most.into())? as u8,
            Self::Short(value) => *value = range(0, u16::MAX.into())? as u16,
            Self::Number(value, admitted) => {
                *value = range((*admitted.start()).into(), (*admitted.end()).into())? as u32;
            }
            Self::Option(value, most) => *value = Some(range(0, most)?),
            Self::Long(value) => *value = number(text).ok_or_else(|| found("a 64-bit number"))?,
            Self::File(value) => *value = given.map(PathBuf::from),
            Self::Engines(value) => {
                *value = match given {
                    None => EngineList::default(),
                    Some(text) => text.parse().map_err(|error| format!("{error}"))?,
                };
            }
            Self::Enforce(value) => {
                *value = match text {
                    "both" => PartEnforce::Both,
                    "in" => PartEnforce::In,
                    "out" => PartEnforce::Out,
                    "off" => PartEnforce::Off,
                    _ => return Err(found("both, in, out or off")),
                };
            }
            Self::HighLimit(value) => {
                *value = match text {
                    "-1" => HighLimit(None),
                    _ => HighLimit(Some(range(0, 255).map_err(|_| found("-1 to 255"))? as u8)),
                };
            }
            Self::Turns(value) => {
                given
                    .as_deref()
                    .map(PortQos::parse_arbitration)
                    .transpose()
                    .map_err(|e| e.to_string())?;
                *value = given;
            }
            Self::Levels(value) => {
                given
                    .as_deref()
                    .map(PortQos::parse_sl_to_vl)
                    .transpose()
                    .map_err(|e| e.to_string())?;
                *value = given;
            }
        }
        Ok(())
    }

    /// Returns a description of the values that the field accepts.
    fn takes(&self) -> String {
        match self {
            Self::Switch(_) => "TRUE or FALSE".to_owned(),
            Self::Byte(_, admitted) => {
                numbers((*admitted.start()).into(), (*admitted.end()).into())
            }
            Self::Code(_, most) => numbers(0, (*most).into()),
            Self::Short(_) => numbers(0, u16::MAX.into()),
            Self::Number(_, admitted) => {
                numbers((*admitted.start()).into(), (*admitted.end()).into())
            }
            Self::Option(_, most) => numbers(0, *most),
            Self::Long(_) => "a 64-bit number".to_owned(),
            Self::File(_) => "a path".to_owned(),
            Self::Engines(_) => "names, separated by commas".to_owned(),
            Self::Enforce(_) => "both, in, out or off".to_owned(),
            Self::HighLimit(_) => "-1 to 255".to_owned(),
            Self::Turns(_) => "VL:weight entries, separated by commas".to_owned(),
            Self::Levels(_) => "16 VLs, separated by commas".to_owned(),
        }
    }

    /// Formats the value so that it can be parsed again.
    pub(crate) fn show(&self) -> String {
        let truth = |value: bool| if value { "TRUE" } else { "FALSE" }.to_owned();
        match self {
            Self::Switch(value) => truth(**value),
            Self::Byte(value, _) => value.to_string(),
            Self::Code(value, _) => format!("{value:#04x}"),
            Self::Short(value) => value.to_string(),
            Self::Number(value, _) => value.to_string(),
            Self::Option(value, _) => value.unwrap_or(0).to_string(),
            Self::Long(value) => format!("{value:#018x}"),
            Self::File(value) => match value {
                Some(path) => path.display().to_string(),
                None => NULL.to_owned(),
            },
            Self::Engines(value) if value.is_default() => NULL.to_owned(),
            Self::Engines(value) => value.to_string(),
            Self::Enforce(value) => match value {
                PartEnforce::Both => "both",
                PartEnforce::In => "in",
                PartEnforce::Out => "out",
                PartEnforce::Off => "off",
            }
            .to_owned(),
            Self::HighLimit(value) => value.0.map_or(-1, i32::from).to_string(),
            Self::Turns(value) | Self::Levels(value) => value.as_deref().unwrap_or(NULL).to_owned(),
        }
    }
}

/// Describes a range of numbers for messages.
fn numbers(low: u64, high: u64) -> String {
    if low == high { low.to_string() } else { format!("a number of {low} to {high}") }
}

/// Returns the help text of a key: its description, its values and its default; `None` if there is no such key.
#[must_use]
pub fn describe(name: &str) -> Option<String> {
    let key = KEYS.iter().find(|key| key.name == name)?;
    let mut settings = Settings::default();
    let field = (key.field)(&mut settings);
    let (takes, usual) = (field.takes(), field.show());
    let about = key.about.trim_end_matches('.');
    let about =
        about.strip_suffix(takes.as_str()).map_or(about, |about| about.trim_end_matches(": "));
    Some(match usual.as_str() {
        NULL => format!("{about}: {takes}"),
        _ => format!("{about}: {takes} [default: {usual}]"),
    })
}

/// Parses TRUE or FALSE; `None` for other texts, which OpenSM reads as FALSE.
fn switch(text: &str) -> Option<bool> {
    match text {
        "TRUE" => Some(true),
        "FALSE" => Some(false),
        _ => None,
    }
}
