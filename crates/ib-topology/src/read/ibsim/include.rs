//! Loads a net file, and the files that its `include` lines name.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::ParseError;
use crate::read::Resolver;
use crate::text::{Fault, Line, Lines, checked};

/// Maximum depth of nested files in ibsim, including the first file.
const MAX_DEPTH: usize = 9;
/// Maximum number of files of a fabric. It limits the work if files include others repeatedly.
const MAX_FILES: usize = 1000;

/// The files of a fabric, divided into parts at their `include` lines.
pub(super) struct Files<'t> {
    sources: Vec<Source<'t>>,
    chunks: Vec<Span>,
}

struct Source<'t> {
    name: String,
    text: Cow<'t, str>,
}

/// A part of a file, which ends at an `include` line or at the end of the file.
struct Span {
    source: usize,
    range: Range<usize>,
    first_line: u32,
    /// The byte range of the `include` line that ends this part.
    include: Option<Range<usize>>,
    lines: u32,
}

/// A part of a file, with its text.
pub(super) struct Chunk<'f> {
    pub(super) text: &'f str,
    pub(super) source: u32,
    pub(super) first_line: u32,
    /// The `include` line that ends this part.
    pub(super) include: Option<Line<'f>>,
}

/// Loads a net file and all files that it includes.
pub(super) fn load<'t>(
    file_name: &str,
    text: &'t str,
    resolver: &mut Resolver<'_>,
) -> Result<Files<'t>, ParseError> {
    let first = Source { name: file_name.to_owned(), text: Cow::Borrowed(text) };
    let mut files = Files { sources: vec![first], chunks: Vec::new() };
    files.cut(0, &mut Vec::new(), resolver)?;
    Ok(files)
}

impl<'t> Files<'t> {
    /// Returns the name of a file.
    pub(super) fn name(&self, source: u32) -> &str {
        &self.sources[source as usize].name
    }

    /// Returns the total length of all files in bytes.
    pub(super) fn length(&self) -> usize {
        self.sources.iter().map(|source| source.text.len()).sum()
    }

    /// Returns the parts of all files in the order in which they must be read.
    pub(super) fn chunks(&self) -> impl Iterator<Item = Chunk<'_>> {
        self.chunks.iter().map(|span| {
            let text = &self.sources[span.source].text;
            let source = u32::try_from(span.source).unwrap_or(u32::MAX);
            let include = span.include.clone().and_then(|range| {
                Lines::new(&text[range], source, span.first_line + span.lines).next()
            });
            Chunk { text: &text[span.range.clone()], source, first_line: span.first_line, include }
        })
    }

    /// Divides a file at its `include` lines, and loads the files that these lines name.
    ///
    /// `source` is the index of the file. `open` contains the indices of the files through which it is included,
    /// outermost first.
    fn cut(
        &mut self,
        source: usize,
        open: &mut Vec<usize>,
        resolver: &mut Resolver<'_>,
    ) -> Result<(), ParseError> {
        open.push(source);
        let (mut start, mut first_line) = (0, 1);
        while let Some(at) = next_include(&self.sources[source].text, start) {
            let text = &self.sources[source].text;
            let end = text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
            let lines = text[start..at].bytes().filter(|&b| b == b'\n').count();
            let lines = u32::try_from(lines).unwrap_or(u32::MAX);
            let include = Some(at..end);
            self.chunks.push(Span { source, range: start..at, first_line, include, lines });
            let included = self.include(source, at..end, first_line + lines, open, resolver)?;
            self.sources.push(included);
            self.cut(self.sources.len() - 1, open, resolver)?;
            (start, first_line) = (end, first_line.saturating_add(lines).saturating_add(1));
        }
        let range = start..self.sources[source].text.len();
        self.chunks.push(Span { source, range, first_line, include: None, lines: 0 });
        open.pop();
        Ok(())
    }

    /// Loads the file that an `include` line names.
    fn include(
        &self,
        source: usize,
        range: Range<usize>,
        number: u32,
        open: &[usize],
        resolver: &mut Resolver<'_>,
    ) -> Result<Source<'t>, ParseError> {
        let including = &self.sources[source];
        let line = Lines::new(&including.text[range], 0, number).next();
        let mut line = line.expect("the range starts with `include`");
        let fail = |fault: Fault| fault.at(&including.name);
        line.letters();
        line.skip_blanks();
        let location = line.location();
        let name = line.quoted("the name of a file").map_err(fail)?;
        line.end("the end of the line").map_err(fail)?;
        if open.len() >= MAX_DEPTH {
            let message =
                format!("found an include, expected files nested at most {MAX_DEPTH} deep");
            return Err(fail(location.fault(message)));
        }
        if self.sources.len() >= MAX_FILES {
            let message = format!("found an include, expected at most {MAX_FILES} files");
            return Err(fail(location.fault(message)));
        }
        let found = resolver(&including.name, name).map_err(|why| {
            fail(location.fault(format!("found an include, expected a file to read: {why}")))
        })?;
        if open.iter().any(|&index| self.sources[index].name == found.name) {
            let message = format!("found an include of \"{name}\", which includes this file");
            return Err(fail(location.fault(message)));
        }
        let text = checked(&found.name, &found.bytes)?.to_owned();
        Ok(Source { name: found.name, text: Cow::Owned(text) })
    }
}

/// Finds the next line that starts with `include`. Returns its byte offset.
fn next_include(text: &str, from: usize) -> Option<usize> {
    const KEYWORD: &str = "include";
    let rest = &text[from..];
    if rest.starts_with(KEYWORD) {
        return Some(from);
    }
    rest.match_indices(KEYWORD)
        .map(|(at, _)| from + at)
        .find(|&at| text.as_bytes()[at - 1] == b'\n')
}

#[cfg(test)]
mod tests;
