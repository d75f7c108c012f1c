//! Control requests and their replies.

use ib_control::lines::Reply;
use ib_rtrs::tree::{Entry, Kind, Ports, Tree, TreeError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A control request: a JSON object such as `{"read":"rtrs-client/a/mpath_policy"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ControlRequest {
    /// Queries the entries of the directory of the tree that has this path.
    List(String),
    /// Queries whether a path of the tree is a file or a directory.
    Kind(String),
    /// Reads the file of the tree that has this path.
    Read(String),
    /// Writes a control file of the tree.
    Write {
        /// The path of the file.
        path: String,
        /// The value to write.
        value: String,
    },
    /// Queries all metrics, in the text format of Prometheus.
    Metrics,
}

impl ControlRequest {
    /// Encodes the request as a line, without the newline.
    #[must_use]
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("strings can be encoded as JSON")
    }

    /// Parses a line of JSON that contains a request.
    ///
    /// # Errors
    /// If the request is invalid, returns the reply to it as the error.
    pub fn parse(line: &str) -> Result<Self, Reply> {
        serde_json::from_str(line).map_err(|error| {
            let text = format!("expected a request such as {{\"list\":\"\"}}: {error}");
            Reply { ok: false, text, data: json!({ "errno": ib_rtrs::Errno::EINVAL.0 }) }
        })
    }
}

/// A request that writes a control file of the tree.
pub(super) struct WriteRequest {
    pub(super) path: String,
    pub(super) value: String,
}

/// Returns the reply to a request that only reads. If the request is a write, returns it as the
/// error.
pub(super) fn reply_to_read<T: Tree>(
    request: ControlRequest,
    tree: &T,
    engine: &T::Engine,
    ports: &impl Ports,
) -> Result<Reply, WriteRequest> {
    Ok(match request {
        ControlRequest::List(path) => reply_of(tree.list(engine, &path), |all| list(&all)),
        ControlRequest::Kind(path) => reply_of(tree.kind(engine, &path), kind),
        ControlRequest::Read(path) => {
            reply_of(tree.read(engine, ports, &path), |text| read(&path, text))
        }
        ControlRequest::Metrics => metrics(tree.metrics(engine)),
        ControlRequest::Write { path, value } => return Err(WriteRequest { path, value }),
    })
}

/// Returns the reply to a failed request. The field `errno` of its data is the error number.
pub(in crate::rtrs) fn failed(error: &TreeError) -> Reply {
    Reply { data: json!({ "errno": error.errno.0 }), ..Reply::failed(error) }
}

/// Returns the reply to a completed write.
pub(in crate::rtrs) fn written() -> Reply {
    Reply::done("", Value::Null)
}

/// Returns the reply to a read, which contains the file's contents.
pub(in crate::rtrs) fn read(path: &str, text: String) -> Reply {
    let data = FileData { path: path.to_owned(), value: text.clone() };
    Reply::done(text, value(&data))
}

/// Returns the reply that contains the metrics.
pub(in crate::rtrs) fn metrics(text: String) -> Reply {
    Reply::done(text, Value::Null)
}

/// Returns the reply that contains the entries of a directory.
pub(in crate::rtrs) fn list(entries: &[Entry]) -> Reply {
    let line = |entry: &Entry| match entry.kind {
        Kind::Directory => format!("{}/\n", entry.name),
        Kind::File { .. } => format!("{}\n", entry.name),
    };
    let data = |entry: &Entry| EntryData { name: entry.name.clone(), kind: entry.kind.into() };
    let text: String = entries.iter().map(line).collect();
    Reply::done(text, value(&entries.iter().map(data).collect::<Vec<_>>()))
}

/// Returns the reply that states whether a path is a file or a directory.
pub(in crate::rtrs) fn kind(of: Kind) -> Reply {
    Reply::done("", value(&KindData::from(of)))
}

/// Converts the result of an access to the tree into the reply to the request.
pub(super) fn reply_of<T>(result: Result<T, TreeError>, reply: impl FnOnce(T) -> Reply) -> Reply {
    result.map_or_else(|error| failed(&error), reply)
}

/// Returns data as a JSON value.
fn value(data: &impl Serialize) -> Value {
    serde_json::to_value(data).expect("texts and flags can be converted to JSON")
}

/// Contents of a file. The field names are JSON keys.
#[derive(Serialize, JsonSchema)]
pub struct FileData {
    path: String,
    value: String,
}

/// An entry of a directory. The field names are JSON keys.
#[derive(Serialize, JsonSchema)]
pub struct EntryData {
    name: String,
    #[serde(flatten)]
    kind: KindData,
}

/// The kind of an entry.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum KindData {
    Directory,
    File { writable: bool },
}

impl From<Kind> for KindData {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Directory => Self::Directory,
            Kind::File { is_writable } => Self::File { writable: is_writable },
        }
    }
}

/// Parses [`KindData`].
pub(super) fn to_kind(data: &Value) -> Option<Kind> {
    match data["kind"].as_str()? {
        "directory" => Some(Kind::Directory),
        "file" => Some(Kind::File { is_writable: data["writable"].as_bool()? }),
        _ => None,
    }
}
