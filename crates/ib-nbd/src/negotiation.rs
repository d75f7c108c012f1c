//! The handshake. The client sends options until it has chosen a device.
//!
//! ```text
//! option: magic u64 | option u32 | length u32 | data
//! reply:  magic u64 | option u32 | type u32 | length u32 | data
//! ```

use super::session::{Export, MAX_DATA, NbdError, Session, Stage};
use super::wire::{self, flags, handshake, info, option, reply};

/// Maximum length in bytes of the data of an option.
const MAX_OPTION: u32 = 8 << 10;

/// If an option is refused, at most this many bytes of its data are skipped. If its data is longer, the connection
/// ends.
const MAX_SKIPPED: u32 = 16 << 20;

/// Length in bytes of the header of an option, which precedes its data.
const HEADER: usize = 16;

impl Session {
    /// Processes the client's flags and options that have arrived, until the client chooses a device.
    pub(super) fn negotiate(&mut self) {
        loop {
            let has_more = match self.stage {
                Stage::Flags => self.take_flags(),
                Stage::Options => self.take_option(),
                Stage::Requests(_) | Stage::Over => false,
            };
            if !has_more {
                return;
            }
        }
    }

    fn take_flags(&mut self) -> bool {
        let Some(bytes) = self.input.peek() else { return false };
        let found = u32::from_be_bytes(*bytes);
        self.input.take(4);
        if found & !u32::from(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES) != 0 {
            self.fail(NbdError::ClientFlags(found));
            return false;
        }
        self.no_zeroes = found & u32::from(handshake::NO_ZEROES) != 0;
        self.stage = Stage::Options;
        true
    }

    /// Processes the next option if all of it has arrived. Returns true if a further option may have arrived.
    fn take_option(&mut self) -> bool {
        if !self.skip() {
            return false;
        }
        let Some(header) = self.input.peek::<HEADER>() else { return false };
        let word =
            |at: usize| u32::from_be_bytes(*header[at..].first_chunk().expect("4 bytes follow"));
        let magic = u64::from_be_bytes(*header.first_chunk().expect("the header has 16 bytes"));
        let (number, length) = (word(8), word(12));
        if magic != wire::OPTION_MAGIC {
            self.fail(NbdError::OptionMagic(magic));
            return false;
        }
        if length > MAX_OPTION {
            if length > MAX_SKIPPED || number == option::EXPORT_NAME {
                self.fail(NbdError::OptionLength { option: number, length, most: MAX_OPTION });
                return false;
            }
            self.input.take(HEADER);
            self.skipped = length as usize;
            self.reply_text(number, reply::ERR_TOO_BIG, "the option is too long");
            return true;
        }
        let whole = HEADER + length as usize;
        if self.input.len() < whole {
            return false;
        }
        let data = self.input.take(whole)[HEADER..].to_vec();
        self.answer(number, &data);
        self.stage == Stage::Options
    }

    fn answer(&mut self, number: u32, data: &[u8]) {
        match number {
            option::EXPORT_NAME => self.export_name(data),
            option::ABORT => {
                self.reply_option(number, reply::ACK, &[]);
                self.stage = Stage::Over;
            }
            option::LIST if data.is_empty() => self.list(),
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.structured = true;
                self.reply_option(number, reply::ACK, &[]);
            }
            option::LIST | option::STRUCTURED_REPLY => {
                self.reply_text(number, reply::ERR_INVALID, "expected an option without data");
            }
            option::INFO | option::GO => self.info(number, data),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.contexts(number, data),
            _ => self.reply_text(number, reply::ERR_UNSUP, "unknown option"),
        }
    }

    /// Returns the index of the device with the given name. An empty name stands for the first device.
    fn find(&self, name: &[u8]) -> Option<usize> {
        if name.is_empty() {
            return Some(0);
        }
        self.exports.iter().position(|export| export.name.as_bytes() == name)
    }

    fn export_name(&mut self, name: &[u8]) {
        let Some(found) = self.find(name) else {
            return self.fail(NbdError::NoExport(String::from_utf8_lossy(name).into_owned()));
        };
        let export = &self.exports[found];
        self.output.extend(export.geometry.size.to_be_bytes());
        self.output.extend(export_flags(export, self.structured).to_be_bytes());
        if !self.no_zeroes {
            self.output.extend([0; 124]);
        }
        self.stage = Stage::Requests(found);
    }

    fn list(&mut self) {
        for export in self.exports.clone().iter() {
            let mut data = (export.name.len() as u32).to_be_bytes().to_vec();
            data.extend(export.name.as_bytes());
            data.extend(export.description.as_bytes());
            self.reply_option(option::LIST, reply::SERVER, &data);
        }
        self.reply_option(option::LIST, reply::ACK, &[]);
    }

    fn info(&mut self, number: u32, data: &[u8]) {
        let Some((name, asked)) = parse_info(data) else {
            let text = "expected a name and a list of information types";
            return self.reply_text(number, reply::ERR_INVALID, text);
        };
        let Some(found) = self.find(name) else {
            return self.reply_text(number, reply::ERR_UNKNOWN, "there is no such device");
        };
        let exports = self.exports.clone();
        let export = &exports[found];
        let flags = export_flags(export, self.structured);
        let mut tell = |kind: u16, rest: &[u8]| {
            let data = [&kind.to_be_bytes(), rest].concat();
            self.reply_option(number, reply::INFO, &data);
        };
        tell(
            info::EXPORT,
            &[&export.geometry.size.to_be_bytes()[..], &flags.to_be_bytes()].concat(),
        );
        if asked.contains(&info::NAME) {
            tell(info::NAME, export.name.as_bytes());
        }
        if asked.contains(&info::DESCRIPTION) {
            tell(info::DESCRIPTION, export.description.as_bytes());
        }
        // Block sizes are sent even if the client has not requested them, because requests with other sizes are
        // refused.
        let sizes = [export.geometry.logical_block, export.preferred, MAX_DATA];
        tell(info::BLOCK_SIZE, &sizes.map(u32::to_be_bytes).concat());
        self.reply_option(number, reply::ACK, &[]);
        if number == option::GO {
            self.stage = Stage::Requests(found);
        }
    }

    /// Replies with an empty list of metadata contexts, since the server provides none.
    fn contexts(&mut self, number: u32, data: &[u8]) {
        if !self.structured {
            let text = "metadata contexts require structured replies, which were not negotiated";
            return self.reply_text(number, reply::ERR_INVALID, text);
        }
        let Some(name) = parse_contexts(data) else {
            let text = "expected a name and a list of metadata contexts";
            return self.reply_text(number, reply::ERR_INVALID, text);
        };
        match self.find(name) {
            Some(_) => self.reply_option(number, reply::ACK, &[]),
            None => self.reply_text(number, reply::ERR_UNKNOWN, "there is no such device"),
        }
    }

    fn reply_text(&mut self, number: u32, kind: u32, text: &str) {
        self.reply_option(number, kind, text.as_bytes());
    }

    fn reply_option(&mut self, number: u32, kind: u32, data: &[u8]) {
        self.output.extend(wire::REPLY_MAGIC.to_be_bytes());
        for word in [number, kind, data.len() as u32] {
            self.output.extend(word.to_be_bytes());
        }
        self.output.extend(data);
    }
}

/// Returns the flags that describe a device to the client.
fn export_flags(export: &Export, structured: bool) -> u16 {
    let geometry = &export.geometry;
    let always = flags::HAS_FLAGS | flags::SEND_FLUSH | flags::CAN_MULTI_CONN;
    let one_piece = if structured { flags::SEND_DF } else { 0 };
    let writes = if geometry.read_only {
        flags::READ_ONLY
    } else {
        let trim = if geometry.discard.is_some() { flags::SEND_TRIM } else { 0 };
        flags::SEND_FUA | flags::SEND_WRITE_ZEROES | trim
    };
    always | one_piece | writes
}

/// Parses a length and a name of this length; returns the name and the bytes that follow.
fn parse_name(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_first_chunk()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

/// Returns the name of the device and the types of information that the client requests.
fn parse_info(data: &[u8]) -> Option<(&[u8], Vec<u16>)> {
    let (name, rest) = parse_name(data)?;
    let (count, rest) = rest.split_first_chunk()?;
    let (asked, behind) = rest.as_chunks::<2>();
    let count = usize::from(u16::from_be_bytes(*count));
    let fits = behind.is_empty() && asked.len() == count;
    fits.then(|| (name, asked.iter().map(|asked| u16::from_be_bytes(*asked)).collect()))
}

/// Parses the data of an option about metadata contexts; returns the name of the device. The contexts are ignored, but
/// their lengths must be valid.
fn parse_contexts(data: &[u8]) -> Option<&[u8]> {
    let (name, rest) = parse_name(data)?;
    let (count, mut rest) = rest.split_first_chunk()?;
    for _ in 0..u32::from_be_bytes(*count) {
        (_, rest) = parse_name(rest)?;
    }
    rest.is_empty().then_some(name)
}
