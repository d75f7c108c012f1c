//! Replies of the control protocol.

use std::fmt::Display;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    /// True if the request was executed.
    pub ok: bool,
    /// The result in words, or the reason of the failure.
    pub text: String,
    /// The result as JSON; `null` if there is none.
    pub data: Value,
}

impl Reply {
    /// Returns the reply to an executed request.
    #[must_use]
    pub fn done(text: impl Into<String>, data: Value) -> Self {
        Self { ok: true, text: text.into(), data }
    }

    /// Returns the reply to a request that was not executed.
    #[must_use]
    pub fn failed(reason: impl Display) -> Self {
        Self { ok: false, text: reason.to_string(), data: Value::Null }
    }

    /// Returns the JSON line of the reply, without a newline.
    #[must_use]
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("text and JSON values can be serialised")
    }
}

impl From<Result<(String, Value), String>> for Reply {
    fn from(result: Result<(String, Value), String>) -> Self {
        match result {
            Ok((text, data)) => Self::done(text, data),
            Err(reason) => Self::failed(reason),
        }
    }
}
