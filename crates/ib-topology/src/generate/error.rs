//! Errors of generating a fabric.

use ib_types::Lid;

/// Maximum number of external ports of a node.
pub(super) const MAX_PORTS: u64 = 254;

/// Number of unicast LIDs that a subnet has.
pub(super) const MAX_LIDS: u64 = Lid::MAX_UNICAST as u64;

/// Error of generating a fabric: the parameter, the value found and the values expected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// There is no kind of fabric with this name.
    #[error("`{found}` is not a kind of fabric: expected one of {expected}")]
    UnknownKind {
        /// The unknown name.
        found: String,
        /// The names of all kinds, separated by commas.
        expected: String,
    },
    /// A required argument is missing.
    #[error("{parameter} is missing: expected `{usage}`")]
    MissingArgument {
        /// The missing argument, as named in the usage line.
        parameter: &'static str,
        /// The usage line of the kind.
        usage: &'static str,
    },
    /// There are more positional arguments than the usage line of the kind has.
    #[error("`{found}` is one argument too many: expected `{usage}`")]
    ExtraArgument {
        /// The first of the surplus arguments.
        found: String,
        /// The usage line of the kind.
        usage: &'static str,
    },
    /// The kind of fabric has no argument with this key.
    #[error("`{key}=` is not an argument of this kind of fabric: expected `{usage}`")]
    UnknownKey {
        /// The key.
        key: String,
        /// The usage line of the kind.
        usage: &'static str,
    },
    /// A key occurs twice.
    #[error("`{key}=` is used twice: expected it once")]
    RepeatedKey {
        /// The key.
        key: String,
    },
    /// An argument does not have the expected form.
    #[error("`{found}` is not a valid {parameter}: expected {expected}")]
    BadArgument {
        /// The name of the argument in the usage line, or its key.
        parameter: &'static str,
        /// The text of the argument; for `key=value`, only the value.
        found: String,
        /// The expected form.
        expected: String,
    },
    /// A parameter is out of range.
    #[error("{parameter} is {found}: expected {low} to {high}")]
    OutOfRange {
        /// The name of the parameter.
        parameter: String,
        /// The value of the parameter.
        found: u64,
        /// The minimum of the parameter.
        low: u64,
        /// The maximum of the parameter.
        high: u64,
    },
    /// A list does not have one number for each level.
    #[error(
        "the list {parameter} has length {found}: expected {levels}, one number for each level"
    )]
    LevelCount {
        /// The name of the list.
        parameter: &'static str,
        /// The number of elements in the list.
        found: usize,
        /// The number of levels.
        levels: usize,
    },
    /// The values of several parameters contradict each other.
    #[error("{found}: expected {expected}")]
    Contradiction {
        /// The contradicting parameters and their values.
        found: String,
        /// The values that the generator would accept.
        expected: String,
    },
    /// A node would have more than 254 external ports.
    #[error("a {node} of this fabric needs {ports} ports: expected at most {MAX_PORTS}")]
    TooManyPorts {
        /// The kind of node: `switch` or `host`.
        node: &'static str,
        /// The number of ports that the node needs.
        ports: u64,
    },
    /// The fabric needs more LIDs than a subnet has.
    #[error(
        "the fabric needs {} LIDs ({} host ports and {} switches): expected at most {MAX_LIDS}",
        counted(*lids), counted(*host_ports), counted(*switches)
    )]
    TooManyLids {
        /// The number of ports of all hosts; `u64::MAX` also stands for higher numbers.
        host_ports: u64,
        /// The number of switches; `u64::MAX` also stands for higher numbers.
        switches: u64,
        /// The number of LIDs; `u64::MAX` also stands for higher numbers.
        lids: u64,
    },
    /// A fraction is not between 0 and 1.
    #[error("the fraction of {kind} to drop is {found}: expected 0 to 1")]
    Fraction {
        /// The items to be dropped: `links` or `switches`.
        kind: &'static str,
        /// The fraction.
        found: f64,
    },
    /// No host has a link left after switches were dropped.
    #[error(
        "no host is left when {dropped} of {switches} switches are dropped: expected to drop fewer"
    )]
    NothingLeft {
        /// Number of dropped switches.
        dropped: usize,
        /// Number of switches before any was dropped.
        switches: usize,
    },
}

/// Formats a count; `u64::MAX` also stands for higher numbers.
fn counted(count: u64) -> String {
    if count == u64::MAX { "2^64 or more".to_owned() } else { count.to_string() }
}
