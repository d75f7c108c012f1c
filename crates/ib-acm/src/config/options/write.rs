//! The writer of options.

use std::fmt::{Display, Write};
use std::time::Duration;

use super::RouteProtocol;
use super::{
    AddressPreload, GroupOption, LogFile, Loopback, Options, Provider, RoutePreload, ServerMode,
};

impl Options {
    /// Returns the text of an options file, with a description of each key.
    ///
    /// [`Options::read`] reads the same options from the text. Times are rounded up to the unit of their key:
    /// milliseconds, seconds or minutes.
    #[must_use]
    pub fn to_file(&self) -> String {
        let mut file = File(HEAD.to_owned());
        self.service(&mut file);
        self.resolution(&mut file);
        self.preloads(&mut file);
        self.own(&mut file);
        file.0
    }

    fn service(&self, file: &mut File) {
        file.key(
            "log_file",
            match &self.log_file {
                LogFile::Stdout => "stdout",
                LogFile::Stderr => "stderr",
                LogFile::File(name) => name.as_str(),
            },
            "Destination of the log: a file, stdout or stderr.",
        );
        file.key(
            "log_level",
            self.log_level,
            "Log level: 0 errors, 1 also events, 2 all messages.",
        );
        file.key(
            "umad_debug_level",
            self.umad_debug_level,
            "Log level of MADs in ibacm, 0 to 255. ibfabric ignores it.",
        );
        file.key(
            "lock_file",
            &self.lock_file,
            "The PID file. A second service does not start while the file is locked.",
        );
        file.key("server_port", self.server_port, "The TCP port for clients, 1 to 65535.");
        file.key(
            "server_mode",
            match self.server_mode {
                ServerMode::Unix => "unix",
                ServerMode::Loop => "loop",
                ServerMode::Open => "open",
            },
            "Type of the sockets for clients:\n\
             unix - a Unix domain socket, for clients of this machine\n\
             loop - TCP on the loopback interface, for clients of this machine\n\
             open - TCP on all interfaces",
        );
        file.key(
            "acme_plus_kernel_only",
            yes_no(self.acme_plus_kernel_only),
            "yes or no. With yes, only ib_acme and the kernel are served: the socket for other programs is\n\
             not created.",
        );
        file.optional(
            "provider_lib_path",
            self.provider_lib_path.as_ref(),
            "/usr/lib/ibacm",
            "Directory of ibacm's provider libraries. ibfabric loads no libraries.",
        );
        file.key(
            "support_ips_in_addr_cfg",
            u8::from(self.support_ips_in_addr_cfg),
            "Source of IP addresses: 1 for the address file, 0 for the interfaces.",
        );
        file.all(
            "provider",
            self.provider.iter().map(|Provider { name, prefix }| match prefix {
                Some(prefix) => format!("{name} {prefix:#018x}"),
                None => format!("{name} default"),
            }),
            "ibacmp default",
            "Provider of a subnet, given by its prefix; `default` stands for all subnets without a line of their own.\n\
             The only provider is ibacmp. Repeatable.",
        );
    }

    fn resolution(&self, file: &mut File) {
        file.key(
            "timeout",
            self.timeout.as_nanos().div_ceil(1_000_000),
            "Response timeout in milliseconds.",
        );
        file.key("retries", self.retries, "Number of retries of a request, 0 to 65535.");
        file.key(
            "sa_depth",
            self.sa_depth,
            "Maximum number of outstanding SA queries, 1 to 65535.",
        );
        file.key(
            "resolve_depth",
            self.resolve_depth,
            "Maximum number of addresses resolved at the same time, 1 to 65535. The default is 32, but 1 in\n\
             ibacm, where one unreachable destination delays all others.",
        );
        file.key(
            "send_depth",
            self.send_depth,
            "Maximum number of outstanding sends, 1 to 65535. The default is 32, but 1 in ibacm.",
        );
        file.key(
            "recv_depth",
            self.recv_depth,
            "Maximum number of received messages in the queue, 1 to 65535. Further messages are lost.",
        );
        file.key(
            "addr_prot",
            "acm",
            "Address resolution protocol. The only one is acm: requests to a multicast group.",
        );
        file.key(
            "addr_timeout",
            in_units(self.addr_timeout, 60, "-1"),
            "Lifetime of a cached address in minutes; -1 for no limit.",
        );
        file.key(
            "route_prot",
            match self.route_prot {
                RouteProtocol::Sa => "sa",
                RouteProtocol::Acm => "acm",
            },
            "Source of routes:\n\
             sa  - an SA query for each destination\n\
             acm - the parameters of a multicast group that both ends have joined, without a query",
        );
        file.key(
            "route_timeout",
            in_units(self.route_timeout, 60, "-1"),
            "Lifetime of a cached route in minutes; -1 for that of the address of its destination.",
        );
        file.key(
            "loopback_prot",
            match self.loopback_prot {
                Loopback::None => "none",
                Loopback::Local => "local",
            },
            "Resolution of this machine's own addresses:\n\
             none  - like addresses of other machines\n\
             local - without a query",
        );
        file.key(
            "min_mtu",
            self.min_mtu.bytes(),
            "MTU in bytes of the base group, which every machine joins: 256, 512, 1024, 2048 or 4096. It has\n\
             to be the same on all machines; the best value is the smallest MTU of all ports.",
        );
        file.key(
            "min_rate",
            rate(self.min_rate),
            "Rate in Gbit/s of the base group. It has to be the same on all machines; the best value is the\n\
             lowest rate of all ports. ibacm reads 28, 50, 400 and more as 10.",
        );
    }

    fn preloads(&self, file: &mut File) {
        file.key(
            "route_preload",
            match self.route_preload {
                RoutePreload::None => "none",
                RoutePreload::OpensmFullV1 => "opensm_full_v1",
            },
            "Format of the file of preloaded routes:\n\
             none           - no file\n\
             opensm_full_v1 - the output of OpenSM's plugin dump_pr",
        );
        file.key("route_data_file", &self.route_data_file, "The file of preloaded routes.");
        file.key(
            "addr_preload",
            match self.addr_preload {
                AddressPreload::None => "none",
                AddressPreload::AcmHosts => "acm_hosts",
            },
            "Format of the file of preloaded addresses:\n\
             none      - no file\n\
             acm_hosts - a file with an address and a GID on each line",
        );
        file.key("addr_data_file", &self.addr_data_file, "The file of preloaded addresses.");
    }

    fn own(&self, file: &mut File) {
        file.0 += OWN;
        file.key(
            "check_interval",
            in_units(self.check_interval, 1, "0"),
            "Interval in seconds at which addresses in use are verified. With 0, an address is verified only before its\n\
             addr_timeout.",
        );
        file.key(
            "announce",
            self.announce,
            "Number of announcements of an address after its endpoint comes up, 0 to 255.",
        );
        file.key(
            "route_check",
            yes_no(self.route_check),
            "yes or no. With yes, `route_prot acm` derives routes from groups only after their service levels\n\
             were compared with those of the SA.",
        );
        file.key(
            "max_destinations",
            self.max_destinations,
            "Maximum number of cached addresses, 1 to 2147483647.",
        );
        file.all(
            "group",
            self.group.iter().map(|GroupOption { rate: speed, mtu, sl }| {
                let level = sl.map(|sl| format!(" {}", sl.get())).unwrap_or_default();
                format!("{} {}{level}", rate(*speed), mtu.bytes())
            }),
            // The example, if no group is configured: 100 Gbit/s and an MTU of 4096 bytes.
            "100 4096",
            "A group beside the base group: rate in Gbit/s, MTU in bytes and, optionally, service level.\n\
             With route_prot acm, a route uses the group with the highest rate, MTU and service level that\n\
             both machines have joined. Up to five lines.",
        );
    }
}

const HEAD: &str = "\
# Options of the ACM service, which resolves names, addresses and routes.
#
# Each line has a key and its value, at most 119 characters in all. Missing keys have their defaults.
# The service reads the file when it starts.
";

const OWN: &str = "
# The keys below exist only in ibfabric; ibacm ignores unknown keys.
";

/// The text of the file that is being written.
struct File(String);

impl File {
    fn key(&mut self, key: &str, value: impl Display, comment: &str) {
        self.comment(key, comment);
        writeln!(self.0, "{key} {value}").expect("writing to a string never fails");
    }

    /// Writes a line for each value. If there is no value, writes a comment with an example.
    fn all(
        &mut self,
        key: &str,
        values: impl IntoIterator<Item = impl Display>,
        example: &str,
        comment: &str,
    ) {
        self.comment(key, comment);
        let mut none = true;
        for value in values {
            writeln!(self.0, "{key} {value}").expect("writing to a string never fails");
            none = false;
        }
        if none {
            writeln!(self.0, "# {key} {example}").expect("writing to a string never fails");
        }
    }

    fn optional(&mut self, key: &str, value: Option<impl Display>, example: &str, comment: &str) {
        self.all(key, value, example, comment);
    }

    fn comment(&mut self, key: &str, comment: &str) {
        writeln!(self.0, "\n# {key}:").expect("writing to a string never fails");
        for line in comment.lines() {
            writeln!(self.0, "# {line}").expect("writing to a string never fails");
        }
    }
}

fn yes_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

/// Returns `time` as a number of units of `seconds` seconds, rounded up. Returns `without` if `time` is `None`.
fn in_units(time: Option<Duration>, seconds: u32, without: &str) -> String {
    let nanoseconds = u128::from(seconds) * 1_000_000_000;
    time.map_or_else(
        || without.to_owned(),
        |time| time.as_nanos().div_ceil(nanoseconds).to_string(),
    )
}

/// Returns a rate in Gbit/s.
fn rate(code: ib_wire::mad::sa::RateCode) -> f64 {
    // If the code stands for no rate, the default is written, since the reader would refuse the code.
    f64::from(code.megabits_per_second().unwrap_or(10_000)) / 1e3
}
