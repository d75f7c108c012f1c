//! Readers of fabric files.
//!
//! | format | source | function |
//! |---|---|---|
//! | [`Format::Ibnetdiscover`] | output of `ibnetdiscover`, also with `-p` | [`ibnetdiscover()`] |
//! | [`Format::Ibsim`] | net files of `ibsim`, written by hand or by [`crate::write()`] | [`ibsim()`], [`ibsim_with`] |
//! | [`Format::SubnetList`] | OpenSM's `opensm-subnet.lst` | [`subnet_list()`] |
//!
//! [`read`] detects the format. The readers are strict: if a file does not describe a complete and consistent fabric,
//! the error has the line and column. Examples are links that only one end declares, names of unknown nodes, and lines
//! that none of the tools writes. ibsim, for example, ignores many such lines.
//!
//! ```
//! let net = b"Switch 36 \"leaf\"\n[1] \"host\"[1]\n\nHca 1 \"host\"\n[1] \"leaf\"[1]\n";
//! let fabric = ib_topology::read("small.net", net)?;
//! assert_eq!((fabric.node_count(), fabric.link_count()), (2, 1));
//!
//! let error = ib_topology::read("small.net", &net[..net.len() - 3]).expect_err("the file is truncated");
//! assert_eq!(error.to_string(), "small.net:5:12: found the end of the line, expected a port number, 1 to 254");
//! # Ok::<(), ib_topology::ParseError>(())
//! ```

use crate::error::ParseError;
use crate::fabric::Fabric;
use crate::text::{Location, checked};

mod ibnetdiscover;
mod ibsim;
mod join;
mod port_list;
mod rate;
mod sniff;
mod subnet_list;

/// Limits of the reader for ibsim net files. The writer must respect them.
pub(crate) mod ibsim_limits {
    pub(crate) use super::ibsim::{MAX_DESCRIPTION, MAX_LINE, MAX_MODULE, MAX_NAME, UNQUOTED_ENDS};
}

/// Limits of the reader for subnet lists. The writer must respect them.
pub(crate) mod subnet_list_limits {
    pub(crate) use super::subnet_list::DESCRIPTION_END;
}

/// A format of fabric files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Output of `ibnetdiscover`. It contains active widths and speeds, and port GUIDs in parentheses.
    Ibnetdiscover,
    /// A net file of `ibsim`. It contains enabled widths and speeds. The port GUIDs follow from the node GUIDs.
    Ibsim,
    /// OpenSM's `opensm-subnet.lst`, with one line per direction of a link.
    SubnetList,
}

/// A file that an `include` line names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Included {
    /// The file's name in error messages. The [`Resolver`] gets this name as its first argument for every
    /// `include` line in the file.
    pub name: String,
    /// The contents of the file.
    pub bytes: Vec<u8>,
}

/// Callback that reads the file named by an `include` line.
///
/// The arguments are the name of the file with the `include` line, and the quoted name in this line. The callback
/// returns the file, or the reason why it cannot be read.
pub type Resolver<'r> = dyn FnMut(&str, &str) -> Result<Included, String> + 'r;

/// Reads a fabric file and detects its format.
///
/// If the first line starts with `{`, the file is a subnet list. The file is ibnetdiscover output if it has the header
/// of `ibnetdiscover`, port GUIDs in parentheses or lines of `ibnetdiscover -p`. All other files are ibsim net files.
/// `include` lines are errors; [`read_with`] supports them.
///
/// # Errors
/// Fails on the first line that is malformed or contradicts another line.
pub fn read(file_name: &str, bytes: &[u8]) -> Result<Fabric, ParseError> {
    read_with(file_name, bytes, &mut refuse_includes)
}

/// Reads a fabric file and detects its format. In ibsim net files, also reads the files named by `include` lines.
///
/// # Errors
/// Fails on the first line that is malformed or contradicts another line.
pub fn read_with(
    file_name: &str,
    bytes: &[u8],
    resolver: &mut Resolver<'_>,
) -> Result<Fabric, ParseError> {
    let text = checked(file_name, bytes)?;
    parse(sniff::format(text), file_name, text, resolver)
}

/// Reads a fabric file of the given format. `include` lines are errors.
///
/// # Errors
/// Fails on the first line that is malformed or contradicts another line.
pub fn read_as(format: Format, file_name: &str, bytes: &[u8]) -> Result<Fabric, ParseError> {
    parse(format, file_name, checked(file_name, bytes)?, &mut refuse_includes)
}

/// Reads the output of `ibnetdiscover`.
///
/// If the file has no GUID for a port of a channel adapter, the port gets the node GUID plus the port number. The speed
/// `???` is read as NDR, and the width `??` as 2x. Port lists (`-p`) are read, too. As they contain no node GUIDs, the
/// GUID of a port becomes the GUID of its node, and each port of a channel adapter becomes a separate node.
///
/// # Errors
/// Fails on the first line that is malformed or contradicts another line.
pub fn ibnetdiscover(file_name: &str, bytes: &[u8]) -> Result<Fabric, ParseError> {
    read_as(Format::Ibnetdiscover, file_name, bytes)
}

/// Reads a net file of `ibsim`. `include` lines are errors; [`ibsim_with`] supports them.
///
/// # Errors
/// Fails on the first line that is malformed or contradicts another line.
pub fn ibsim(file_name: &str, bytes: &[u8]) -> Result<Fabric, ParseError> {
    read_as(Format::Ibsim, file_name, bytes)
}

/// Reads a net file of `ibsim`, and the files named by its `include` lines.
///
/// Nodes and ports have the same GUIDs as in ibsim. A port of a channel adapter has the node GUID plus the port number,
/// even if the file has another GUID in parentheses. A port of a switch has the node GUID. If a node has no GUID line,
/// it gets the GUID after the highest GUID of the previous node of the same kind, including the ports of that node.
///
/// # Errors
/// Fails on the first line that is malformed or contradicts another line.
pub fn ibsim_with(
    file_name: &str,
    bytes: &[u8],
    resolver: &mut Resolver<'_>,
) -> Result<Fabric, ParseError> {
    parse(Format::Ibsim, file_name, checked(file_name, bytes)?, resolver)
}

/// Reads OpenSM's `opensm-subnet.lst`.
///
/// Nodes get the names that `ibnetdiscover` gives them. `SPD=??`, which OpenSM prints for speeds without a name, is
/// read as NDR, and `PHY=??` as 2x.
///
/// # Errors
/// Fails on the first line that is malformed or contradicts another line.
pub fn subnet_list(file_name: &str, bytes: &[u8]) -> Result<Fabric, ParseError> {
    read_as(Format::SubnetList, file_name, bytes)
}

fn refuse_includes(_including: &str, name: &str) -> Result<Included, String> {
    Err(format!("the file \"{name}\" needs a resolver for includes"))
}

fn parse(
    format: Format,
    file_name: &str,
    text: &str,
    resolver: &mut Resolver<'_>,
) -> Result<Fabric, ParseError> {
    let parsed = match format {
        Format::Ibnetdiscover => ibnetdiscover::parse(text),
        Format::SubnetList => subnet_list::parse(text),
        Format::Ibsim => return ibsim::parse(file_name, text, resolver),
    };
    let fabric = parsed.map_err(|fault| fault.at(file_name))?;
    not_empty(file_name, fabric)
}

/// Converts a number from a file to a smaller type. The caller must have checked the number's range.
fn narrow<T: TryFrom<u64>>(value: u64) -> T {
    T::try_from(value).ok().expect("the range was checked when the number was read")
}

fn not_empty(file_name: &str, fabric: Fabric) -> Result<Fabric, ParseError> {
    if fabric.node_count() > 0 {
        return Ok(fabric);
    }
    let start = Location { source: 0, line: 1, column: 1 };
    Err(start.fault("found no node in the file, expected at least one").at(file_name))
}

/// Returns true if a line is a message that infiniband-diags or its libraries print to stderr.
///
/// ```
/// use ib_topology::read::is_message;
///
/// assert!(is_message("ibwarn: [917] mad_rpc: _do_madrpc failed; dport (Lid 3)"));
/// assert!(is_message("ibroute: iberror: failed: dump tables: path lid"));
/// assert!(is_message("src/query_smp.c:197; umad (DR path slid 0; dlid 0; 0,1) bad status 110"));
/// assert!(!is_message("[1] \"host\"[1] # \"a: iberror: b.c:1; \""));
/// ```
#[must_use]
pub fn is_message(line: &str) -> bool {
    let Some((first, rest)) = line.split_once(' ') else { return false };
    if first.is_empty() || first.contains(['"', '#']) {
        return false;
    }
    let is_source_line =
        |(file, line): (&str, &str)| !file.is_empty() && line.chars().all(|c| c.is_ascii_digit());
    match first.strip_suffix(':') {
        Some("ibwarn") => true,
        Some(program) => !program.is_empty() && rest.starts_with("iberror: "),
        None => first
            .strip_suffix(';')
            .and_then(|place| place.split_once(".c:"))
            .is_some_and(is_source_line),
    }
}

#[cfg(test)]
mod tests;
