//! Parser of options files: [`Options::read`].

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use ib_types::{Mtu, ServiceLevel};
use ib_wire::mad::sa::RateCode;

use super::RouteProtocol;
use super::{
    AddressPreload, GroupOption, LogFile, Loopback, MOST_GROUPS, Options, OptionsError, PROVIDER,
    Provider, RoutePreload, ServerMode,
};
use crate::config::{Parsed, Word, text};

/// Maximum length of a line in bytes. ibacm truncates longer lines.
const LONGEST_LINE: usize = 119;

/// Maximum value of numeric options that have no smaller maximum of their own.
const LARGEST: u32 = i32::MAX as u32;

pub(super) const KEYS: [&str; 32] = [
    "log_file",
    "log_level",
    "umad_debug_level",
    "lock_file",
    "server_port",
    "server_mode",
    "acme_plus_kernel_only",
    "provider_lib_path",
    "support_ips_in_addr_cfg",
    "provider",
    "timeout",
    "retries",
    "sa_depth",
    "resolve_depth",
    "send_depth",
    "recv_depth",
    "addr_prot",
    "addr_timeout",
    "route_prot",
    "route_timeout",
    "loopback_prot",
    "min_mtu",
    "min_rate",
    "route_preload",
    "route_data_file",
    "addr_preload",
    "addr_data_file",
    "check_interval",
    "announce",
    "route_check",
    "max_destinations",
    "group",
];

const BOOLEANS: &[(&str, bool)] =
    &[("yes", true), ("no", false), ("1", true), ("0", false), ("true", true), ("false", false)];

impl Options {
    /// Reads an options file. Missing keys have their defaults.
    ///
    /// Keys and words may be in upper or lower case. The reader accepts the following with a warning:
    ///
    /// * A repeated key other than `provider` and `group`: the last line is used.
    /// * Text after a number, as in `2000ms`: the text is ignored.
    /// * An unknown key, or a key without a value: the line is ignored.
    ///
    /// # Errors
    /// Fails at the first invalid value, and at the sixth group.
    pub fn read(file: &str, bytes: &[u8]) -> Result<Parsed<Self>, OptionsError> {
        let mut parsed = Parsed::<Self>::default();
        let mut seen = BTreeMap::new();
        for (line, bytes) in text::lines(bytes) {
            let Some(words) = parsed.words(line, bytes) else { continue };
            let Some((&found, values)) = words.split_first() else { continue };
            let length = bytes.trim_ascii_end().len();
            if length > LONGEST_LINE {
                let found = format!("{length} bytes");
                let expected = format!("a line of at most {LONGEST_LINE} bytes");
                parsed.warn(line, &found, expected, "ibacm would truncate the line");
            }
            let Some(key) = KEYS.into_iter().find(|key| key.eq_ignore_ascii_case(found)) else {
                parsed.warn(line, found, "a known key", "the line is ignored");
                continue;
            };
            if values.is_empty() {
                parsed.warn(line, "", format!("a value of {key}"), "the line is ignored");
                continue;
            }
            let several = ["provider", "group"].contains(&key);
            if let Some(earlier) = seen.insert(key, line).filter(|_| !several) {
                let expected = format!("a key other than that of line {earlier}");
                parsed.warn(line, found, expected, "this line overrides the earlier one");
            }
            Reader { file, line, key, values, parsed: &mut parsed }.set()?;
        }
        Ok(parsed)
    }
}

/// The line that is being read.
struct Reader<'r> {
    file: &'r str,
    line: usize,
    key: &'static str,
    /// The words after the key that were not read yet.
    values: &'r [&'r str],
    parsed: &'r mut Parsed<Options>,
}

impl<'r> Reader<'r> {
    /// Sets the option that the line defines.
    fn set(mut self) -> Result<(), OptionsError> {
        match self.key {
            "log_file" => self.parsed.value.log_file = self.log_file()?,
            "log_level" => self.parsed.value.log_level = self.byte(2)?,
            "umad_debug_level" => self.parsed.value.umad_debug_level = self.byte(u8::MAX)?,
            "lock_file" => self.parsed.value.lock_file = self.name()?,
            "server_port" => self.parsed.value.server_port = self.short(1)?,
            "server_mode" => {
                let modes = &[
                    ("unix", ServerMode::Unix),
                    ("loop", ServerMode::Loop),
                    ("open", ServerMode::Open),
                ];
                self.parsed.value.server_mode = self.one_of(modes)?;
            }
            "acme_plus_kernel_only" => {
                self.parsed.value.acme_plus_kernel_only = self.one_of(BOOLEANS)?;
            }
            "provider_lib_path" => self.parsed.value.provider_lib_path = Some(self.name()?),
            "support_ips_in_addr_cfg" => {
                // `yes` is refused, because ibacm would read it as 0.
                let numbers = &[("1", true), ("0", false)];
                self.parsed.value.support_ips_in_addr_cfg = self.one_of(numbers)?;
            }
            "provider" => self.provider()?,
            "timeout" => {
                let milliseconds = self.number(1..=LARGEST)?;
                self.parsed.value.timeout = Duration::from_millis(milliseconds.into());
            }
            "retries" => self.parsed.value.retries = self.short(0)?,
            "sa_depth" => self.parsed.value.sa_depth = self.short(1)?,
            "resolve_depth" => self.parsed.value.resolve_depth = self.short(1)?,
            "send_depth" => self.parsed.value.send_depth = self.short(1)?,
            "recv_depth" => self.parsed.value.recv_depth = self.short(1)?,
            "addr_prot" => self.one_of(&[("acm", ())])?,
            "addr_timeout" => self.parsed.value.addr_timeout = self.minutes()?,
            "route_prot" => {
                let protocols = &[("sa", RouteProtocol::Sa), ("acm", RouteProtocol::Acm)];
                self.parsed.value.route_prot = self.one_of(protocols)?;
            }
            "route_timeout" => self.parsed.value.route_timeout = self.minutes()?,
            "loopback_prot" => {
                let protocols = &[("none", Loopback::None), ("local", Loopback::Local)];
                self.parsed.value.loopback_prot = self.one_of(protocols)?;
            }
            "min_mtu" => self.parsed.value.min_mtu = self.mtu()?,
            "min_rate" => self.parsed.value.min_rate = self.rate()?,
            "route_preload" => self.route_preload()?,
            "route_data_file" => self.parsed.value.route_data_file = self.name()?,
            "addr_preload" => {
                let formats = &[
                    ("none", AddressPreload::None),
                    ("acm_hosts", AddressPreload::AcmHosts),
                    ("no", AddressPreload::None),
                ];
                self.parsed.value.addr_preload = self.one_of(formats)?;
            }
            "addr_data_file" => self.parsed.value.addr_data_file = self.name()?,
            "check_interval" => {
                let seconds = self.number(0..=LARGEST)?;
                let interval = Duration::from_secs(seconds.into());
                self.parsed.value.check_interval = Some(interval).filter(|it| !it.is_zero());
            }
            "announce" => self.parsed.value.announce = self.byte(u8::MAX)?,
            "route_check" => self.parsed.value.route_check = self.one_of(BOOLEANS)?,
            "max_destinations" => self.parsed.value.max_destinations = self.number(1..=LARGEST)?,
            "group" => self.group()?,
            key => unreachable!("the reader does not handle key {key}"),
        }
        self.parsed.end(self.line, self.values);
        Ok(())
    }

    fn provider(&mut self) -> Result<(), OptionsError> {
        if self.values.len() < 2 {
            let expected = "a name and `default` or a subnet prefix";
            let found = self.take();
            self.parsed.warn(self.line, found, expected, "the line is ignored");
            return Ok(());
        }
        let name = self.name()?;
        if !name.as_str().eq_ignore_ascii_case(PROVIDER) {
            let so = "this provider cannot be loaded, so the built-in provider serves its subnets";
            self.parsed.warn(self.line, name.as_str(), PROVIDER, so);
        }
        let word = self.take();
        let prefix = match word {
            _ if word.eq_ignore_ascii_case("default") => None,
            _ => {
                let expected = "default, or a subnet prefix such as 0xfe80000000000000";
                Some(text::number(word).ok_or_else(|| self.error(word, expected))?)
            }
        };
        self.parsed.value.provider.push(Provider { name, prefix });
        Ok(())
    }

    fn group(&mut self) -> Result<(), OptionsError> {
        let (rate, mtu) = (self.rate()?, self.mtu()?);
        let sl = if self.values.is_empty() {
            None
        } else {
            let level = ServiceLevel::new(self.number(0..=15)? as u8);
            Some(level.expect("`number` returned at most 15"))
        };
        if self.parsed.value.group.len() == MOST_GROUPS {
            return Err(OptionsError::Groups { file: self.file.to_owned(), line: self.line });
        }
        self.parsed.value.group.push(GroupOption { rate, mtu, sl });
        Ok(())
    }

    fn route_preload(&mut self) -> Result<(), OptionsError> {
        if self.values.first().is_some_and(|word| word.eq_ignore_ascii_case("full_opensm_v1")) {
            let word = self.take();
            let so = "the value is accepted, but ibacm would preload no routes";
            self.parsed.warn(self.line, word, "opensm_full_v1", so);
            self.parsed.value.route_preload = RoutePreload::OpensmFullV1;
            return Ok(());
        }
        let formats = &[
            ("none", RoutePreload::None),
            ("opensm_full_v1", RoutePreload::OpensmFullV1),
            ("no", RoutePreload::None),
        ];
        self.parsed.value.route_preload = self.one_of(formats)?;
        Ok(())
    }

    fn log_file(&mut self) -> Result<LogFile, OptionsError> {
        let name = self.name()?;
        Ok(match name.as_str() {
            word if word.eq_ignore_ascii_case("stdout") => LogFile::Stdout,
            word if word.eq_ignore_ascii_case("stderr") => LogFile::Stderr,
            _ => LogFile::File(name),
        })
    }

    fn mtu(&mut self) -> Result<Mtu, OptionsError> {
        let (word, digits) = self.numeral(|sign| sign.is_ascii_digit());
        let mtu = Mtu::ALL.into_iter().find(|mtu| digits == mtu.bytes().to_string());
        mtu.ok_or_else(|| self.error(word, "an MTU in bytes: 256, 512, 1024, 2048 or 4096"))
    }

    fn rate(&mut self) -> Result<RateCode, OptionsError> {
        let (word, numeral) = self.numeral(|sign| sign.is_ascii_digit() || sign == '.');
        let megabits = match numeral {
            // ibacm reads 2.5 as 2, so both stand for 2.5 Gbit/s.
            "2" | "2.5" => Some(2_500),
            _ => numeral.parse::<u32>().ok().and_then(|gigabits| gigabits.checked_mul(1_000)),
        };
        let code = megabits.and_then(RateCode::from_megabits_per_second);
        code.ok_or_else(|| {
            let rates = RateCode::RATES.map(|(_, rate)| (f64::from(rate) / 1e3).to_string());
            self.error(word, &format!("a rate in Gbit/s: {}", rates.join(", ")))
        })
    }

    /// Reads a number of minutes; `None` if it is −1.
    fn minutes(&mut self) -> Result<Option<Duration>, OptionsError> {
        if self.values.first() == Some(&"-1") {
            self.take();
            return Ok(None);
        }
        let expected = format!("-1 for no limit, or minutes from 0 to {LARGEST}");
        let minutes = self.number_or(0..=LARGEST, &expected)?;
        Ok(Some(Duration::from_mins(minutes.into())))
    }

    fn byte(&mut self, most: u8) -> Result<u8, OptionsError> {
        Ok(self.number(0..=most.into())? as u8)
    }

    fn short(&mut self, least: u16) -> Result<u16, OptionsError> {
        Ok(self.number(least.into()..=u16::MAX.into())? as u16)
    }

    fn number(&mut self, range: RangeInclusive<u32>) -> Result<u32, OptionsError> {
        let expected = format!("a number from {} to {}", range.start(), range.end());
        self.number_or(range, &expected)
    }

    fn number_or(
        &mut self,
        range: RangeInclusive<u32>,
        expected: &str,
    ) -> Result<u32, OptionsError> {
        let (word, digits) = self.numeral(|sign| sign.is_ascii_digit());
        let number = digits.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| self.error(word, expected))
    }

    /// Returns the next word, and the leading characters of the word that can belong to a number.
    fn numeral(&mut self, is_numeric: fn(char) -> bool) -> (&'r str, &'r str) {
        let word = self.take();
        let end = word.find(|sign| !is_numeric(sign)).unwrap_or(word.len());
        let (digits, rest) = word.split_at(end);
        if !digits.is_empty() && !rest.is_empty() {
            self.parsed.warn(self.line, word, "a number", "the text after its digits is ignored");
        }
        (word, digits)
    }

    fn name(&mut self) -> Result<Word, OptionsError> {
        let word = self.take();
        Word::new(word).ok_or_else(|| self.error(word, "a name without control characters"))
    }

    /// Takes the next word, and returns the choice that has this word as its name.
    fn one_of<T: Copy>(&mut self, choices: &[(&str, T)]) -> Result<T, OptionsError> {
        let word = self.take();
        let choice = choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
        choice.map(|&(_, choice)| choice).ok_or_else(|| {
            let names: Vec<_> = choices.iter().map(|&(name, _)| name).collect();
            self.error(word, &names.join(" or "))
        })
    }

    /// Removes and returns the next word; empty if there is none.
    fn take(&mut self) -> &'r str {
        let Some((&first, rest)) = self.values.split_first() else { return "" };
        self.values = rest;
        first
    }

    fn error(&self, found: &str, expected: &str) -> OptionsError {
        let found = found.chars().take(80).collect();
        let (file, expected) = (self.file.to_owned(), expected.to_owned());
        OptionsError::Value { file, line: self.line, key: self.key, found, expected }
    }
}
