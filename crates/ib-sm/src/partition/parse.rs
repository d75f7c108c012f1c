//! The parser of partition files.
//!
//! The parser reads line by line, as OpenSM does. The part of a definition up to its colon is on one line. Members and
//! groups may continue on further lines, and each line end also ends a member or group. Keywords may be abbreviated:
//! `limi` means `limited`.

use std::str::FromStr;

use ib_topology::ParseError;
use ib_topology::text::checked;
use ib_types::{Gid, Guid, NodeKind, PKey};
use ib_wire::mad::sa::RateCode;
use ib_wire::mad::sm::MtuCode;

use super::{Group, MemberSpec, Membership, Partition};

/// Parses a partition file. Returns its partitions and the warnings. Definitions with the same P_Key form one
/// partition.
///
/// # Errors
/// Fails at the first syntax error that makes the membership of a port ambiguous.
pub fn parse(
    file_name: &str,
    bytes: &[u8],
) -> Result<(Vec<Partition>, Vec<ParseError>), ParseError> {
    let text = checked(file_name, bytes)?;
    let mut reader = Reader { file: file_name, partitions: Vec::new(), warnings: Vec::new() };
    let mut open = None;
    for (number, line) in text.lines().enumerate() {
        let code = line.split('#').next().unwrap_or("");
        let mut become_idle = Word { text: code, line: number + 1, column: 1 };
        while !become_idle.trim().text.is_empty() {
            let Some(definition) = &mut open else {
                let (head, tail) = become_idle.split(':').ok_or_else(|| {
                    reader.error(
                        become_idle.trim(),
                        "the name of a partition, flags and `:` on one line",
                    )
                })?;
                open = Some(reader.definition(head)?);
                become_idle = tail;
                continue;
            };
            let (list, tail) =
                become_idle.split(';').map_or((become_idle, None), |(a, b)| (a, Some(b)));
            reader.properties(definition, list)?;
            let Some(tail) = tail else { break };
            open = None;
            become_idle = tail;
        }
    }
    Ok((reader.partitions, reader.warnings))
}

/// A part of a line, with its position in the file.
#[derive(Clone, Copy, Debug)]
struct Word<'t> {
    text: &'t str,
    line: usize,
    column: usize,
}

impl<'t> Word<'t> {
    fn trim(self) -> Self {
        let text = self.text.trim_start();
        let column = self.column + self.text.len() - text.len();
        Self { text: text.trim_end(), column, ..self }
    }

    /// Splits at the first occurrence of a character, and returns the parts before and after it.
    fn split(self, sign: char) -> Option<(Self, Self)> {
        let (before, behind) = self.text.split_once(sign)?;
        let column = self.column + before.len() + sign.len_utf8();
        Some((Self { text: before, ..self }, Self { text: behind, column, ..self }))
    }

    /// Returns the parts that commas separate, trimmed.
    fn list(self) -> impl Iterator<Item = Word<'t>> {
        let mut left = Some(self);
        std::iter::from_fn(move || {
            let word = left?;
            let (first, become_idle) = word.split(',').map_or((word, None), |(a, b)| (a, Some(b)));
            left = become_idle;
            Some(first.trim())
        })
    }

    /// Splits a name and a value at `=`. Returns no value if there is no `=`.
    fn pair(self) -> (Self, Option<Self>) {
        match self.split('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (self, None),
        }
    }
}

/// A partition definition in the file, while its members are being read.
struct Definition {
    /// Index of the partition to which the definition belongs.
    partition: usize,
    /// Membership of the members that do not specify one.
    default: Membership,
    /// Flags that the groups of the definition inherit.
    flags: Flags,
    /// True if the definition has neither a name nor a P_Key.
    nameless: bool,
}

/// The flags of a group.
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    mtu: Option<u8>,
    rate: Option<u8>,
    sl: Option<u8>,
    /// True if the group itself specifies a service level.
    own_sl: bool,
    /// Scopes of the group: bit n stands for scope n. Without any bit, the scope is link-local.
    scopes: u16,
    q_key: Option<u32>,
    traffic_class: Option<u8>,
    flow_label: Option<u32>,
}

struct Reader<'f> {
    file: &'f str,
    partitions: Vec<Partition>,
    warnings: Vec<ParseError>,
}

impl Reader<'_> {
    fn located(&self, word: Word<'_>, message: String) -> ParseError {
        ParseError { file: self.file.to_owned(), line: word.line, column: word.column, message }
    }

    fn error(&self, word: Word<'_>, expected: &str) -> ParseError {
        let found = match word.text {
            "" => "nothing".to_owned(),
            text => format!("`{text}`"),
        };
        self.located(word, format!("found {found}, expected {expected}"))
    }

    /// Adds a warning that `word` is not what was expected. `so` says what the parser does then, such as "it is
    /// ignored".
    fn warn(&mut self, word: Word<'_>, expected: &str, so: &str) {
        let mut warning = self.error(word, expected);
        warning.message += "; ";
        warning.message += so;
        self.warnings.push(warning);
    }

    /// Reads the part of a definition before the colon.
    fn definition(&mut self, head: Word<'_>) -> Result<Definition, ParseError> {
        if let Some((before, _)) = head.split(';') {
            return Err(self.error(before.trim(), "flags and `:` before `;`"));
        }
        let mut words = head.list();
        let (name, key) = words.next().unwrap_or(head).pair();
        let partition = self.partition(name, key)?;
        let nameless = name.text.is_empty() && key.is_none();
        let (default, flags) = (Membership::Limited, Flags::default());
        let mut definition = Definition { partition, default, flags, nameless };
        if nameless {
            self.warn(name, "a name or a P_Key", "as in OpenSM, its members get no P_Key");
        }
        let mut ipoib = false;
        for word in words {
            let (flag, value) = word.pair();
            if flag.text.is_empty() {
                self.warn(word, "a flag", "it is ignored");
            } else if self.group_flag(&mut definition.flags, flag, value) {
            } else if flag.text == "indx0" {
                self.partitions[partition].first = true;
            } else if is_start(flag.text, "ipoib") {
                ipoib = true;
            } else if is_start(flag.text, "defmember") {
                match value.and_then(|value| membership(value.text)) {
                    Some(given) => definition.default = given,
                    None => {
                        self.warn(value.unwrap_or(flag), "full, limited or both", "it is ignored");
                    }
                }
            } else {
                self.warn(
                    flag,
                    "one of ipoib, indx0, defmember, rate, mtu, sl, scope, Q_Key, TClass, FlowLabel",
                    "it is ignored",
                );
            }
        }
        if let Some(sl) = definition.flags.sl {
            self.partitions[partition].sl = sl;
        }
        if ipoib {
            let flags = definition.flags;
            let key = self.partitions[partition].key;
            let group = Group {
                traffic_class: flags.traffic_class.unwrap_or(0),
                ..group(Group::broadcast(key).mgid, &flags, true)
            };
            self.add(partition, group, head.trim());
        }
        Ok(definition)
    }

    /// Returns the index of the partition with the given P_Key or, without a P_Key, with the given name. If no
    /// partition has it, adds one.
    fn partition(&mut self, name: Word<'_>, key: Option<Word<'_>>) -> Result<usize, ParseError> {
        let mut wanted = None;
        if let Some(word) = key {
            let value = number(word.text).filter(|&(_, whole)| whole).map(|(value, _)| value);
            let value = value.ok_or_else(|| self.error(word, "a P_Key, 0x1 to 0x7fff"))?;
            // P_Key 0 requests the next free P_Key.
            wanted = Some(PKey(value as u16).partition()).filter(|&key| key != 0);
        } else if let Some(at) = self.partitions.iter().position(|it| it.name == name.text) {
            if !name.text.is_empty() {
                return Ok(at);
            }
        } else if name.text == "Default" {
            wanted = Some(PKey::DEFAULT.partition());
        }
        let at = |reader: &Self, key| reader.partitions.iter().position(|it| it.key == key);
        let key = match wanted {
            Some(key) => key,
            None => {
                let free = (1..PKey::DEFAULT.partition()).find(|&key| at(self, key).is_none());
                free.ok_or_else(|| self.error(name, "a free P_Key"))?
            }
        };
        if let Some(at) = at(self, key) {
            return Ok(at);
        }
        let name = name.text.to_owned();
        let (members, groups) = (Vec::new(), Vec::new());
        self.partitions.push(Partition { name, key, first: false, sl: 0, members, groups });
        Ok(self.partitions.len() - 1)
    }

    /// Reads a line of members and groups after the colon of a definition.
    fn properties(
        &mut self,
        definition: &mut Definition,
        list: Word<'_>,
    ) -> Result<(), ParseError> {
        let mut words = list.list().filter(|word| !word.text.is_empty());
        while let Some(word) = words.next() {
            let (name, value) = word.pair();
            if name.text != "mgid" {
                self.member(definition, name, value)?;
                continue;
            }
            // Groups inherit all flags of the definition except the traffic class.
            let inherited = Flags { traffic_class: None, ..definition.flags };
            let mut flags = Flags { sl: None, ..inherited };
            for word in words.by_ref() {
                let (flag, value) = word.pair();
                if !self.group_flag(&mut flags, flag, value) {
                    self.warn(
                        flag,
                        "one of rate, mtu, sl, scope, Q_Key, TClass, FlowLabel",
                        "it is ignored",
                    );
                }
            }
            flags.own_sl = flags.sl.is_some();
            flags.sl = flags.sl.or(inherited.sl);
            let word = value.unwrap_or(name);
            match value.and_then(|value| Gid::from_str(value.text).ok()) {
                Some(mgid) if mgid.is_multicast() => {
                    self.groups(definition.partition, mgid, &flags, word);
                }
                _ => self.warn(word, "a multicast GID", "the group is not created"),
            }
        }
        Ok(())
    }

    fn member(
        &mut self,
        definition: &Definition,
        name: Word<'_>,
        value: Option<Word<'_>>,
    ) -> Result<(), ParseError> {
        const WORDS: [(&str, MemberSpec); 5] = [
            ("ALL", MemberSpec::All),
            ("ALL_CAS", MemberSpec::Kind(NodeKind::ChannelAdapter)),
            ("ALL_SWITCHES", MemberSpec::Kind(NodeKind::Switch)),
            ("ALL_ROUTERS", MemberSpec::Kind(NodeKind::Router)),
            ("SELF", MemberSpec::Manager),
        ];
        let known = WORDS.iter().find(|(word, _)| is_start(name.text, word));
        let who = match known {
            Some(&(_, who)) if !name.text.is_empty() => who,
            _ => {
                let guid = number(name.text).filter(|&(guid, whole)| whole && guid != 0);
                let (guid, _) = guid.ok_or_else(|| {
                    self.error(
                        name,
                        "a port GUID, ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS, SELF or mgid=GID",
                    )
                })?;
                MemberSpec::Port(Guid(guid))
            }
        };
        let membership = match value {
            None => definition.default,
            Some(value) => membership(value.text).unwrap_or_else(|| {
                self.warn(value, "full, limited or both", "the member is limited");
                Membership::Limited
            }),
        };
        if !definition.nameless {
            self.partitions[definition.partition].members.push((who, membership));
        }
        Ok(())
    }

    /// Reads a flag of a group. Returns false if groups have no flag with this name.
    fn group_flag(&mut self, flags: &mut Flags, flag: Word<'_>, value: Option<Word<'_>>) -> bool {
        const NAMES: [(&str, u64); 7] = [
            ("mtu", 63),
            ("rate", 63),
            ("scope", 15),
            ("sl", 15),
            ("Q_Key", u64::MAX),
            ("TClass", u64::MAX),
            ("FlowLabel", 0xf_ffff),
        ];
        let known = NAMES.into_iter().find(|(name, _)| is_start(flag.text, name));
        let Some((name, most)) = known.filter(|_| !flag.text.is_empty()) else { return false };
        let Some(word) = value else {
            self.warn(flag, "`=` and a number behind it", "it is ignored");
            return true;
        };
        let (value, whole) = number(word.text).unwrap_or((0, false));
        if !whole {
            self.warn(word, "a number", &format!("{value} is used"));
        }
        if value > most {
            self.warn(word, &format!("0 to {most}"), "it is ignored");
            return true;
        }
        match name {
            "mtu" => flags.mtu = Some(value as u8),
            "rate" => flags.rate = Some(value as u8),
            "sl" => flags.sl = Some(value as u8),
            "scope" => flags.scopes |= 1 << value,
            "Q_Key" => flags.q_key = Some(value as u32),
            "TClass" => flags.traffic_class = Some(value as u8),
            _ => flags.flow_label = Some(value as u32),
        }
        true
    }

    /// Adds the groups that an MGID describes, one for each scope.
    fn groups(&mut self, partition: usize, mgid: Gid, flags: &Flags, word: Word<'_>) {
        let key = self.partitions[partition].key | 0x8000;
        let signature = (mgid.0 >> 96) as u16;
        let of_ip = [0x401b, 0x601b].contains(&signature);
        let scopes = if flags.scopes == 0 { 1 << 2 } else { flags.scopes };
        for scope in (0..16).filter(|scope| scopes >> scope & 1 != 0) {
            let mut mgid = Gid(mgid.0 & !(0xf << 112) | scope << 112);
            if of_ip {
                let named = (mgid.0 >> 80) as u16;
                if named == 0 {
                    mgid.0 |= u128::from(key) << 80;
                } else if named != key {
                    let expected = format!("P_Key {key:#06x} or 0 in the MGID");
                    self.warn(word, &expected, "the group is not created");
                    return;
                }
            }
            let group = group(mgid, flags, of_ip);
            if of_ip {
                let owner = &self.partitions[partition];
                let broadcast = owner.groups.iter().find(|it| it.is_broadcast());
                let suits = broadcast.is_some_and(|it| {
                    it.scope() == group.scope() && (it.mtu, it.rate) == (group.mtu, group.rate)
                });
                if !suits {
                    self.warn(
                        word,
                        "a broadcast group of the same scope, MTU and rate",
                        "the group is not created",
                    );
                    continue;
                }
            }
            self.add(partition, group, word);
        }
    }

    /// Adds a group, unless it is invalid or its MGID exists already.
    fn add(&mut self, partition: usize, group: Group, word: Word<'_>) {
        let known = self.partitions.iter().flat_map(|it| &it.groups);
        if known.into_iter().any(|it| it.mgid == group.mgid) {
            return;
        }
        let flags = group.mgid.0 >> 116 & 0xf;
        let signature = (group.mgid.0 >> 96) as u16;
        let so = "the group is not created";
        if !(1..=5).contains(&group.mtu.0) {
            self.warn(word, "an MTU code, 1 to 5", so);
        } else if group.rate.megabits_per_second().is_none() {
            self.warn(word, "a rate code, 2 to 23", so);
        } else if flags > 1 {
            self.warn(word, "a multicast GID without reserved flags", so);
        } else if signature == 0xa01b && group.scope() == 2 {
            self.warn(word, "a scope beyond link-local for signature 0xa01b", so);
        } else {
            self.partitions[partition].groups.push(group);
        }
    }
}

/// Returns a group whose attributes are given by the flags.
fn group(mgid: Gid, flags: &Flags, of_ip: bool) -> Group {
    Group {
        mgid,
        rate: RateCode(flags.rate.unwrap_or(RateCode::GBPS_10.0)),
        mtu: MtuCode(flags.mtu.unwrap_or(MtuCode::MTU_2048.0)),
        sl: flags.sl.unwrap_or(0),
        sl_of_partition: !flags.own_sl,
        q_key: flags.q_key.unwrap_or(if of_ip { 0xb1b } else { 0 }),
        traffic_class: flags.traffic_class.unwrap_or(0),
        flow_label: flags.flow_label.unwrap_or(0),
    }
}

/// Returns true if `word` is a prefix of `of`.
fn is_start(word: &str, of: &str) -> bool {
    of.starts_with(word)
}

fn membership(word: &str) -> Option<Membership> {
    let known =
        [("full", Membership::Full), ("limited", Membership::Limited), ("both", Membership::Both)];
    known.into_iter().find(|(name, _)| is_start(word, name)).map(|(_, membership)| membership)
}

/// Parses the number at the start of a word: hexadecimal after `0x`, octal after `0`. Returns the number, and true if
/// it is the whole word.
fn number(text: &str) -> Option<(u64, bool)> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let (radix, digits) = match hexadecimal {
        Some(digits) => (16, digits),
        None if digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let value = u64::from_str_radix(&digits[..end], radix).ok()?;
    Some((if sign { value.wrapping_neg() } else { value }, end == digits.len()))
}
