//! Lookup of files and directories by path.

use std::collections::BTreeMap;

use super::TreeError;
use super::layout::{File, Files, Layout, PATHS, STATS};
use ib_types::Errno;

/// Kind of an entry of the tree: a file or a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A readable file.
    File {
        /// True if the file can be written.
        is_writable: bool,
    },
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name of the entry.
    pub name: String,
    /// The kind of the entry.
    pub kind: Kind,
}

/// The sessions of a client or server, with their paths.
pub(super) trait Sessions {
    type Session: Copy;
    type Path: Copy;

    /// Returns the sessions with their names.
    fn sessions(&self) -> Vec<(String, Self::Session)>;

    /// Returns the paths of a session with their names.
    fn paths(&self, session: Self::Session) -> Vec<(String, Self::Path)>;
}

/// A file or directory that was found in the tree.
pub(super) enum Node<S, P> {
    Root,
    Side,
    Session(&'static Layout, S),
    Paths(S),
    Path(&'static Layout),
    Stats(&'static Layout),
    File(&'static Layout, Option<P>, File),
}

/// A file or directory in the tree of a client or server.
type NodeOf<S> = Node<<S as Sessions>::Session, <S as Sessions>::Path>;

/// Finds a file or directory by its path. Empty path components are ignored.
pub(super) fn find<S: Sessions>(
    layouts: [&'static Layout; 2],
    sessions: &S,
    path: &str,
) -> Result<NodeOf<S>, TreeError> {
    let wrong = |errno, what: &str| TreeError::new(errno, path, what);
    let no_such = || wrong(Errno::ENOENT, "there is no such file or directory");
    let mut names = path.split('/').filter(|name| !name.is_empty());
    let Some(name) = names.next() else { return Ok(Node::Root) };
    let layout = layouts.into_iter().find(|layout| layout.root == name).ok_or_else(no_such)?;
    let Some(name) = names.next() else { return Ok(Node::Side) };
    let session = named(sessions.sessions(), name).ok_or_else(no_such)?;
    let Some(name) = names.next() else { return Ok(Node::Session(layout, session)) };
    let file = |files, name, path| {
        file(files, name).map(|file| Node::File(layout, path, file)).ok_or_else(no_such)
    };
    let node = if name == PATHS {
        let Some(name) = names.next() else { return Ok(Node::Paths(session)) };
        let path = named(sessions.paths(session), name).ok_or_else(no_such)?;
        match names.next() {
            None => return Ok(Node::Path(layout)),
            Some(STATS) => match names.next() {
                None => return Ok(Node::Stats(layout)),
                Some(name) => file(layout.stats, name, Some(path))?,
            },
            Some(name) => file(layout.path, name, Some(path))?,
        }
    } else {
        file(layout.session, name, None)?
    };
    match names.next() {
        None => Ok(node),
        Some(_) => Err(wrong(Errno::ENOTDIR, "a component of the path is not a directory")),
    }
}

fn named<T>(all: Vec<(String, T)>, name: &str) -> Option<T> {
    all.into_iter().find(|(own, _)| own == name).map(|(_, it)| it)
}

fn file(files: Files, name: &str) -> Option<File> {
    files.iter().find(|(own, _)| *own == name).map(|&(_, file)| file)
}

/// Returns the entries of a directory.
pub(super) fn list<S: Sessions>(
    layouts: [&'static Layout; 2],
    sessions: &S,
    path: &str,
) -> Result<Vec<Entry>, TreeError> {
    let directory = |name: String| Entry { name, kind: Kind::Directory };
    let files = |files: Files| {
        let entry =
            |&(name, file): &(&str, File)| Entry { name: name.to_owned(), kind: kind(file) };
        files.iter().map(entry).collect::<Vec<_>>()
    };
    let with = |listed: Files, name: &str| {
        let mut entries = files(listed);
        entries.push(directory(name.to_owned()));
        entries
    };
    Ok(match find(layouts, sessions, path)? {
        Node::Root => layouts.map(|layout| directory(layout.root.to_owned())).into(),
        Node::Side => sessions.sessions().into_iter().map(|(name, _)| directory(name)).collect(),
        Node::Session(layout, _) => with(layout.session, PATHS),
        Node::Paths(session) => {
            sessions.paths(session).into_iter().map(|(name, _)| directory(name)).collect()
        }
        Node::Path(layout) => with(layout.path, STATS),
        Node::Stats(layout) => files(layout.stats),
        Node::File(..) => return Err(TreeError::new(Errno::ENOTDIR, path, "not a directory")),
    })
}

/// Returns whether a path leads to a file or to a directory.
pub(super) fn kind_of<S: Sessions>(
    layouts: [&'static Layout; 2],
    sessions: &S,
    path: &str,
) -> Result<Kind, TreeError> {
    Ok(match find(layouts, sessions, path)? {
        Node::File(_, _, file) => kind(file),
        _ => Kind::Directory,
    })
}

const fn kind(file: File) -> Kind {
    Kind::File { is_writable: file.is_writable() }
}

/// Returns the file at a path of the tree, with its layout, and with the RTRS path to which the file belongs, if any.
pub(super) fn find_file<S: Sessions>(
    layouts: [&'static Layout; 2],
    sessions: &S,
    path: &str,
) -> Result<(&'static Layout, Option<S::Path>, File), TreeError> {
    match find(layouts, sessions, path)? {
        Node::File(layout, of, file) => Ok((layout, of, file)),
        _ => Err(TreeError::new(Errno::EISDIR, path, "this is a directory")),
    }
}

/// Makes names unique: appends `#2` to the name of the second path with the same name, and so on.
pub(super) fn distinct<P>(paths: impl Iterator<Item = (String, P)>) -> Vec<(String, P)> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let mut named = Vec::new();
    for (name, path) in paths {
        let count = counts.entry(name.clone()).and_modify(|count| *count += 1).or_insert(1);
        named.push((if *count == 1 { name } else { format!("{name}#{count}") }, path));
    }
    named
}

/// Returns the directory name of a session. Invalid UTF-8, control characters and backslashes are escaped as in `\xNN`.
pub(super) fn session_name(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(text) if !text.contains(|it: char| it.is_control() || it == '\\') => text.to_owned(),
        _ => name.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests;
