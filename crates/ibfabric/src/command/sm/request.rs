//! The configuration of an SM, from the command line of `ibfabric sm` or of OpenSM.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ib_daemons::log::{DEBUG, ERROR, FRAMES, INFO, VERBOSE};
use ib_daemons::sm::settings::{self, Settings};
use ib_daemons::sm::{ManagerOptions, SmPort};
use ib_daemons::sm::{conf, reasons};
use ib_routing::EngineList;
use ib_types::Guid;

use crate::cli::opensm::{self, Given, Meaning};
use crate::cli::sm::{PlaceArgs, ServeArgs};
use crate::cli::values::metrics_address;
use crate::failure::{Failure, note};
use crate::output::Format;

/// The configuration of an SM.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) place: SmPort,
    pub(super) settings: Settings,
    pub(super) once: bool,
    pub(super) format: Format,
    /// True if an SM on a real port becomes standby when another SM is master.
    pub(super) standby: bool,
    /// True if standard output and the default paths of files are those of OpenSM.
    pub(super) as_opensm: bool,
    /// True if the directory of dump files is OpenSM's default.
    pub(super) has_usual_dumps: bool,
    /// True if the log file is OpenSM's default.
    pub(super) has_usual_log: bool,
    /// Messages from before the log was opened, to be written to the log.
    pub(super) notes: Vec<String>,
    pub(super) cache_dir: Option<PathBuf>,
    pub(super) pid_file: Option<PathBuf>,
    /// The name of the control socket; `None` for the first default name that no other SM uses.
    pub(super) socket: Option<String>,
    pub(super) metrics: Option<SocketAddr>,
    /// The port counters are read at this interval, in seconds; `None` to read none.
    pub(super) perf_interval: Option<u32>,
}

/// The action that a command line specifies.
pub(super) enum Asked {
    Manage(Box<Request>),
    /// Prints the given text, which is the help or the version.
    Print(String),
    /// Writes a configuration file.
    Create(PathBuf, Box<Settings>),
}

/// OpenSM's default paths.
mod usual {
    pub(super) const LOG: &str = "/var/log/opensm.log";
    pub(super) const DUMPS: &str = "/var/log";
    pub(super) const CACHE: &str = "/var/cache/opensm";
}

impl Request {
    /// Returns the configuration for the options of `ibfabric sm`.
    ///
    /// # Errors
    /// Fails if the value of an option is invalid, or if no subnet is specified.
    pub(super) fn from_args(args: ServeArgs) -> Result<Asked, Failure> {
        let place = match &args.place {
            PlaceArgs { sim: Some(fabric), node, .. } => {
                Some(SmPort::Sim { fabric: fabric.clone(), node: node.clone() })
            }
            PlaceArgs { attach: Some(name), node, .. } => {
                Some(SmPort::Ibsim { name: name.clone(), node: node.clone() })
            }
            place if place.umad.is_some() => place.umad.as_deref().map(umad).transpose()?,
            _ => None,
        };
        let is_real = matches!(place, None | Some(SmPort::Umad { .. } | SmPort::AnyUmad));
        let mut settings = Settings::default();
        let notes = read_config(
            args.config.as_deref(),
            is_real && args.create_config.is_none(),
            &mut settings,
        )?;
        args.apply(&mut settings)?;
        if let Some(path) = args.create_config {
            return Ok(Asked::Create(path, Box::new(settings)));
        }
        let place = place.or((settings.guid != 0).then_some(SmPort::AnyUmad));
        let place = place.ok_or_else(|| {
            let message = "the subnet is not specified: expected --umad, --guid, --attach or --sim";
            Failure::Unusable(message.to_owned())
        })?;
        if matches!(place, SmPort::Sim { .. }) && !args.once {
            let message = "--sim: expected also --once, since other processes cannot reach \
                           this fabric; `ibfabric sim --sm` keeps a fabric running";
            return Err(Failure::Unusable(message.to_owned()));
        }
        let mut request = Self {
            place,
            settings,
            once: args.once,
            format: Format::of(args.json),
            standby: args.standby,
            as_opensm: false,
            has_usual_dumps: false,
            has_usual_log: false,
            notes,
            cache_dir: args.cache_dir,
            pid_file: args.pidfile,
            socket: args.name,
            metrics: args.metrics,
            perf_interval: args.perf_interval,
        };
        if is_real {
            request.use_usual_files();
        }
        Ok(Asked::Manage(Box::new(request)))
    }

    /// Returns the configuration for a simulated fabric in this process.
    pub(super) fn for_fabric(engines: &EngineList, socket: &str) -> Self {
        let mut settings = Settings::default();
        settings.config.routing.engines = engines.clone();
        Self {
            place: SmPort::AnyUmad,
            settings,
            once: false,
            format: Format::Text,
            standby: true,
            as_opensm: false,
            has_usual_dumps: false,
            has_usual_log: false,
            notes: Vec::new(),
            cache_dir: None,
            pid_file: None,
            socket: Some(socket.to_owned()),
            metrics: None,
            perf_interval: None,
        }
    }

    /// Returns the configuration of the daemon that runs the SM.
    pub(super) fn options(&self) -> ManagerOptions {
        let settings = self.settings.clone();
        let for_partitions = self.settings.clone();
        ManagerOptions {
            place: self.place.clone(),
            guid: Guid(settings.guid),
            guid_origin: settings.origin("guid").to_owned(),
            transaction_timeout: Duration::from_millis(settings.transaction_timeout.into()),
            once: self.once,
            standby: self.standby,
            as_opensm: self.as_opensm,
            has_usual_dumps: self.has_usual_dumps,
            has_usual_log: self.has_usual_log,
            background: settings.daemon,
            inactive: settings.inactive,
            honor_guid2lid: settings.honor_guid2lid,
            notes: self.notes.clone(),
            cache_dir: self.cache_dir.clone(),
            pid_file: self.pid_file.clone(),
            socket: self.socket.clone(),
            metrics: self.metrics,
            perf_interval: self.perf_interval,
            node_name_map: settings.node_name_map.clone(),
            dump_files_dir: settings.dump_files_dir.clone(),
            log_flags: settings.log_flags,
            log_file: settings.log_file.clone(),
            log_max_size: settings.log_max_size,
            accum_log_file: settings.accum_log_file,
            sm_config: Arc::new(move |log| settings.config(log).map_err(|error| error.to_string())),
            partitions: Arc::new(move || {
                for_partitions.partitions().map_err(|error| error.to_string())
            }),
        }
    }

    /// Returns the configuration for OpenSM's command line.
    ///
    /// # Errors
    /// Fails if the value of an option is invalid, or if an option is not supported.
    pub(super) fn from_opensm(given: &[Given]) -> Result<Asked, Failure> {
        let mut settings = Settings::default();
        let last = |meaning| given.iter().rev().find(|given| given.meaning == meaning);
        if last(Meaning::Help).is_some() {
            return Ok(Asked::Print(opensm::help(&settings::describe)));
        }
        if last(Meaning::Version).is_some() {
            let version = env!("CARGO_PKG_VERSION");
            return Ok(Asked::Print(format!("ibfabric {version}, under OpenSM's name\n")));
        }
        let config = last(Meaning::Config).map(|given| PathBuf::from(&given.value));
        let create = last(Meaning::CreateConfig).map(|given| PathBuf::from(&given.value));
        let notes = read_config(config.as_deref(), true, &mut settings)?;
        let mut request = Self {
            place: SmPort::AnyUmad,
            settings,
            once: false,
            format: Format::Text,
            standby: true,
            as_opensm: true,
            has_usual_dumps: false,
            has_usual_log: false,
            notes,
            cache_dir: None,
            pid_file: None,
            socket: None,
            metrics: None,
            perf_interval: None,
        };
        for given in given {
            request.take(given)?;
        }
        if let Some(path) = create {
            return Ok(Asked::Create(path, Box::new(request.settings)));
        }
        if given.iter().any(|g| g.meaning == Meaning::Key("guid")) && request.settings.guid == 0 {
            let ports = ib_daemons::sm::list_ports(&request.place)?;
            return Err(Failure::Unusable(format!(
                "-g 0: expected the GUID of one of these ports:\n{ports}"
            )));
        }
        request.use_usual_files();
        Ok(Asked::Manage(Box::new(request)))
    }

    /// Applies an option of OpenSM's command line.
    fn take(&mut self, given: &Given) -> Result<(), Failure> {
        let Given { name, meaning, value } = given;
        let wrong = |what: String| Failure::Unusable(format!("--{name}: {what}"));
        let settings = &mut self.settings;
        match *meaning {
            Meaning::Key(key) => {
                settings.set_argument(key, value).map_err(wrong)?;
                settings.set_by(key, format!("--{name}"));
            }
            Meaning::On(key) => settings.set(key, "TRUE").map_err(wrong)?,
            Meaning::Is(key, value) => settings.set(key, value).map_err(wrong)?,
            Meaning::Once => self.once = true,
            Meaning::Verbose => settings.log_flags = settings.log_flags << 1 | ERROR,
            Meaning::Everything => settings.log_flags = 0xff,
            Meaning::Debug => match value.to_str() {
                // The values 1 and 2 have no effect: the SM has one thread, and flushes each log line immediately.
                Some("1" | "2") => {}
                Some("0") => return Err(wrong(format!("0: {}", reasons::OTHER_MANAGERS))),
                Some("3") => return Err(wrong(format!("3: {}", reasons::MULTICAST))),
                Some("10") => {
                    return Err(wrong("10: found the test mode, expected 1 or 2".to_owned()));
                }
                _ => {
                    let value = value.to_string_lossy();
                    return Err(wrong(format!("found `{value}`, expected 1 or 2")));
                }
            },
            Meaning::Console if value == "off" => {}
            Meaning::Console => {
                return Err(wrong(format!("is not supported: {}", reasons::NO_CONSOLE)));
            }
            Meaning::PidFile => self.pid_file = Some(value.into()),
            Meaning::CacheDir => self.cache_dir = Some(value.into()),
            Meaning::Name => self.socket = Some(value.to_string_lossy().into_owned()),
            Meaning::Metrics => {
                self.metrics = Some(metrics_address(&value.to_string_lossy()).map_err(wrong)?);
            }
            Meaning::PerfInterval => {
                self.perf_interval = Some(parsed(value, 1, 86_400).map_err(wrong)?);
            }
            Meaning::Attach => {
                let name = value.to_string_lossy().into_owned();
                self.place = SmPort::Ibsim { name, node: None };
            }
            Meaning::Refused(why) => return Err(wrong(format!("is not supported: {why}"))),
            Meaning::Granted
            | Meaning::Config
            | Meaning::CreateConfig
            | Meaning::Help
            | Meaning::Version => {}
        }
        Ok(())
    }

    /// Sets OpenSM's default paths for files that are not specified.
    fn use_usual_files(&mut self) {
        let settings = &mut self.settings;
        let from = |variable: &str, usual: &str| {
            let named = std::env::var_os(variable).filter(|value| !value.is_empty());
            Some(PathBuf::from(named.unwrap_or_else(|| OsString::from(usual))))
        };
        if settings.dump_files_dir.is_none() {
            settings.dump_files_dir = from("OSM_TMP_DIR", usual::DUMPS);
        }
        self.has_usual_dumps = settings.dump_files_dir.as_deref() == Some(Path::new(usual::DUMPS));
        if self.cache_dir.is_none() {
            self.cache_dir = from("OSM_CACHE_DIR", usual::CACHE);
        }
        let partitions = Path::new(conf::PARTITIONS);
        if settings.partition_config_file.is_none() && partitions.exists() {
            settings.partition_config_file = Some(partitions.to_owned());
        }
        let log = settings.log_file.get_or_insert_with(|| usual::LOG.into());
        // Configuration files written by OpenSM contain the path of the default log file. So the user has chosen a
        // log file only if an option on the command line names it.
        let origin = settings.origins.get("log_file");
        let is_option = origin.is_some_and(|origin| origin.starts_with("--"));
        self.has_usual_log = log == Path::new(usual::LOG) && !is_option;
    }
}

/// Reads the configuration file that the options name, or else the default file if it exists. Prints the file's
/// warnings, and returns them for the log.
fn read_config(
    named: Option<&Path>,
    usual: bool,
    settings: &mut Settings,
) -> Result<Vec<String>, Failure> {
    let mut notes = Vec::new();
    match named {
        Some(path) => {
            let named = |failure: Failure| {
                Failure::Unusable(format!("--config: {}", failure.into_message()))
            };
            let text = crate::input::bytes(path).map_err(named)?;
            notes = conf::read(path, &text, settings)?;
        }
        None if usual && Path::new(conf::DEFAULT).exists() => {
            let path = Path::new(conf::DEFAULT);
            notes.push(format!("reading {}", conf::DEFAULT));
            notes.extend(conf::read(path, &crate::input::bytes(path)?, settings)?);
        }
        None => {}
    }
    for note in &notes {
        note!("{note}");
    }
    Ok(notes)
}

fn parsed(value: &OsStr, low: u32, high: u32) -> Result<u32, String> {
    let number = value.to_str().and_then(crate::input::number);
    number.filter(|number| (low..=high).contains(number)).ok_or_else(|| {
        format!("found `{}`, expected a number of {low} to {high}", value.to_string_lossy())
    })
}

/// Parses `DEV[:PORT]`.
fn umad(text: &str) -> Result<SmPort, Failure> {
    let (name, port) = match text.split_once(':') {
        None => (text, None),
        Some((name, port)) => {
            let port = port.parse().ok().filter(|&port: &u8| port > 0);
            let port = port.ok_or_else(|| {
                Failure::Unusable(format!(
                    "--umad {text}: expected DEV or DEV:PORT, such as mlx5_0:1"
                ))
            })?;
            (name, Some(port))
        }
    };
    Ok(match name {
        "" => SmPort::AnyUmad,
        _ => SmPort::Umad { name: name.to_owned(), port },
    })
}

impl ServeArgs {
    /// Changes the settings of the SM as the command-line options specify.
    fn apply(&self, settings: &mut Settings) -> Result<(), Failure> {
        let engines = &self.routing.engines;
        if let Some(list) = &self.routing.engine {
            settings.config.routing.engines = list.clone();
        }
        let own = &mut settings.engines;
        macro_rules! prefer {
            ($($field:ident)*) => { $(
                if engines.$field.is_some() { own.$field.clone_from(&engines.$field); }
            )* };
        }
        prefer!(root_guids cn_guids io_guids max_reverse_hops ignore_guids guid_routing_order
            port_search_ordering hop_weights ids_guids scatter_ports lash_start_vl virtual_lanes
            lfts lid_matrix keep_lfts);
        macro_rules! also {
            ($($field:ident)*) => { $( own.$field |= engines.$field; )* };
        }
        also!(quasi_ftree_indexing connect_roots port_profile_switch_nodes port_shifting
            guid_routing_order_no_scatter);
        let texts = [
            ("guid", self.guid.map(|guid| guid.to_string())),
            ("lmc", self.lmc.map(|lmc| lmc.get().to_string())),
            ("sm_priority", self.priority.map(|value| value.to_string())),
            ("sweep_interval", self.sweep.map(|value| value.to_string())),
            ("max_wire_smps", self.maxsmps.map(|value| value.to_string())),
            ("transaction_timeout", self.response_timeout.map(|value| value.to_string())),
            ("transaction_retries", self.retries.map(|value| value.to_string())),
            ("sm_key", self.smkey.clone()),
            ("subnet_prefix", self.subnet_prefix.clone()),
            ("part_enforce", self.part_enforce.clone()),
            ("log_flags", self.log_flags.clone()),
            ("log_max_size", self.log_limit.map(|value| value.to_string())),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                let set = settings.set(key, &text);
                set.map_err(|what| Failure::Unusable(format!("{key}: {what}")))?;
            }
        }
        let flags = [
            (self.reassign_lids, "reassign_lids"),
            (self.lmc_esp0, "lmc_esp0"),
            (self.ucast_cache, "use_ucast_cache"),
            (self.qos, "qos"),
            (self.honor_guid2lid, "honor_guid2lid_file"),
            (self.daemon, "daemon"),
            (self.inactive, "sm_inactive"),
            (self.no_clients_rereg, "no_clients_rereg"),
        ];
        for (_, key) in flags.into_iter().filter(|&(given, _)| given) {
            settings.set(key, "TRUE").expect("the key is boolean");
        }
        settings.config.require_deadlock_free |= self.require_deadlock_free;
        settings.accum_log_file &= !self.erase_log;
        let files = [
            (&self.pconfig, &mut settings.partition_config_file),
            (&self.log, &mut settings.log_file),
            (&self.dump_dir, &mut settings.dump_files_dir),
        ];
        for (given, file) in files {
            if given.is_some() {
                file.clone_from(given);
            }
        }
        let named = [
            ("partition_config_file", "--pconfig", &self.pconfig),
            ("log_file", "--log", &self.log),
            ("dump_files_dir", "--dump-dir", &self.dump_dir),
            ("root_guid_file", "--root-guids", &engines.root_guids),
            ("cn_guid_file", "--cn-guids", &engines.cn_guids),
            ("io_guid_file", "--io-guids", &engines.io_guids),
            ("port_prof_ignore_file", "--ignore-guids", &engines.ignore_guids),
            ("guid_routing_order_file", "--guid-routing-order", &engines.guid_routing_order),
            ("port_search_ordering_file", "--port-search-ordering", &engines.port_search_ordering),
            ("hop_weights_file", "--hop-weights", &engines.hop_weights),
            ("ids_guid_file", "--ids-guids", &engines.ids_guids),
            ("lfts_file", "--lfts", &engines.lfts),
            ("lid_matrix_dump_file", "--lid-matrix", &engines.lid_matrix),
        ];
        for (key, option, _) in named.into_iter().filter(|(.., given)| given.is_some()) {
            settings.set_by(key, option.to_owned());
        }
        for flags in [INFO | VERBOSE, DEBUG, FRAMES].into_iter().take(self.verbose.into()) {
            settings.log_flags |= flags;
        }
        if self.guid.is_some() {
            settings.set_by("guid", "--guid".to_owned());
        }
        Ok(())
    }
}
