//! Readers of the files that describe a fabric.
//!
//! | format | where it comes from | function |
//! |---|---|---|
//! | [`Format::Ibnetdiscover`] | `ibnetdiscover` on a running fabric, also with `-p` | [`ibnetdiscover()`] |
//! | [`Format::Ibsim`] | net files written for `ibsim`, by hand or by [`crate::write()`] | [`ibsim()`], [`ibsim_with`] |
//! | [`Format::SubnetList`] | OpenSM's `opensm-subnet.lst` | [`subnet_list()`] |
//!
//! [`read`] finds out which one it has. The readers are strict: a file either describes a whole
//! fabric without contradiction, or it is refused with the line and column of what is wrong. A
//! link that only one end declares, a name that no node has and a line that none of the tools
//! writes are all refused, where the tools themselves often go on in silence.
//!
//! ```
//! let net = b"Switch 36 \"leaf\"\n[1] \"host\"[1]\n\nHca 1 \"host\"\n[1] \"leaf\"[1]\n";
//! let fabric = ib_topology::read("small.net", net)?;
//! assert_eq!((fabric.node_count(), fabric.link_count()), (2, 1));
//!
//! let error = ib_topology::read("small.net", &net[..net.len() - 3]).expect_err("it is cut");
//! assert_eq!(error.to_string(), "small.net:5:12: found the end of the line, expected a port number, 1 to 254");
//! # Ok::<(), ib_topology::ParseError>(())
//! ```

use crate::error::ParseError;
use crate::fabric::Fabric;

mod ibnetdiscover;
mod ibsim;
mod join;
mod message;
mod port_list;
mod rate;
mod sniff;
mod subnet_list;

pub use message::is_message;

use crate::text::{Place, checked};

/// What ibsim's own reader imposes on the writer.
pub(crate) mod ibsim_limits {
    pub(crate) use super::ibsim::{MAX_DESCRIPTION, MAX_LINE, MAX_MODULE, MAX_NAME, UNQUOTED_ENDS};
}

/// What the reader of subnet lists imposes on their writer.
pub(crate) mod subnet_list_limits {
    pub(crate) use super::subnet_list::DESCRIPTION_END;
}

/// A format of fabric files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// What `ibnetdiscover` prints: active rates, port GUIDs in parentheses.
    Ibnetdiscover,
    /// A net file of `ibsim`: enabled rates, port GUIDs that follow from the node's.
    Ibsim,
    /// OpenSM's `opensm-subnet.lst`: a line per direction of a link.
    SubnetList,
}

/// A file that an `include` line names, as a resolver found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Included {
    /// The name by which errors and nested includes refer to the file.
    pub name: String,
    /// What the file holds.
    pub bytes: Vec<u8>,
}

/// What finds the file of an `include` line: it is given the name of the including file and the
/// name that the line has in quotes, and returns the file or why there is none.
pub type Resolver<'r> = dyn FnMut(&str, &str) -> Result<Included, String> + 'r;

/// Reads a fabric file of any format.
///
/// The format is found out from the text: a first line that starts with `{` makes it a subnet
/// list; a header of `ibnetdiscover`, port GUIDs in parentheses or the lines of `ibnetdiscover -p`
/// make it ibnetdiscover output;
/// everything else is a net file of ibsim. `include` lines are refused: see [`read_with`].
///
/// # Errors
/// Fails on the first thing in the file that is malformed or contradicts another.
pub fn read(file_name: &str, bytes: &[u8]) -> Result<Fabric, ParseError> {
    read_with(file_name, bytes, &mut refuse_includes)
}

/// Reads a fabric file of any format, following `include` lines of ibsim net files.
///
/// # Errors
/// Fails on the first thing in the files that is malformed or contradicts another.
pub fn read_with(
    file_name: &str,
    bytes: &[u8],
    resolver: &mut Resolver<'_>,
) -> Result<Fabric, ParseError> {
    let text = checked(file_name, bytes)?;
    parse(sniff::format(text), file_name, text, resolver)
}

/// Reads a fabric file of a given format; `include` lines are refused.
///
/// # Errors
/// Fails on the first thing in the file that is malformed or contradicts another.
pub fn read_as(format: Format, file_name: &str, bytes: &[u8]) -> Result<Fabric, ParseError> {
    parse(format, file_name, checked(file_name, bytes)?, &mut refuse_includes)
}

/// Reads what `ibnetdiscover` prints.
///
/// A port of a channel adapter whose GUID the file never states gets the node GUID plus the port
/// number. A speed that is printed as `???` is taken for NDR and a width `??` for 2x. Lists of
/// ports (`-p`) are read too: they have no node GUIDs, so a node has the GUID of its port, and each
/// port of a channel adapter is a node of its own.
///
/// # Errors
/// Fails on the first thing in the file that is malformed or contradicts another.
pub fn ibnetdiscover(file_name: &str, bytes: &[u8]) -> Result<Fabric, ParseError> {
    read_as(Format::Ibnetdiscover, file_name, bytes)
}

/// Reads a net file of `ibsim`; `include` lines are refused.
///
/// # Errors
/// Fails on the first thing in the file that is malformed or contradicts another.
pub fn ibsim(file_name: &str, bytes: &[u8]) -> Result<Fabric, ParseError> {
    read_as(Format::Ibsim, file_name, bytes)
}

/// Reads a net file of `ibsim` and the files that it includes.
///
/// GUIDs are those that ibsim gives: a node without a GUID line is numbered from the last one of
/// its kind, a channel adapter's port has the node GUID plus the port number whatever stands in
/// parentheses, and a switch's port has the node GUID.
///
/// # Errors
/// Fails on the first thing in the files that is malformed or contradicts another.
pub fn ibsim_with(
    file_name: &str,
    bytes: &[u8],
    resolver: &mut Resolver<'_>,
) -> Result<Fabric, ParseError> {
    parse(Format::Ibsim, file_name, checked(file_name, bytes)?, resolver)
}

/// Reads OpenSM's `opensm-subnet.lst`.
///
/// Nodes are named as `ibnetdiscover` names them. `SPD=??`, which OpenSM prints for every speed
/// above HDR, is taken for NDR, and `PHY=??` for 2x.
///
/// # Errors
/// Fails on the first thing in the file that is malformed or contradicts another.
pub fn subnet_list(file_name: &str, bytes: &[u8]) -> Result<Fabric, ParseError> {
    read_as(Format::SubnetList, file_name, bytes)
}

fn refuse_includes(_including: &str, name: &str) -> Result<Included, String> {
    Err(format!("the file \"{name}\" cannot be looked up here"))
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

/// Narrows a number that was read with a range that fits.
fn narrow<T: TryFrom<u64>>(value: u64) -> T {
    T::try_from(value).ok().expect("the range was checked when the number was read")
}

fn not_empty(file_name: &str, fabric: Fabric) -> Result<Fabric, ParseError> {
    if fabric.node_count() > 0 {
        return Ok(fabric);
    }
    let start = Place { source: 0, line: 1, column: 1 };
    Err(start.fault("found no node in the file, expected at least one").at(file_name))
}

#[cfg(test)]
mod tests;
