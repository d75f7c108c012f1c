//! The writer of options.

use std::fmt::{Display, Write};
use std::time::Duration;

use super::RouteProtocol;
use super::{
    AddressPreload, GroupOption, LogFile, Loopback, Options, Provider, RoutePreload, ServerMode,
};

impl Options {
    /// Returns the text of a file, with every key and what it is for.
    ///
    /// [`Options::read`] reads the same options from it. Times that are no full milliseconds, seconds or
    /// minutes, whichever their key is in, are rounded up.
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
            "Where the log goes: a file, stdout or stderr.",
        );
        file.key(
            "log_level",
            self.log_level,
            "How much is logged: 0 errors, 1 events as well, 2 everything.",
        );
        file.key(
            "umad_debug_level",
            self.umad_debug_level,
            "How much ibacm logs of management datagrams: 0 nothing, up to 255. ibfabric has one log level.",
        );
        file.key(
            "lock_file",
            &self.lock_file,
            "The file with the number of the process. While it is locked no second service starts.",
        );
        file.key("server_port", self.server_port, "The TCP port for clients, 1 to 65535.");
        file.key(
            "server_mode",
            match self.server_mode {
                ServerMode::Unix => "unix",
                ServerMode::Loop => "loop",
                ServerMode::Open => "open",
            },
            "How clients reach the service:\n\
             unix - by a socket in the file system, from this machine\n\
             loop - by TCP, from this machine\n\
             open - by TCP, from every machine that reaches this one",
        );
        file.key(
            "acme_plus_kernel_only",
            yes_no(self.acme_plus_kernel_only),
            "Whether only ib_acme and the kernel are served (yes or no): the socket is then not published\n\
             where other programs look for it.",
        );
        file.optional(
            "provider_lib_path",
            self.provider_lib_path.as_ref(),
            "/usr/lib/ibacm",
            "Where ibacm looks for the libraries of providers. ibfabric loads none.",
        );
        file.key(
            "support_ips_in_addr_cfg",
            u8::from(self.support_ips_in_addr_cfg),
            "Whether the IP addresses of the address file count: 1, or 0 for those of the interfaces.",
        );
        file.all(
            "provider",
            self.provider.iter().map(|Provider { name, prefix }| match prefix {
                Some(prefix) => format!("{name} {prefix:#018x}"),
                None => format!("{name} default"),
            }),
            "ibacmp default",
            "Which provider serves the subnet with a prefix, or those that no other line names.\n\
             Only ibacmp is there. The key may be repeated.",
        );
    }

    fn resolution(&self, file: &mut File) {
        file.key(
            "timeout",
            self.timeout.as_nanos().div_ceil(1_000_000),
            "How many milliseconds an answer may take; the time that the subnet manager grants is added.",
        );
        file.key("retries", self.retries, "How often a question is sent again, 0 to 65535.");
        file.key(
            "sa_depth",
            self.sa_depth,
            "How many questions to subnet administration are open at once, 1 to 65535.",
        );
        file.key(
            "resolve_depth",
            self.resolve_depth,
            "How many addresses are asked for at once, 1 to 65535. ibfabric takes 32 unless it is told\n\
             something else, ibacm 1: one destination that is down then holds up all others.",
        );
        file.key(
            "send_depth",
            self.send_depth,
            "How many messages are being sent at once, 1 to 65535. Here too ibfabric takes 32, ibacm 1.",
        );
        file.key(
            "recv_depth",
            self.recv_depth,
            "How many messages may wait to be looked at, 1 to 65535. Those beyond are lost.",
        );
        file.key(
            "addr_prot",
            "acm",
            "How addresses are resolved. There is one way: acm, by questions to a multicast group.",
        );
        file.key(
            "addr_timeout",
            in_units(self.addr_timeout, 60, "-1"),
            "For how many minutes an address is known once it was resolved; -1 for ever.",
        );
        file.key(
            "route_prot",
            match self.route_prot {
                RouteProtocol::Sa => "sa",
                RouteProtocol::Acm => "acm",
            },
            "Where routes come from:\n\
             sa  - from subnet administration, one question for each destination\n\
             acm - from the properties of a multicast group that both ends are in, no question at all",
        );
        file.key(
            "route_timeout",
            in_units(self.route_timeout, 60, "-1"),
            "For how many minutes a route is known; -1 as long as the address of its destination.",
        );
        file.key(
            "loopback_prot",
            match self.loopback_prot {
                Loopback::None => "none",
                Loopback::Local => "local",
            },
            "How this machine's own addresses are resolved:\n\
             none  - like those of others\n\
             local - they are known from the start",
        );
        file.key(
            "min_mtu",
            self.min_mtu.bytes(),
            "The MTU in bytes of the group that every machine is in: 256, 512, 1024, 2048 or 4096. All\n\
             machines need the same one, best the largest that all ports have.",
        );
        file.key(
            "min_rate",
            rate(self.min_rate),
            "The rate in Gbit/s of the group that every machine is in. All machines need the same one,\n\
             best the highest that all ports have. ibacm takes 28, 50, 400 and more as 10.",
        );
    }

    fn preloads(&self, file: &mut File) {
        file.key(
            "route_preload",
            match self.route_preload {
                RoutePreload::None => "none",
                RoutePreload::OpensmFullV1 => "opensm_full_v1",
            },
            "Whether routes are known from the start:\n\
             none           - no\n\
             opensm_full_v1 - those of a file as OpenSM's plugin dump_pr writes it",
        );
        file.key("route_data_file", &self.route_data_file, "The file of these routes.");
        file.key(
            "addr_preload",
            match self.addr_preload {
                AddressPreload::None => "none",
                AddressPreload::AcmHosts => "acm_hosts",
            },
            "Whether addresses of other machines are known from the start:\n\
             none      - no\n\
             acm_hosts - those of a file with an address and a GID on each line",
        );
        file.key("addr_data_file", &self.addr_data_file, "The file of these addresses.");
    }

    fn own(&self, file: &mut File) {
        file.0 += OWN;
        file.key(
            "check_interval",
            in_units(self.check_interval, 1, "0"),
            "How often, in seconds, addresses in use are checked with their owners; 0 only before addr_timeout is over.",
        );
        file.key(
            "announce",
            self.announce,
            "How often an address is announced to all machines after it came into service, 0 to 255.",
        );
        file.key(
            "route_check",
            yes_no(self.route_check),
            "Whether the service levels that subnet administration gives are compared with those of the\n\
             groups before `route_prot acm` makes routes of groups (yes or no).",
        );
        file.key(
            "max_destinations",
            self.max_destinations,
            "How many destinations are known at most, 1 to 2147483647.",
        );
        file.all(
            "group",
            self.group.iter().map(|GroupOption { rate: speed, mtu, sl }| {
                let level = sl.map(|sl| format!(" {}", sl.get())).unwrap_or_default();
                format!("{} {}{level}", rate(*speed), mtu.bytes())
            }),
            "100 4096",
            "A group beside the one of min_rate and min_mtu: rate in Gbit/s, MTU in bytes and, if it\n\
             matters, service level. Two machines take the last group that both are in. Up to five\n\
             lines, the least wanted group first.",
        );
    }
}

const HEAD: &str = "\
# How the service resolves names, addresses and routes.
#
# Each line is a key and its value; lines have at most 119 characters. A key that is not given has
# its default. The service reads the file when it starts.
";

const OWN: &str = "
# The keys below are ibfabric's own; ibacm passes over keys that it does not know.
";

/// A file that is being written.
struct File(String);

impl File {
    fn key(&mut self, key: &str, value: impl Display, comment: &str) {
        self.comment(key, comment);
        writeln!(self.0, "{key} {value}").expect("a string takes everything");
    }

    /// Writes a line for each value, and an example where there is none.
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
            writeln!(self.0, "{key} {value}").expect("a string takes everything");
            none = false;
        }
        if none {
            writeln!(self.0, "# {key} {example}").expect("a string takes everything");
        }
    }

    fn optional(&mut self, key: &str, value: Option<impl Display>, example: &str, comment: &str) {
        self.all(key, value, example, comment);
    }

    fn comment(&mut self, key: &str, comment: &str) {
        writeln!(self.0, "\n# {key}:").expect("a string takes everything");
        for line in comment.lines() {
            writeln!(self.0, "# {line}").expect("a string takes everything");
        }
    }
}

fn yes_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

/// Returns a time in units of so many seconds, rounded up.
fn in_units(time: Option<Duration>, seconds: u32, without: &str) -> String {
    let nanoseconds = u128::from(seconds) * 1_000_000_000;
    time.map_or_else(
        || without.to_owned(),
        |time| time.as_nanos().div_ceil(nanoseconds).to_string(),
    )
}

/// Returns a rate in Gbit/s.
fn rate(code: ib_wire::mad::sa::RateCode) -> f64 {
    // The default stands for a code without a rate, which would not be read again.
    f64::from(code.megabits_per_second().unwrap_or(10_000)) / 1e3
}
