//! What is asked, and how it is answered.

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

/// An answer, as all consoles of this project have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Whether it was done.
    pub ok: bool,
    /// The answer, or why it was not done.
    pub text: String,
    /// The answer as data; where it was not done the number of the error as `errno`.
    pub data: Value,
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
            let text = format!("expected a question such as {{\"list\":\"\"}}: {error}");
            Reply { ok: false, text, data: json!({ "errno": ib_rtrs::Errno::EINVAL.0 }) }
        })
    }
}

impl Reply {
    /// Returns the line.
    #[must_use]
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("it is made of text and numbers")
    }

    /// Reads a line.
    ///
    /// # Errors
    /// Fails when it is no answer.
    pub fn parse(line: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(line)
    }

    pub(in crate::rtrs) fn failed(error: &TreeError) -> Self {
        Self { ok: false, text: error.to_string(), data: json!({ "errno": error.errno.0 }) }
    }

    pub(in crate::rtrs) fn done() -> Self {
        Self { ok: true, text: String::new(), data: Value::Null }
    }

    pub(in crate::rtrs) fn read(path: &str, text: String) -> Self {
        let data = json!({ "path": path, "value": text });
        Self { ok: true, text, data }
    }

    pub(in crate::rtrs) fn metrics(text: String) -> Self {
        Self { ok: true, text, data: Value::Null }
    }

    pub(in crate::rtrs) fn list(entries: &[Entry]) -> Self {
        let line = |entry: &Entry| match entry.kind {
            Kind::Directory => format!("{}/\n", entry.name),
            Kind::File { .. } => format!("{}\n", entry.name),
        };
        let data = |entry: &Entry| {
            let mut data = kind(entry.kind);
            data["name"] = entry.name.clone().into();
            data
        };
        let text = entries.iter().map(line).collect();
        Self { ok: true, text, data: entries.iter().map(data).collect() }
    }

    pub(in crate::rtrs) fn kind(of: Kind) -> Self {
        Self { ok: true, text: String::new(), data: kind(of) }
    }

    /// Turns what the tree says into an answer.
    pub(super) fn of<T>(result: Result<T, TreeError>, answer: impl FnOnce(T) -> Self) -> Self {
        result.map_or_else(|error| Self::failed(&error), answer)
    }
}

fn kind(kind: Kind) -> Value {
    match kind {
        Kind::Directory => json!({ "kind": "directory" }),
        Kind::File { is_writable } => json!({ "kind": "file", "writable": is_writable }),
    }
}

/// Reads what [`kind`] has written.
pub(super) fn to_kind(data: &Value) -> Option<Kind> {
    match data["kind"].as_str()? {
        "directory" => Some(Kind::Directory),
        "file" => Some(Kind::File { is_writable: data["writable"].as_bool()? }),
        _ => None,
    }
}
