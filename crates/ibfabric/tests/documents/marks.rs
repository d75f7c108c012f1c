//! The lines of documents that a test does not run, with the reasons.

/// A line of a document that a test cannot run.
pub(crate) struct Mark {
    /// The path of the document, relative to the root of the repository.
    pub(crate) file: &'static str,
    /// The command in the document, without its comment.
    pub(crate) command: &'static str,
    pub(crate) reason: &'static str,
}

const fn mark(file: &'static str, command: &'static str, reason: &'static str) -> Mark {
    Mark { file, command, reason }
}

const ROOT: &str = "changes the system as root";

pub(crate) const MARKS: &[Mark] = &[
    mark("docs/how-to/resolve-names.md", "systemctl enable --now ibfabric-acm.socket", ROOT),
    mark(
        "docs/how-to/replace-opensm.md",
        "systemctl daemon-reload && systemctl enable --now ibfabric-sm",
        ROOT,
    ),
];

/// Returns the entry of [`MARKS`] for a command of a document, and its index.
pub(crate) fn find(file: &str, command: &str) -> Option<(usize, &'static Mark)> {
    let command = command.split(" #").next().unwrap_or(command).trim_end();
    MARKS.iter().enumerate().find(|(_, mark)| mark.file == file && mark.command == command)
}
