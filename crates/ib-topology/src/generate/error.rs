//! Errors of generating a fabric.

use ib_types::Lid;

/// The maximum number of external ports of a node.
pub(super) const MAX_PORTS: u64 = 254;

/// The number of unicast LIDs of a subnet.
pub(super) const MAX_LIDS: u64 = Lid::MAX_UNICAST as u64;

/// Error of generating a fabric: the parameter, the value found and the values expected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// The kind's name is unknown.
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
        /// The name of the argument in the usage line.
        parameter: &'static str,
        /// The usage line of the kind.
        usage: &'static str,
    },
    /// There are more positional arguments than the kind has.
    #[error("`{found}` is one argument too many: expected `{usage}`")]
    ExtraArgument {
        /// The first surplus argument.
        found: String,
        /// The usage line of the kind.
        usage: &'static str,
    },
    /// The kind has no such key.
    #[error("`{key}=` is unknown here: expected `{usage}`")]
    UnknownKey {
        /// The key.
        key: String,
        /// The usage line of the kind.
        usage: &'static str,
    },
    /// A key is used twice.
    #[error("`{key}=` is used twice: expected it once")]
    RepeatedKey {
        /// The key.
        key: String,
    },
    /// An argument is malformed.
    #[error("`{found}` is not a valid {parameter}: expected {expected}")]
    BadArgument {
        /// The name of the argument in the usage line, or its key.
        parameter: &'static str,
        /// The argument.
        found: String,
        /// The expected form.
        expected: String,
    },
    /// A parameter is out of range.
    #[error("{parameter} is {found}: expected {low} to {high}")]
    OutOfRange {
        /// The name of the parameter.
        parameter: String,
        /// Its value.
        found: u64,
        /// The minimum.
        low: u64,
        /// The maximum.
        high: u64,
    },
    /// A list does not have one number per level.
    #[error(
        "the list {parameter} has length {found}: expected {levels}, one number for each level"
    )]
    LevelCount {
        /// The name of the list.
        parameter: &'static str,
        /// Its length.
        found: usize,
        /// The number of levels.
        levels: usize,
    },
    /// Parameters contradict each other.
    #[error("{found}: expected {expected}")]
    Contradiction {
        /// The contradicting parameters and their values.
        found: String,
        /// The values that would be accepted.
        expected: String,
    },
    /// A node would have more than 254 external ports.
    #[error("a {node} of this fabric needs {ports} ports: expected at most {MAX_PORTS}")]
    TooManyPorts {
        /// The kind of node: `switch` or `host`.
        node: &'static str,
        /// The number of ports.
        ports: u64,
    },
    /// The fabric has more LIDs than a subnet.
    #[error(
        "the fabric needs {} LIDs ({} host ports and {} switches): expected at most {MAX_LIDS}",
        counted(*lids), counted(*host_ports), counted(*switches)
    )]
    TooManyLids {
        /// Ports of all hosts; saturates at `u64::MAX`.
        host_ports: u64,
        /// Switches; saturates at `u64::MAX`.
        switches: u64,
        /// LIDs; saturates at `u64::MAX`.
        lids: u64,
    },
    /// A fraction is not between 0 and 1.
    #[error("the fraction of {kind} to drop is {found}: expected 0 to 1")]
    Fraction {
        /// `links` or `switches`.
        kind: &'static str,
        /// The fraction.
        found: f64,
    },
    /// No host is left after switches were dropped.
    #[error(
        "no host is left when {dropped} of {switches} switches are dropped: expected to drop fewer"
    )]
    NothingLeft {
        /// Number of dropped switches.
        dropped: usize,
        /// Number of switches before.
        switches: usize,
    },
}

/// Formats a count that saturates at `u64::MAX`.
fn counted(count: u64) -> String {
    if count == u64::MAX { "2^64 or more".to_owned() } else { count.to_string() }
}
