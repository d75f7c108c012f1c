//! Reads port lines: `[n] "remote"[m] options # comment` and `@[n]"alias" options # comment`.

use std::borrow::Cow;

use ib_types::{Guid, Lid, Lmc};

use super::{MAX_ALIAS, Parser, check_name, qualified};
use crate::fabric::PortId;
use crate::read::join::{LinkEnd, Remote, name};
use crate::read::narrow;
use crate::read::rate::{self, Enabled};
use crate::text::{Fault, Line};

impl<'a> Parser<'a> {
    /// Reads a port line.
    pub(super) fn port(&mut self, mut line: Line<'a>) -> Result<(), Fault> {
        let location = line.location();
        let Some(record) = self.record.as_ref() else {
            return Err(line.expected("a node before its ports"));
        };
        let (node, kind, ports) = (record.node, record.kind, record.ports);
        let mut enabled = record.enabled;
        let is_alias = line.eat("@");
        line.demand("[")?;
        let number = line.decimal("a port of this node", 1, u64::from(ports))?;
        let number: u8 = narrow(number);
        line.demand("]")?;
        line.guid_in_parentheses()?;
        line.skip_blanks();
        let port = self.net.fabric.port_id(node, number);
        let port = port.expect("the number was checked against the node's ports");
        let remote_column = line.location().column;
        let (remote, remote_port) =
            if is_alias { (self.alias(&mut line, port)?, 0) } else { self.remote(&mut line)? };
        options(&mut line, &mut enabled)?;
        let lid = comment(line, &mut enabled)?;
        if !kind.is_switch() && lid != (None, Lmc::ZERO) {
            self.net.set_lid(location, node, number, lid)?;
        }
        self.net.declare(LinkEnd {
            location,
            remote_column,
            port,
            remote,
            remote_port,
            guid: Guid::ZERO,
            remote_guid: Guid::ZERO,
            remote_lid: None,
            rate: enabled,
        })?;
        if let Some(record) = self.record.as_mut() {
            record.lines_left = record.lines_left.saturating_sub(1);
        }
        self.record.take_if(|record| record.lines_left == 0);
        Ok(())
    }

    /// Reads the alias in a port line, and assigns it to the port.
    fn alias(&mut self, line: &mut Line<'a>, port: PortId) -> Result<Remote<'a>, Fault> {
        let start = *line;
        let alias = line.quoted("an alias")?;
        check_name(start, alias)?;
        let alias = format!("{}@{alias}", self.module);
        if alias.len() > MAX_ALIAS {
            return Err(start.expected(&format!(
                "an alias of up to {MAX_ALIAS} bytes, including the module: ibsim truncates longer ones"
            )));
        }
        if let Some(&first) = self.aliases.get(&alias) {
            let (node, number) = name(&self.net.fabric, first);
            return Err(start.expected(&format!(
                "an alias that port {number} of \"{node}\" does not have already"
            )));
        }
        self.aliases.insert(alias, port);
        Ok(Remote::Awaited)
    }

    /// Reads the other end of a link: `"id"[m]` or `"@alias"`. Without `[m]`, the port number is 1.
    fn remote(&mut self, line: &mut Line<'a>) -> Result<(Remote<'a>, u8), Fault> {
        let start = *line;
        let text = line.quoted("the name of the node at the other end")?;
        if text.contains('@') {
            let alias = if text.starts_with('@') {
                Cow::Owned(format!("{}{text}", self.module))
            } else {
                Cow::Borrowed(text)
            };
            let Some(&port) = self.aliases.get(alias.as_ref()) else {
                return Err(start.expected("an alias defined on a line above"));
            };
            if line.peek() == Some(b'[') {
                return Err(line.expected("no port number: an alias stands for one port"));
            }
            return Ok((Remote::Alias(port), 0));
        }
        let remote =
            if text.contains('#') { Cow::Borrowed(text) } else { qualified(self.module, text) };
        let mut remote_port = 1;
        if line.eat("[") {
            let number = line.decimal("a port number", 1, 254)?;
            remote_port = narrow(number);
            line.demand("]")?;
            line.guid_in_parentheses()?;
        }
        Ok((Remote::Node(remote), remote_port))
    }
}

/// Reads the options of a port line, which are before the comment.
fn options(line: &mut Line<'_>, enabled: &mut Enabled) -> Result<(), Fault> {
    loop {
        line.skip_blanks();
        match line.peek() {
            None | Some(b'#') => return Ok(()),
            Some(b'[') => {
                return Err(line.expected(
                    "the port number directly after the name: otherwise ibsim reads port 1",
                ));
            }
            Some(_) => {}
        }
        let start = *line;
        let option = line.letters();
        let is_known = matches!(option, "w" | "s" | "e") && line.eat("=");
        if !is_known {
            return Err(start.expected("one of the options `w=`, `s=` and `e=`, or a comment"));
        }
        set_option(option.as_bytes()[0], line, enabled)?;
        if !matches!(line.peek(), None | Some(b' ' | b'\t' | b'#')) {
            return Err(line.expected("a blank after an option"));
        }
    }
}

/// Reads the value of an option and applies it.
fn set_option(letter: u8, line: &mut Line<'_>, enabled: &mut Enabled) -> Result<(), Fault> {
    let mut value = |expected, min, max| line.number(expected, min, max).map(narrow);
    match letter {
        b'w' => enabled.width = value("a mask of widths", 1, 31)?,
        b's' => {
            let speeds = value("a mask of speeds", 0, 7)?;
            // In ibsim, a mask of zero enables QDR.
            enabled.speed = if speeds == 0 { 4 } else { speeds };
        }
        _ => enabled.extended = value("a mask of extended speeds", 0, 15)?,
    }
    Ok(())
}

/// Reads the comment of a port line, if it has one. Returns the LID and LMC of the port.
///
/// As in ibsim, options in the comment apply, and `lid L 4xHDR` after the last quote enables this width and speed.
/// Other text in the comment is skipped.
fn comment(mut line: Line<'_>, enabled: &mut Enabled) -> Result<(Option<Lid>, Lmc), Fault> {
    let start = line.position();
    let whole = line.rest().as_bytes();
    let mut quotes = None;
    for (at, &byte) in whole.iter().enumerate() {
        match byte {
            b'"' => quotes = Some((quotes.map_or(at, |(first, _)| first), at)),
            b'=' => option_in_comment(line, start + at, enabled)?,
            _ => {}
        }
    }
    let (own_end, remote_start) =
        quotes.map_or((whole.len(), 0), |(first, last)| (first, last + 1));
    if let Some(at) = find(&whole[remote_start..], *b"lid") {
        line.seek(start + remote_start + at + "lid".len());
        line.skip_blanks();
        if line.peek().is_some_and(|b| b.is_ascii_digit()) {
            line.lid()?;
            line.skip_blanks();
            if matches!(line.peek(), Some(b'0'..=b'9' | b'?')) {
                enabled.set(rate::rate(&mut line)?);
            }
        }
    }
    let number_behind = |word: [u8; 4]| {
        let mut line = line;
        line.seek(start + find(&whole[..own_end], word)? + word.len());
        line.skip_blanks();
        line.peek().is_some_and(|b| b.is_ascii_digit()).then_some(line)
    };
    let lid = number_behind(*b"lid ").map_or(Ok(None), |mut line| line.lid())?;
    let lmc = number_behind(*b"lmc ").map_or(Ok(Lmc::ZERO), |mut line| line.lmc())?;
    Ok((lid, lmc))
}

/// Finds a short word in a comment. This is faster than `str::find`, whose set-up takes longer than the search.
fn find<const N: usize>(text: &[u8], word: [u8; N]) -> Option<usize> {
    text.windows(N).position(|window| window.iter().eq(&word))
}

/// Handles a `=` in a comment. If the nearest letter before the `=` is the letter of an option, ibsim takes the letter
/// and the number after the `=` for this option. This reader applies the option, too.
fn option_in_comment(
    mut line: Line<'_>,
    equals: usize,
    enabled: &mut Enabled,
) -> Result<(), Fault> {
    let before = line.text()[..equals].bytes().rev().find(u8::is_ascii_alphabetic);
    let Some(letter @ (b'w' | b's' | b'e')) = before else { return Ok(()) };
    line.seek(equals + 1);
    line.skip_blanks();
    set_option(letter, &mut line, enabled).map_err(|mut fault| {
        fault.message.push_str(&format!(
            ": ibsim takes `{}=` in a comment for an option",
            char::from(letter)
        ));
        fault
    })
}
