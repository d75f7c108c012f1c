//! What can be wrong with a request for a fabric.

use ib_types::Lid;

/// The most external ports that a node can have.
pub(super) const MAX_PORTS: u64 = 254;

/// The unicast LIDs of a subnet.
pub(super) const MAX_LIDS: u64 = Lid::MAX_UNICAST as u64;

/// The error of a fabric that cannot be generated: which parameter, what was found, what was
/// expected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// The kind's name is unknown.
    #[error("`{found}` is not a kind of fabric: expected one of {expected}")]
    UnknownKind {
        /// The name.
        found: String,
        /// The names that exist.
        expected: String,
    },
    /// A word that must be there is not.
    #[error("{what} is missing: expected `{usage}`")]
    MissingWord {
        /// What the usage calls the word.
        what: &'static str,
        /// The kind's usage.
        usage: &'static str,
    },
    /// There are more words than the kind takes.
    #[error("`{found}` is one word too many: expected `{usage}`")]
    ExtraWord {
        /// The first word that is too many.
        found: String,
        /// The kind's usage.
        usage: &'static str,
    },
    /// A `key=value` word has a key that the kind does not take.
    #[error("`{key}=` is unknown here: expected `{usage}`")]
    UnknownKey {
        /// The key.
        key: String,
        /// The kind's usage.
        usage: &'static str,
    },
    /// A key is given twice.
    #[error("`{key}=` is given twice: expected it once")]
    RepeatedKey {
        /// The key.
        key: String,
    },
    /// A word does not read as what it stands for.
    #[error("`{found}` does not read as {what}: expected {expected}")]
    BadWord {
        /// What the usage calls the word, or its key.
        what: &'static str,
        /// The word.
        found: String,
        /// What it looks like when it is right.
        expected: String,
    },
    /// A parameter is out of its range.
    #[error("{what} is {found}: expected {low} to {high}")]
    OutOfRange {
        /// The parameter.
        what: String,
        /// Its value.
        found: u64,
        /// The least value allowed.
        low: u64,
        /// The greatest value allowed.
        high: u64,
    },
    /// Lists that describe the same levels are of different lengths.
    #[error("the list {what} has length {found}: expected {levels}, one number for each level")]
    LevelCount {
        /// The list.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The number of levels.
        levels: usize,
    },
    /// Parameters contradict each other.
    #[error("{what}: expected {expected}")]
    Contradiction {
        /// What was found, with its values.
        what: String,
        /// What would fit.
        expected: String,
    },
    /// A node would need more ports than a node can have.
    #[error("a {node} of this fabric needs {ports} ports: expected at most {MAX_PORTS}")]
    TooManyPorts {
        /// What the node is called.
        node: &'static str,
        /// The ports.
        ports: u64,
    },
    /// The fabric would not fit into a subnet.
    #[error(
        "the fabric needs {} LIDs ({} host ports and {} switches): expected at most {MAX_LIDS}",
        counted(*lids), counted(*host_ports), counted(*switches)
    )]
    TooManyLids {
        /// The ports of all hosts; the count ends at `u64::MAX`.
        host_ports: u64,
        /// The switches; the count ends at `u64::MAX`.
        switches: u64,
        /// The LIDs; the count ends at `u64::MAX`.
        lids: u64,
    },
    /// A fraction is not between 0 and 1.
    #[error("the fraction of {what} to drop is {found}: expected 0 to 1")]
    Fraction {
        /// What is to be dropped.
        what: &'static str,
        /// The fraction.
        found: f64,
    },
    /// No host is left after switches were dropped.
    #[error(
        "no host is left when {dropped} of {switches} switches are dropped: expected to drop fewer"
    )]
    NothingLeft {
        /// The switches that were to be dropped.
        dropped: usize,
        /// The switches that there were.
        switches: usize,
    },
}

/// Writes a count that ends at `u64::MAX`.
fn counted(count: u64) -> String {
    if count == u64::MAX { "2^64 or more".to_owned() } else { count.to_string() }
}
