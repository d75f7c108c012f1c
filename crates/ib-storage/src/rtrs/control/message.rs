//! What is asked, and how it is answered.

use ib_control::lines::Reply;
use ib_rtrs::tree::{Entry, Kind, TreeError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What is asked: an object of JSON such as `{"read":"rtrs-client/a/mpath_policy"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ControlRequest {
    /// What is in a directory.
    List(String),
    /// What a path leads to.
    Kind(String),
    /// What a file says.
    Read(String),
    /// To write to a file.
    Write {
        /// The file.
        path: String,
        /// What is written.
        value: String,
    },
    /// All numbers, for Prometheus.
    Metrics,
}

impl ControlRequest {
    /// Returns the line.
    #[must_use]
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("it is made of text")
    }

    /// Reads a line.
    ///
    /// # Errors
    /// Fails, with the answer to it, when it is no question.
    pub fn parse(line: &str) -> Result<Self, Reply> {
        serde_json::from_str(line).map_err(|error| {
            let text = format!("expected a request such as {{\"list\":\"\"}}: {error}");
            Reply { ok: false, text, data: json!({ "errno": ib_rtrs::Errno::EINVAL.0 }) }
        })
    }
}

/// Returns the reply to a failed access; its data has the error number as `errno`.
pub(in crate::rtrs) fn failed(error: &TreeError) -> Reply {
    Reply { data: json!({ "errno": error.errno.0 }), ..Reply::failed(error) }
}

/// Returns the reply to a write.
pub(in crate::rtrs) fn written() -> Reply {
    Reply::done("", Value::Null)
}

/// Returns the reply to a read.
pub(in crate::rtrs) fn read(path: &str, text: String) -> Reply {
    let data = json!({ "path": path, "value": text });
    Reply::done(text, data)
}

/// Returns the reply with the metrics.
pub(in crate::rtrs) fn metrics(text: String) -> Reply {
    Reply::done(text, Value::Null)
}

/// Returns the reply with the entries of a directory.
pub(in crate::rtrs) fn list(entries: &[Entry]) -> Reply {
    let line = |entry: &Entry| match entry.kind {
        Kind::Directory => format!("{}/\n", entry.name),
        Kind::File { .. } => format!("{}\n", entry.name),
    };
    let data = |entry: &Entry| {
        let mut data = kind_data(entry.kind);
        data["name"] = entry.name.clone().into();
        data
    };
    let text: String = entries.iter().map(line).collect();
    Reply::done(text, entries.iter().map(data).collect())
}

/// Returns the reply with the kind of an entry.
pub(in crate::rtrs) fn kind(of: Kind) -> Reply {
    Reply::done("", kind_data(of))
}

/// Returns the reply to an access to the tree.
pub(super) fn reply_of<T>(result: Result<T, TreeError>, reply: impl FnOnce(T) -> Reply) -> Reply {
    result.map_or_else(|error| failed(&error), reply)
}

fn kind_data(kind: Kind) -> Value {
    match kind {
        Kind::Directory => json!({ "kind": "directory" }),
        Kind::File { is_writable } => json!({ "kind": "file", "writable": is_writable }),
    }
}

/// Parses the result of [`kind_data`].
pub(super) fn to_kind(data: &Value) -> Option<Kind> {
    match data["kind"].as_str()? {
        "directory" => Some(Kind::Directory),
        "file" => Some(Kind::File { is_writable: data["writable"].as_bool()? }),
        _ => None,
    }
}
