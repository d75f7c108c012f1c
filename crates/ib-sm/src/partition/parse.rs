//! The reader of partition files.

use std::collections::BTreeSet;
use std::str::FromStr;

use ib_topology::ParseError;
use ib_topology::text::checked;
use ib_types::{Guid, NodeKind, PKey};
use ib_wire::mad::sa::RateCode;
use ib_wire::mad::sm::MtuCode;

use super::{Broadcast, Membership, Partition, Who};

/// A word of the file and where it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token<'t> {
    text: &'t str,
    line: usize,
    column: usize,
}

/// Reads a partition file.
///
/// # Errors
/// Fails at the first thing that is not as the notation wants it, at keys that stand twice and when
/// there are no keys left.
pub fn parse(file_name: &str, bytes: &[u8]) -> Result<Vec<Partition>, ParseError> {
    let text = checked(file_name, bytes)?;
    let tokens = tokens(text);
    let mut reader =
        Reader { file: file_name, tokens: &tokens, at: 0, end: text.lines().count().max(1) };
    let mut partitions = Vec::new();
    let mut keys = BTreeSet::new();
    while reader.peek().is_some() {
        let partition = reader.partition(&mut keys)?;
        partitions.push(partition);
    }
    Ok(partitions)
}

/// Splits a file into words and the signs between them; comments are left out.
fn tokens(text: &str) -> Vec<Token<'_>> {
    const SIGNS: &str = ",:;=";
    let mut tokens = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let code = line.split('#').next().unwrap_or("");
        let mut start = None;
        for (at, sign) in code.char_indices().chain([(code.len(), ' ')]) {
            let ends = sign.is_whitespace() || SIGNS.contains(sign);
            if ends && let Some(from) = start.take() {
                let column = code[..from].chars().count() + 1;
                tokens.push(Token { text: &code[from..at], line: number + 1, column });
            }
            if !ends {
                start.get_or_insert(at);
            } else if SIGNS.contains(sign) {
                let column = code[..at].chars().count() + 1;
                let text = &code[at..at + sign.len_utf8()];
                tokens.push(Token { text, line: number + 1, column });
            }
        }
    }
    tokens
}

struct Reader<'t> {
    file: &'t str,
    tokens: &'t [Token<'t>],
    at: usize,
    end: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<Token<'t>> {
        self.tokens.get(self.at).copied()
    }

    /// Takes a sign or word when it is next.
    fn eat(&mut self, text: &str) -> bool {
        let eaten = self.peek().is_some_and(|token| token.text == text);
        self.at += usize::from(eaten);
        eaten
    }

    fn error(&self, token: Option<Token<'_>>, expected: &str) -> ParseError {
        let (line, column, found) = match token {
            Some(token) => (token.line, token.column, format!("`{}`", token.text)),
            None => (self.end, 1, "the end of the file".to_owned()),
        };
        let message = format!("found {found}, expected {expected}");
        ParseError { file: self.file.to_owned(), line, column, message }
    }

    fn want(&mut self, sign: &str, expected: &str) -> Result<(), ParseError> {
        if self.eat(sign) { Ok(()) } else { Err(self.error(self.peek(), expected)) }
    }

    /// Takes a word that is no sign.
    fn word(&mut self, expected: &str) -> Result<Token<'t>, ParseError> {
        match self.peek() {
            Some(token) if !",:;=".contains(token.text) => {
                self.at += 1;
                Ok(token)
            }
            token => Err(self.error(token, expected)),
        }
    }

    /// Takes `=` and a number in a range.
    fn number(
        &mut self,
        what: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<u64, ParseError> {
        let expected = format!("{what}, {:#x} to {:#x}", range.start(), range.end());
        self.want("=", &format!("`=` and {expected}"))?;
        let token = self.word(&expected)?;
        let value = number(token.text).filter(|value| range.contains(value));
        value.ok_or_else(|| self.error(Some(token), &expected))
    }

    fn partition(&mut self, keys: &mut BTreeSet<u16>) -> Result<Partition, ParseError> {
        let name = self.word("the name of a partition")?;
        let mut key = None;
        if self.eat("=") {
            let token = self.word("a P_Key")?;
            let value = number(token.text).filter(|value| *value <= 0xffff);
            let value = value.map(|value| PKey(value as u16).partition()).filter(|&key| key > 0);
            let expected = "a P_Key, 0x1 to 0x7fff";
            let value = value.ok_or_else(|| self.error(Some(token), expected))?;
            if !keys.insert(value) {
                return Err(self.error(Some(token), "a P_Key that no other partition has"));
            }
            key = Some(value);
        } else if name.text == "Default" && keys.insert(PKey::DEFAULT.partition()) {
            key = Some(PKey::DEFAULT.partition());
        }
        let key = match key {
            Some(key) => key,
            None => {
                let free = (1..PKey::DEFAULT.partition()).find(|key| !keys.contains(key));
                let free = free.ok_or_else(|| self.error(Some(name), "a free P_Key"))?;
                keys.insert(free);
                free
            }
        };
        let mut partition = Partition {
            name: name.text.to_owned(),
            key,
            ipoib: None,
            sl: 0,
            first: false,
            members: Vec::new(),
        };
        let mut default = Membership::Limited;
        let mut broadcast = Broadcast::default();
        let mut ipoib = false;
        while self.eat(",") {
            self.flag(&mut partition, &mut broadcast, &mut ipoib, &mut default)?;
        }
        partition.ipoib = ipoib.then_some(broadcast);
        if self.eat(":") {
            while !self.eat(";") {
                self.member(&mut partition, default)?;
                if !self.eat(",") {
                    self.want(";", "`,` and another member, or `;`")?;
                    break;
                }
            }
        } else {
            self.want(";", "`,` and a flag, `:` and members, or `;`")?;
        }
        Ok(partition)
    }

    fn flag(
        &mut self,
        partition: &mut Partition,
        broadcast: &mut Broadcast,
        ipoib: &mut bool,
        default: &mut Membership,
    ) -> Result<(), ParseError> {
        const FLAGS: &str =
            "one of ipoib, indx0, rate, mtu, sl, scope, Q_Key, TClass, FlowLabel, defmember";
        let token = self.word(FLAGS)?;
        match token.text {
            "ipoib" => *ipoib = true,
            "indx0" => partition.first = true,
            "rate" => {
                let codes = (u64::from(RateCode::GBPS_2_5.0), u64::from(RateCode::GBPS_1200.0));
                broadcast.rate = RateCode(self.number("a rate code", codes.0..=codes.1)? as u8);
            }
            "mtu" => broadcast.mtu = MtuCode(self.number("an MTU code", 1..=5)? as u8),
            "sl" => partition.sl = self.number("a service level", 0..=15)? as u8,
            "scope" => broadcast.scope = self.number("a scope", 1..=14)? as u8,
            "Q_Key" => broadcast.q_key = self.number("a Q_Key", 0..=u64::from(u32::MAX))? as u32,
            "TClass" => broadcast.traffic_class = self.number("a traffic class", 0..=255)? as u8,
            "FlowLabel" => broadcast.flow_label = self.number("a flow label", 0..=0xf_ffff)? as u32,
            "defmember" => {
                self.want("=", "`=` and full, limited or both")?;
                *default = self.membership()?;
            }
            _ => return Err(self.error(Some(token), FLAGS)),
        }
        Ok(())
    }

    fn membership(&mut self) -> Result<Membership, ParseError> {
        let expected = "full, limited or both";
        let token = self.word(expected)?;
        match token.text {
            "full" => Ok(Membership::Full),
            "limited" => Ok(Membership::Limited),
            "both" => Ok(Membership::Both),
            _ => Err(self.error(Some(token), expected)),
        }
    }

    fn member(&mut self, partition: &mut Partition, default: Membership) -> Result<(), ParseError> {
        let expected = "a port GUID, ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS or SELF";
        let token = self.word(expected)?;
        let who = match token.text {
            "ALL" => Who::All,
            "ALL_CAS" => Who::Kind(NodeKind::ChannelAdapter),
            "ALL_SWITCHES" => Who::Kind(NodeKind::Switch),
            "ALL_ROUTERS" => Who::Kind(NodeKind::Router),
            "SELF" => Who::Manager,
            text => {
                let guid = Guid::from_str(text).ok().filter(|guid| !guid.is_zero());
                Who::Port(guid.ok_or_else(|| self.error(Some(token), expected))?)
            }
        };
        let membership = if self.eat("=") { self.membership()? } else { default };
        partition.members.push((who, membership));
        Ok(())
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
